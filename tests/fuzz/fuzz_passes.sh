. "$HERE/fuzz"
fuzz passes "$ROOT"/tests/ir/*.ir "$ROOT"/examples/*.ir
