. "$HERE/wire"
{ int 1 8; varint $((7 << 3 | 2)); varint 1000; str 2 g; } >model.onnx
"$SBPCC" model.onnx -o out
