# Transfers with a start and a finish: on a machine on which computing is slow, every possible transfer is overlapped.
# The bits are those of transfers without overlap, whether a separate thread or the main walk drives them, and the
# thread sanitizer reports nothing.  Split weights are gathered ahead of their layer, at most two at a time.
. "$HERE/common.bash"
cat >net.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adamw(lr: 0.01), batch: 12, steps: 6, data: points(classes: 10, noise: 0.5), clip: norm(1.0))
net (float[N, 64] x, int64[N] label) => (float loss)
<float[64, 96] w1 @init(normal(0, 0.2)), float[96] b1 @init(zeros), float[96, 96] w2 @init(normal(0, 0.2)), float[96] b2 @init(zeros),
 float[96, 96] w3 @init(normal(0, 0.2)), float[96] b3 @init(zeros), float[96, 10] w4 @init(normal(0, 0.2))>
{
  h1 = Relu(Add(MatMul(x, w1), b1))
  h2 = Relu(Add(MatMul(h1, w2), b2))
  h3 = Relu(Add(MatMul(h2, w3), b3))
  loss = SoftmaxCrossEntropyLoss(MatMul(h3, w4), label)
}
IR
printf 'flops 1e7\nbytes 1e7\naxis 0 1e-6 1e8\n' >slow
whole='@pin("w*", "b*", sbp: [B])' batch='@pin("x", "label", sbp: [S(0)])'
plan() { # name, ranks, pins...
	local name=$1 n=$2
	shift 2
	{ sed -n 1p net.ir && echo "@mesh(m, cpu, [$n])" && printf '%s\n' "$@" && sed 1d net.ir; } >"$name.ir"
	"$SBPCC" "$name.ir" --machine=slow -o "$name" >log 2>&1 && make -s -C "$name" STATIC= CFLAGS=-O1 >log 2>&1 || { echo "not ok $name: $(head -n 3 log)" && return; }
	local starts ends
	starts=$(cat "$name"/blocks.c | grep -c 'DO(START') ends=$(cat "$name"/blocks.c | grep -c 'DO(FINISH')
	[ "$starts" -ge 1 ] && [ "$starts" = "$ends" ] && echo "ok $name-has-two-ends" ||
		echo "not ok $name-has-two-ends: $starts starts, $ends finishes"
	RT_LANE=none "$name/trainer" --checkpoint="$name.a" >log 2>&1
	for lane in walk thread; do
		RT_LANE=$lane "$name/trainer" --threads=2 --checkpoint="$name.$lane" --trace="$name.trace" >log 2>&1
		cmp -s "$name.a/step-00000006/state.safetensors" "$name.$lane/step-00000006/state.safetensors" && echo "ok $name-same-bits-$lane" ||
			echo "not ok $name-same-bits-$lane: $(tail -n 2 log | tr '\n' ' ')"
	done
}
plan data 2 "$batch" "$whole"
plan zero1 3 "$batch" "$whole" '@pin("*.m", "*.v", sbp: [S(0)])'
plan zero3 2 "$batch" '@pin("w*", "b*", "*.m", "*.v", sbp: [S(0)])'
plan tensor 2 "$batch" '@pin("w1", "w3", sbp: [S(1)])' '@pin("w2", sbp: [S(0)])'

# The trace shows transfers in flight beside the walk.
grep -q '"cat":"transfer".*"tid":1' zero3.trace && echo "ok traced" || echo "not ok traced: $(head -c 300 zero3.trace)"

# Weights of ZeRO-3: at least one action between start and finish, and never more than three in flight.
order=$(sed -n 's/.*"kind": "\(start\|finish\)".*"transfer": "all_gather".*/\1/p' zero3/plan.json)
now=0 most=0
for k in $order; do
	[ "$k" = start ] && now=$((now + 1)) || now=$((now - 1))
	[ $now -gt $most ] && most=$now
done
[ $most -ge 1 ] && [ $most -le 3 ] && [ $now = 0 ] && echo "ok gathered-ahead" || echo "not ok gathered-ahead: $most on their way: $order"

make -s -C zero1 clean && make -s -C zero1 STATIC= LOOPS= CFLAGS='-g -O1 -fsanitize=thread' >log 2>&1
TSAN_OPTIONS=halt_on_error=1:exitcode=66 zero1/trainer --threads=2 --steps=3 >log 2>&1 && echo "ok thread-sanitizer" || echo "not ok thread-sanitizer: $(head -n 12 log)"
