# exit: 0
sed 's|\<w1\>|"*/ system(\\"x\\"); /*"|g' "$ROOT/examples/mlp.ir" >model.ir
grep -q system model.ir && "$SBPCC" model.ir -o out && ! grep -rF '*/ system' out && ! grep -rF 'system("x")' out && make -s -C out
