# The dump after any pass, read back, gives the same tree, except for the record of its input; plan.ir of the tree
# gives the whole tree.
bare() { awk '/^@made\(/ { skip = 1 } !skip; /\)$/ { skip = 0 }' "$1"; }
same() { diff -r -x README.md -x model.ir -x plan.ir "$1" "$2" && bare "$1/plan.ir" >want.plan && bare "$2/plan.ir" >got.plan && diff want.plan got.plan; }
cp "$ROOT/examples/mlp.ir" .
"$SBPCC" mlp.ir --ranks=2 -o tree >/dev/null || exit 1
for p in train plan boxing project schedule memplan prove; do
	"$SBPCC" mlp.ir --ranks=2 --dump-after=$p --stop-after=$p >dump.ir && "$SBPCC" dump.ir --ranks=2 -o "$p" >/dev/null || exit 1
	same tree "$p" >log && echo "ok after-$p" || { echo "not ok after-$p: another tree" && sed 's/^/ /' log; }
done
cp tree/plan.ir . && "$SBPCC" plan.ir -o again >/dev/null
diff -r tree again >log && echo "ok plan-of-the-tree" || { echo "not ok plan-of-the-tree: another tree" && sed 's/^/ /' log; }
# Written over a tree of sbpcc: other files in the folder are kept.
echo mine >tree/notes.txt
"$SBPCC" mlp.ir --ranks=2 -o tree >/dev/null && [ "$(cat tree/notes.txt)" = mine ] && [ ! -e .tree.sbpcc-tmp ] && echo "ok rewritten-in-place" || echo "not ok rewritten-in-place: a file of the user is gone"
# With micro-batches and random numbers.
cp "$ROOT/tests/equiv/dropout.ir" model.ir
"$SBPCC" model.ir --train='microbatch: 2' -o small >/dev/null || exit 1
for p in train micro plan; do
	"$SBPCC" model.ir --train='microbatch: 2' --dump-after=$p --stop-after=$p >dump.ir && "$SBPCC" dump.ir -o got >/dev/null || exit 1
	same small got >log && echo "ok micro-after-$p" || { echo "not ok micro-after-$p: another tree" && head -n 5 log | sed 's/^/ /'; }
	rm -rf got
done
# The same for every example, after the plan and after boxing; with the plain build, because the sanitized one takes
# minutes.
for f in "$ROOT"/examples/*.ir; do
	name=$(basename "$f" .ir)
	cp "$f" model.ir
	rm -rf want got
	"$PLAIN/sbpcc" model.ir --ranks=2 --train='data: points(classes: 2)' -o want >log 2>&1 || { echo "not ok $name: $(head -n 1 log)" && continue; }
	for p in plan boxing; do
		"$PLAIN/sbpcc" model.ir --ranks=2 --train='data: points(classes: 2)' --dump-after=$p --stop-after=$p >dump.ir && "$PLAIN/sbpcc" dump.ir -o got >/dev/null 2>log
		same want got >>log && echo "ok $name-after-$p" || { echo "not ok $name-after-$p: another tree" && head -n 5 log | sed 's/^/ /'; }
	done
done
# On three ranks a third of a fused axis is the same shard as one of its three factors: the name that the plan uses is
# kept.
printf '%s\n' '@mesh(m, cpu, [3, 1, 2])' '@pin("h0.qkv.w", sbp: [S(0), S(0), S(1)])' '@pin("embed.w", sbp: [S(0), S(1), S(1)])' '@pin("h1.qkv.b.m", sbp: [S(0), _, S(0)])' '@pin("h1.down.b.v", sbp: [S(0), S(0), S(0)])' >names.place
cp "$ROOT/examples/gpt.ir" model.ir && rm -rf want got
"$PLAIN/sbpcc" model.ir --place=names.place --train='data: points(classes: 2), batch: 5' -o want >log 2>&1 && "$PLAIN/sbpcc" want/plan.ir -o got >log 2>&1
diff -r want got >>log && grep -q '@sbp(S(1/0), B, S(0)) = Sqrt' want/plan.ir && echo "ok one-part-by-two-names" || { echo "not ok one-part-by-two-names: another tree" && head -n 5 log | sed 's/^/ /'; }
