# The generated program of every example has the losses that the reference evaluator computes from its training graph.
cp "$ROOT"/examples/*.ir .
for f in *.ir; do
	name=${f%.ir} why=''
	"$SBPCC" "$f" --train='data: points(classes: 2), steps: 3' -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 &&
		tree/trainer --every=1 2>log | grep -o '^step *[0-9]* *loss [^ ]*' >got.txt && "$PLAIN/test-equiv-evaluator" "$f" 3 >want.txt 2>log || why=$(head -n 1 log)
	rm -rf tree
	[ -n "$why" ] || why=$(paste want.txt got.txt | awk '{ d = $4 - $8; s = $4 < 0 ? -$4 : $4; if (d < 0) d = -d; if (d > 1e-5 * (s + 1)) print "step " $2 ": " $4 " and " $8; n++ } END { if (n != 3) print n + 0 " steps" }')
	if [ -z "$why" ]; then echo "ok $name"; else echo "not ok $name: $(echo $why)"; fi
done
