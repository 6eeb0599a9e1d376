. "$HERE/wire"
model() { int 1 99 && msg 7 && { str 1 '' && int 2 17; } | msg 8; }
tensor w 1 2 '\0\0\200\77\0\0\200\77' | add >model.onnx
"$SBPCC" model.onnx -o out
