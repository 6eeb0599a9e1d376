# Runs every.c on every model that a test compiles.
find "$ROOT"/tests/ir "$ROOT"/tests/passes "$ROOT"/tests/equiv "$ROOT"/tests/emit "$ROOT"/examples "$ROOT"/tests/errors -name '*.ir' -size -64k | sort >list
xargs -a list "$BUILD/test-emit-every"
