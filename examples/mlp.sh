#!/usr/bin/env bash
# Trains examples/mlp.ir on one rank and on two local ranks; shows the plan, the losses of both, and the loss of the
# held-out samples.
set -eu
mkdir -p "$OUT"
"$SBPCC" examples/mlp.ir --ranks 1 -o "$OUT/one" "$@"
"$SBPCC" examples/mlp.ir --ranks 2 -o "$OUT/two" "$@"
make -s -C "$OUT/one"
make -s -C "$OUT/two"
echo "the plan for two ranks (all of it: $OUT/two/plan.ir)"
"$SBPCC" examples/mlp.ir --ranks 2 --explain --stop-after=prove "$@" | grep -E '^(image|w1|h|scores|loss|w1\.grad|w1\.grad\.[a-z]*) ' || true
rm -rf "$OUT/checkpoint"
"$OUT/one/trainer" --checkpoint "$OUT/checkpoint" >"$OUT/one.log"
"$OUT/two/trainer" >"$OUT/two.log"
echo "loss on one rank and on two"
paste <(grep '^step' "$OUT/one.log") <(grep '^step' "$OUT/two.log")
"$OUT/one/trainer" --resume "$OUT/checkpoint" --eval
