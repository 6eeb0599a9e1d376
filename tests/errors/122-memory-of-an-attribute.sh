# exit: 5
{ printf 'g (float[2] x) => (float[2] y) { y = Abs<a = ['; yes 1, | head -n 5000000 | tr -d '\n'; echo '1]>(x) }'; } >model.ir
"$SBPCC" model.ir -o out
