# exit: 5
. "$HERE/wire"
tensor w 1 2 '\0\0\200\77\0\0\200\77' | add >model.onnx
truncate -s 3G model.onnx
"$SBPCC" model.onnx -o out
