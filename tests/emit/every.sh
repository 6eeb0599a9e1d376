# Every model that a test compiles: what every.c asks of it.
find "$ROOT"/tests/ir "$ROOT"/tests/passes "$ROOT"/tests/equiv "$ROOT"/tests/emit "$ROOT"/examples "$ROOT"/tests/errors -name '*.ir' -size -64k | sort >list
# Models are compiled one after the other in one program, and one that meets a limit ends at once: leaks are the matter of errors.
export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
xargs -a list "$BUILD/test-emit-every"
