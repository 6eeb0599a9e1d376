# exit: 2
"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=-1 -o out
