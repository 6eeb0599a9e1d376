# exit: 0
. "$HERE/wire"
{ tensor w 1 2 '\0\0\200\77\0\0\0\100' | add; str 2 first; str 2 second; } >model.onnx
"$SBPCC" --print model.onnx | grep -q second
