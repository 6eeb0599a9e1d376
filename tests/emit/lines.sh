# GPT-2 of 12 layers has at most 1,500 generated lines: the code of a layer is written once, and 12 more layers add
# only rows of tables.
"$ROOT/bench/model.sh" gpt2:4,64 >gpt2.ir
"$ROOT/bench/model.sh" gpt2:4,64,24 >long.ir
lines() { # tree: what was written for the model, without the runtime and the library's kernels
	(cd "$1" && cat ./*.c ./*.h role*/*.c kernels/pointwise.* Makefile | wc -l)
}
for m in gpt2 long; do
	"$SBPCC" $m.ir -o $m >log 2>&1 || { echo "not ok $m: $(head -n 1 log)" && exit; }
done
n=$(lines gpt2) more=$(($(lines long) - $(lines gpt2)))
[ "$n" -le 1500 ] && echo "ok at-most-1500-lines" || echo "not ok at-most-1500-lines: $n"
[ "$more" -le 600 ] && echo "ok layers-stand-once" || echo "not ok layers-stand-once: 12 more layers are $more lines"
grep -q ' 24 times' long/role0/schedule.c && echo "ok one-block" || echo "not ok one-block: the schedule has no stretch that is done 24 times"
