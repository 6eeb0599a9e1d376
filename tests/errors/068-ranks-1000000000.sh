# exit: 2
"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=1000000000 -o out
