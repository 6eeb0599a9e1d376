# exit: 0
# Names that become equal as C identifiers stay distinct: the program trains as with other names.
sed 's/kaiming_normal/constant(0.02)/; s/xavier_uniform/constant(0.03)/' "$ROOT/examples/mlp.ir" >plain.ir
sed 's/\<w1\>/"a.b"/g; s/\<w2\>/a_b/g; s/\<h\>/"a-b"/g; s/\<b1\>/"a b"/g' plain.ir >model.ir
grep -q 'a_b' model.ir && ! grep -q normal model.ir && "$SBPCC" plain.ir -o plain 2>/dev/null && "$SBPCC" model.ir -o out 2>/dev/null || exit 9
make -s -C plain STATIC= CFLAGS=-O1 && make -s -C out STATIC= CFLAGS=-O1 && plain/trainer --steps=3 --data="$ROOT/examples/data/digits" | grep -o '^step *[0-9]* *loss [^ ]*' >want && out/trainer --steps=3 --data="$ROOT/examples/data/digits" | grep -o '^step *[0-9]* *loss [^ ]*' >got && diff want got >&2
