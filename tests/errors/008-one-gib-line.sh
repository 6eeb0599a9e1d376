# exit: 5
printf 'g (float[2] x) => (float[2] y) { y = Relu(x' >model.ir
truncate -s 1G model.ir
"$SBPCC" model.ir -o out
