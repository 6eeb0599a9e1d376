# What a run reports: the log, event files and the picture hold the same numbers; a resumed run adds to them.
. "$HERE/common.bash"
reader=$BUILD/test-runtime-report
"$reader" plot million.svg || echo "not ok million-steps: exit status $?"
"$BUILD/test-runtime-data" "$ROOT/examples/data/digits" shards >/dev/null || exit 1
cat >digits.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 0.5), batch: 64, steps: 12, data: idx("idx", validation: 0.2), seed: 3, clip: norm(1.0))
digits (float[N, 1, 8, 8] image, int64[N] label) => (float loss)
<float[64, 10] w @init(zeros), float[10] b @init(zeros)>
{ loss = SoftmaxCrossEntropyLoss(Add(MatMul(Flatten(image), w), b), label) }
IR
FLAGS='-O1 -g' tree one digits.ir
all="--every-eval=5 --log=log.json --tensorboard=runs/a --plot=run.svg"
logged() { # log, name: STEP VALUE of steps; held: of evaluations
	sed -n 's/^{"step":\([0-9]*\),.*"'"$2"'":\([^,}]*\).*/\1 \2/p' "$1"
}
held() { sed -n 's/^{"event":"eval","step":\([0-9]*\),.*"loss":\([^,}]*\).*/\1 \2/p' "$1"; }
tags() { "$reader" events runs/a | awk -v f="$1" -v t="$2" '$1 == f && $2 == t { print $3, $4 }'; }
points() { # of the curve of a class in the first panel
	sed '/<text class="h"/,$d' run.svg | sed -n "s/.*class=\"m $1\" d=\"\([^\"]*\)\".*/\1/p" | tr -cd 'ML' | wc -c
}
check whole-run one/trainer $all
for n in loss rate norm; do
	[ "$(logged log.json $n | wc -l)" = 12 ] && cmp -s <(logged log.json $n | awk '{ print $1, $2 + 0 }') <(tags 0 $n | awk '{ print $1, $2 + 0 }') && echo "ok events-$n" ||
		echo "not ok events-$n: $(paste <(logged log.json $n) <(tags 0 $n) | head -n 2)"
done
[ "$(held log.json | wc -l)" = 3 ] && cmp -s <(held log.json | awk '{ print $1, $2 + 0 }') <(tags 0 held_out/loss | awk '{ print $1, $2 + 0 }') && echo "ok events-held-out" || echo "not ok events-held-out: $(tags 0 held_out/loss)"
[ "$(tags 0 samples_per_s | wc -l)" = 12 ] && [ -z "$(tags 0 seconds)$(tags 0 held_out/samples)" ] && echo "ok events-speed" || echo "not ok events-speed"
[ "$(points t)-$(points e)" = 12-3 ] && echo "ok plot" || echo "not ok plot: $(points t) and $(points e) points"

# As if a run had been killed after 12 steps and half a line, and resumed its checkpoint of step 10: repeated steps do
# not count twice.
rm -rf log.json runs
check ten-steps one/trainer $all --checkpoint=ck --steps=10
check given-up one/trainer $all --resume=ck --steps=12
printf '{"step":12,"lo' >>log.json
check goes-on one/trainer $all --resume=ck --steps=20
[ "$(grep -c '^{"event":"start","step":10,' log.json)" = 2 ] && echo "ok half-a-line" || echo "not ok half-a-line: $(grep start log.json)"
[ "$(points t)-$(points e)" = 20-4 ] && echo "ok plot-of-both" || echo "not ok plot-of-both: $(points t) and $(points e) points, not 20 and 4"
"$reader" events runs/a >events && [ "$(awk '$2 == "start"' events | tr '\n' ' ')" = '1 start 11 2 start 11 ' ] &&
	[ "$(tags 2 loss | cut -d' ' -f 1 | tr '\n' ' ')" = '10 11 12 13 14 15 16 17 18 19 ' ] && cmp -s <(tags 1 loss) <(tags 2 loss | head -n 2) && echo "ok events-go-on" ||
	echo "not ok events-go-on: $(tags 2 loss | head -n 3)"
refused plot-begins-late 0 'run.svg begins with step 10' one/trainer --plot=run.svg --resume=ck --steps=12
refused plot-nowhere 2 'cannot write nowhere/run.svg' one/trainer --plot=nowhere/run.svg
refused plot-no-file 2 'not a regular file' one/trainer --plot=/dev/full
refused events-nowhere 2 'Not a directory' one/trainer --tensorboard=log.json
one/trainer --steps=3 --log=/dev/full >log 2>&1 && [ "$(grep -c 'warning: cannot write to /dev/full' log)" = 1 ] && echo "ok no-room" || echo "not ok no-room: $(head -n 2 log)"

# TensorBoard's own reader.
cat >read.py <<'PY'
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator('runs/a', size_guidance={'scalars': 0})
a.Reload()
for t in ('loss', 'rate', 'norm', 'held_out/loss'):
    print(t, *sorted({e.step for e in a.Scalars(t)}), '%.9g' % a.Scalars(t)[-1].value)
PY
python=${PYTHON:-python3}
if ! "$python" -c 'import tensorboard' 2>/dev/null; then
	echo "skip tensorboard: no Python with tensorboard (pip install tensorboard)"
else
	last() { logged log.json "$1" | tail -n 1 | cut -d' ' -f 2; }
	steps='0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19'
	printf '%s\n' "loss $steps $(last loss)" "rate $steps $(last rate)" "norm $steps $(last norm)" "held_out/loss 5 10 15 20 $(held log.json | tail -n 1 | cut -d' ' -f 2)" >want
	"$python" read.py >got 2>err
	awk '{ $NF = sprintf("%.6g", $NF) } 1' want >want.6
	awk '{ $NF = sprintf("%.6g", $NF) } 1' got | cmp -s want.6 - && echo "ok tensorboard" || echo "not ok tensorboard: $(diff want got | head -n 3) $(tail -n 1 err)"
fi
