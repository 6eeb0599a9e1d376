# Evaluation and inference of a pipeline: batches follow each other through the stages.  Loss, metrics and outputs are to the bit those of one
# rank, with an incomplete last batch, one or several stages for each rank, and by MPI; in the trace, tasks of different stages overlap in time.
# Bad data, a loss that is not a number, a signal and a dead rank in the middle of an evaluation end it on all ranks.
set -u
npy() { # file, samples, expression of awk: int64[samples, 4]
	local head="{'descr': '<i8', 'fortran_order': False, 'shape': ($2, 4), }"
	printf '\223NUMPY\001\000\166\000%-117s\n' "$head" >"$1"
	printf '%b' "$(awk -v n="$2" "BEGIN { for (i = 0; i < 4 * n; i++) printf \"\\\\0%03o\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\", $3 }")" >>"$1"
}
mkdir data wrong in
npy data/tokens.npy 120 '(i * 7 + int(i / 9)) % 16'
npy data/target.npy 120 '(i * 5 + int(i / 11)) % 16'
npy wrong/tokens.npy 120 '(i > 300 ? 99 : i % 16)'
cp data/target.npy wrong
npy in/tokens.npy 21 '(i * 3 + int(i / 5)) % 16'
cp in/tokens.npy in/target.npy
sed '/early\|side\|guess/d; s/^  main = /  loss = /; /loss = Add/d; s/(float loss, float main)/(float loss, float[N, 4, 12] x1, float[N, 4, 16] scores)/
     s/points(classes: 6)/npy("data", validation: 0.61)/; s/@train(loss: loss,/@train(loss: loss, metrics: [accuracy(scores2, label), size: mean(x1)],/' "$HERE/net.ir" >net.ir
tree() { # name, options
	local name=$1
	shift
	"$SBPCC" net.ir -o "$name" "$@" >"$name.out" 2>&1 && make -s -C "$name" STATIC= CFLAGS=-O1 >"$name.make" 2>&1 && return
	echo "not ok $name: not compiled"
	cat "$name.out" "$name.make" 2>/dev/null | head -n 5 | sed 's/^/    /'
	return 1
}
said() { grep -o '[0-9]* held-out samples.*' "$1"; }
same() { # what, command of a trainer
	local what=$1
	shift
	rm -rf now && cp -r in now
	if "$@" --every-eval=3 >out 2>err && said out | cmp -s - want && "$@" --infer=now >out 2>err && cmp -s now/x1.npy one.in/x1.npy &&
		cmp -s now/scores.npy one.in/scores.npy; then echo "ok $what"; else echo "not ok $what: $(said out | head -n 1) $(head -n 2 err)"; fi
}
tree one || exit 1
one/trainer --every-eval=3 --export=x >out 2>&1 && said out >want && cp -r in one.in && one/trainer --infer=one.in >out 2>&1
[ "$(wc -l <want)" = 2 ] && grep -q 'loss.*accuracy.*size' want && [ -s one.in/x1.npy ] && echo "ok one rank" || { echo "not ok one rank: $(tail -n 2 out)" && exit; }
tree two --ranks=2 --stages=2 --schedule=1f1b && same "2 stages" two/trainer
tree turns --ranks=2 --stages=4 --schedule=interleaved && same "2 stages for each rank" turns/trainer
same "2 stages without a courier" env RT_LANE=walk two/trainer

# Blocks that last 10 ms: a rank begins the next batch while the other one is at the last.
printf 'F0 0.010\nF1 0.010\n' >pace
RT_PACE=pace two/trainer --eval --trace=trace.json >out 2>&1
sed -n 's/.*"cat":"task".*"ts":\([0-9.]*\),"dur":\([0-9.]*\),"pid":\([0-9]*\).*/\3 \1 \2/p' trace.json | awk '
	$3 > 9000 && !$1 { from[n] = $2; to[n++] = $2 + $3 }
	$3 > 9000 && $1 { begin[m] = $2; end[m++] = $2 + $3 }
	END {
		for (i = 0; i < n; i++)
			for (k = 0; k < m; k++) {
				some = (to[i] < end[k] ? to[i] : end[k]) - (from[i] > begin[k] ? from[i] : begin[k])
				both += some > 0 ? some : 0
			}
		print (both > 5000 * n && n > 30 && m == n ? "ok" : "not ok") " stages overlap" (both > 5000 * n ? "" : ": " both " us of " n " batches")
	}'

# A token that there is not; weights that are not numbers.
two/trainer --eval --data=wrong >out 2>err
code=$?
[ $code = 20 ] && grep -q 'tokens is 99, which is not in 0 to 15' err && [ ! -s out ] && echo "ok bad data" || echo "not ok bad data: exit $code, $(cat out err)"
cp -r in bad && cp wrong/tokens.npy bad/tokens.npy && cp data/target.npy bad/target.npy && two/trainer --infer=bad >out 2>err
code=$?
[ $code = 20 ] && grep -q 'tokens is 99, which is not in 0 to 15' err && echo "ok bad data of an inference" || echo "not ok bad data of an inference: exit $code, $(head -n 2 err)"
cp x/model.safetensors nan.safetensors
head=$(od -An -tu8 -N8 nan.safetensors)
printf '\000\000\300\177' | dd of=nan.safetensors bs=1 seek=$((8 + head)) conv=notrunc 2>/dev/null
one/trainer --eval --weights=nan.safetensors 2>&1 | grep -o 'loss.*' >want.nan
two/trainer --eval --weights=nan.safetensors 2>&1 | grep -o 'loss.*' | cmp -s - want.nan && grep -q 'loss -*nan' want.nan && echo "ok not a number" || echo "not ok not a number: $(cat want.nan)"

# In the middle of an evaluation of 0.8 s: the first signal saves and ends; the end of a rank ends all.
printf 'F0 0.020\nF1 0.020\n' >pace
begin() { # options
	rm -f log
	RT_PACE=pace two/trainer --every-eval=1 --log=log "$@" >out 2>err &
	job=$!
	until grep -q '"step":0' log 2>/dev/null || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
	sleep 0.1
}
begin --checkpoint=ck
kill -INT $job
wait $job
code=$?
[ $code = 75 ] && [ -d ck/step-00000001 ] && [ -z "$(said out)" ] && echo "ok signal" || echo "not ok signal: exit $code, $(ls ck), $(said out) $(head -n 2 err)"
begin
kill -9 "$(pgrep -P $job | tail -n 1)"
wait $job
code=$?
[ $code = 22 ] && [ -z "$(said out)" ] && echo "ok dead rank" || echo "not ok dead rank: exit $code $(head -n 2 err)"

# The proof plays several batches.
"$SBPCC" net.ir --ranks=2 --stages=4 --schedule=zb-v --dump-after=schedule --stop-after=schedule >dump.ir 2>err
awk '/@program\(eval\)/ { on = 1 } on && / target .*@copies/ { on = !sub(/@copies\([0-9]*\)/, "@copies(1)") } { print }' dump.ir >one_copy.ir
"$SBPCC" one_copy.ir -o refused >out 2>&1
code=$?
[ $code != 0 ] && grep -q 'target of micro-batch 1 overwrites that of micro-batch 0, which rank [01] still needs: it has 1 copy' out && echo "ok refused" || echo "not ok refused: exit $code, $(head -n 1 out)"

if "$ROOT/tests/setup" openmpi-bin libopenmpi-dev >setup.log 2>&1; then
	make -s -C turns clean && make -s -C turns TRANSPORT=mpi CFLAGS=-O1 >mpi.make 2>&1 || echo "not ok mpi: $(head -n 3 mpi.make)"
	same "2 ranks by MPI" mpirun --allow-run-as-root --oversubscribe -n 2 turns/trainer
	mpirun --allow-run-as-root --oversubscribe -n 2 turns/trainer --eval --data=wrong >out 2>err
	code=$?
	[ $code = 20 ] && grep -q 'tokens is 99, which is not in 0 to 15' err && echo "ok bad data by MPI" || echo "not ok bad data by MPI: exit $code, $(head -n 3 err)"
else
	echo "skip 2 ranks by MPI: $(head -n 1 setup.log)"
fi
