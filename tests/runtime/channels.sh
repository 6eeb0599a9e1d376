# Channels progress independently of each other, between processes with shared memory and by MPI, with a thread for
# transfers and without, and under the thread sanitizer.
build() { # program, compiler, files and flags...
	local name=$1 cc=$2
	shift 2
	(cd "$ROOT/runtime" && "$cc" -std=c11 -D_GNU_SOURCE -g -I. -o "$TMP/$name" "$HERE/channels.c" "$@" -pthread -lm) >log 2>&1
}
run() { # name, command...
	local name=$1 lane
	shift
	for lane in walk thread; do
		RT_LANE=$lane "$@" >log 2>&1 && echo "ok $name-$lane" || { echo "not ok $name-$lane: exit status $?" && sed 's/^/    /' log | head -n 20; }
	done
}
run local "$BUILD/test-runtime-channels"
if build tsan gcc -fsanitize=thread $(cd "$ROOT/runtime" && ls *.c | grep -v '^comm_[mn]\|^mpi_\|_cuda'); then
	TSAN_OPTIONS=halt_on_error=1:exitcode=66 run tsan ./tsan
else
	echo "skip tsan: $(head -n 1 log)"
fi
"$ROOT/tests/setup" openmpi-bin libopenmpi-dev >log 2>&1 || { echo "skip mpi: $(head -n 1 log)" && exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
# These files take the place of comm_local.c in the library.
build mpi mpicc comm_mpi.c mpi_moves.c form.c "$PLAIN/librun.a" && run mpi mpirun -n 4 ./mpi || echo "not ok mpi: $(head -n 3 log)"
