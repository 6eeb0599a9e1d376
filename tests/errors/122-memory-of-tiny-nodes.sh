# exit: 5
{ echo 'g (float[2] x) => (float[2] y) {'; seq -f 'a%.0f=Abs(x)' 1000000; echo 'y=Abs(q) }'; } >model.ir
"$SBPCC" model.ir -o out
