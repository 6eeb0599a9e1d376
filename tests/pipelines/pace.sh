# RT_PACE: blocks last as long as a file says, whatever they compute.  Four stages of 1F1B whose blocks take 10 and 20 ms with 8 micro-batches
# need (8 + 3) x 30 ms for a step: not less, and less than one after the other.  A file that is none is refused.
set -u
sed 's/accumulate: 4, steps: 6/accumulate: 8, steps: 3/' "$HERE/net.ir" >net.ir
"$SBPCC" net.ir -o tree --ranks=4 --stages=4 --schedule=1f1b >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >>log 2>&1 || { echo "not ok tree"; tail -n 5 log; exit 1; }
grep -q '"name": "F3", "from": [0-9]*, "to": [0-9]*, "seconds": [0-9]' tree/plan.json && echo "ok planned seconds" || echo "not ok planned seconds: not in plan.json"
for s in 0 1 2 3; do
	echo "F$s 0.010"
	echo "BW$s 0.020"
done >pace
RT_PACE=pace tree/trainer --trace=trace.json >log 2>&1 || { echo "not ok paced: exit $?"; tail -n 5 log; exit 1; }
sed -n 's/.*"cat":"task".*"ts":\([0-9.]*\),"dur":\([0-9.]*\).*/\1 \2/p' trace.json | awk '
	{ from = NR == 1 || $1 < from ? $1 : from; to = $1 + $2 > to ? $1 + $2 : to }
	END { ms = (to - from) / 3000; print (ms >= 330 && ms < 960 ? "ok" : "not ok") " pace" (ms >= 330 && ms < 960 ? "" : ": " ms " ms for a step") }'
echo "F0 fast" >bad
RT_PACE=bad tree/trainer >log 2>&1
code=$?
[ $code = 2 ] && grep -q 'bad:1: not the name of a block and its seconds' log && echo "ok refused" || { echo "not ok refused: exit $code"; tail -n 3 log; }
