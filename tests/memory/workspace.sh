# Scratch memory is planned for the kernels that a model calls, and no kernel takes more: models with one kind of
# kernel each run under the address sanitizer, which stops at the end of the planned memory; with a plan that is one
# number too small, it stops the run.
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
model winograd 'float[3, 9, 19, 17] x' 'float[11, 9, 3, 3] v @init(normal(0, 1)), float[8, 11, 3, 3] w @init(normal(0, 1))' 'loss = ReduceMean<keepdims: int = 0>(Conv(Conv(x, v), w))'
model steps 'float[9, 4, 20, 18] x' 'float[11, 4, 3, 3] v @init(normal(0, 1)), float[5, 11, 3, 3] w @init(normal(0, 1))' \
	'loss = ReduceMean<keepdims: int = 0>(Conv<strides: ints = [2, 2]>(Conv<strides: ints = [2, 2], pads: ints = [1, 1, 1, 1]>(x, v), w))'
model attention 'float[2, 300, 96] x' 'float[1, 1, 96] w @init(normal(0, 1))' \
	'q = Mul(x, w)
  loss = ReduceMean<keepdims: int = 0>(Attention<q_num_heads: int = 3, kv_num_heads: int = 3>(q, q, q))'
model loss 'float[333, 3] x, int64[333] y' 'float[3] w @init(normal(0, 1))' 'loss = SoftmaxCrossEntropyLoss(Mul(x, w), y)'
model chunks 'float[16, 9, 7, 7] x' 'float[16, 9, 3, 3] v @init(normal(0, 1)), float[8, 16, 3, 3] w @init(normal(0, 1)), float[784, 50] u @init(normal(0, 1))' \
	'c = Conv<pads: ints = [1, 1, 1, 1]>(x, v)
  a = ReduceMean<keepdims: int = 0>(Conv<strides: ints = [2, 2]>(c, w))
  b = ReduceMean<keepdims: int = 0>(MatMul(Flatten(c), u))
  loss = Add(a, b)'
model none 'float[8, 3] x' 'float[3] w @init(normal(0, 1))' 'loss = ReduceMean<keepdims: int = 0>(Mul(x, w))'
size() { sed -n "s/.*WORK_$1 .*size_t)\([0-9]*\)).*/\1/p" tree/buffers.h; }
build() { make -s -C tree STATIC= LOOPS= CFLAGS="$flags" >log 2>&1; }
into_tree() { # model: what is equal in two trees is compiled once
	"$SBPCC" "$1.ir" $([ "$1" != chunks ] || echo --deterministic=any-ranks) -o tree >log 2>&1 || return 1
	build
}
stops() { # which: with 4 bytes less
	local n
	n=$(size "$1")
	sed -i "/WORK_$1/s/)$n)/)$((n - 4)))/" tree/buffers.h
	build && ! tree/trainer --threads=1 >log 2>&1 && grep -q 'ERROR: AddressSanitizer' log
}
for m in none matmul conv winograd steps loss chunks attention; do
	into_tree $m || { echo "not ok $m: $(head -n 2 log)" && continue; }
	tree/trainer --threads=2 >log 2>&1 && echo "ok $m" || { echo "not ok $m: it takes more than $(size SHARED) and $(size EACH) bytes" && grep -m 4 ERROR log; }
	case $m in
	none) [ "$(size SHARED) $(size EACH)" = '0 0' ] && echo "ok no-need-no-scratch" || echo "not ok no-need-no-scratch: $(size SHARED) $(size EACH)" ;;
	attention) stops EACH && echo "ok less-is-noticed" || echo "not ok less-is-noticed: $(head -n 2 log)" ;;
	esac
done
