#!/usr/bin/env bash
# A C program that uses a model as a library: it trains the model, reads a parameter and infers scores (examples/api.c).
set -eu
"$SBPCC" examples/mlp.ir --prefix digits -o "$OUT" "$@"
make -s -C "$OUT" lib
${CC:-cc} -std=c11 -Wall -Wextra -O2 -I "$OUT" -o "$OUT/api" examples/api.c "$OUT/libdigits.a" -pthread -lm
rm -rf "$OUT/checkpoint"
"$OUT/api" "$OUT/checkpoint"
