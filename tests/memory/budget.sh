# --memory limits the plan: the program announces at most that much memory, and the trainer takes what is announced.
# If nothing fits, the message names the largest part and a budget that is enough, and with that budget there is a
# program.
cat >net.ir <<'M'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adamw(lr: 0.01), batch: 64, steps: 4, data: points(classes: 10), seed: 1)
net (float[N, 64] x, int64[N] label) => (float loss)
<float[64, 512] w1 @init(kaiming_normal), float[512, 512] w2 @init(kaiming_normal), float[512, 512] w3 @init(kaiming_normal),
 float[512, 10] w4 @init(xavier_uniform)>
{ h = Relu(MatMul(Relu(MatMul(Relu(MatMul(x, w1)), w2)), w3))
  loss = SoftmaxCrossEntropyLoss(MatMul(h, w4), label) }
M
# Transfers are so slow that a plan has them only if it must.
printf 'flops 1e12\nbytes 1e12\nstart 1e-7\nlink * 1e-3 1e6\n' >machine
compile() { "$SBPCC" net.ir --ranks 2 --machine=machine --explain -o tree "$@" >told 2>&1; }
told() { sed -n 's/^memory of a rank: \([0-9]*\) bytes.*/\1/p' told; }
seconds() { sed -n 's/^plan: \([0-9.e+-]*\) s a step.*/\1/p' told; }
compile || { echo "not ok without a limit: $(head -n 1 told)" && exit; }
most=$(told) quick=$(seconds)

compile --memory=100000
code=$?
least=$(sed -n 's/.*fits into 100000 bytes a rank: the smallest needs \([0-9]*\)$/\1/p' told)
if [ $code -eq 3 ] && [ -n "$least" ] && grep -q '^net.ir:[0-9]*:[0-9]*: note: then .* takes [0-9]* of them' told; then
	echo "ok nothing fits"
else
	echo "not ok nothing fits: exit $code, $(head -n 1 told)" && exit
fi
if [ "$least" -lt "$((most * 3 / 4))" ]; then echo "ok a plan that holds less is found"; else echo "not ok a plan that holds less: $least of $most"; fi

at() { # NAME BUDGET
	compile --memory="$2" || { echo "not ok $1: $(head -n 1 told)" && return 1; }
	if [ "$(told)" -le "$2" ]; then echo "ok $1"; else echo "not ok $1: $(told) of $2"; fi
}
at "what is said to be enough is" "$least"
slow=$(seconds)
compile --memory=$((least - 1))
[ $? -eq 3 ] && echo "ok a byte less is not" || echo "not ok a byte less is not: $(head -n 1 told)"
at "as much as the quickest takes" "$most"
if [ "$(seconds)" = "$quick" ]; then echo "ok then it is the quickest"; else echo "not ok then it is the quickest: $(seconds), not $quick"; fi
at "between the two" $(((least + most) / 2)) || exit
if awk -v a="$(seconds)" -v b="$slow" 'BEGIN { exit !(a <= b) }'; then echo "ok more room is not slower"; else echo "not ok more room is not slower: $(seconds), $slow"; fi
make -s -C tree >log 2>&1 || { echo "not ok build: $(head -n 1 log)" && exit; }
tree/trainer --threads=1 >log 2>&1
line=$(grep '^memory of rank 0' log)
want=$(told)
set -- $(echo "${line#memory of rank 0}" | grep -o '[0-9][0-9]*')
if [ "$1" = "$want" ] && awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d <= 0.01 * a && -d <= 0.01 * a) }'; then
	echo "ok the trainer takes what was announced"
else
	echo "not ok the trainer takes what was announced: $want, but $line"
fi
