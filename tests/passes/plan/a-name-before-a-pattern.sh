# A value is as the pin says that calls it by its name, and so is what updates it, though a pattern behind it means
# both; two pins that call it by its name say together what it is.
cat >m.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@mesh(m, cpu, [2, 2])
@pin("w1", sbp: [S(0), B])
@pin("w2", sbp: [_, S(1)])
@pin("w2", sbp: [S(0), _])
@pin("w*", sbp: [S(1), S(0)])
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 8)
g (float[8, 4] x) => (float loss)
<float[4, 4] w1 @init(normal(0, 1)), float[4, 4] w2 @init(normal(0, 1)), float[4, 4] w3 @init(normal(0, 1))>
{ loss = ReduceSum<keepdims = 0>(MatMul(MatMul(MatMul(x, w1), w2), w3)) }
IR
"$SBPCC" m.ir --stop-after=plan --explain >table 2>&1 || { echo "not ok compiles: $(head -n 2 table)" && exit; }
is() { grep -q "^$1 .* m  *$2  *[0-9]*\$" table && echo "ok $1" || echo "not ok $1: not $2: $(grep "^$1 " table)"; }
is w1 'S(0) B'
is w1.next 'S(0) B'
is w2 'S(0) S(1)'
is w2.next 'S(0) S(1)'
is w3 'S(1) S(0)'
is w1.grad 'S(1) S(0)'
