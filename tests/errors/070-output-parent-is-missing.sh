# exit: 4
"$SBPCC" "$ROOT/examples/mlp.ir" -o no/such/folder
