# Three of something on four ranks, so that one rank has none, where ranks do more than their part of a product: words
# of a table and of a loss, norms and softmax over the split axis, batch statistics, windows, channels, heads, rows of
# queries, the maximum, optimizers that compare norms.  Each node runs with the pinned signature, and the losses are
# those of one rank.  With --long also on 2 and 5 ranks.
. "$HERE/ranks.bash"
STEPS=8 how="steps: $STEPS"
# trains NAME [OPTIMIZER]: the rest of the model on stdin; pins along an axis of one rank mean nothing.
trains() {
	local n what=$1
	{ printf '%s\n' '<ir_version: 10, opset_import: ["" : 23]>' "@train(loss: loss, optimizer: ${2:-adamw(lr: 0.01)}, data: points(classes: 3))" && cat; } >rest.ir
	sed 's/^@train/@mesh(m, cpu, [1])\n&/' rest.ir >"$what.ir"
	one "$PWD/$what" 3 || return
	for n in 4 ${LONG:+2 5}; do
		sed "s/^@train/@mesh(m, cpu, [$n])\n&/" rest.ir >"$what.ir"
		build "$what.ir" --train="$how, batch: 3" || { echo "not ok $what-on-$n: $(head -n 2 log)" && continue; }
		losses tree/trainer --threads=1 >many.txt
		near && echo "ok $what-on-$n" || { echo "not ok $what-on-$n: losses differ from one rank's $(head -n 1 err)" && head -n 4 why; }
	done
}
trains words <<'E'
g (int64[N, 4] t, int64[N, 4] u) => (float loss)
<float[3, 5] e @init(normal(0, 0.5)), float[5, 3] w @init(normal(0, 0.4)), int64[2] rows = {-1, 3}, int64[1] flat = {-1}>
{
  x = Gather(e, t) @sbp(S(0), B -> P)
  y = Reshape(MatMul(Tanh(x), w), rows)
  loss = SoftmaxCrossEntropyLoss(y, Reshape(u, flat)) @sbp(S(1), B -> _)
}
E
trains norms <<'E'
g (float[N, 2, 3] x, int64[N] u) => (float loss)
<float[3, 3] w @init(normal(0, 0.5)), float[3] s @init(ones), float[3] b @init(zeros), float[3] r @init(ones), float[6, 3] v @init(normal(0, 0.5)), int64[2] rows = {0, 6}>
{
  h = MatMul(x, w)
  y @sbp(S(2)) = LayerNormalization<axis = -1>(h, s, b) @sbp(S(2), S(0), S(0) -> S(2))
  z @sbp(S(2)) = RMSNormalization<axis = -1>(y, r) @sbp(S(2), S(0) -> S(2))
  p = Softmax<axis = -1>(z) @sbp(S(2) -> S(2))
  loss = SoftmaxCrossEntropyLoss(MatMul(Reshape(p, rows), v), u)
}
E
trains heads <<'E'
g (float[N, 3, 6] x, int64[N] u) => (float loss)
<float[6, 18] qkv @init(normal(0, 0.5)), float[6, 3] o @init(normal(0, 0.5))>
{
  q, k, v = Split<axis = -1, num_outputs = 3>(MatMul(x, qkv))
  a = Attention<q_num_heads = 3, kv_num_heads = 3, is_causal = 1>(q, k, v) @sbp(S(2/0), S(2/0), S(2/0) -> S(2/0))
  loss = SoftmaxCrossEntropyLoss(MatMul(ReduceMean<keepdims = 0>(a, [1]), o), u)
}
E
trains queries <<'E'
g (float[N, 3, 6] x, int64[N] u) => (float loss)
<float[6, 18] qkv @init(normal(0, 0.5)), float[6, 3] o @init(normal(0, 0.5))>
{
  q, k, v = Split<axis = -1, num_outputs = 3>(MatMul(x, qkv))
  a = Attention<q_num_heads = 3, kv_num_heads = 3, is_causal = 1>(q, k, v) @sbp(S(1), B, B -> S(1))
  loss = SoftmaxCrossEntropyLoss(MatMul(ReduceMean<keepdims = 0>(a, [1]), o), u)
}
E
trains attention-by-samples <<'E'
g (float[N, 3, 6] x @sbp(S(0)), int64[N] u) => (float loss)
<float[6, 18] qkv @init(normal(0, 0.5)), float[6, 3] o @init(normal(0, 0.5))>
{
  q, k, v = Split<axis = -1, num_outputs = 3>(MatMul(x, qkv))
  a = Attention<q_num_heads = 3, kv_num_heads = 3>(q, k, v) @sbp(S(0), S(0), S(0) -> S(0))
  loss = SoftmaxCrossEntropyLoss(MatMul(ReduceMean<keepdims = 0>(a, [1]), o), u)
}
E
trains statistics <<'E'
@state("m")
@state("v")
g (float[N, 2, 3, 3] x @sbp(S(0)), int64[N] u) => (float loss)
<float[3, 2, 3, 3] w @init(normal(0, 0.5)), float[3] s @init(ones), float[3] b @init(zeros), float[3] m @init(zeros), float[3] v @init(ones)>
{
  c = Conv<pads = [1, 1, 1, 1]>(x, w)
  y @sbp(S(0)), m2, v2 = BatchNormalization<training_mode = 1>(c, s, b, m, v) @sbp(S(0), B, B, B, B -> S(0), B, B)
  loss = SoftmaxCrossEntropyLoss(Flatten(GlobalAveragePool(Relu(y))), u)
}
E
trains windows <<'E'
g (float[N, 2, 3, 4] x, int64[N] u) => (float loss)
<float[3, 2, 3, 3] w @init(normal(0, 0.5)), float[3] b @init(zeros), float[3, 3, 5, 2] k @init(normal(0, 0.3))>
{
  c @sbp(S(2)) = Conv<pads = [1, 1, 1, 1], strides = [2, 1]>(x, w, b) @sbp(S(2), B, B -> S(2))
  d @sbp(S(2)) = Conv<pads = [2, 0, 2, 0]>(c, k) @sbp(S(2), B -> S(2))
  p @sbp(S(2)) = MaxPool<kernel_shape = [2, 2], strides = [1, 1], pads = [0, 0, 1, 1]>(d) @sbp(S(2) -> S(2))
  a @sbp(S(2)) = AveragePool<kernel_shape = [2, 2], strides = [2, 1], pads = [1, 0, 1, 1]>(p) @sbp(S(2) -> S(2))
  loss = SoftmaxCrossEntropyLoss(Flatten(GlobalAveragePool(a)), u)
}
E
trains channels <<'E'
g (float[N, 3, 5, 4] x, int64[N] u) => (float loss)
<float[3, 3, 3, 3] w @init(normal(0, 0.5)), float[3] b @init(zeros), float[3, 3, 1, 1] k @init(normal(0, 0.3))>
{
  c = Conv<pads = [1, 1, 1, 1]>(x, w, b) @sbp(B, S(0), S(0) -> S(1))
  d = Conv(Relu(c), k) @sbp(S(1), S(1) -> P)
  loss = SoftmaxCrossEntropyLoss(Flatten(GlobalAveragePool(d)), u)
}
E
trains largest <<'E'
g (float[N, 3, 5] x, int64[N] u) => (float loss)
<float[5, 3] w @init(normal(0, 0.5)), float[3, 3] v @init(normal(0, 0.5))>
{
  h = MatMul(x, w)
  a @sbp(P(max)) = ReduceMax<keepdims = 0>(h, [1]) @sbp(S(1), B -> P(max))
  b @sbp(P(min)) = ReduceMin<keepdims = 0>(h, [1]) @sbp(S(1), B -> P(min))
  c = Sub(a, b)
  loss = SoftmaxCrossEntropyLoss(MatMul(c, v), u)
}
E
trains lamb 'lamb(lr: 0.01)' <<'E'
@pin("w", "v", "w.m", "v.v", sbp: [S(0)])
g (float[N, 3] x, int64[N] u) => (float loss)
<float[3, 3] w @init(normal(0, 0.5)), float[3, 3] v @init(normal(0, 0.5))>
{
  loss = SoftmaxCrossEntropyLoss(MatMul(Tanh(MatMul(x, w)), v), u)
}
E
trains lars 'lars(lr: 0.1)' <<'E'
@pin("w", "v", sbp: [S(1)])
g (float[N, 3] x, int64[N] u) => (float loss)
<float[3, 3] w @init(normal(0, 0.5)), float[3, 3] v @init(normal(0, 0.5))>
{
  loss = SoftmaxCrossEntropyLoss(MatMul(Tanh(MatMul(x, w)), v), u)
}
E
trains moved <<'E'
g (float[N, 3, 4] x, int64[N] u) => (float loss)
<float[4, 4] w @init(normal(0, 0.5)), float[12, 3] v @init(normal(0, 0.5)), int64 one = {1}, int64[2] rows = {0, 12}, int64[6] pads = {0, 1, 0, 0, 1, 0}, int64[1] k = {2}>
{
  h @sbp(S(1)) = MatMul(x, w)
  c @sbp(S(1)) = CumSum(h, one)
  t @sbp(S(2)) = Transpose<perm = [0, 2, 1]>(c)
  m @sbp(S(1)) = Transpose<perm = [0, 2, 1]>(t)
  p @sbp(S(1)) = Pad(m, pads)
  q @sbp(S(1)) = Slice(p, [1], [4], [1])
  j @sbp(S(1)) = Concat<axis = 1>(q, h)
  a, b = Split<axis = 1, num_outputs = 2>(j)
  e @sbp(S(1)) = Mul(Sigmoid(a), b)
  loss = SoftmaxCrossEntropyLoss(MatMul(Reshape(e, rows), v), u)
}
E
trains groups <<'E'
g (float[N, 3, 5] x, int64[N] u) => (float loss)
<float[3] s @init(ones), float[3] b @init(zeros), float[3] s2 @init(ones), float[3] b2 @init(zeros), float[15, 3] v @init(normal(0, 0.5)), int64[2] rows = {0, 15}>
{
  y @sbp(S(1)) = GroupNormalization<num_groups = 1>(x, s, b)
  z @sbp(S(2)) = InstanceNormalization(y, s2, b2)
  loss = SoftmaxCrossEntropyLoss(MatMul(Reshape(z, rows), v), u)
}
E
