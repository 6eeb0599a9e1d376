# A step in 2, 4 or 8 micro-batches has the losses of a step in one: in the reference evaluator to 1e-6, for every
# example and for losses whose count is known only at the end; and in programs of one and two ranks.
for f in "$HERE/micro.ir" "$HERE/counts.ir" "$HERE/same-number.ir" "$HERE/tied.ir" "$ROOT"/examples/*.ir; do
	name=$(basename "$f" .ir) why=''
	[ "$name" = resnet ] && continue        # has statistics of the batch
	for m in 8 4 2 1; do
		"$PLAIN/test-equiv-evaluator" "$f" 3 "batch: 8, microbatch: $m, data: points(classes: 2)" 2>log | grep -o '^step *[0-9]* *loss [^ ]*' >"$m.txt"
		[ -s log ] && why="micro-batches of $m: $(head -n 1 log)" && break
		paste 8.txt "$m.txt" | awk '{ d = $4 - $8; s = $4 < 0 ? -$4 : $4; if (d < 0) d = -d; if (d > 1e-6 * (s + 0.1)) { print "step " $2 ": " $4 " and " $8; bad = 1 } n++ } END { exit bad || n != 3 }' >diff || {
			why="micro-batches of $m: $(tr '\n' ';' <diff)" && break
		}
	done
	if [ -z "$why" ]; then echo "ok $name"; else echo "not ok $name: $why"; fi
done

# Also the averages of the weights.
for m in 8 4 2 1; do
	"$PLAIN/test-equiv-evaluator" "$HERE/counts.ir" 6 "microbatch: $m" w.ema train.scale | grep -v ^step >"$m.txt" || exit 1
	paste 8.txt "$m.txt" | awk '{ for (i = 2; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d > 1e-6 || d < -1e-6) { print " " $1 ": " $i " and " $(i + NF / 2); bad = 1 } } n++ } END { exit bad || n != 12 }' >why &&
		echo "ok averages in micro-batches of $m" || { echo "not ok averages in micro-batches of $m: they differ" && head -n 3 why; }
done

agree() { # what, file: as the evaluator with the whole batch
	paste 8.txt "$2" | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-5 * $4) { print " step " $2 ": " $4 " and " $8; bad = 1 } n++ } END { exit bad || n != 3 }' >why && echo "ok $1" || { echo "not ok $1: losses differ" && cat why; }
}
for f in "$HERE/micro.ir" "$HERE/counts.ir" "$HERE/tied.ir" "$ROOT/examples/gpt.ir"; do
	name=$(basename "$f" .ir)
	"$PLAIN/test-equiv-evaluator" "$f" 3 'batch: 8, data: points(classes: 2)' | grep -o '^step *[0-9]* *loss [^ ]*' >8.txt || exit 1
	for ranks in 1 2; do
		"$SBPCC" "$f" --ranks=$ranks --train='batch: 8, microbatch: 2, data: points(classes: 2), steps: 3' -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 &&
			tree/trainer --every=1 2>log | grep -o '^step *[0-9]* *loss [^ ]*' >got.txt || { echo "not ok program $name on $ranks: $(head -n 1 log)" && continue; }
		agree "program $name on $ranks" got.txt
		rm -rf tree
	done
done

# --micro-batches is accumulate: the tree is the same but for the text of the training section, and a dump holds the number.
same() { "$SBPCC" "$ROOT/examples/mlp.ir" "$@" --dump-after=micro --stop-after=micro 2>log | sed '/^ *[@"]/d; /^ *data:/d'; }
same --train='batch: 16, accumulate: 4' >want.ir && same --train='batch: 16' --micro-batches=4 >got.ir
[ -s want.ir ] && cmp -s want.ir got.ir && echo "ok option" || echo "not ok option: $(diff want.ir got.ir | head -n 1)"
"$SBPCC" "$ROOT/examples/mlp.ir" --micro-batches=4 --dump-after=boxing --stop-after=boxing >dump.ir 2>log && "$SBPCC" dump.ir --dump-after=boxing --stop-after=boxing >again.ir 2>log &&
	cmp -s dump.ir again.ir && grep -q 'accumulate: 4' again.ir && echo "ok option in a dump" || echo "not ok option in a dump: $(head -n 1 log)"
