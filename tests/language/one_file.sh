# An operator that is a definition touches one file.  The test copies sources and build, appends a function to one
# file of ir/ops, and lets ninja build: it compiles one C file, the text of the definitions.  The new sbpcc lists,
# evaluates, differentiates and trains the operator.
set -u
at=$(realpath --relative-to="$ROOT" "$PLAIN")
case $at in ..*) echo "skip one-file: the build folder $PLAIN lies outside of the sources" && exit 0 ;; esac
mkdir -p "copy/$at" && find "$ROOT" -maxdepth 1 -type f -exec cp -p {} copy \; &&
	cp -rp "$ROOT/ir" "$ROOT/compiler" "$ROOT/runtime" "$ROOT/kernels" "$ROOT/templates" copy &&
	(cd "$PLAIN" && cp -rp .ninja_log .ninja_deps ./*.[ch] libir.a* libcompiler.a* sbpcc sbpcc.p "$TMP/copy/$at") &&
	sed '/^build build\.ninja:/,/^$/d' "$PLAIN/build.ninja" >"copy/$at/build.ninja" || exit 1       # without the rule that calls meson

cat >>copy/ir/ops/activation.ir <<'END'

# x squared above 0, else 0
@op(since: 1)
<domain: "sbpcc">
SquaredRelu (x) => (y) {
	r = Relu(x)
	y = Mul(r, r)
}
END
ninja -C "copy/$at" -v sbpcc >log 2>&1 || { echo "not ok builds: does not build" && tail -n 20 log | sed 's/^/    /' && exit 1; }
n=$(grep -cE '^\[[0-9]+/[0-9]+\].* -c ' log)
[ "$n" = 1 ] && echo "ok one-file-is-compiled" || { echo "not ok one-file-is-compiled: $n are" && grep -o ' -c .*' log | sed 's/^/    /'; }
new=copy/$at/sbpcc
"$new" --list-ops | grep -q '^sbpcc.SquaredRelu .*by definition' && echo "ok listed" || echo "not ok listed: --list-ops does not have it"

cat >eval.ir <<'END'
g (float[1] x) => (float[3] y) <float[3] c = {-2, 0.5, 3}> {
  y = sbpcc.SquaredRelu(c)
}
END
mkdir in out
printf '\x93NUMPY\x01\x00\x46\x00{%-68s}\n' "'descr': '<f4', 'fortran_order': False, 'shape': (1,)" | head -c 80 >in/x.npy
printf '\0\0\0\0' >>in/x.npy
"$new" --eval eval.ir --inputs in --outputs out >log 2>&1
y=$(tail -c 12 out/output_0.npy 2>/dev/null | od -An -t f4 | xargs)
[ "$y" = "0 0.25 9" ] && echo "ok evaluated" || echo "not ok evaluated: $y $(head -n 1 log)"

# The gradient of sum(relu(w)^2) at w = 1 is 2: one step of rate 0.25 halves w, so that the loss of the second step is
# a quarter of the first.
cat >train.ir <<'END'
@train(loss: loss, optimizer: sgd(lr: 0.25), batch: 2, steps: 2, data: points(classes: 2))
g (float[N, 2] x) => (float loss) <float[4] w @init(ones)> {
  zero = Mul(ReduceSum<keepdims = 0>(x), 0)
  loss = Add(ReduceSum<keepdims = 0>(sbpcc.SquaredRelu(w)), zero)
}
END
"$new" train.ir -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 && tree/trainer --every=1 >log 2>&1
losses=$(awk '/^step/ { printf "%g ", $4 }' log)
[ "$losses" = "4 1 " ] && echo "ok trained" || { echo "not ok trained: losses $losses" && head -n 5 log | sed 's/^/    /'; }
