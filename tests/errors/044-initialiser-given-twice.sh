. "$HERE/wire"
{ tensor w 1 2 '\0\0\200\77\0\0\0\100' && tensor w 1 2 '\0\0\0\0\0\0\0\100'; } | add >model.onnx
"$SBPCC" model.onnx -o out
