# fp16 whose first scales overflow: such steps leave parameters, moments and averages unchanged and lower the scale;
# then it trains, and the scale rises again after enough good steps.  The generated program does the same as the
# evaluator.
cat >m.ir <<'MODEL'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adamw(lr: 0.02), schedule: cosine(total: 20), clip: norm(1), ema: 0.9, batch: 16, steps: 14, data: points(classes: 2),
  precision: fp16(loss_scale: 4194304, growth: 4, backoff: 0.25, every: 3))
g (float[N, 8] x, int64[N] label) => (float loss)
<float[8, 16] w @init(normal(0, 0.3)), float[16] b @init(zeros), float[16, 2] v @init(normal(0, 0.3))>
{
  h = MatMul(x, w)
  a = Add(h, b)
  r = Relu(a)
  s = MatMul(r, v)
  loss = SoftmaxCrossEntropyLoss(s, label)
}
MODEL
"$PLAIN/test-equiv-evaluator" m.ir 14 'data: points(classes: 2)' train.scale train.good train.taken w w.m w.v w.ema >want.txt 2>log || { echo "not ok evaluator: $(head -n 1 log)" && exit; }
"$SBPCC" m.ir -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 && tree/trainer --every=1 2>log | grep -o '^step *[0-9]* *loss [^ ]*' >got.txt || { echo "not ok builds: $(head -n 1 log)" && exit; }
awk '
	$1 == "step" { step = $2; old = scale; was = kept; kept = "" }
	$1 == "train.scale" { scale = $2 }
	$1 == "train.taken" { taken = $2 - before; before = $2 }
	$1 ~ /^w/ { kept = kept $0 }
	$1 == "w.ema" && step > 0 {
		if (!taken) { skipped++; if (kept != was) print "step " step ": skipped, but something changed"; if (scale != old / 4) print "step " step ": scale " old " became " scale }
		else { took++; if (kept == was) print "step " step ": nothing changed"; if (scale != old && scale != old * 4) print "step " step ": scale " old " became " scale; raised += scale > old }
	}
	END { if (!skipped) print "no step was skipped"; if (took < 5) print took + 0 " steps were taken"; if (!raised) print "the scale never rose" }' want.txt >why
if [ -s why ]; then echo "not ok skips-and-lowers: $(echo $(cat why))"; else echo "ok skips-and-lowers"; fi
why=$(grep ^step want.txt | paste - got.txt | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-3 * ($4 + 1)) print "step " $2 ": " $4 " and " $8; n++; last = $8; if (n == 1) first = $8 }
	END { if (n != 14) print n + 0 " steps"; if (last >= first) print "the loss does not fall" }')
if [ -z "$why" ]; then echo "ok trains-as-the-evaluator"; else echo "not ok trains-as-the-evaluator: $(echo $why)"; fi
