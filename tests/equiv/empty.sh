# Three rows on four ranks: one rank has none of them, and the losses are those of one rank.
cat >net.ir <<'M'
<ir_version: 10, opset_import: ["" : 23]>
@mesh(m, cpu, [4])
@pin("x", "t", "h", sbp: [S(0)])
@pin("w2", sbp: [S(1)])
@train(loss: loss, optimizer: adamw(lr: 0.01), steps: 20, data: points(classes: 3), seed: 1)
net (float[3, 8] x, int64[3] t) => (float loss)
<float[8, 7] w1 @init(normal(0, 1)), float[7, 3] w2 @init(normal(0, 1))>
{ h = Relu(MatMul(x, w1)) loss = SoftmaxCrossEntropyLoss(MatMul(h, w2), t) }
M
sed 's/\[4\])$/[1])/' net.ir >one.ir
for m in one net; do
	"$SBPCC" $m.ir -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 || { echo "not ok $m: $(head -n 1 log)" && exit; }
	tree/trainer --every=1 2>err | grep -o '^step *[0-9]* *loss [^ ]*' >$m.txt
done
grep -q '"x".*@sbp(S(0))\|x @sbp(S(0))' tree/plan.ir || echo "not ok rows: $(grep -n '@sbp' tree/plan.ir | head -n 1)"
paste one.txt net.txt | awk '{ d = $4 - $8; if (d < 0) d = -d; if ($2 != $6 || $8 == "" || d > 1e-5 * $4) bad = 1 } END { exit bad || NR != 20 }' &&
	echo "ok three rows on four ranks" || echo "not ok three rows on four ranks: $(tail -n 1 one.txt), $(tail -n 1 net.txt) $(head -n 1 err)"
