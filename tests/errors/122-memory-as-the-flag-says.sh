# exit: 5
{ echo 'g (float[2] x) => (float[2] y) {'; seq -f 'a%.0f=Abs(x)' 100000; echo 'y=Abs(x) }'; } >model.ir
"$SBPCC" model.ir --max-memory=10000000 -o out
