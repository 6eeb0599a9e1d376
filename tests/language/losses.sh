# A loss that is asked for by name is the node that it stands for, and its target is the input that this node needs.
cat >net.ir <<'IR'
<ir_version: 10, opset_import: ["" : 21]>
net (float[N, 4] x) => (float[N, 3] "out/0", float[N, 2, 3] wide)
<float[4, 3] w @init(xavier_normal), int64[3] rows = {-1, 2, 3}>
{
  "out/0" = MatMul(x, w)
  h = Concat<axis = 1>("out/0", "out/0")
  wide = Reshape(h, rows)
}
IR
"$SBPCC" --write=net.onnx net.ir || exit 1
train='optimizer: sgd(lr: 0.1), batch: 6'
# After the passes both are equal, except for source places and the name of the input.
dump() { "$SBPCC" "$@" --stop-after=train --dump-after=train 2>err | sed 's/ @from("[^"]*")//; s/@init([^()]*)//'; }
like() { # name, loss, type of the target, node, [more options]
	sed "s|(float\[N, 4\] x) => (|(float[N, 4] x, $3 t) => (|; s|wide)|wide, float loss)|; s|wide = Reshape(h, rows)|&\\n  loss = $4|" net.ir >said.ir
	dump said.ir --train="loss: loss, $train$5" >want
	[ -s want ] || { echo "not ok $1: $(head -n 1 err)" && return; }
	dump net.ir --train="loss: $2, $train$5" >got
	cmp -s want got && grep -q "note: .*: the graph has one more input, $(printf %s "$3" | sed 's/\[/\\[/g; s/\]/\\]/g') t\$" err && echo "ok $1" || echo "not ok $1: $(head -n 1 err) $(diff want got | head -n 3)"
}
like cross-entropy 'cross_entropy("out/0", t)' 'int64[N]' 'sbpcc.CrossEntropyLoss<axis = 1>("out/0", t)'
like ignored-labels 'cross_entropy("out/0", t, ignore_index: -100, label_smoothing: 0.1)' 'int64[N]' 'sbpcc.CrossEntropyLoss<ignore_index = -100, label_smoothing = 0.1, axis = 1>("out/0", t)'
like micro-batches 'cross_entropy("out/0", t, ignore_index: 1, label_smoothing: 0.1)' 'int64[N]' 'sbpcc.CrossEntropyLoss<ignore_index = 1, label_smoothing = 0.1, axis = 1>("out/0", t)' ', microbatch: 2'
like classes-along-the-last-axis 'cross_entropy(wide, t)' 'int64[N, 2]' 'sbpcc.CrossEntropyLoss<axis = 2>(wide, t)'
like classes-along-axis-1 'cross_entropy(wide, t, axis: 1)' 'int64[N, 3]' 'sbpcc.CrossEntropyLoss<axis = 1>(wide, t)'
like nll 'nll("out/0", t)' 'int64[N]' 'sbpcc.NLLLoss<axis = 1>("out/0", t)'
like mse 'mse(y: "out/0", target: t)' 'float[N, 3]' 'sbpcc.MSELoss("out/0", t)'
like l1 'l1(wide, t)' 'float[N, 2, 3]' 'sbpcc.L1Loss(wide, t)'
like smooth-l1 'smooth_l1("out/0", t, beta: 0.5)' 'float[N, 3]' 'sbpcc.SmoothL1Loss<beta = 0.5>("out/0", t)'
like huber 'huber("out/0", t, delta: 2)' 'float[N, 3]' 'sbpcc.HuberLoss<delta = 2.0>("out/0", t)'
like bce 'bce("out/0", t)' 'float[N, 3]' 'sbpcc.BCELoss("out/0", t)'
like bce-with-logits 'bce_with_logits("out/0", t)' 'float[N, 3]' 'sbpcc.BCEWithLogitsLoss("out/0", t)'
# The loss of an inner value without a declared type.
sed 's/"out\/0" = MatMul/inner = MatMul(x, w)\n  "out\/0" = Identity(inner)\n  unused = MatMul/' net.ir >inside.ir
"$SBPCC" inside.ir --train="loss: mse(inner, t), $train" --stop-after=train 2>err && grep -q 'one more input, float\[N, 3\] t$' err && echo "ok type-is-inferred" || echo "not ok type-is-inferred: $(head -n 1 err)"
# The same for the ONNX file, and for an existing target, whose shape says which axis the classes are on.
"$SBPCC" net.onnx --train="loss: cross_entropy(\"out/0\", t), $train" --stop-after=train 2>err && grep -q 'one more input, int64\[N\] t$' err && echo "ok onnx" || echo "not ok onnx: $(head -n 1 err)"
sed 's/(float\[N, 4\] x)/(float[N, 4] x, int64[N, 3] t)/' net.ir >there.ir
"$SBPCC" there.ir --train="loss: cross_entropy(wide, t), $train" --stop-after=fold --dump-after=fold 2>err | grep -q 'SoftmaxCrossEntropyLoss(wide, t)' && [ ! -s err ] && echo "ok target-is-there" || echo "not ok target-is-there: $(head -n 1 err)"
# How users find names.
"$SBPCC" --print-io net.onnx >io 2>&1
printf '%s\n' 'input  x  float[N, 4]' 'output "out/0"  float[N, 3]' 'output wide  float[N, 2, 3]' | cmp -s - io && echo "ok print-io" || echo "not ok print-io: $(cat io)"
# A program that only infers has neither loss nor metrics.
"$SBPCC" net.onnx --infer --train="loss: cross_entropy(\"out/0\", t), metrics: [accuracy(\"out/0\", t)], $train" --set=N=6 --stop-after=train --dump-after=train >dump 2>&1 && ! grep -q 'CrossEntropy\|metric\.' dump && echo "ok infer" || echo "not ok infer: $(head -n 2 dump)"
