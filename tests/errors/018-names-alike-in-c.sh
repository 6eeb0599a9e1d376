# exit: 0
sed 's/\<w1\>/"a.b"/g; s/\<w2\>/a_b/g; s/\<h\>/"a-b"/g' "$ROOT/examples/mlp.ir" >model.ir
grep -q 'a_b' model.ir && "$SBPCC" model.ir -o out && make -s -C out
