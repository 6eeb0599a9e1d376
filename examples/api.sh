#!/usr/bin/env bash
# A C program that holds a model as a library: trains it, reads a parameter, asks for scores (examples/api.c).
set -eu
"$SBPCC" examples/mlp.ir --prefix digits -o "$OUT" "$@"
make -s -C "$OUT" lib
${CC:-cc} -std=c11 -Wall -Wextra -O2 -I "$OUT" -o "$OUT/api" examples/api.c "$OUT/libdigits.a" -pthread -lm
rm -rf "$OUT/checkpoint"
"$OUT/api" "$OUT/checkpoint"
