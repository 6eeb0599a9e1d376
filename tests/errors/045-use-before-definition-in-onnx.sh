. "$HERE/wire"
{ node Add 'x later' y && node Relu nowhere z && node Neg x later && str 2 g && value 11 x 1 2 && value 12 y 1 2 && value 12 gone 1 2; } </dev/null |
	model >model.onnx
"$SBPCC" model.onnx -o out
