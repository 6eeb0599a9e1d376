{ yes '@pin(a)' | head -n 50000; echo 'g (float[2] x) => (float[2] y) { y = Abs(x) }'; } >model.ir
"$SBPCC" model.ir -o out
