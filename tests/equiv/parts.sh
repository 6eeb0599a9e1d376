# Gradients of inputs and of weights are apart: a pipeline may run the latter later.
"$BUILD/test-equiv-parts" "$ROOT"/examples/*.ir "$HERE/micro.ir"
