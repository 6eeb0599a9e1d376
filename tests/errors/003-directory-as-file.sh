# exit: 4
mkdir model.ir
"$SBPCC" model.ir -o out
