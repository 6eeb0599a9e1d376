# exit: 5
. "$HERE/wire"
{ int 1 $((1 << 40)); int 2 1; str 8 w; } | msg 5 | add >model.onnx
"$SBPCC" model.onnx -o out
