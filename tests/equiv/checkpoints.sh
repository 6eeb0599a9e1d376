# Where a rank would not fit into --memory, sbpcc chooses what the backward pass computes again: the program fits, and no bit of its weights
# changes, with dropout, in one batch, in micro-batches and in pipelines of several schedules.  --recompute=none refuses, @keep is never chosen.
cat >deep.ir <<'MODEL'
<ir_version: 10, opset_import: ["" : 23, "m" : 1]>
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 1024, steps: 3, data: points(classes: 3))
g (float[N, 16] x, int64[N] label) => (float loss)
<float[16, 16] w1 @init(normal(0, 0.3)), float[16, 16] w2 @init(normal(0, 0.3)), float[16, 16] w3 @init(normal(0, 0.3)), float[16, 16] w4 @init(normal(0, 0.3)),
 float[16, 16] w5 @init(normal(0, 0.3)), float[16, 16] w6 @init(normal(0, 0.3)), float[16, 16] w7 @init(normal(0, 0.3)), float[16, 16] w8 @init(normal(0, 0.3))>
{
  h1 = m.layer(x, w1)
  h2 = m.layer(h1, w2)
  h3 = m.layer(h2, w3)
  h4 = m.layer(h3, w4)
  h5 = m.layer(h4, w5)
  h6 = m.layer(h5, w6)
  h7 = m.layer(h6, w7)
  h8 = m.layer(h7, w8)
  loss = SoftmaxCrossEntropyLoss(h8, label)
}

<domain: "m", opset_import: ["" : 23]>
layer (x, w) => (y)
{
  a = MatMul(x, w)
  b0 = Tanh(a)
  ratio = Constant<value_float = 0.25>()
  on = Constant<value = bool {1}>()
  b = Dropout(b0, ratio, on)
  c = Sin(b)
  d = Sigmoid(c)
  e = Erf(d)
  y = Add(x, e)
}
MODEL
bytes() { sed -n 's/.*memory of a rank: \([0-9]*\) bytes.*/\1/p' "$1.out"; }
tree() { # name, options
	local name=$1
	shift
	"$SBPCC" deep.ir -o "$name" "$@" >"$name.out" 2>&1 && make -s -C "$name" STATIC= CFLAGS=-O1 >"$name.make" 2>&1 && "$name/trainer" --export="$name/x" >"$name.run" 2>&1 && return
	echo "not ok $name: $(tail -n 3 "$name.out" "$name.run" 2>/dev/null | tr '\n' ' ')"
	return 1
}
try() { # name, percent of the memory, options
	local name=$1 share=$2
	shift 2
	tree "$name-kept" "$@" || return
	local budget=$(($(bytes "$name-kept") * share / 100))
	tree "$name" --memory=$budget "$@" || return
	if cmp -s "$name-kept/x/model.safetensors" "$name/x/model.safetensors"; then echo "ok same bits: $name"; else echo "not ok same bits: $name"; fi
	if grep -q '^recompute: ' "$name.out" && [ "$(bytes "$name")" -le "$budget" ]; then echo "ok fits: $name"; else echo "not ok fits: $name: $(bytes "$name") of $budget; $(grep '^recompute' "$name.out")"; fi
	rm -rf "${name:?}" "$name-kept"
	last=$budget
}
try one 75 --ranks=1
"$SBPCC" deep.ir -o no --ranks=1 --memory=$last --recompute=none >no.out 2>&1
[ $? -eq 3 ] && echo "ok none is refused" || echo "not ok none is refused: $(head -n 1 no.out)"
more=$(sed -n 's/.*--micro-batches=2 needs about \([0-9]*\) bytes a rank.*/\1/p' no.out)
need=$("$SBPCC" deep.ir -o no --ranks=1 --micro-batches=2 | sed -n 's/.*memory of a rank: \([0-9]*\) bytes.*/\1/p')
if grep -q -e '--recompute=auto' no.out && grep -q -e '--ranks=2 needs' no.out && awk -v a="$more" -v b="$need" 'BEGIN { exit !(a > 0.8 * b && a < 1.25 * b) }'; then echo "ok proposals"; else echo "not ok proposals: $more for 2 micro-batches, which need $need"; fi
sed 's/^  h2 = .*)/& @keep/' deep.ir >pinned.ir
"$SBPCC" pinned.ir -o pinned --ranks=1 --memory=$last >pinned.out 2>&1
if grep -q '^recompute: ' pinned.out && ! grep '\.again' pinned/plan.ir | grep -q '^ *"h2\.'; then echo "ok keep wins"; else echo "not ok keep wins: $(head -n 1 pinned.out)"; fi
try micro 80 --ranks=1 --micro-batches=4
try 1f1b 85 --ranks=2 --stages=2 --schedule=1f1b --micro-batches=4
try four-stages 90 --ranks=4 --stages=4 --schedule=1f1b --micro-batches=4
try zb-h1 90 --ranks=2 --stages=2 --schedule=zb-h1 --micro-batches=4
try interleaved 85 --ranks=2 --stages=4 --schedule=interleaved --micro-batches=4
