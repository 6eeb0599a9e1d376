# Queues between stages carry every piece, between processes with shared memory and by MPI, with a courier thread,
# without one and without a lane, and under the thread sanitizer.
build() { # program, compiler, files and flags...
	local name=$1 cc=$2
	shift 2
	(cd "$ROOT/runtime" && "$cc" -std=c11 -D_GNU_SOURCE -g -I. -o "$TMP/$name" "$HERE/queues.c" "$@" -pthread -lm) >log 2>&1
}
run() { # name, lanes, command...
	local name=$1 lanes=$2 lane
	shift 2
	for lane in $lanes; do
		RT_LANE=$lane "$@" >log 2>&1
		sed "s/^\(not \)\?ok /&$name-$lane-/" log
	done
}
run local "thread walk none" "$BUILD/test-runtime-queues"
# Ranks that wait for longer than the patience name the rank at the end of the chain, which does not wait.
names() { # name, command...
	local name=$1
	shift
	RT_PATIENCE=2 "$@" >log 2>&1
	grep -q '^rank 0 step 3: [a-z]* [xg] of micro-batch [0-9] waits [0-9]* s for rank 1; rank 2 does not wait, in F of micro-batch 2$' log &&
		echo "ok $name" || { echo "not ok $name" && sed 's/^/    /' log; }
}
names names-the-slow-rank "$BUILD/test-runtime-queues" 12
if build tsan gcc -O1 -fsanitize=thread $(cd "$ROOT/runtime" && ls *.c | grep -v '^comm_[mn]\|^mpi_\|_cuda'); then
	TSAN_OPTIONS=halt_on_error=1:exitcode=66 run tsan "thread walk" ./tsan
else
	echo "skip tsan: $(head -n 1 log)"
fi
"$ROOT/tests/setup" openmpi-bin libopenmpi-dev >log 2>&1 || { echo "skip mpi: $(head -n 1 log)" && exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
# These files take the place of comm_local.c in the library.
build mpi mpicc comm_mpi.c mpi_moves.c form.c "$PLAIN/librun.a" || { echo "not ok mpi: $(head -n 3 log)" && exit 0; }
"$BUILD/test-runtime-queues" -2 >cases
while read -r number ranks <&3; do
	for lane in thread walk; do
		RT_LANE=$lane mpirun -n "$ranks" ./mpi "$number" >log 2>&1 && echo "ok mpi-$lane-$number" || { echo "not ok mpi-$lane-$number" && sed 's/^/    /' log | head -n 20; }
	done
done 3<cases
for lane in thread walk; do
	RT_LANE=$lane names mpi-$lane-names-the-slow-rank mpirun -n 3 ./mpi 12
done
