. "$HERE/wire"
tensor w 1 '4294967296 4294967296' '' | add >model.onnx
"$SBPCC" model.onnx -o out
