# exit: 2
cp "$ROOT/examples/mlp.ir" .
"$SBPCC" mlp.ir --ranks=-1 -o out
