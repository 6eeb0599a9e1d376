# Optimizers, schedules, groups and clipping have the losses of optimizers.txt: to 1e-5 in the reference evaluator, to
# 1e-4 in programs.
agree() { # file, bound
	tr ' ' '\n' <want | paste - "$1" | awk -v far="$2" '{ d = $1 - $2; if (d < 0) d = -d; if (d > far * $1 + 1e-6) { print " " $0; bad = 1 } n++ } END { exit bad || n != 12 }' >why
}
grep -v '^#' "$HERE/optimizers.txt" | while IFS='|' read -r what want; do
	echo "$want" >want
	"$PLAIN/test-equiv-evaluator" "$HERE/optimizers.ir" 12 "$what" 2>log | awk '/^step/ { print $4 }' >got
	grep -A2 'warning: .* steps' log >expected              # schedules that end before or after the 12 steps
	if ! diff -q log expected >why; then echo "not ok $what: $(head -n 1 log)"; elif agree got 1e-5; then echo "ok $what"; else echo "not ok $what: losses differ" && cat why; fi
	case $what in *schedule* | *clip*) continue ;; esac
	"$SBPCC" "$HERE/optimizers.ir" --train="$what, steps: 12" -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 &&
		tree/trainer --every=1 2>log | awk '/^step/ { print $4 }' >got || { echo "not ok program with $what: $(head -n 1 log)" && continue; }
	if agree got 1e-4; then echo "ok program with $what"; else echo "not ok program with $what: losses differ" && cat why; fi
done
