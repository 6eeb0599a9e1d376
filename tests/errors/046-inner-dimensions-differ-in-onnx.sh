. "$HERE/wire"
{ node Relu x a && { str 3 "dense/MatMul" | node MatMul 'a w' y; } && str 2 g && value 11 x 1 '32 512' && value 11 w 1 '256 64' && value 12 y 1 '32 64'; } </dev/null |
	model >model.onnx
"$SBPCC" model.onnx -o out
