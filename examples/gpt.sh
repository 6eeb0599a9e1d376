#!/usr/bin/env bash
# Trains examples/gpt.ir on two local processes, on made-up bytes, and shows the plan.
set -eu
mkdir -p "$OUT"
made='data: points(classes: 2), steps: 20'
"$SBPCC" examples/gpt.ir --ranks 2 --train="$made" -o "$OUT/two" "$@"
echo "some of the plan (all of it: $OUT/two/plan.ir)"
"$SBPCC" examples/gpt.ir --ranks 2 --train="$made" --explain --stop-after=prove "$@" | grep -E '^(tokens|embed\.w|x0|x1\.seen|logits|loss|embed\.w\.grad) ' || true
make -s -C "$OUT/two"
"$OUT/two/trainer" --every=2
