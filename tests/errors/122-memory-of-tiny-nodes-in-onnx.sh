# exit: 5
. "$HERE/wire"
node() { { str 1 x && str 2 y && str 4 Abs; } | msg 1; }
node >one
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat one one >two && mv two one; done
{ int 1 8 && msg 7 <one && { int 2 17 | msg 8; }; } >model.onnx
"$SBPCC" model.onnx -o out
