# exit: 5
{ printf 'g (float x) => (y) { y = Op('; head -c 3000000 /dev/zero | tr '\0' ,; echo ') }'; } >model.ir
"$SBPCC" model.ir -o out
