# exit: 2
"$SBPCC" "$ROOT/examples/mlp.ir" --max-onnx-bytes=16G -o out
