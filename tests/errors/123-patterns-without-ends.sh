# exit: 5
{ echo 'g (float[2] x) => (float[2] y) {'; seq -f '"h.%.0f.w" = Abs(x)' 1 20000; echo 'y = Abs(x) }'; } >model.ir
seq -f '@place("*.%.0f.*", stage: 1)' 1 2000 >place
"$SBPCC" model.ir --place=place -o out
