. "$HERE/wire"
{ int 1 2; int 2 1; raw 4 '\0\0\200\77\0\0\200\77'; str 8 w; raw 9 '\0\0\200\77\0\0\200\77'; } | msg 5 | add >model.onnx
"$SBPCC" model.onnx -o out
