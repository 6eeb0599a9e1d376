# Fast kernels against plain ones: optimised as in a generated tree, and under the address, undefined-behaviour and
# thread sanitizers; there with the tiles of AVX-512, which run as code for AVX2 on processors without it, and with 1
# and 3 threads (1 to 4 with --long).
build() { # name, flags
	local name=$1
	shift
	gcc -std=c11 -D_GNU_SOURCE -ffunction-sections -Wl,--gc-sections -Wall -Wextra -Werror -fno-math-errno "$@" -I"$ROOT/runtime" -I"$ROOT/kernels" -I"$ROOT/kernels/cpu" -I"$HERE/fast" -o "$name" \
		"$HERE/fast.c" "$HERE"/fast/*.c "$ROOT"/kernels/cpu/*_fast.c "$ROOT"/kernels/cpu/*_tree.c "$ROOT/kernels/cpu/gemm.c" "$ROOT/kernels/cpu/winograd.c" "$ROOT/runtime/thread.c" "$ROOT/runtime/actor.c" "$ROOT/runtime/base.c" "$ROOT/runtime/lane.c" -pthread -lm
}
try() { # name, flags
	local name=$1 why
	shift
	build "$name" "$@" || { echo "not ok $name: does not build"; return; }
	./"$name" >"$name.out" 2>"$name.err" || why="exit $?"
	sed "s/^\(ok\|not ok\) /\1 $name-/" "$name.out"
	[ -z "$why" ] || { echo "not ok $name: $why"; head -n 40 "$name.err" | sed 's/^/    /'; }
}
try plain -O2 -ftree-vectorize -fvect-cost-model=dynamic -fno-trapping-math
try asan -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -DGEMM_ANY_LANES $([ -n "$LONG" ] || echo -DTHREADS_STEP=2)
[ -z "$LONG" ] || try tsan -O1 -g1 -fsanitize=thread          # minutes; emit/sanitize runs whole programs under it
