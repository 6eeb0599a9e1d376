# sbpcc reports what a user would not expect when it writes a program, and a warning is not a refusal; printing and
# dumping report nothing.
says() { # name, text on stderr or stdout, options
	local name=$1 text=$2
	shift 2
	rm -rf out
	"$SBPCC" "$@" -o out >log 2>&1 && grep -qF -- "$text" log && [ -f out/Makefile ] && echo "ok $name" || { echo "not ok $name: $(head -n 1 log)" && sed 's/^/ /' log; }
}
silent() { # name, options
	local name=$1
	shift
	"$SBPCC" "$@" >log 2>err && [ ! -s err ] && echo "ok $name" || { echo "not ok $name: $(head -n 1 err)"; }
}
model() { # arguments of @train, annotations of the node h
	printf '%s\n' "@train(loss: loss, $1)" 'g (float[8, 64] x, int64[8] t) => (float loss) <float[64, 64] w @init(normal(0, 1)), float[64, 4] v @init(zeros)> {' \
		"  h = MatMul(x, w) $2" '  r = Relu(h)' '  loss = SoftmaxCrossEntropyLoss(MatMul(r, v), t)' '}'
}
given='optimizer: sgd(lr: 0.1), steps: 20, seed: 3, data: points(classes: 4, noise: 1)'

model "$given" '@stage(1)' >stage.ir
says stages-on-one-rank 'stage.ir:3:20: warning: @stage has no effect' stage.ir
silent stages-are-printed --print stage.ir
silent stages-are-dumped --dump-after=plan --stop-after=plan stage.ir
silent stages-are-written --write=stage.onnx stage.ir
says stages-of-onnx 'warning: @stage has no effect' stage.onnx

# Only the loss would gain from more ranks: nothing is worth a transfer.
model "$given" '' >m.ir
says ranks-that-do-not-pay ' ranks are predicted to take ' m.ir --ranks=4
grep -qE 'warning: 4 ranks are predicted to take [0-9.e-]+ s a step, [12] ranks? [0-9.e-]+ s: more do not pay' log && echo "ok both-are-reported" || echo "not ok both-are-reported: $(cat log)"
silent ranks-in-a-dump --dump-after=plan --stop-after=plan m.ir --ranks=4
"$SBPCC" "$ROOT/examples/gpt.ir" --ranks=2 -o out >log 2>&1
grep -q predicted log && echo "not ok ranks-that-pay: $(cat log)" || echo "ok ranks-that-pay"

model "$given" '@recompute' >again.ir
says recompute-in-vain 'again.ir:3:20: warning: @recompute does not pay: a rank takes ' again.ir

model "optimizer: sgd(lr: 0.1), schedule: cosine(total: 50), steps: 20, seed: 3, data: points(classes: 4, noise: 1)" '' >total.ir
says total-is-not-steps 'warning: the schedule ends at step 50, but training takes 20 steps, as steps says' total.ir
make -s -C out CFLAGS=-O1 STATIC= >log 2>&1 || echo "not ok trainer: $(head -n 1 log)"
out/trainer --steps=2 >log 2>&1
grep -q 'warning: the learning-rate schedule ends at step 50, this run at step 2' log && echo "ok trainer-reports-total" || echo "not ok trainer-reports-total: $(head -n 1 log)"
out/trainer --steps=50 >log 2>&1
grep -q warning log && echo "not ok trainer-is-content: $(grep warning log)" || echo "ok trainer-is-content"
says total-is-not-the-option 'but training takes 7 steps, as --steps says' total.ir --steps=7
"$SBPCC" total.ir --steps=50 -o out >log 2>&1; grep -q 'warning' log && echo "not ok total-is-steps: $(cat log)" || echo "ok total-is-steps"
says warm-up-is-too-long 'warning: the warm-up takes 30 steps, but training takes 20' m.ir --train='schedule: constant(warmup: 30)'

model 'data: points(noise: 1)' '' >few.ir
says defaults 'defaults: optimizer sgd(lr: 0.1) (@train optimizer), 100 steps (@train steps or epochs, --steps), seed 1 (@train seed, --seed), points of 10 classes (@train data)' few.ir
"$SBPCC" m.ir -o out >log 2>&1; grep -q 'by default' log && echo "not ok nothing-by-default: $(cat log)" || echo "ok nothing-by-default"

# Without -o there is a message; pins need no mesh of their own.
"$SBPCC" m.ir >log 2>&1 && grep -q 'nothing was written: -o DIR writes the program' log && echo "ok without-output" || echo "not ok without-output: $(cat log)"
echo '@pin("w", sbp: [S(1)])' >w.place
"$SBPCC" m.ir --ranks=2 --place=w.place --stop-after=plan --explain=w >log 2>&1 && grep -q 'ranks.*S(1)' log && echo "ok pins-without-a-mesh" || echo "not ok pins-without-a-mesh: $(head -n 1 log)"
for unit in 1000000 1000kB 1MB 1.0MB 1mb; do
	"$SBPCC" m.ir --memory=$unit -o out >log 2>&1 && grep -q 'rank' log || echo "not ok $unit: $(head -n 1 log)"
done
"$SBPCC" m.ir --memory=1KiB -o out >log 2>&1; grep -q 'fits into 1024 bytes a rank' log && echo "ok units" || echo "not ok units: $(head -n 1 log)"

# A plan for GPUs uses only the transfers that exist: without pins, it is written.
"$SBPCC" "$ROOT/examples/gpt.ir" --ranks=2 --target=cuda -o gpu >log 2>&1 && echo "ok plans-for-gpus" || echo "not ok plans-for-gpus: $(head -n 1 log)"
