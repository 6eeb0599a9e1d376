# exit: 0
# Only the copy of the model and the plan, which is a model itself, may hold the name unescaped.
sed 's|\<w1\>|"*/ system(\\"x\\"); /*"|g' "$ROOT/examples/mlp.ir" >model.ir
grep -q system model.ir && "$SBPCC" model.ir -o out && ! grep -rF --exclude=plan.ir --exclude=model.ir '*/ system' out >&2 && make -s -C out
