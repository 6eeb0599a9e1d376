. "$HERE/wire"
{ int 1 8; int 7 5; } >model.onnx
"$SBPCC" model.onnx -o out
