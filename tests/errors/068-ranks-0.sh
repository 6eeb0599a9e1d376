# exit: 2
cp "$ROOT/examples/mlp.ir" .
"$SBPCC" mlp.ir --ranks=0 -o out
