# Every value that the program of an example has in memory is what the reference evaluator computes from the same graph.
# seconds: 900
cp "$ROOT"/examples/*.ir .
how='data: points(classes: 2), steps: 3'
for f in *.ir; do
	name=${f%.ir} why=''
	rm -rf tree dump
	"$SBPCC" "$f" --train="$how" -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 &&
		tree/trainer --steps=3 --dump=dump --dump-step=2 >log 2>&1 || why=$(head -n 1 log)
	[ -n "$why" ] || "$PLAIN/test-equiv-values" "$f" dump step "$how" >got.txt 2>&1 || why=$(grep -v '^#' got.txt | head -n 3)
	if [ -z "$why" ]; then echo "ok $name"; else echo "not ok $name: $(echo $why)"; fi
	grep '^#' got.txt
done
