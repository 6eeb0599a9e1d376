#!/usr/bin/env bash
# Trains examples/mlp.ir and exports its weights; trains a new head on the frozen first layer (examples/finetune.ir);
# exports the result.
set -eu
mkdir -p "$OUT"
"$SBPCC" examples/mlp.ir -o "$OUT/mlp" "$@"
"$SBPCC" examples/finetune.ir -o "$OUT/tree" "$@"
make -s -C "$OUT/mlp"
make -s -C "$OUT/tree"
rm -rf "$OUT/checkpoint"
body=(--weights "$OUT/pretrained" --weights-map 'w1=body.w,b1=body.b,w2=,b2=' --weights-partial)
set -x
"$OUT/mlp/trainer" --every 500 --export "$OUT/pretrained"
"$OUT/tree/trainer" "${body[@]}" --eval
"$OUT/tree/trainer" "${body[@]}" --every 100 --checkpoint "$OUT/checkpoint" --export "$OUT/finetuned"
"$OUT/tree/trainer" --weights "$OUT/finetuned" --eval
