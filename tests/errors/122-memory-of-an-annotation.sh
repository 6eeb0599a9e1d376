# exit: 5
{ printf '@freeze('; yes a, | head -n 2000000 | tr -d '\n'; echo 'a)'; echo 'g (float[2] x) => (float[2] y) { y = Abs(x) }'; } >model.ir
"$SBPCC" model.ir -o out
