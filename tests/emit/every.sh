# Every model that a test compiles: what every.c asks of it.
find "$ROOT"/tests/ir "$ROOT"/tests/passes "$ROOT"/tests/equiv "$ROOT"/tests/emit "$ROOT"/examples "$ROOT"/tests/errors -name '*.ir' -size -64k | sort >list
xargs -a list "$BUILD/test-emit-every"
