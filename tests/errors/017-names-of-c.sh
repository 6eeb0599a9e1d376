# exit: 0
sed 's/\<w1\>/int/g; s/\<w2\>/MPI_Init/g; s/\<h\>/main/g' "$ROOT/examples/mlp.ir" >model.ir
grep -q MPI_Init model.ir && "$SBPCC" model.ir -o out && make -s -C out
