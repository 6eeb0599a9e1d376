# In bf16 and fp16, generated programs have the losses that the reference evaluator, which rounds every value to its
# declared type, computes from the same graph: to one unit of the type, because a sum in float may round the other
# way.
for name in mlp cnn gpt; do
	for type in bf16 fp16; do
		why='' with="data: points(classes: 2), steps: 4, precision: $type"
		cp "$ROOT/examples/$name.ir" .
		"$SBPCC" $name.ir --train="$with" -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 && [ ! -s log ] &&
			tree/trainer --every=1 2>log | grep -o '^step *[0-9]* *loss [^ ]*' >got.txt && "$PLAIN/test-equiv-evaluator" $name.ir 4 "$with" >want.txt 2>log || why=$(head -n 1 log)
		grep -q "e_b*f16(" tree/kernels/pointwise.c || why="${why:-nothing is rounded}"
		rm -rf tree
		[ -n "$why" ] || why=$(paste want.txt got.txt | awk -v step=$([ $type = bf16 ] && echo 0.004 || echo 0.0005) '{ d = $4 - $8; s = $4 < 0 ? -$4 : $4; if (d < 0) d = -d
			if (d > step * (s + 1)) print "step " $2 ": " $4 " and " $8; n++ } END { if (n != 4) print n + 0 " steps" }')
		if [ -z "$why" ]; then echo "ok $name-$type"; else echo "not ok $name-$type: $(echo $why)"; fi
	done
done
