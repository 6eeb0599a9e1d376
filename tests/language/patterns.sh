# Which names a pattern matches, by its beginning, by its end, or by neither, in the graph, in branches and in
# functions.
cat >model.ir <<'X'
<opset_import: ["": 18, "me": 1]>
g (float[4] x) => (float[4] y) {
  "enc.0.w" = Abs(x)
  "enc.1.w" = Abs("enc.0.w")
  "enc.10.v" = Abs("enc.1.w")
  enc = Abs("enc.10.v")
  "dec.0.w" = me.f(enc)
  y = Abs("dec.0.w")
}
<domain: "me", opset_import: ["": 18]>
f (a) => (b) {
  "in.0.w" = Abs(a)
  b = Neg("in.0.w")
}
X
means() { # pattern, the results of the nodes that it means
	echo "@place(\"$1\", stage: 7)" >place
	got=$("$SBPCC" model.ir --place=place --print 2>err | sed -n 's/^ *\(.*\) = .*@stage(7).*/\1/p' | tr -d '"' | tr '\n' ' ')
	if [ "$got" = "$2" ]; then echo "ok $1"; else echo "not ok $1: means $got, not $2"; cat err >&2; fi
}
means 'enc.*' 'enc.0.w enc.1.w enc.10.v '
means 'enc*' 'enc.0.w enc.1.w enc.10.v enc '
means '*.w' 'enc.0.w enc.1.w dec.0.w in.0.w '
means '*.0.*' 'enc.0.w dec.0.w in.0.w '
means 'enc.?.w' 'enc.0.w enc.1.w '
means '[ed]*c.[!1]*' 'enc.0.w dec.0.w '
means '??c' 'enc '
means 'in.0.w' 'in.0.w '
means 'e*0*' 'enc.0.w enc.10.v '
echo '@pin("enc.*.w.grad", sbp: B) @pin("x*grad", sbp: B) @mesh(m, cpu, [2])' >place
if "$SBPCC" model.ir --place=place --print >out 2>err; then echo "ok derived names"; else echo "not ok derived names"; cat err >&2; fi
echo '@pin("y.*.w.grad", sbp: B) @mesh(m, cpu, [2])' >place
if "$SBPCC" model.ir --place=place --print >out 2>err; then echo "not ok no derived name: accepted"; else echo "ok no derived name"; fi
