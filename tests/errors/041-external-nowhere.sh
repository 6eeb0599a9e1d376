. "$HERE/wire"
{ int 1 2; int 2 1; str 8 w; int 14 1; } | msg 5 | add >model.onnx
"$SBPCC" model.onnx -o out
