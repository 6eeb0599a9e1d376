# exit: 4
cp "$ROOT/examples/mlp.ir" .
"$SBPCC" mlp.ir -o no/such/folder
