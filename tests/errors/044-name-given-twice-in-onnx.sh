. "$HERE/wire"
{ node Relu x y && node Neg x y && str 2 g && value 11 x 1 2 && value 12 y 1 2; } </dev/null | model >model.onnx
"$SBPCC" model.onnx -o out
