# exit: 2
"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=0 -o out
