# exit: 2
"$SBPCC" "$ROOT/examples/mlp.ir" --memory=2GX -o out
