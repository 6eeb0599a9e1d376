# Optimizers, schedules and clipping have the losses that PyTorch has (optimizers.txt), to 1e-4.
# seconds: 300
grep -v '^#' "$HERE/optimizers.txt" | while IFS='|' read -r what want; do
	"$SBPCC" "$HERE/optimizers.ir" --train="$what, steps: 12" -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 &&
		tree/trainer --every=1 2>log | awk '/^step/ { print $4 }' >got || { echo "not ok $what: $(head -n 1 log)" && continue; }
	echo "$want" | tr ' ' '\n' | paste - got | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4 * $1 + 1e-6) { print " " $0; bad = 1 } n++ } END { exit bad || n != 12 }' >why &&
		echo "ok $what" || { echo "not ok $what: losses differ from PyTorch's" && cat why; }
done
