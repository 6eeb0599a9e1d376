# A tree grows with roles, not with ranks: data parallel on 1,024 and on 4,096 ranks has the files of two ranks, and
# at most a thousandth more text.
for n in 2 1024 4096; do
	"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=$n --train='batch: 4096' -o "ranks$n" >log 2>&1 || { echo "not ok $n-ranks: $(head -n 1 log)" && exit; }
	grep -q " $n ranks, 1 role," log || echo "not ok $n-ranks: $(head -n 1 log)"
	(cd "ranks$n" && find . -type f | sort) >"files$n"
done
bytes() { find "$1" -type f -name '*.[ch]' -print0 | xargs -0 cat | wc -c; }
a=$(bytes ranks2)
for n in 1024 4096; do
	cmp -s files2 files$n && echo "ok same-files-$n" || echo "not ok same-files-$n: $(diff files2 files$n | head -n 2)"
	b=$(bytes ranks$n)
	[ $((b - a)) -lt $((a / 1000)) ] && echo "ok same-text-$n" || echo "not ok same-text-$n: $a and $b bytes"
done
# Unequal shards: two roles, and one table with the role of each rank.
"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=1000 --train='batch: 4096' -o uneven >log 2>&1
grep -q ' 1000 ranks, 2 roles,' log && echo "ok two-roles" || echo "not ok two-roles: $(head -n 1 log)"
# Two axes with unequal shards along both, and two meshes side by side.  Counting shards rank by rank would take
# minutes for these.
compile() { # name, ranks, lines of the place file
	printf '%s\n' "${@:3}" >"$1.place"
	"$SBPCC" "$ROOT/examples/mlp.ir" --place="$1.place" --train='batch: 4096' -o "$1" >log 2>&1
	grep -q " $2 ranks, [1-9] role" log && echo "ok $1" || echo "not ok $1: $(head -n 1 log)"
}
compile two-axes 4095 '@mesh(m, cpu, [63, 65])' '@pin("w1", sbp: [S(0), S(1)])' '@pin("image", sbp: [S(0), B])'
compile two-meshes 2048 '@mesh(a, cpu, [1024], 0:1023)' '@mesh(b, cpu, [1024], 1024:2047)' '@pin("h", on: b)'
# The list of a rank has only the transfers that it takes part in: the sum of w1's gradient is between ranks 0 and 1.
compile own-transfers 4 '@mesh(a, cpu, [2], 0:1)' '@mesh(b, cpu, [2], 2:3)' '@pin("h", on: b)' '@pin("image", sbp: [S(0)])' '@pin("w1", "b1", sbp: [B])'
count=$(for r in 0 1; do grep -c "^<tr id=step$r-.*w1.grad.whole = Boxing(w1.grad)" own-transfers/report.html; done | tr '\n' ' ')
[ "$count" = '1 0 ' ] && echo "ok own-transfers-only" || echo "not ok own-transfers-only: roles have $count"
