# Stages beside other kinds of parallelism, and runs that are cut: 2 stages of 2 ranks under any-ranks have the bits of one rank, with data or
# optimizer state split inside stages; a run that was stopped goes on under another cut, and by MPI, to the same bits; evaluation agrees.
set -u
sed '/early\|side\|guess/d; s/^  main = /  loss = /; /loss = Add/d; s/, float main//' "$HERE/net.ir" >plain.ir
tree() { # name, options
	local name=$1
	shift
	"$SBPCC" plain.ir -o "$name" "$@" >"$name.out" 2>&1 && make -s -C "$name" >"$name.make" 2>&1 && return
	echo "not ok $name: not compiled"
	cat "$name.out" "$name.make" 2>/dev/null | head -n 5 | sed 's/^/    /'
	return 1
}
run() { # name, trainer's options: exit status 0 or said
	local name=$1
	shift
	"$name/trainer" "$@" >"$name.run" 2>&1 && return
	echo "not ok $name: exit $?"
	tail -n 5 "$name.run" | sed 's/^/    /'
	return 1
}
verdict() { # what, file, file
	if cmp -s "$2" "$3"; then echo "ok $1"; else echo "not ok $1: other weights than one rank"; fi
}
any=--deterministic=any-ranks
tree one $any && run one --export=one/x || exit 1
tree data $any --ranks=4 --stages=2 --schedule=1f1b && run data --export=data/x &&
	verdict "2 stages of 2 ranks" one/x/model.safetensors data/x/model.safetensors
printf '@pin("w1.m", "w1.v", "w4.m", "w4.v", sbp: [_, S(0)])\n' >pins
tree zero $any --ranks=4 --stages=2 --schedule=zb-h1 --place=pins && run zero --export=zero/x &&
	verdict "state of the optimizer split inside stages" one/x/model.safetensors zero/x/model.safetensors

# Three steps on two stages, three on three stages, by the same checkpoint.
tree two --ranks=2 --stages=2 --schedule=1f1b && tree three --ranks=3 --stages=3 --schedule=gpipe && tree plain &&
	run plain --export=plain/x && run two --steps=3 --checkpoint=saved && run three --resume=saved --steps=6 --export=three/x &&
	verdict "resumed under another cut" plain/x/model.safetensors three/x/model.safetensors

# A rank is killed after the first checkpoint of many steps.
rm -rf killed
two/trainer --steps=2000 --checkpoint=killed --every-checkpoint=50 >two.run 2>&1 &
job=$!
until ls killed 2>/dev/null | grep -q step- || ! kill -0 $job; do sleep 0.05; done
kill -9 "$(pgrep -P $job | head -n 1)"
wait $job
status=$?
[ $status = 22 ] && ! [ -d killed/step-00002000 ] && run plain --steps=2000 --export=plain/y && run three --resume=killed --steps=2000 --export=three/y &&
	verdict "killed, and resumed under another cut" plain/y/model.safetensors three/y/model.safetensors ||
	echo "not ok killed: exit $status, $(ls killed)"

# In the trace, tasks of the two stages overlap in time.
run two --steps=100 --trace=trace.json && sed -n 's/.*"cat":"task".*"ts":\([0-9.]*\),"dur":\([0-9.]*\),"pid":\([0-9]*\).*/\3 \1 \2/p' trace.json | awk '
	$1 == 0 { from[n] = $2; to[n++] = $2 + $3 }
	$1 == 1 { m++; for (i = 0; i < n && !any; i++) any = from[i] < $2 + $3 && $2 < to[i] }
	END { print (n > 400 && m > 400 && any ? "ok stages overlap" : "not ok stages overlap: of " n + 0 " and " m + 0 " tasks none") }'

if "$ROOT/tests/setup" openmpi-bin libopenmpi-dev >setup.log 2>&1; then
	tree mpi --ranks=3 --stages=3 --schedule=zb-h1 && make -s -C mpi TRANSPORT=mpi >mpi.make 2>&1 &&
		mpirun --allow-run-as-root --oversubscribe -n 3 mpi/trainer --export=mpi/x >mpi.run 2>&1 &&
		verdict "3 stages by MPI" plain/x/model.safetensors mpi/x/model.safetensors || { echo "not ok mpi"; tail -n 5 mpi.run mpi.make | sed 's/^/    /'; }
else
	echo "skip 3 stages by MPI: $(head -n 1 setup.log)"
fi
