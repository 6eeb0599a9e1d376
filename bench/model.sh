#!/usr/bin/env bash
# bench/model.sh MODEL: prints a model of the step benchmark for sbpcc.
#   gpt2:BATCH,LENGTH[,LAYERS]   bert:BATCH,LENGTH[,LAYERS]   resnet18:BATCH   resnet50:BATCH   mlp:BATCH
# All train with AdamW on synthetic data.
set -eu
name=${1%%:*} sizes=${1#*:}
IFS=, read -r batch length layers <<<"$sizes"
train() { # classes
	echo "@train(loss: loss, optimizer: adamw(lr: 0.0001, weight_decay: 0.01), batch: $batch, steps: 10, data: points(classes: $1), seed: 1)"
}

mlp() {
	cat <<END
<ir_version: 10, opset_import: ["" : 23]>
$(train 10)
mlp (float[N, 784] x, int64[N] label) => (float loss)
<
  float[784, 256] w1 @init(kaiming_normal), float[256] b1 @init(zeros),
  float[256, 10] w2 @init(xavier_uniform), float[10] b2 @init(zeros)
>
{
  h0 = MatMul(x, w1)
  h1 = Add(h0, b1)
  h = Relu(h1)
  scores0 = MatMul(h, w2)
  scores = Add(scores0, b2)
  loss = SoftmaxCrossEntropyLoss(scores, label)
}
END
}

# A transformer of width 768 with 12 heads and tied embedding; the text of a block, from n1 or x on, comes on stdin.
transformer() { # name, vocabulary, positions, layers
	local name=$1 words=$2 positions=$3 layers=$4 i block
	block=$(cat)
	cat <<END
<ir_version: 10, opset_import: ["" : 23, "$name" : 1]>
$(train "$words")
$name (int64[N, $length] tokens, int64[N, $length] targets) => (float loss)
<
  float[$words, 768] "embed.w" @init(normal(0, 0.02)), float[$positions, 768] "position.w" @init(normal(0, 0.02)),
END
	for ((i = 0; i < layers; i++)); do
		cat <<END
  float[768] "h$i.norm1.w" @init(ones), float[768] "h$i.norm1.b" @init(zeros),
  float[768, 2304] "h$i.qkv.w" @init(normal(0, 0.02)), float[2304] "h$i.qkv.b" @init(zeros),
  float[768, 768] "h$i.out.w" @init(normal(0, 0.02)), float[768] "h$i.out.b" @init(zeros),
  float[768] "h$i.norm2.w" @init(ones), float[768] "h$i.norm2.b" @init(zeros),
  float[768, 3072] "h$i.up.w" @init(normal(0, 0.02)), float[3072] "h$i.up.b" @init(zeros),
  float[3072, 768] "h$i.down.w" @init(normal(0, 0.02)), float[768] "h$i.down.b" @init(zeros),
END
	done
	cat <<END
  float[768] "norm.w" @init(ones), float[768] "norm.b" @init(zeros),
  int64[2] rows = {-1, $words}, int64[1] flat = {-1}, int64[1] first = {0}, int64[1] last = {$length}
>
{
  token = Gather("embed.w", tokens)
  position = Slice("position.w", first, last)
  x0 = Add(token, position)
END
	for ((i = 0; i < layers; i++)); do
		cat <<END
  x$((i + 1)) = $name.block(x$i, "h$i.norm1.w", "h$i.norm1.b", "h$i.qkv.w", "h$i.qkv.b", "h$i.out.w", "h$i.out.b",
       "h$i.norm2.w", "h$i.norm2.b", "h$i.up.w", "h$i.up.b", "h$i.down.w", "h$i.down.b")
END
	done
	cat <<END
  x = LayerNormalization<axis = -1>(x$layers, "norm.w", "norm.b")
  unembed = Transpose<perm = [1, 0]>("embed.w")
  logits = MatMul(x, unembed)
  scores = Reshape(logits, rows)
  labels = Reshape(targets, flat)
  loss = SoftmaxCrossEntropyLoss(scores, labels)
}

<domain: "$name", opset_import: ["" : 23]>
block (x, norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b) => (y)
{
$block
}
END
}

gpt2() {
	transformer gpt2 50257 1024 "${layers:-12}" <<END
  n1 = LayerNormalization<axis = -1>(x, norm1_w, norm1_b)
  qkv0 = MatMul(n1, qkv_w)
  qkv = Add(qkv0, qkv_b)
  q, k, v = Split<axis = -1, num_outputs = 3>(qkv)
  seen = Attention<q_num_heads = 12, kv_num_heads = 12, is_causal = 1>(q, k, v)
  out0 = MatMul(seen, out_w)
  out = Add(out0, out_b)
  mid = Add(x, out)
  n2 = LayerNormalization<axis = -1>(mid, norm2_w, norm2_b)
  up0 = MatMul(n2, up_w)
  up = Add(up0, up_b)
  act = Gelu<approximate = "tanh">(up)
  down0 = MatMul(act, down_w)
  down = Add(down0, down_b)
  y = Add(mid, down)
END
}

# Post-norm, bidirectional, exact GELU; the rest as GPT-2.
bert() {
	transformer bert 30522 512 "${layers:-12}" <<END
  qkv0 = MatMul(x, qkv_w)
  qkv = Add(qkv0, qkv_b)
  q, k, v = Split<axis = -1, num_outputs = 3>(qkv)
  seen = Attention<q_num_heads = 12, kv_num_heads = 12>(q, k, v)
  out0 = MatMul(seen, out_w)
  out = Add(out0, out_b)
  sum1 = Add(x, out)
  mid = LayerNormalization<axis = -1>(sum1, norm1_w, norm1_b)
  up0 = MatMul(mid, up_w)
  up = Add(up0, up_b)
  act = Gelu(up)
  down0 = MatMul(act, down_w)
  down = Add(down0, down_b)
  sum2 = Add(mid, down)
  y = LayerNormalization<axis = -1>(sum2, norm2_w, norm2_b)
END
}

# Prints a convolution with batch norm: its parameters to params, its nodes to nodes.  x names its input and then its
# result.
conv() { # name, inputs, outputs, window, step
	cat >>"$tmp/params" <<END
  float[$3, $2, $4, $4] "$1.conv" @init(kaiming_normal), float[$3] "$1.norm.w" @init(ones), float[$3] "$1.norm.b" @init(zeros),
  float[$3] "$1.norm.mean" @init(zeros), float[$3] "$1.norm.var" @init(ones),
END
	local p=$(($4 / 2))
	echo "  $1 = net.conv<stride = [$5, $5], pad = [$p, $p, $p, $p]>($x, \"$1.conv\", \"$1.norm.w\", \"$1.norm.b\", \"$1.norm.mean\", \"$1.norm.var\")" >>"$tmp/nodes"
	x=$1
}
relu() {
	echo "  $x.r = Relu($x)" | sed 's/\.r/_r/g' >>"$tmp/nodes"
	x=${x}_r
}

resnet() { # bottleneck: 0 or 1, then blocks of each stage
	local bottle=$1 inputs=64 stage=0 block step width outputs from body
	shift
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	x=image
	conv stem 3 64 7 2
	relu
	echo "  pooled = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>($x)" >>"$tmp/nodes"
	x=pooled
	for count in "$@"; do
		width=$((64 << stage)) outputs=$((bottle ? 4 * width : width))
		for ((block = 0; block < count; block++)); do
			step=$((stage > 0 && block == 0 ? 2 : 1)) from=$x
			local n=s${stage}b${block}
			if ((bottle)); then
				conv "${n}c1" $inputs $width 1 1 && relu && conv "${n}c2" $width $width 3 $step && relu && conv "${n}c3" $width $outputs 1 1
			else
				conv "${n}c1" $inputs $width 3 $step && relu && conv "${n}c2" $width $outputs 3 1
			fi
			body=$x x=$from
			((inputs != outputs || step != 1)) && conv "${n}skip" $inputs $outputs 1 $step
			echo "  ${n} = Add($body, $x)" >>"$tmp/nodes"
			x=$n
			relu
			inputs=$outputs
		done
		stage=$((stage + 1))
	done
	cat <<END
<ir_version: 10, opset_import: ["" : 23, "net" : 1]>
$(train 1000)
@state("*.mean")
@state("*.var")
resnet (float[N, 3, 224, 224] image, int64[N] label) => (float loss)
<
$(cat "$tmp/params")
  float[$inputs, 1000] "dense.w" @init(xavier_uniform), float[1000] "dense.b" @init(zeros)
>
{
$(cat "$tmp/nodes")
  mean = GlobalAveragePool($x)
  flat = Flatten<axis = 1>(mean)
  scores0 = MatMul(flat, "dense.w")
  scores = Add(scores0, "dense.b")
  loss = SoftmaxCrossEntropyLoss(scores, label)
}

<domain: "net", opset_import: ["" : 23]>
conv <stride, pad> (x, w, scale, shift, mean, var) => (y)
{
  c = Conv<strides: ints = @stride, pads: ints = @pad>(x, w)
  y, mean_new, var_new = BatchNormalization<training_mode = 1>(c, scale, shift, mean, var)
}
END
}

case $name in
gpt2) gpt2 ;;
bert) bert ;;
mlp) mlp ;;
resnet18) resnet 0 2 2 2 2 ;;
resnet50) resnet 1 3 4 6 3 ;;
*) echo "bench/model.sh: there is no model $name" >&2 && exit 2 ;;
esac
