#!/usr/bin/env bash
# --train takes precedence over the model; arguments that it does not name stay.
set -u
"$SBPCC" --print --train 'loss: loss, optimizer: sgd(lr: 0.5)' "$ROOT/examples/gpt.ir" >out.ir || { echo "not ok --train: refused"; exit; }
grep -q 'optimizer: sgd(lr: 0.5)' out.ir && grep -q 'group("\*.b", weight_decay: 0)' out.ir && grep -q 'schedule: cosine' out.ir &&
	! grep -q adamw out.ir && echo "ok --train replaces what it names and keeps the rest" || echo "not ok --train: $(sed -n 2,4p out.ir)"
