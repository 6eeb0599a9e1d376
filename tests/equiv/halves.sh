# Gradients of inputs and gradients of weights are separate: a pipeline may run the latter later.
"$BUILD/test-equiv-halves" "$ROOT"/examples/*.ir "$HERE/micro.ir"
