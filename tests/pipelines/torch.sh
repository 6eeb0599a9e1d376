# The schedules that PyTorch wrote (tests/golden/schedules) are executed: compiled, proved and run, with the bits of one rank if micro-batches
# ascend, else almost; what --write-schedule writes is the schedule that was read.  Without --long three of them.
set -u
sed '/early\|side\|guess/d; s/^  main = /  loss = /; /loss = Add/d; s/, float main//; s/accumulate: 4, steps: 6/steps: 3/' "$HERE/net.ir" >plain.ir
run() { # name, micro-batches, options
	local name=$1 m=$2
	shift 2
	sed "s/batch: 8/batch: $((2 * m))/" plain.ir >"$name.ir"
	"$SBPCC" "$name.ir" -o "$name" --micro-batches="$m" "$@" >"$name.out" 2>&1 && make -s -C "$name" >>"$name.out" 2>&1 &&
		"$name/trainer" --log="$name.log" --export="$name/x" >>"$name.out" 2>&1 && return
	echo "not ok $name: exit $?"
	tail -n 5 "$name.out" | sed 's/^/    /'
	return 1
}
last() { sed -n 's/.*"loss":\([-0-9.e]*\).*/\1/p' "$1" | tail -n 1; }
for f in "$ROOT"/tests/golden/schedules/*.csv; do
	name=$(basename "$f" .csv)
	case $name$LONG in bad-*) continue ;; looped-bfs | zero-bubble | 1f1b-comms | *1) ;; *) continue ;; esac
	ranks=$(grep -c . "$f")
	stages=$(tr ',(' '\n\n' <"$f" | sed -n 's/^ *\([0-9][0-9]*\)[A-Z].*/\1/p' | sort -n | tail -n 1)
	micros=$(tr ',;)' '\n\n\n' <"$f" | sed -n 's/.*[FBIW]\([0-9][0-9]*\)$/\1/p' | sort -n | tail -n 1)
	m=$((micros + 1))
	[ -f "one$m.log" ] || run "one$m" $m || exit 1
	run "$name" $m --ranks="$ranks" --stages=$((stages + 1)) --schedule="$f" --write-schedule="$name.csv" || continue
	cmp -s "$f" "$name.csv" || echo "not ok $name: it is not written as it was"
	if cmp -s "one$m/x/model.safetensors" "$name/x/model.safetensors"; then
		echo "ok $name"
	elif [ "$name" = looped-bfs ] && awk -v a="$(last "one$m.log")" -v b="$(last "$name.log")" 'BEGIN { d = a - b; exit !(a > 0 && d < 1e-5 * a && -d < 1e-5 * a) }'; then
		echo "ok $name, whose sums are in another order"
	else
		echo "not ok $name: losses $(last "one$m.log") on one rank, $(last "$name.log")"
	fi
	rm -rf "${name:?}"
done
"$SBPCC" looped-bfs.ir --micro-batches=4 --ranks=2 --stages=4 --schedule="$ROOT/tests/golden/schedules/looped-bfs.csv" --deterministic=any-ranks --stop-after=prove 2>&1 |
	grep -q 'any-ranks refuses it' && echo "ok refused under any-ranks" || echo "not ok any-ranks: not refused"
