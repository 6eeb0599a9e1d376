# Outside training, batch norm uses the running statistics that training kept, whether or not its node names the
# results that update them.
. "$HERE/common.bash"
"$BUILD/test-runtime-data" "$ROOT/examples/data/digits" >/dev/null || exit 1
cat >named.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: momentum(lr: 0.1), batch: 64, steps: 12, data: idx("idx", validation: 0.2), seed: 3)
@state(mean, var)
digits (float[N, 1, 8, 8] image, int64[N] label) => (float loss, float[N, 10] scores)
<float[64, 10] w @init(normal(0, 0.1)), float[10] b @init(zeros), float[10] scale @init(ones), float[10] shift @init(zeros),
 float[10] mean @init(zeros), float[10] var @init(ones)>
{
  h = Add(MatMul(Flatten(image), w), b)
  scores, m, v = BatchNormalization<training_mode = 1>(h, scale, shift, mean, var)
  loss = SoftmaxCrossEntropyLoss(scores, label)
}
IR
sed 's/scores, m, v =/scores =/' named.ir >silent.ir
for t in named silent; do
	tree $t $t.ir
	losses $t/trainer --checkpoint=$t.ck --every-eval=12 >$t.losses
	$t/trainer --resume=$t.ck --eval 2>err | sed -n 's/.*held-out samples, loss //p' >$t.held
	"$SBPCC" $t.ir --dump-after=train --stop-after=train 2>err | sed -n '/@program/,$p' | grep -c 'training_mode = 0' >$t.modes
	"$SBPCC" $t.ir --infer --dump-after=train --stop-after=train 2>err | grep -c 'training_mode = 0' >>$t.modes
done
[ "$(wc -l <named.losses)" = 12 ] && cmp -s named.losses silent.losses && echo "ok same-training" || echo "not ok same-training: $(paste named.losses silent.losses | tail -n 1)"
[ -s named.held ] && cmp -s named.held silent.held && echo "ok same-evaluation" || echo "not ok same-evaluation: $(paste named.held silent.held | tail -n 1)"
[ "$(cat named.modes silent.modes | tr '\n' ' ')" = '2 1 2 1 ' ] && echo "ok eval-and-infer" || echo "not ok eval-and-infer: $(cat named.modes silent.modes | tr '\n' ' ') norms with stored statistics, not 2 1 2 1"
# Statistics that nothing keeps are those of the batch: one warning, at their place.
sed 's/, mean, var)$/, Mul(mean, two), var)/; s/^ float\[10\] mean/ float[10] two = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2},&/' silent.ir >none.ir
"$SBPCC" none.ir --dump-after=train --stop-after=train 2>err >out && echo "ok one-of-two-is-kept" || echo "not ok one-of-two-is-kept: exit status $?"
grep -c 'none.ir:.*warning: BatchNormalization: outside of training too the statistics are those of the batch' err >told
[ "$(cat told)" = 1 ] && echo "ok one-warning" || echo "not ok one-warning: $(head -n 3 err)"
