#!/usr/bin/env bash
# Trains examples/gpt.ir on two local ranks, byte by byte on the licences that every Debian machine has; then compares
# its loss on the held-out last tenth of the text with that of a bigram model, and generates a sample.
set -eu
mkdir -p "$OUT"
cat /usr/share/common-licenses/{Apache-2.0,Artistic,GFDL-1.3,GPL-2,GPL-3,LGPL-2.1,MPL-1.1,MPL-2.0} >"$OUT/text"
"$SBPCC" examples/gpt.ir --ranks 2 -o "$OUT/two" "$@"
echo "some of the plan (all of it: $OUT/two/plan.ir)"
"$SBPCC" examples/gpt.ir --ranks 2 --explain --stop-after=prove "$@" | grep -E '^(plan:|tokens|embed\.w|x0|x1\.seen|logits|loss|embed\.w\.grad) ' || true
make -s -C "$OUT/two"
rm -rf "$OUT/checkpoint"
"$OUT/two/trainer" --data "$OUT/text" --checkpoint "$OUT/checkpoint" --every=100

# The bigram model counts how often each byte follows each other, plus one, in the same text with the same held-out tenth.
echo "held-out loss of a bigram model of the same text"
od -An -v -tu1 -w1 "$OUT/text" | awk -v n="$(stat -c %s "$OUT/text")" '
	NR <= n * 0.9 && NR > 1 { pair[last, $1]++; first[last]++ }
	NR > n * 0.9 { sum -= log((pair[last, $1] + 1) / (first[last] + 256)); k++ }
	{ last = $1 }
	END { printf "bigram loss %.4f\n", sum / k }'
echo "held-out loss of the model"
"$OUT/two/trainer" --data "$OUT/text" --resume "$OUT/checkpoint" --eval=held-out

"$SBPCC" examples/gpt.ir --ranks 1 --prefix gpt -o "$OUT/library" "$@" >/dev/null
make -s -C "$OUT/library" lib
${CC:-cc} -std=c11 -O2 -I "$OUT/library" -o "$OUT/sample" examples/gpt_sample.c "$OUT/library/libgpt.a" -pthread -lm
echo "what it writes after the first 64 bytes of the text"
"$OUT/sample" "$(ls -d "$OUT"/checkpoint/*/*.safetensors | tail -n 1)" "$OUT/text" 400
