# Stages that lack a block: from a first layer, whose input needs no gradient, none leaves (W without B); a layer without weights has no W.
set -u
cat >net.ir <<'END'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 8, accumulate: 8, steps: 3, data: points(classes: 4), seed: 1)
net (float[N, 8] x, int64[N] label) => (float loss)
< float[8, 8] w0 @init(xavier_uniform), float[8, 8] w1 @init(xavier_uniform) >
{
  h0 = MatMul(x, w0) @stage(0)
  h1 = Gelu(h0) @stage(1)
  h2 = MatMul(h1, w1) @stage(2)
  loss = SoftmaxCrossEntropyLoss(h2, label) @stage(3)
}
END
"$SBPCC" net.ir -o one >log 2>&1 && make -s -C one STATIC= CFLAGS=-O1 >log 2>&1 && one/trainer --export=one/x >log 2>&1 || { echo "not ok one rank: $(tail -n 1 log)"; exit; }
for s in 1f1b zb-h1 zb-h2 ''; do
	"$SBPCC" net.ir -o tree --ranks=4 --stages=4 ${s:+--schedule=$s} >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 && tree/trainer --export=tree/x >log 2>&1 &&
		cmp -s one/x/model.safetensors tree/x/model.safetensors && echo "ok ${s:-solver}" || echo "not ok ${s:-solver}: $(tail -n 1 log)"
	"$SBPCC" --simulate net.ir --ranks=4 --stages=4 ${s:+--schedule=$s} >log 2>&1 && echo "ok ${s:-solver} simulated" || echo "not ok ${s:-solver} simulated: $(tail -n 1 log)"
done
