{ seq -f '@mesh(m%.0f, cpu, [2], [4, 5])' 1 10000; seq 10000 | sed 's/.*/@place(a&, on: m&)/'; echo '@place(y, on: m10001)'
	echo 'g (float[2] x) => (float[2] y) {'; seq -f 'a%.0f = Abs(x)' 1 10000; echo 'y = Abs(x) }'; } >model.ir
"$SBPCC" model.ir -o out
