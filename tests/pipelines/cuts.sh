# The automatic cut (--stages=2): the first is made by costs of the forward pass, the next by the seconds and bytes of the program's blocks.
run() { "$SBPCC" "$@" --ranks=2 --stages=2 --schedule=1f1b 2>&1; }
step() { sed -n 's/^predicted: \([0-9.]*\) ms .*/\1/p'; }
run "$HERE/uneven.ir" -o auto >auto.out || { echo "not ok not compiled"; exit 1; }
mine=$(step <auto.out)

# It is as quick as the best of all cuts in front of a layer, and quicker than the first.
for i in 1 2 3 4 5 6; do
	sed "s/^  h$i = .*)/& @stage(1)/" "$HERE/uneven.ir" >pinned.ir
	run pinned.ir -o pinned >pinned.out
	grep -q '^stages: ' pinned.out && echo "not ok @stage is kept: $(grep '^stages: ' pinned.out)"
	step <pinned.out
done >steps
grep 'not ok' steps
best=$(sort -n steps | head -n 1)
first=$(sed -n 's/^stages: .* instead of \([0-9.]*\) ms.*/\1/p' auto.out)
if awk -v a="$mine" -v b="$best" -v c="$first" 'BEGIN { exit !(a > 0 && a <= 1.002 * b && c > 1.01 * a) }'; then echo "ok the quickest"; else echo "not ok the quickest: $mine ms, of $(tr '\n' ' ' <steps); first $first"; fi

# A dump holds the cut, and gives the same program.
run "$HERE/uneven.ir" --dump-after=schedule --stop-after=schedule >dump.ir
"$SBPCC" dump.ir -o again >again.out 2>&1
if [ -f again/plan.json ] && ! grep -q '^stages: ' again.out && cmp -s auto/plan.json again/plan.json && diff -r auto again -x README.md -x model.ir -x plan.ir -x report.html >diff.out; then echo "ok a dump"; else echo "not ok a dump: $(head -n 3 diff.out again.out)"; fi

# Where the first cut does not fit into the memory, another is found, which is slower; the weights are those of one rank.
bytes() { sed -n 's/.*memory of a rank: \([0-9]*\) bytes.*/\1/p' "$1.out"; }
budget=$(($(bytes auto) - 20000))
run "$HERE/uneven.ir" -o small --memory=$budget >small.out
"$SBPCC" "$HERE/uneven.ir" -o one >one.out 2>&1
if [ -n "$(bytes small)" ] && [ "$(bytes small)" -le $budget ] && awk -v a="$mine" -v b="$(step <small.out)" 'BEGIN { exit !(b > a) }'; then echo "ok fits"; else echo "not ok fits: $(bytes small) of $budget"; fi
for t in one small; do
	make -s -C $t STATIC= CFLAGS=-O1 >$t.make 2>&1 && $t/trainer --export=$t/x >$t.run 2>&1 || echo "not ok $t: $(tail -n 2 $t.run)"
done
if cmp -s one/x/model.safetensors small/x/model.safetensors; then echo "ok same bits"; else echo "not ok same bits"; fi
