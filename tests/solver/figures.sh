# --machine: presets, files and errors in them; --probe writes such a file.
set -u
cat >m.ir <<'M'
<ir_version: 10, opset_import: ["" : 23]>
@mesh(m, cpu, [2, 4])
g (float[8, 4] x) => (float[8, 4] y) { y = Relu(x) }
M
run() { "$SBPCC" m.ir --stop-after=plan --machine="$1" >out 2>&1; }

bad() {                                  # WHAT TEXT MESSAGE
	printf '%b' "$2" >machine
	if run machine; then echo "not ok $1: accepted"; elif grep -qF "$3" out; then echo "ok $1"; else echo "not ok $1: $(cat out)"; fi
}

for p in cpu a100x8 h100x8; do
	if run $p; then echo "ok preset $p"; else echo "not ok preset $p: $(cat out)"; fi
done
printf 'flops 1e9   # of a core\nbytes 1e9\naxis 0 1e-6 1e9\n\nlink 4 1e-6 2e9\n' >machine
if run machine; then echo "ok a file"; else echo "not ok a file: $(cat out)"; fi
bad "an unknown figure" 'flops 1e9\nbytes 1e9\nflop 1\n' 'machine:3:1: error: there is no figure flop; did you mean flops?'
bad "a word for a number" 'flops many\nbytes 1e9\n' 'machine:1:7: error: many is no number'
bad "a negative number" 'flops 1e9\nbytes -1\n' 'machine:2:7: error: -1 is no number'
bad "a number too much" 'flops 1 2\n' 'machine:1:1: error: flops takes 1 number'
bad "a figure that is missing" 'flops 1e9\n' 'needs a line `bytes N`'
bad "ranks that no link joins" 'flops 1e9\nbytes 1e9\nlink 4 1e-6 1e9\n' 'no link joins the ranks along axis 0 of mesh m'
run nowhere && echo "not ok a file that is missing: accepted"
grep -q "nowhere" out && echo "ok a file that is missing"

# Eight ranks on two cores, and on three, where two cores have a rank more: four or three share what a core does,
# meeting costs as many turns, no core is left to hide a transfer.  Sixteen cores: all is hidden that can be; twelve:
# half.
cat >t.ir <<'M'
<ir_version: 10, opset_import: ["" : 23]>
@mesh(m, cpu, [8])
@pin("x", sbp: [S(0)])
@pin("w", "w.grad", sbp: [B])
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 8, steps: 1, data: points, seed: 1)
g (float[N, 64] x) => (float loss) <float[64, 64] w @init(zeros)> { y = MatMul(x, w) z = ReduceMean<keepdims = 0>(y) loss = Identity(z) }
M
seconds() { printf '%b' "$1" >machine && "$SBPCC" t.ir --stop-after=plan --explain --machine=machine 2>&1 | sed -n 's/^plan: \([^ ]*\) s a step.*/\1/p'; }
same() {                                 # WHAT FIGURES FIGURES
	local a b
	a=$(seconds "$2") b=$(seconds "$3")
	if [ -n "$a" ] && [ "$a" = "$b" ]; then echo "ok $1"; else echo "not ok $1: '$a' and '$b'"; fi
}
same "four share a core" 'cores 2\nflops 4e9\nbytes 4e9\nturn 1e-6\noverlap 0.9\nlink * 1e-6 4e9\n' 'flops 1e9\nbytes 1e9\nlink * 5e-6 1e9\n'
same "three share a core" 'cores 3\nflops 3e9\nbytes 3e9\nturn 1e-6\noverlap 0.9\nlink * 1e-6 3e9\n' 'flops 1e9\nbytes 1e9\nlink * 4e-6 1e9\n'
same "a core for each" 'cores 8\nflops 1e9\nbytes 1e9\nturn 1e-6\noverlap 0.9\nlink * 1e-6 1e9\n' 'flops 1e9\nbytes 1e9\nlink * 1e-6 1e9\n'
same "a spare core for each" 'cores 16\nflops 1e9\nbytes 1e9\noverlap 0.8\nlink * 1e-6 1e9\n' 'flops 1e9\nbytes 1e9\noverlap 0.8\nlink * 1e-6 1e9\n'
same "half a spare core for each" 'cores 12\nflops 1e9\nbytes 1e9\noverlap 0.8\nlink * 1e-6 1e9\n' 'flops 1e9\nbytes 1e9\noverlap 0.4\nlink * 1e-6 1e9\n'
shown=$(seconds 'flops 1e9\nbytes 1e9\nlink * 1e-6 1e9\n') hidden=$(seconds 'flops 1e9\nbytes 1e9\noverlap 0.4\nlink * 1e-6 1e9\n')
if [ "$shown" != "$hidden" ]; then echo "ok what is hidden takes less"; else echo "not ok what is hidden takes less: $shown and $hidden"; fi

same "no value fits into this cache" 'flops 1e9\nbytes 1e9\ncache 0 2e9\nlink * 1e-6 1e9\n' 'flops 1e9\nbytes 1e9\nlink * 1e-6 1e9\n'
near=$(seconds 'flops 1e9\nbytes 1e9\ncache 20000 2e9\nlink * 1e-6 1e9\n') quick=$(seconds 'flops 1e9\nbytes 2e9\nlink * 1e-6 1e9\n')
if awk -v far="$shown" -v near="$near" -v all="$quick" 'BEGIN { exit !(near < far && near >= all && near < 1.01 * all) }'; then     # data does not come from there
	echo "ok values that fit into the cache are at its speed"
else
	echo "not ok values that fit into the cache: $near, between $quick and $shown"
fi
bad "a cache of no speed" 'flops 1e9\nbytes 1e9\ncache 100\n' 'machine:3:1: error: cache takes 2 numbers'

# An update is one loop: a moment more is read once and written once, whatever is computed of it; weights that decay
# are read once.
cat >u.ir <<'M'
<ir_version: 10, opset_import: ["" : 23]>
g (float[8, 8] x) => (float loss) <float[8, 1024] a @init(ones), float[1024, 1024] w @init(ones)> { h = MatMul(x, a) y = MatMul(h, w) loss = ReduceSum<keepdims = 0>(y) }
M
printf 'flops 1e24\nbytes 1e9\n' >machine
updated() { "$SBPCC" u.ir --train="loss: loss, optimizer: $1, batch: 8, data: points(classes: 2)" --stop-after=plan --explain --machine=machine 2>&1 | sed -n 's/^plan: \([^ ]*\) s a step.*/\1/p'; }
plain=$(updated 'sgd(lr: 0.1)')
for o in "2 sgd(lr: 0.1, momentum: 0.9)" "4 adam(lr: 0.1)" "4 adamw(lr: 0.1)"; do
	t=$(updated "${o#* }")               # in passes over both weights
	awk -v a="$plain" -v b="$t" -v n="${o%% *}" -v o="${o#* }" 'BEGIN { p = (b - a) / (4 * 1032 * 1024 / 1e9); d = p - n; print (d < 0.05 && d > -0.05 && a > 0 ? "ok " : "not ok ") "an update by " o " takes " n " passes more" (d < 0.05 && d > -0.05 ? "" : ": " p) }'
done

"$PLAIN/sbpcc" --probe >machine 2>out || echo "not ok probe: $(cat out)"
if run machine; then echo "ok probe"; else echo "not ok probe: $(cat machine out)"; fi
