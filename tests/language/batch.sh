#!/bin/sh
# batch: may agree with a number in the model or of --set; tests/errors/135 has those that disagree.
set -u
cat >model.ir <<'IR'
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 8, data: points(classes: 2))
g (float[N, 4] x) => (float loss) <float[4, 4] w @init(normal(0, 1))> {
  y = MatMul(x, w)
  loss = ReduceMean<keepdims = 0>(y)
}
IR
sed 's/\[N, 4\]/[8, 4]/' model.ir >fixed.ir
sed 's/\[N, 4\]/[2, 4]/' model.ir >part.ir
rows() { # test, length of the first axis, options
	what=$1 want=$2
	shift 2
	"$SBPCC" "$@" --stop-after=plan --dump-after=plan >log 2>&1 && grep -q "(float\[$want, 4\] x" log && echo "ok $what" || echo "not ok $what: $(head -n 1 log)"
}
rows symbol 8 model.ir
rows number 8 fixed.ir
rows set 8 model.ir --set N=8
rows set-and-micro-batches 2 model.ir --set N=8 --train 'microbatch: 2'
rows set-of-a-micro-batch 2 model.ir --set N=2 --train 'microbatch: 2'
rows number-of-a-micro-batch 2 part.ir --train 'microbatch: 2'
rows inference-has-its-own 3 model.ir --set N=3 --infer
