# Scratch is planned for the kernels that a model calls, and none takes more: models of one kind of kernel each run under the
# address sanitizer, which stops where the plan ends; with a plan that is one number too small it does.
# seconds: 900
flags='-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all'
model() { # name, inputs, parameters, body
	cat >"$1.ir" <<IR
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 0.01), steps: 2, data: points(classes: 3))
$1 ($2) => (float loss)
<$3>
{ $4 }
IR
}
model matmul 'float[70, 300] x, float[70, 90] y' 'float[300, 90] w @init(normal(0, 1))' 'loss = ReduceMean<keepdims: int = 0>(Mul(Sub(MatMul(x, w), y), Sub(MatMul(x, w), y)))'
model conv 'float[3, 5, 19, 17] x' 'float[7, 5, 3, 3] w @init(normal(0, 1))' 'loss = ReduceMean<keepdims: int = 0>(Conv(x, w))'
model attention 'float[2, 130, 96] x' 'float[1, 1, 96] w @init(normal(0, 1))' \
	'q = Mul(x, w)
  loss = ReduceMean<keepdims: int = 0>(Attention<q_num_heads: int = 3, kv_num_heads: int = 3>(q, q, q))'
model loss 'float[333, 3] x, int64[333] y' 'float[3] w @init(normal(0, 1))' 'loss = SoftmaxCrossEntropyLoss(Mul(x, w), y)'
model none 'float[8, 3] x' 'float[3] w @init(normal(0, 1))' 'loss = ReduceMean<keepdims: int = 0>(Mul(x, w))'
size() { sed -n "s/.*WORK_$2 .*size_t)\([0-9]*\)).*/\1/p" $1/buffers.h; }
stops() { # tree, which: with 4 bytes less
	local n
	n=$(size "$1" "$2")
	[ "$n" = 0 ] && return 0
	sed -i "/WORK_$2/s/)$n)/)$((n - 4)))/" "$1/buffers.h"
	make -s -C "$1" STATIC= CFLAGS="$flags" >log 2>&1
	! "$1/trainer" --threads=1 >log 2>&1 && grep -q use-after-poison log
	local bad=$?
	sed -i "/WORK_$2/s/)$((n - 4)))/)$n)/" "$1/buffers.h"
	return $bad
}
for m in matmul conv attention loss none; do
	"$SBPCC" $m.ir -o $m >log 2>&1 && make -s -C $m STATIC= CFLAGS="$flags" >log 2>&1 || { echo "not ok $m: $(head -n 2 log)" && continue; }
	$m/trainer --threads=2 >log 2>&1 && echo "ok $m" || { echo "not ok $m: it takes more than $(size $m SHARED) and $(size $m EACH) bytes" && grep -m 4 ERROR log; }
done
[ "$(size none SHARED) $(size none EACH)" = '0 0' ] && echo "ok no-need-no-scratch" || echo "not ok no-need-no-scratch: $(size none SHARED) $(size none EACH)"
for which in SHARED EACH; do
	m=$([ $which = SHARED ] && echo loss || echo attention)
	stops $m $which && echo "ok less-is-noticed-$which" || echo "not ok less-is-noticed-$which: $(head -n 1 log)"
done
