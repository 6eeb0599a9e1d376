#!/usr/bin/env bash
# bench/gpt2.sh [LENGTH [LAYERS [BATCH]]]: prints GPT-2 124M as a model for sbpcc: vocabulary 50257, width 768, 12 heads,
# 12 layers, tied embedding, AdamW.  The defaults are length 64 and batch 4.
set -eu
length=${1:-64} layers=${2:-12} batch=${3:-4}
cat <<END
<ir_version: 10, opset_import: ["" : 23, "gpt2" : 1]>
@train(loss: loss, optimizer: adamw(lr: 0.0001, weight_decay: 0.01), batch: $batch, steps: 10, data: points(classes: 50257), seed: 1)
gpt2 (int64[N, $length] tokens, int64[N, $length] targets) => (float loss)
<
  float[50257, 768] "embed.w" @init(normal(0, 0.02)), float[1024, 768] "position.w" @init(normal(0, 0.02)),
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
  int64[2] rows = {-1, 50257}, int64[1] flat = {-1}, int64[1] first = {0}, int64[1] last = {$length}
>
{
  token = Gather("embed.w", tokens)
  position = Slice("position.w", first, last)
  x0 = Add(token, position)
END
for ((i = 0; i < layers; i++)); do
	cat <<END
  x$((i + 1)) = gpt2.block(x$i, "h$i.norm1.w", "h$i.norm1.b", "h$i.qkv.w", "h$i.qkv.b", "h$i.out.w", "h$i.out.b",
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

<domain: "gpt2", opset_import: ["" : 23]>
block (x, norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b) => (y)
{
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
}
END
