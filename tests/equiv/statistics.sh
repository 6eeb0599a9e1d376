# Statistics of parts of the batch (@local_stats) are what their definition says, --explain reports them, and sbpcc
# never chooses them by itself.
cat >m.ir <<'X'
<ir_version: 10, opset_import: ["" : 23]>
g () => (float far)
<float[4, 3, 2] x = {1, 2, -3, 4, 5, 0.5, 7, -8, 9, 1.5, 2, 3, -4, -5, 6, 2.5, 8, 9, 1, 0, 2, -1, 3, 4},
 float[3] scale = {1, 2, -1}, float[3] b = {0, 0.5, 1}, float[3] mean = {1, 2, 3}, float[3] var = {1, 0.5, 2}>
{
  y, m, v = BatchNormalization<training_mode = 1>(x, scale, b, mean, var) @local_stats(2)
  x1, x2 = Split<axis = 0, num_outputs = 2>(x)
  y1, m1, v1 = BatchNormalization<training_mode = 1>(x1, scale, b, mean, var)
  y2, m2, v2 = BatchNormalization<training_mode = 1>(x2, scale, b, mean, var)
  z = Concat<axis = 0>(y1, y2)
  m12 = Mean(m1, m2)
  v12 = Mean(v1, v2)
  dy = Sub(y, z)
  dm = Sub(m, m12)
  dv = Sub(v, v12)
  fy = ReduceL1<keepdims = 0>(dy)
  fm = ReduceL1<keepdims = 0>(dm)
  fv = ReduceL1<keepdims = 0>(dv)
  far = Sum(fy, fm, fv)
}
X
mkdir in
if "$SBPCC" m.ir --eval --inputs=in --outputs=out >log 2>&1; then
	far=$(tail -c 4 out/output_0.npy | od -An -f | tr -d ' ')
	awk -v x="$far" 'BEGIN { exit !(x != "" && x + 0 < 1e-5 && x + 0 >= 0) }' && echo "ok each-part-has-its-own" || echo "not ok each-part-has-its-own: they differ by $far"
else
	echo "not ok each-part-has-its-own: $(head -n 1 log)"
fi
sed 's/BatchNormalization<training_mode = 1>(c, scale, shift, mean, var)/& @local_stats(2)/' "$ROOT/examples/resnet.ir" >r.ir
told() { "$SBPCC" "$1" --ranks=2 --train='batch: 32, data: points(classes: 2)' --stop-after=plan --explain 2>&1 | grep -c '^local statistics: .* each of 2 parts'; }
[ "$(told r.ir)" = 5 ] && echo "ok explain-reports-each" || echo "not ok explain-reports-each: $(told r.ir) of 5"
[ "$(told "$ROOT/examples/resnet.ir")" = 0 ] && echo "ok never-unasked" || echo "not ok never-unasked"
"$SBPCC" r.ir --train='batch: 31, data: points(classes: 2)' >log 2>&1
grep -q 'error: 2 parts do not divide a batch of 31$' log && echo "ok parts-are-equal" || echo "not ok parts-are-equal: $(head -n 1 log)"

# In micro-batches, @local_stats(4) means four parts of the whole batch: weights and running statistics are those of a
# step with the whole batch, also where the norm is recomputed.  A skipped step of fp16 changes no statistic.
watch() { "$PLAIN/test-equiv-evaluator" "$1" 4 "$2" mean1 var1 mean2 var2 k w v 2>log; }
close() { # what, file
	paste whole.txt "$2" | awk '{ for (i = 2; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d > 1e-5 || d < -1e-5) { print " " $1 ": " $i " and " $(i + NF / 2); bad = 1 } } n++ } END { exit bad || n != 32 }' >why &&
		echo "ok $1" || { echo "not ok $1: they differ$(head -n 1 log)" && head -n 3 why; }
}
watch "$HERE/local.ir" 'batch: 16' >whole.txt
sed 's/@local_stats(4)/& @recompute/' "$HERE/local.ir" >again.ir
for m in 8 4; do
	watch "$HERE/local.ir" "microbatch: $m" >got.txt
	close "parts-of-micro-batches-of-$m" got.txt
	watch again.ir "microbatch: $m" >got.txt
	close "recomputed-in-micro-batches-of-$m" got.txt
done
"$PLAIN/test-equiv-evaluator" "$HERE/local.ir" 8 'microbatch: 8, precision: fp16(loss_scale: 16777216, backoff: 0.25)' train.taken mean1 var2 2>log >got.txt
awk 'BEGIN { last = 0 }
	$1 == "train.taken" { took = $2 != last; last = $2; skipped += !took; taken += took }
	$1 == "mean1" || $1 == "var2" { if ($1 in old && took == ($0 == old[$1])) print " " $1 " after " last " updates: " $0; old[$1] = $0; n++ }
	END { if (!skipped || !taken || n != 16) print " skipped " skipped ", taken " taken }' got.txt >why
[ -s why ] && echo "not ok skipped-steps-change-none:$(head -n 1 why)" || echo "ok skipped-steps-change-none"
for ranks in 1 2 4; do
	"$SBPCC" "$HERE/local.ir" --ranks=$ranks --micro-batches=2 --train='steps: 4' -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 &&
		tree/trainer --every=1 2>log | grep -o '^step *[0-9]* *loss [^ ]*' >got.txt || { echo "not ok program-on-$ranks: $(head -n 1 log)" && continue; }
	grep ^step whole.txt | paste - got.txt | awk '{ d = $4 - $8; if (d > 1e-5 || d < -1e-5) { print " step " $2 ": " $4 " and " $8; bad = 1 } n++ } END { exit bad || n != 4 }' >why && echo "ok program-on-$ranks" || { echo "not ok program-on-$ranks: losses differ" && cat why; }
done
