. "$HERE/wire"
{ node Add 'x c' a && node Relu a b && node Neg b c && str 2 g && value 11 x 1 2 && value 12 c 1 2; } </dev/null | model >model.onnx
"$SBPCC" model.onnx -o out
