# exit: 5
{ printf 'g (float[2] "'; head -c 1048576 /dev/zero | tr '\0' a; printf '") => (float[2] y) { y = Relu(x) }'; } >model.ir
"$SBPCC" model.ir -o out
