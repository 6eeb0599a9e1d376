# GPT-2 of 12 layers has at most 2,000 generated lines of 120 columns, 1,500 of them for what ranks run: the code of a
# layer is written once, and 12 more layers add only rows of tables.
"$ROOT/bench/model.sh" gpt2:4,64 >gpt2.ir
"$ROOT/bench/model.sh" gpt2:4,64,24 >long.ir
lines() { # tree: what was written for the model, without the runtime and the library's kernels
	(cd "$1" && cat ./*.c ./*.h role*/*.c kernels/pointwise.* Makefile | wc -l)
}
for m in gpt2 long; do
	"$SBPCC" $m.ir -o $m >log 2>&1 || { echo "not ok $m: $(head -n 1 log)" && exit; }
done
n=$(lines gpt2) more=$(($(lines long) - $(lines gpt2)))
[ "$n" -le 2000 ] && echo "ok at-most-2000-lines" || echo "not ok at-most-2000-lines: $n"
n=$(cat gpt2/blocks.* gpt2/role*/* | wc -l)
[ "$n" -le 1500 ] && echo "ok at-most-1500-lines-run" || echo "not ok at-most-1500-lines-run: $n"
[ "$more" -le 800 ] && echo "ok layers-stand-once" || echo "not ok layers-stand-once: 12 more layers are $more lines"
grep -q 'i < 24; ' long/role0/schedule.c && echo "ok one-block" || echo "not ok one-block: the schedule has no function that is called 24 times"
# In four stages of whole layers: at most 1,800 lines of what ranks run, which stand once for all roles.
awk '/^  x5 = |^  x9 = / { open = /x5/ ? 1 : 2 } open && /\)$/ { $0 = $0 " @stage(" open ")"; open = 0 } /^  x = / { $0 = $0 " @stage(3)" } { print }' gpt2.ir >stages.ir
"$SBPCC" stages.ir --ranks=4 --stages=4 --micro-batches=4 -o stages >log 2>&1 || echo "not ok stages: $(head -n 1 log)"
n=$(cat stages/blocks.* stages/role*/* | wc -l)
[ "$n" -le 1800 ] && [ "$n" -gt 100 ] && echo "ok at-most-1800-lines-in-stages" || echo "not ok at-most-1800-lines-in-stages: $n"
