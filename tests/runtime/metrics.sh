# Metrics equal those counted by hand: ties, ignored labels, a last batch that is not full, ranks that share rows or
# classes, micro-batches. Scores are small whole numbers from the data, so that many are equal; a rate of 0 keeps them
# unchanged.
. "$HERE/common.bash"
mkdir d
n=50 held=37 classes=6
awk -v n=$n -v classes=$classes 'BEGIN {
	for (i = 0; i < n; i++) {
		for (j = 0; j < classes; j++)
			printf "%d ", (i * 7 + j * j * 3 + i * j) % 4
		printf " %d ", (i % 5 == 3 ? 9 : (i * 11 + 2) % classes)      # 9 is ignored
		for (j = 0; j < classes; j++)
			printf "%d ", (i + 2 * j) % 3
		printf " %d\n", i % 7 % 3
	}
}' >numbers
idx() { # name, first and last column, dimensions: unsigned bytes
	{
		printf '\0\0\10'
		printf "\\$(printf %o $(($# - 3)))"
		for k in "${@:4}"; do printf "\\0\\0\\0\\$(printf %o "$k")"; done
		awk -v a="$2" -v b="$3" '{ for (j = a; j <= b; j++) print $j }' numbers | while read -r v; do printf "\\$(printf %o "$v")"; done
	} >"d/$1.idx"
}
idx x 1 6 $n 6 && idx label 7 7 $n && idx t 8 13 $n 6 && idx w 14 14 $n
# by_hand FIRST LAST: name and value of each, of these samples.
by_hand() {
	awk -v first="$1" -v last="$2" 'NR > first && NR <= last {
		for (j = 0; j < 6; j++) {
			d = $(j + 1) - $(j + 8)
			abs += d < 0 ? -d : d
			square += d * d
			weighed += $14 * (d < 0 ? -d : d)
			x += $(j + 1)
			yes += ($(j + 1) > 1.5) == ($(j + 8) > 0.5)
		}
		for (j = 0; j < 6; j++)
			linear += $(j + 1) * $(j + 1) / 6 + $(j + 1) / 6
		weight += 6 * $14
		rows++
		if ($7 == 9)
			next
		before = sum = down = 0
		for (j = 0; j < 6; j++) {
			before += $(j + 1) > $($7 + 1) || ($(j + 1) == $($7 + 1) && j < $7)
			sum += exp($(j + 1))
			down += exp(-$(j + 1))
		}
		hit1 += before < 1
		hit3 += before < 3
		loss += log(sum) - $($7 + 1)
		other += log(down) + $($7 + 1)
		count++
	} END {
		all = 6 * rows
		printf "loss %.9g\naccuracy %.9g\ntop3 %.9g\nperplexity %.9g\nmae %.9g\nmse %.9g\nrmse %.9g\nweighted %.9g\nbinary_accuracy %.9g\nx %.9g\nother %.9g\nlinear %.9g\n",
			loss / count, hit1 / count, hit3 / count, exp(loss / count), abs / all, square / all, sqrt(square / all), weighed / weight, yes / all, x / all, other / count, linear / rows
	}' numbers
}
model() { # batch
	cat <<IR
<ir_version: 10, opset_import: ["" : 23]>
@metric(accuracy(scores, label), top(scores, label, k: 3), perplexity, mae(scores, t), mse(scores, t), rmse(scores, t))
@metric(weighted: mae(scores, t, weight: w6), binary_accuracy(scores, t, threshold: 1.5), mean(x), mean(other), mean(linear))
@train(loss: loss, optimizer: sgd(lr: 0), batch: $1, steps: 3, data: idx("d", validation: 0.74, shuffle: false, scale: 1), seed: 1)
g (float[N, 6] x, int64[N] label, float[N, 6] t, float[N, 1] w) => (float loss)
<float[6] b @init(zeros)>
{
  scores = Add(x, b)
  w6 = Expand(w, Shape(scores))
  loss = SoftmaxCrossEntropyLoss<ignore_index = 9>(scores, label)
  other = SoftmaxCrossEntropyLoss<ignore_index = 9>(Neg(scores), label)
  linear = Add(ReduceMean<keepdims = 0>(Mul(x, x)), ReduceMean<keepdims = 0>(x))
}
IR
}
# Hits are whole numbers, so their share is exact.  Metrics computed from logarithms are close.
same() { # name, log, event or step
	grep "$3" "$2" | head -n 1 | tr -d '{}"' | tr ',:' '\n ' | awk '
		function size(v) { return v < 0 ? -v : v }
		NR == FNR { want[$1] = $2; n++; next }
		$1 in want { k++; near = $1 ~ /loss|perplexity|other|linear|rmse/ ? 2e-6 * size(want[$1]) : 0; if (size($2 - want[$1]) > near) print $1, "is", $2 ", not", want[$1] }
		END { if (k != n) print k, "of", n, "metrics" }' want - >why
	[ -s why ] && { echo "not ok $1: $(head -n 1 why)"; return; }
	echo "ok $1"
}
try() { # name, batch, options of sbpcc...
	local name=$1 batch=$2
	shift 2
	model "$batch" >model.ir
	"$SBPCC" model.ir -o tree "$@" >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 || { echo "not ok $name: $(head -n 2 log)" && return; }
	tree/trainer --log=log.json --every-eval=3 --every=1 >out 2>err || { echo "not ok $name: $(head -n 1 err)" && return; }
	by_hand $((n - held)) $n >want
	same "$name-held-out" log.json '"event":"eval"'
	by_hand 0 "$batch" >want
	same "$name-step" log.json '"step":0,"loss"'
}
pinned() { # entry of scores, of 3 ranks
	printf '%s\n' '@mesh(m, cpu, [3])' "@pin(\"x\", \"scores\", sbp: [$1])" >pins.place
}
try one 10
grep -q '^step .* accuracy [01]\.[0-9]* .* perplexity ' out && grep -q '^37 held-out samples, loss .*, accuracy 0\.[0-9]*, top3 ' out && echo "ok lines" || echo "not ok lines: $(head -n 1 out)"
try two-ranks 8 --ranks=2
pinned 'S(0)' && try uneven-rows-of-three-ranks 10 --place=pins.place
pinned 'S(1)' && try classes-of-three-ranks 11 --place=pins.place
try micro-batches 12 --train='microbatch: 4'
pinned 'S(0)' && try micro-batches-of-three-ranks 10 --place=pins.place --train='microbatch: 5'
