# plan.json is JSON.  Its figures are those that sbpcc prints, those of the tables that the trainer is built from, and
# the actions of its schedules; report.html has the same bytes.  Both are self-contained: they need no network, and
# hold only ASCII.
same() { # name: compares want and got
	cmp -s want got && echo "ok $1" || { echo "not ok $1: they differ" && diff want got | head -n 10 | sed 's/^/ /'; }
}
# Values as buffers.c has them: `name area offset bytes`.
rows() {
	grep -o '[SFW]("[^"]*", [^)]*)' "$1/buffers.c" | sed 's/^\(.\)("\([^"]*\)", \(.*\))$/\1 \2 \3/; s/,//g; s/\\\\/\\/g' |
		awk '{ print $2, ($1 == "W" ? "window" : "slab"), $(NF - 1), $NF }'
}
check() { # name, sbpcc's arguments
	local name=$1 m
	shift
	"$SBPCC" "$@" -o "$name" >said || { echo "not ok $name: does not compile" && return; }
	"$BUILD/test-emit-plan" "$name/plan.json" >plan || { echo "not ok $name-json: $(grep '^not ok' plan | sed 's/^not ok //')" && return; }
	echo "ok $name-json"
	# What is printed: total, classes that are not 0, the four others.
	tail -n 1 said | tr ',;:' '\n\n\n' | sed -n 's/^ *\([a-z]*\) \([0-9]*\)$/\1 \2/p; s/^ *\([0-9]*\) bytes$/total \1/p; s/^ *\([0-9]*\) for each.*/each_further_thread \1/p' | sort >want
	sed -n 's/^memory //p' plan | awk '$1 != "slab" && $1 != "window" && ($2 != 0 || $1 == "gaps" || $1 == "data")' | sort >got
	same "$name-memory-as-printed"
	rows "$name" >want
	awk '$1 == "value" && $7 != "-" { print $3, $4, $5, $6 }' plan >got
	same "$name-values-as-in-buffers.c"
	m=$(sed -n 's/^memory total //p' plan)
	grep -q "<td class=n>$m<td>bytes of a rank" "$name/report.html" && echo "ok $name-report" || echo "not ok $name-report: it does not say $m bytes"
	if LC_ALL=C grep -qaP '[^\x09\x0a\x20-\x7e]' "$name/report.html" || grep -qiE 'https?:|<script|<link|src=' "$name/report.html"; then
		echo "not ok $name-report-alone: it is not ASCII, or asks for something from elsewhere"
	else
		echo "ok $name-report-alone"
	fi
}
for m in mlp gpt lstm resnet wide_deep; do
	check $m "$ROOT/examples/$m.ir"
done
check two "$ROOT/examples/mlp.ir" --ranks=2
check infer "$ROOT/examples/gpt.ir" --infer
# The ids of actions, with the line of the model, are those of the schedule: of a stretch that repeats, the first.
grep -o '^	/\* a[0-9]* [^ ]*:[0-9]*:[0-9]* ' gpt/blocks.c | awk '{ print $2, $3 }' | sort -u >want
"$BUILD/test-emit-plan" gpt/plan.json | awk '$1 == "action" { print $4, $5 }' | sort -u >all
comm -12 want all >got
same actions-as-in-the-schedule
# Layers on separate ranks: the report numbers the actions of each role in the order in which its ranks run them.
cat >apart.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@mesh(a, cpu, [2])
@mesh(b, cpu, [1], ranks: [2])
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 4, steps: 2, data: points(classes: 3))
net (float[N, 5] x, int64[N] label) => (float loss)
<float[5, 8] w1 @init(normal(0, 0.2)), float[8, 3] w2 @init(normal(0, 0.2))>
{
	h = Relu(MatMul(x, w1)) @on(a)
	y = MatMul(h, w2) @on(b)
	loss = SoftmaxCrossEntropyLoss(y, label) @on(b)
}
IR
if "$SBPCC" apart.ir -o apart >log 2>&1; then
	awk -F'"' '/"program": .* "role": / { of = $4 (substr($7, 3) + 0) } /"action":/ { print of "-" $4 }' apart/plan.json >want
	grep -o '^<tr id=[a-z]*[0-9]*-a[0-9]*' apart/report.html | sed 's/^<tr id=//' >got
	[ -s want ] && same apart-actions-in-the-report
else
	echo "not ok apart: $(head -n 2 log)"
fi
# The trainer plans the same bytes.
make -s -C mlp >log 2>&1 && mlp/trainer --steps=2 --threads=1 --data="$ROOT/examples/data/digits" >log 2>&1
sed -n 's/^memory of rank 0: \([0-9]*\) bytes planned.*/\1/p' log >got
"$BUILD/test-emit-plan" mlp/plan.json | sed -n 's/^memory total //p' >want
same memory-as-the-trainer-says
