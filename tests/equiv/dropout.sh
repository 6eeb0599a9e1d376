# Dropout and noise are the same for every number of ranks and micro-batches, in the evaluator and in programs, to the
# bit.
agree() { # what, file
	paste want.txt "$2" | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-6 * $4) { print " step " $2 ": " $4 " and " $8; bad = 1 } n++ } END { exit bad || n != 4 }' >why && echo "ok $1" || { echo "not ok $1: losses differ" && cat why; }
}
"$PLAIN/test-equiv-evaluator" "$HERE/dropout.ir" 4 'data: points(classes: 2)' >want.txt || exit 1
for m in 4 2 1; do
	"$PLAIN/test-equiv-evaluator" "$HERE/dropout.ir" 4 "data: points(classes: 2), microbatch: $m" >got.txt || exit 1
	agree "micro-batches of $m" got.txt
done
for ranks in 1 2 4; do
	"$SBPCC" "$HERE/dropout.ir" --ranks=$ranks --train='data: points(classes: 2), steps: 4, microbatch: 4' -o tree >/dev/null && make -s -C tree STATIC= CFLAGS=-O1 &&
		tree/trainer --every=1 | grep -o '^step *[0-9]* *loss [^ ]*' >got.txt || exit 1
	agree "$ranks ranks" got.txt
	rm -rf tree
done
# The parts, one after another, drop the same elements as the whole batch.
for m in 8 4 1; do
	"$SBPCC" "$HERE/dropout.ir" --train="data: points(classes: 2), steps: 1, microbatch: $m" -o new >/dev/null && mkdir -p tree && cp -r new/. tree && rm -rf new && make -s -C tree STATIC= CFLAGS=-O1 && tree/trainer --dump=dump >/dev/null || exit 1
	for f in dump/step/h2.npy dump/step/h2.micro?.npy; do [ -e "$f" ] && tail -c +129 "$f"; done >left$m
	if [ "$(wc -c <left$m)" = 320 ] && cmp -s left8 left$m; then echo "ok bits in parts of $m"; else echo "not ok bits in parts of $m: $(wc -c <left$m) bytes"; fi
	rm -rf dump
done
