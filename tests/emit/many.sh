# A tree grows with roles, not with ranks: 1,024 ranks of data parallel have the files of two, and not a thousandth more text.
for n in 2 1024; do
	"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=$n --train='batch: 4096' -o "ranks$n" >log 2>&1 || { echo "not ok $n-ranks: $(head -n 1 log)" && exit; }
	grep -q " $n ranks, 1 role," log || echo "not ok $n-ranks: $(head -n 1 log)"
	(cd "ranks$n" && find . -type f | sort) >"files$n"
done
cmp -s files2 files1024 && echo "ok same-files" || echo "not ok same-files: $(diff files2 files1024 | head -n 2)"
bytes() { find "$1" -type f -name '*.[ch]' -print0 | xargs -0 cat | wc -c; }
a=$(bytes ranks2) b=$(bytes ranks1024)
[ $((b - a)) -lt $((a / 1000)) ] && echo "ok same-text" || echo "not ok same-text: $a and $b bytes"
# Unequal parts: two roles, and one table with the role of each rank.
"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=1000 --train='batch: 4096' -o uneven >log 2>&1
grep -q ' 1000 ranks, 2 roles,' log && echo "ok two-roles" || echo "not ok two-roles: $(head -n 1 log)"
