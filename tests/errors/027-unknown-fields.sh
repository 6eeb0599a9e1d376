# exit: 0
. "$HERE/wire"
{ tensor w 1 2 '\0\0\200\77\0\0\0\100' | add; int 4000 1; raw 4001 abc; } >model.onnx
"$SBPCC" --print model.onnx >/dev/null
