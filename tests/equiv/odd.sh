# Tensors without elements, and repeats along many axes, have the losses of the reference evaluator, on one rank and
# on two.
how='data: points(classes: 2), steps: 3'
for f in "$HERE"/odd/*.ir; do
	name=$(basename "$f" .ir) args=$(sed -n 's/^# args: //p' "$f")
	"$PLAIN/test-equiv-evaluator" "$f" 3 >want.txt 2>log || { echo "not ok $name: $(head -n 1 log)" && continue; }
	for ranks in 1 2; do
		# shellcheck disable=SC2086
		"$SBPCC" "$f" $args --train="$how" --ranks=$ranks -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 &&
			tree/trainer --every=1 2>log | grep -o '^step *[0-9]* *loss [^ ]*' >got.txt || { echo "not ok $name-$ranks: $(head -n 1 log)" && continue; }
		why=$(paste want.txt got.txt | awk '{ d = $4 - $8; s = $4 < 0 ? -$4 : $4; if (d < 0) d = -d; if (!(d <= 1e-5 * (s + 1))) print "step " $2 ": " $4 " and " $8; n++ } END { if (n != 3) print n + 0 " steps" }')
		if [ -z "$why" ]; then echo "ok $name-$ranks"; else echo "not ok $name-$ranks: $(echo $why)"; fi
	done
done
