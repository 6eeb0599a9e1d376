# exit: 5
cat >model.ir <<'END'
g () => (float[65536, 65536] y) {
	s = Constant <value_ints = [65536, 65536]> ()
	y = ConstantOfShape(s)
}
END
mkdir in
"$SBPCC" --eval model.ir --inputs in --outputs out
