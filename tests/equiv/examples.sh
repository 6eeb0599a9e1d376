# Every example passes through all passes, its tree builds, and two ranks train as one, on made-up data.
cp "$ROOT"/examples/*.ir .
for f in *.ir; do
	name=${f%.ir} why=''
	for n in 1 2; do
		"$SBPCC" "$f" --ranks=$n --train='data: points(classes: 2), steps: 3' -o "tree$n" >log 2>&1 && make -s -C "tree$n" STATIC= CFLAGS=-O1 >log 2>&1 &&
			"tree$n/trainer" --every=1 >"$n.out" 2>log || { why="$n ranks: $(head -n 1 log)" && break; }
		grep -o '^step *[0-9]* *loss [^ ]*' "$n.out" >"$n.txt"
		rm -rf "tree$n"
	done
	if [ -z "$why" ]; then
		why=$(paste 1.txt 2.txt | awk '{ d = $4 - $8; s = $4 < 0 ? -$4 : $4; if (d < 0) d = -d; if (d > 1e-5 * (s + 1)) print "step " $2 ": " $4 " and " $8; n++ } END { if (n != 3) print n " steps" }')
	fi
	if [ -z "$why" ]; then echo "ok $name"; else echo "not ok $name: $(echo $why)"; fi
done
