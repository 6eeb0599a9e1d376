# Segments that the backward pass computes again change no bit of the losses and parameters, and lower the peak of the
# memory: in one batch, and in micro-batches, where they draw the same random numbers again.
cat >deep.ir <<'MODEL'
<ir_version: 10, opset_import: ["" : 23, "m" : 1]>
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 64, steps: 5, data: points(classes: 3))
g (float[N, 16] x, int64[N] label) => (float loss)
<float[16, 16] w1 @init(normal(0, 0.3)), float[16, 16] w2 @init(normal(0, 0.3)), float[16, 16] w3 @init(normal(0, 0.3)), float[16, 16] w4 @init(normal(0, 0.3))>
{
  h1 = m.layer(x, w1) @recompute
  h2 = m.layer(h1, w2) @recompute
  h3 = m.layer(h2, w3) @recompute
  h4 = m.layer(h3, w4) @recompute
  loss = SoftmaxCrossEntropyLoss(h4, label)
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
sed 's/ @recompute//' deep.ir >kept.ir
bytes() { sed -n 's/.*memory of a rank: \([0-9]*\) bytes.*/\1/p' $1.log; }
for part in 64 16; do
	for m in deep kept; do
		rm -rf $m $m.state
		"$SBPCC" $m.ir --ranks 1 --train="microbatch: $part" -o $m >$m.log 2>&1 && make -s -C $m STATIC= CFLAGS=-O1 && $m/trainer --every=1 --checkpoint=$m.state 2>&1 | grep -o 'loss [0-9.]*' >$m.txt || exit 1
	done
	if cmp -s deep.txt kept.txt && cmp -s deep.state/*5/state.safetensors kept.state/*5/state.safetensors && [ "$(wc -l <deep.txt)" -ge 5 ]; then echo "ok same-bits in parts of $part"; else echo "not ok same-bits in parts of $part: $(paste deep.txt kept.txt | head -n 1)"; fi
	if [ "$(bytes deep)" -lt "$(bytes kept)" ]; then echo "ok less-memory in parts of $part"; else echo "not ok less-memory in parts of $part: $(bytes deep) and $(bytes kept)"; fi
done
