. "$HERE/wire"
branch() { { { node Relu "$2" t && str 2 "$1" && value 12 t 1 2; } | msg 6 && str 1 "$1" && int 20 5; } </dev/null | msg 5; }
{ { branch then_branch x && branch else_branch missing; } | node If c y && str 2 g && value 11 x 1 2 && value 11 c 9 '' && value 12 y 1 2; } </dev/null |
	model >model.onnx
"$SBPCC" model.onnx -o out
