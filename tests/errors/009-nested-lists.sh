# exit: 5
{ printf 'g (float x) => (y) { y = Op <a = '; head -c 10000000 /dev/zero | tr '\0' '['; } >model.ir
"$SBPCC" model.ir -o out
