# The solver's memory of a pipeline counts the micro-batches in flight: for each schedule it is within 25 % of the bytes that the memory plan
# has in use at the busiest action, and for gpipe, which keeps all 8 micro-batches, more than twice that of 1f1b.
sed -n '/^cat >deep.ir/,/^MODEL$/p' "$ROOT/tests/equiv/checkpoints.sh" | sed '1d;$d' >deep.ir
for s in gpipe 1f1b zb-h1 interleaved; do
	n=2
	[ $s = interleaved ] && n=4
	run() { "$SBPCC" deep.ir --ranks=2 --stages=$n --schedule=$s --micro-batches=8 "$@" 2>&1; }
	about=$(run --memory=60MB --explain | sed -n 's/.*about \([0-9]*\) bytes a rank.*/\1/p' | sort -n | tail -n 1)
	used=$(run -o tree | sed -n 's/^memory of a rank.* in use at a[0-9]*: \(.*\), gaps.*/\1/p' | tr ',' '\n' | awk '{ sum += $2 } END { print sum + 0 }')
	[ $s = gpipe ] && all=$about
	[ $s = 1f1b ] && few=$about
	if awk -v a="$about" -v b="$used" 'BEGIN { exit !(b > 0 && a > 0.75 * b && a < 1.25 * b) }'; then echo "ok $s"; else echo "not ok $s: about $about, $used are in use"; fi
done
if [ "$all" -gt $((2 * few)) ]; then echo "ok gpipe keeps more"; else echo "not ok gpipe keeps more: $all and $few"; fi
