# The bound and the gap that a pipeline's plan prints.  No schedule takes less than the bound; the solver is at least as quick as all named
# schedules, with any --schedule-seconds, and equal inputs give equal trees; with less memory it keeps fewer micro-batches.
set -u
sed 's/float\[N, 12\]/float[N, 2048]/; s/\[12, 24\] w1/[2048, 24] w1/; s/\[24, 12\] w2/[24, 512] w2/; s/\[12, 24\] w3/[512, 24] w3/
	s/batch: 32, accumulate: 4/batch: 2048, accumulate: 8/; s/adamw(lr: 0.01)/sgd(lr: 0.01)/' "$HERE/layers.ir" >net.ir
plan() { # tree, options: predicted ms, bound, gap
	"$SBPCC" net.ir -o "$1" "${@:2}" >"$1.log" 2>&1 || { echo "not ok ${*:2}: exit $?" >&2; sed 's/^/    /' "$1.log" >&2; return 1; }
	sed -n 's/^predicted: \([0-9.]*\) ms.*/\1/p; s/^bound: .* less than \([0-9.]*\) ms.* gap \([0-9.]*\) %/\1 \2/p' "$1.log" | tr '\n' ' '
}
for ranks in 4 2; do
	names='gpipe 1f1b pe zb-h1 zb-h2'
	[ $ranks = 2 ] && names=interleaved
	for s in $names; do
		echo "$s $(plan named --ranks=$ranks --stages=4 --schedule="$s")"
	done >rows
	for seconds in 0 1; do
		echo "solver $(plan tree$seconds --ranks=$ranks --stages=4 --schedule-seconds=$seconds)"
	done >>rows
	awk -v n="$ranks" '
		NF != 4 { bad = bad " no numbers for " $1 "," }
		$2 < $3 * 0.9999 { bad = bad " " $1 " is below its bound," }
		$4 + 0.02 < 100 * ($2 / $3 - 1) || $4 - 0.02 > 100 * ($2 / $3 - 1) { bad = bad " " $1 " has another gap," }
		$1 != "solver" { least = least == "" || $2 < least ? $2 : least }
		$1 == "solver" && $2 > least * 1.0001 { bad = bad " solver " $2 " above " least "," }
		$1 == "solver" { if (worst != "" && $2 > worst * 1.0001) bad = bad " more seconds are worse,"; worst = $2 }
		END { print (bad ? "not ok" : "ok") " bound on " n " ranks" (bad ? ":" bad : "") }' rows
	grep -q '^not ok' rows && cat rows
done
plan again --ranks=2 --stages=4 --schedule-seconds=1 >/dev/null
diff -r tree1 again >differ 2>&1 && echo "ok same tree" || { echo "not ok same tree"; head -n 5 differ; }

# Memory: with all of it, a micro-batch is kept for each of the 8; without, fewer.
kept() { "$SBPCC" net.ir --ranks=4 --stages=4 "$@" --dump-after=schedule --stop-after=schedule | grep -o '@copies([0-9]*)' | sort -t'(' -k2 -n | tail -n 1 | tr -dc 0-9; }
most=$(kept) less=$(kept --memory=14MB)
[ "${most:-0}" -gt "${less:-0}" ] && [ "${less:-0}" -gt 1 ] && echo "ok memory" || echo "not ok memory: $most and $less copies"
"$SBPCC" net.ir --ranks=4 --stages=4 --schedule-seconds=-1 >log 2>&1
[ $? = 2 ] && grep -q 'schedule-seconds=-1: must be a number from 0 to 1000000' log && echo "ok refused" || echo "not ok refused"
