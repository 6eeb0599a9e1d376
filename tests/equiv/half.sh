# Models that declare parameters, inputs and results in half precision train as the evaluator does, and the trained
# parameters are float.
for type in bfloat16 float16; do
	cat >m.ir <<MODEL
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: momentum(lr: 0.02), batch: 16, steps: 6, data: points(classes: 2))
g ($type[N, 8] x, int64[N] label) => ($type loss, $type[N, 2] s)
<$type[8, 16] w @init(normal(0, 0.3)), $type[16] b @init(zeros), $type[16, 2] v @init(normal(0, 0.3)), $type[1, 16] shift = {15000, 15100, 15200, 15300, 15000, 15100, 15200, 15300, 15000, 15100, 15200, 15300, 15000, 15100, 15200, 15300}>
{
  h = MatMul(x, w)
  a = Add(h, b)
  q = Add(a, shift)
  r = Relu(q)
  s = MatMul(r, v)
  loss = SoftmaxCrossEntropyLoss(s, label)
}
MODEL
	why=''
	"$SBPCC" m.ir -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 && tree/trainer --every=1 2>log | grep -o '^step *[0-9]* *loss [^ ]*' >got.txt &&
		"$PLAIN/test-equiv-evaluator" m.ir 6 'data: points(classes: 2)' >want.txt 2>log || why=$(head -n 1 log)
	grep -q 'float\[8, 16\] w ' tree/plan.ir || why="${why:-w is not float}"
	[ -n "$why" ] || why=$(paste want.txt got.txt | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 0.01 * ($4 + 1)) print "step " $2 ": " $4 " and " $8; n++; last = $8; if (n == 1) first = $8 }
		END { if (n != 6) print n + 0 " steps"; if (last >= first) print "the loss does not fall" }')
	rm -rf tree
	if [ -z "$why" ]; then echo "ok $type"; else echo "not ok $type: $(echo $why)"; fi
done
