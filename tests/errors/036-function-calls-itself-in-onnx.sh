. "$HERE/wire"
function_() { # name, callee: a function's nodes are field 7, those of a graph field 1
	{ str 1 "$1" && str 4 x && str 5 y && { str 1 x && str 2 y && str 4 "$2" && str 7 f; } | msg 7 && { str 1 f && int 2 1; } | msg 9 && str 10 f; } | msg 25
}
{ { str 7 f | node A x y; } && { str 2 g && value 11 x 1 2 && value 12 y 1 2; } </dev/null; } | {
	model && { str 1 f && int 2 1; } | msg 8 && function_ A B && function_ B A; } >model.onnx
"$SBPCC" model.onnx -o out
