# The number of micro-batches of a pipeline, where nothing says it, is chosen: what is printed for each number that was tried is what a
# step takes with it, and the quickest of those that fit into the memory is taken.
run() { "$SBPCC" "$@" --ranks=2 --stages=2 --schedule=1f1b 2>&1; }
made() { sed -n 's/^pipeline .*, \([0-9]*\) micro-batch.*/\1/p'; }
check() { # what, wanted, got
	if [ "$2" = "$3" ]; then echo "ok $1"; else echo "not ok $1: $3, not $2"; fi
}
sed 's/, accumulate: 4//; s/batch: 32/batch: 512/; s/^  h4 = .*)/& @stage(1)/' "$HERE/uneven.ir" >free.ir
run free.ir -o free >free.out
line=$(grep '^micro-batches: ' free.out)
tried=$(echo "$line" | grep -o '[0-9]*: [0-9.]* ms')
for m in 1 2 4 8 16 32 64; do
	run free.ir -o given --micro-batches=$m >given.out
	echo "$m $(sed -n 's/^predicted: \([0-9.]*\) ms .*/\1/p' given.out) $(sed -n 's/.*memory of a rank: \([0-9]*\) bytes.*/\1/p' given.out)"
	grep '^micro-batches: ' given.out
done >all
best=$(sort -k2g all | sed -n '1s/ .*//p')
check 'the quickest' "$best" "$(made <free.out)"
echo "$tried" | while read -r m t _; do awk -v m="${m%:}" -v t="$t" '$1 == m { d = $2 - t; bad = d > 0.002 * t || -d > 0.002 * t; n = 1 } END { print n && !bad ? "ok time" : "not ok time of " m ": " t }' all; done | sort -u
case $line in *'--micro-batches=N decides it') echo "ok the option is named" ;; *) echo "not ok the option is named: $line" ;; esac

# A dump has the number, and gives the same program.
run free.ir --dump-after=schedule --stop-after=schedule >dump.ir
"$SBPCC" dump.ir -o again >again.out 2>&1
if cmp -s free/plan.json again/plan.json; then echo "ok a dump"; else echo "not ok a dump: $(head -n 2 again.out)"; fi

# With less memory than the quickest needs, there are more.
budget=$(($(awk -v m="$best" '$1 == m { print $3 }' all) - 1000))
more=$(run free.ir -o small --memory=$budget | made)
check 'memory' "$(awk -v b="$budget" '$3 <= b' all | sort -k2g | sed -n '1s/ .*//p')" "$more"

# One rank must have the same number under any-ranks; statistics of the whole batch allow one; @local_stats(N) a divisor of N.
run free.ir -o any --deterministic=any-ranks >any.out
check 'any-ranks' 1 "$(made <any.out)"
grep -q 'with --deterministic=any-ranks the number is not chosen.*give --micro-batches=N' any.out && echo "ok any-ranks says so" || echo "not ok any-ranks says so: $(head -n 1 any.out)"
cat >norm.ir <<'M'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 2048, steps: 2, data: points(classes: 8))
net (float[N, 64] x, int64[N] target) => (float loss)
<float[64, 64] w1 @init(normal(0, 0.2)), float[64, 64] w2 @init(normal(0, 0.2)), float[64, 8] w3 @init(normal(0, 0.2)),
 float[64] scale @init(constant(1)), float[64] shift @init(zeros), float[64] mean @init(zeros), float[64] var @init(constant(1))>
{
  h1 = MatMul(x, w1)
  h2, m2, v2 = BatchNormalization<training_mode = 1>(h1, scale, shift, mean, var)
  h3 = Relu(h2)
  h4 = MatMul(h3, w2)
  h5 = MatMul(h4, w3)
  loss = SoftmaxCrossEntropyLoss(h5, target)
}
M
run norm.ir -o norm >norm.out
check 'statistics of the batch' 1 "$(made <norm.out)"
grep -q 'micro-batches: 1, because no other number gives a program (--micro-batches=2 reports why)' norm.out && echo "ok statistics say so" || echo "not ok statistics say so: $(grep '^micro' norm.out)"
sed 's/shift, mean, var)/& @local_stats(4)/' norm.ir >parts.ir
parts=$(run parts.ir -o parts | tee parts.out | made)
case $parts in 2 | 4) echo "ok parts of the batch" ;; *) echo "not ok parts of the batch: $parts, $(grep '^micro' parts.out)" ;; esac

# A schedule of PyTorch's has a number.
run free.ir -o csv --micro-batches=8 --write-schedule=eight.csv >/dev/null
check 'a file' 8 "$("$SBPCC" free.ir -o csv --ranks=2 --stages=2 --schedule=eight.csv 2>&1 | made)"
