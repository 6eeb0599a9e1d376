. "$HERE/wire"
{ { str 3 first | node Unheard x a; } && { str 7 com.vendor | node Fused a b; } && node Unheard b y && str 2 g && value 11 x 1 2 && value 12 y 1 2; } </dev/null |
	model >model.onnx
"$SBPCC" model.onnx -o out
