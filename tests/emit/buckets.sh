# Gradients are transferred together, while the backward pass still runs: one action transfers three small gradients,
# and a large one starts before the last gradient is computed.
cat >model.ir <<'END'
<ir_version: 10, opset_import: ["" : 23]>
@mesh(m, cpu, [2])
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 8, data: points(classes: 3), seed: 1)
m (float[B, 4] x @sbp(S(0)), int64[B] t @sbp(S(0))) => (float loss)
<float[4, 6] a @sbp(B) @init(normal(0, 1)), float[6, 6] b @sbp(B) @init(normal(0, 1)), float[6, 3] c @sbp(B) @init(normal(0, 1))>
{
  p = MatMul(x, a)
  h @sbp(S(0)) = Tanh(p)
  q = MatMul(h, b)
  e @sbp(S(0)) = Tanh(q)
  y @sbp(S(0)) = MatMul(e, c)
  loss = SoftmaxCrossEntropyLoss(y, t)
}
END
"$SBPCC" model.ir -o one >log 2>&1 || { echo "not ok compiles: $(head -n 3 log | tr '\n' ' ')"; exit 0; }
if grep -rq 'rt_moves(c, 3, ' one; then echo "ok one action"; else echo "not ok one action: $(grep -rho 'rt_moves*(c, [0-9]*' one | tr '\n' ' ')"; fi
sed 's/6, 6\]/6, 2048]/; s/6, 3\]/2048, 1200]/; s/classes: 3/classes: 1200/' model.ir >large.ir
"$SBPCC" large.ir -o two >log 2>&1 || { echo "not ok compiles: $(head -n 3 log | tr '\n' ' ')"; exit 0; }
order=$(grep -o '"operator": "[^"]*MatMulOver[^"]*"\|"transfer": "all_reduce"' two/plan.json | tr '\n' ' ')
case $order in
*MatMulOver*all_reduce*MatMulOver*) echo "ok early" ;;
*) echo "not ok early: $order" ;;
esac
