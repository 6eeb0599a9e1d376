# exit: 4
"$SBPCC" "$ROOT/examples/mlp.ir" -o /
