# Unequal and empty shards train as one rank does: 50257 rows on 3 ranks, 25 heads on 4 and never split inside a head,
# 3 rows on 4 ranks, and an axis that two axes of a mesh split.
. "$ROOT/tests/runtime/common.bash"
FLAGS=-O1
losses() { # trainer
	rm -f steps.log
	"$@" --log=steps.log >log 2>err
	sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/step \1 loss \2/p' steps.log
}
build() { # options of sbpcc...: one tree, in which what is as it was is not compiled again
	"$SBPCC" "$@" -o tree >log 2>&1 || return 1
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1
}
# trains NAME MODEL PINS...: with the losses of one rank.  Signatures of the model are for several.
trains() {
	local name=$1 model=$2
	shift 2
	printf '%s\n' "$@" >plan.place
	sed 's/ @sbp(.*)$//' "$model" >one.ir
	build one.ir || { echo "not ok $name: $(head -n 2 log)" && return; }
	losses tree/trainer >one.txt
	build "$model" --place=plan.place || { echo "not ok $name: $(head -n 3 log)" && return; }
	losses tree/trainer --checkpoint=saved --overwrite >many.txt
	paste one.txt many.txt | awk 'function size(x) { return x < 0 ? -x : x }
		{ if ($2 != $6 || $8 == "" || size($4 - $8) > 1e-4 * size($4)) { print " step " $2 ": " $4 " and " $8; bad = 1 } n++ } END { exit bad || n != 8 }' >why &&
		echo "ok $name" || { echo "not ok $name: losses differ from one rank's $(head -n 2 err)" && head -n 4 why; }
}
# held NAME VALUE PARTS: the indices along each axis that each rank has saved, as first and length of each run.
held() {
	local got
	got=$(grep "\"name\":\"$2\"," saved/step-00000008/manifest.json | grep -o '"axes":[^"]*' | sed 's/"axes"://; s/,$//' | tr '\n' ' ')
	[ "$got" = "$3 " ] && echo "ok $1" || echo "not ok $1: ranks saved $got"
	rm -rf saved
}
train='@train(loss: loss, optimizer: adamw(lr: 0.01), steps: 8, batch: 3'
cat >words.ir <<IR
<ir_version: 10, opset_import: ["" : 23]>
$train, data: points(classes: 50257), clip: norm(1.0))
words (int64[N, 4] tokens, int64[N, 4] next) => (float loss)
<float[50257, 8] embed @init(normal(0, 0.5)), float[8, 8] w @init(normal(0, 0.4)), int64[2] rows = {-1, 8}, int64[1] flat = {-1}>
{
	x = Gather(embed, tokens)
	h = Tanh(MatMul(x, w))
	y = Reshape(h, rows)
	logits = MatMul(y, Transpose<perm = [1, 0]>(embed))
	loss = SoftmaxCrossEntropyLoss(logits, Reshape(next, flat))
}
IR
trains 50257-rows-on-3 words.ir '@mesh(m, cpu, [3])' '@pin("embed", "embed.m", "embed.v", sbp: [S(0)])' '@pin("logits", sbp: [S(1)])'
held 50257-rows-are-16753-and-16752 embed '[[0,16753],[0,8]] [[16753,16752],[0,8]] [[33505,16752],[0,8]]'
sed 's/x = Gather(embed, tokens)/& @sbp(S(0), B -> P)/' words.ir >table.ir
trains a-cut-table-of-50257-rows table.ir '@mesh(m, cpu, [3])' '@pin("embed", "embed.grad", sbp: [S(0)])'

cat >heads.ir <<IR
<ir_version: 10, opset_import: ["" : 23]>
$train, data: points(classes: 16))
heads (int64[N, 6] tokens, int64[N] label) => (float loss)
<float[16, 10] embed @init(normal(0, 0.5)), float[10, 150] qkv @init(normal(0, 0.3)), float[50, 10] out @init(normal(0, 0.3)), float[10, 16] head @init(normal(0, 0.3))>
{
	x = Gather(embed, tokens)
	q, k, v = Split<axis = -1, num_outputs = 3>(MatMul(x, qkv))
	seen = Attention<q_num_heads = 25, kv_num_heads = 25, is_causal = 1>(q, k, v)
	y = Add(x, MatMul(seen, out))
	loss = SoftmaxCrossEntropyLoss(MatMul(ReduceMean<keepdims = 0>(y, [1]), head), label)
}
IR
trains 25-heads-on-4 heads.ir '@mesh(m, cpu, [4])' '@pin("tokens", sbp: [B])' '@pin("qkv", sbp: [S(1/1)])' '@pin("out", sbp: [S(0/0)])' '@pin("seen", sbp: [S(2/0)])'
held never-inside-a-head qkv '[[0,10],[0,14,50,14,100,14]] [[0,10],[14,12,64,12,114,12]] [[0,10],[26,12,76,12,126,12]] [[0,10],[38,12,88,12,138,12]]'

cat >rows.ir <<IR
<ir_version: 10, opset_import: ["" : 23]>
$train, data: points(classes: 5, noise: 0.3))
rows (float[N, 3] x, int64[N] label) => (float loss)
<float[3, 7] w1 @init(normal(0, 0.5)), float[7] b1 @init(zeros), float[7, 5] w2 @init(normal(0, 0.5))>
{
	h = Tanh(Add(MatMul(x, w1), b1))
	loss = SoftmaxCrossEntropyLoss(MatMul(h, w2), label)
}
IR
trains 3-rows-on-4 rows.ir '@mesh(m, cpu, [4])' '@pin("w1", "w1.m", "w1.v", sbp: [S(0)])'
held the-last-has-none w1 '[[0,1],[0,7]] [[1,1],[0,7]] [[2,1],[0,7]]'
trains 3-samples-on-4 rows.ir '@mesh(m, cpu, [4])' '@pin("x", "label", sbp: [S(0)])' '@pin("w1", "w2", "b1", sbp: [B])'
trains 3-columns-on-8 rows.ir '@mesh(m, cpu, [8])' '@pin("x", sbp: [S(1)])' '@pin("w1", sbp: [S(0)])'
trains one-axis-by-two rows.ir '@mesh(m, cpu, [2, 3])' '@pin("w1", "w1.m", sbp: [S(1), S(1)])' '@pin("b1", sbp: [S(0), S(0)])' '@pin("w2", sbp: [S(0), S(0)])'
held seven-by-two-and-three w1 '[[0,3],[0,2]] [[0,3],[2,1]] [[0,3],[3,1]] [[0,3],[4,1]] [[0,3],[5,1]] [[0,3],[6,1]]'
trains samples-by-two rows.ir '@mesh(m, cpu, [3, 2])' '@pin("x", "label", sbp: [S(0), S(0)])'
