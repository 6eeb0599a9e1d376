# A loss in micro-batches is the loss of the whole batch, or sbpcc refuses it.
grep -v '^#' "$HERE/meaning.txt" | while IFS='|' read -r kind text; do
	cat >m.ir <<MODEL
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: z, optimizer: sgd(lr: 0.01), batch: 8, seed: 1)
g (float[N, 6] x, int64[N] label) => (float z) <float[6, 3] w @init(normal(0, 0.5))>
{
  h = MatMul(x, w)
$(sed 's/; /\n/g' <<<"$text")
}
MODEL
	why='' refused=0
	for m in 8 4 2 1; do
		if "$PLAIN/test-equiv-evaluator" m.ir 3 "microbatch: $m, data: points(classes: 2)" >$m.txt 2>log; then
			paste 8.txt $m.txt | awk '{ d = $4 - $8; s = $4 < 0 ? -$4 : $4; if (d < 0) d = -d; if (d > 1e-5 * (s + 0.1)) { print "step " $2 ": " $4 " and " $8; exit 1 } n++ } END { if (n != 3) exit 1 }' >diff || why="${why:-in parts of $m, $(cat diff)}"
		elif [ $m != 8 ] && grep -q '^[^ ].*error: ' log; then
			refused=$((refused + 1))
		else
			why="${why:-in parts of $m, $(head -n 1 log)}"
		fi
	done
	[ "$kind" = same ] && [ $refused -gt 0 ] && why="${why:-it is refused}"
	[ "$kind" = refused ] && [ $refused -eq 0 ] && why="${why:-it is accepted}"
	if [ -z "$why" ]; then echo "ok $text"; else echo "not ok $text: $why"; fi
done
