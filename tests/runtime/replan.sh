# A checkpoint is of the model, not of the plan: saved on 2 ranks, it is loaded on 1, 3 and 4 under other plans bit for bit, and back; and
# training goes on from it as it would have.
# seconds: 900
. "$HERE/common.bash"
FLAGS=-O1
cat >net.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adamw(lr: 0.01), batch: 15, steps: 12, data: points(classes: 10, noise: 0.5), clip: norm(1.0), ema: 0.9)
net (float[N, 50] x, int64[N] label) => (float loss)
<float[50, 33] w1 @init(normal(0, 0.2)), float[33] b1 @init(zeros), float[33, 10] w2 @init(normal(0, 0.2))>
{ loss = SoftmaxCrossEntropyLoss(MatMul(Relu(Add(MatMul(x, w1), b1)), w2), label) }
IR
pinned() { # mesh, pins
	sed "s/^@train/@mesh(m, cpu, [$1])\n$2\n&/" net.ir
}
pinned 4 '@pin("w1", sbp: [S(1)])\n@pin("b1", sbp: [S(0)])\n@pin("w2", sbp: [S(0)])' >tensor4.ir
pinned 3 '@pin("*.m", "*.v", "*.ema", "w1", "b1", "w2", sbp: [S(0)])' >zero3.ir
pinned '2, 2' '@pin("w1", sbp: [B, S(1)])\n@pin("b1", sbp: [B, S(0)])\n@pin("w2", sbp: [B, S(0)])\n@pin("w2.m", "w2.v", sbp: [S(0), S(0)])' >mixed4.ir
tree data2 net.ir --ranks=2
tree one net.ir
tree tensor4 tensor4.ir
tree zero3 zero3.ir
tree mixed4 mixed4.ir
same() { # name, checkpoint, checkpoint
	if why=$("$BUILD/test-runtime-replan" "$2/state.safetensors" "$3/state.safetensors" 2>&1); then echo "ok $1"; else echo "not ok $1: $why $(head -n 2 log)"; fi
}
near() { # file, file: losses of the last steps agree
	paste <(tail -n 4 "$1") <(tail -n 4 "$2") | awk '{ d = $4 - $8; if (d < 0) d = -d; if ($2 != $6 || d > 1e-5 * $4) { print "step " $2 ": " $4 " and " $8; bad = 1 } n++ } END { exit bad || n < 4 }'
}
losses data2/trainer --checkpoint=a --every-checkpoint=8 >want
[ -e a/step-00000008 ] && [ "$(wc -l <want)" = 12 ] || { echo "not ok saves: $(head -n 2 err)" && exit; }
for p in one zero3 tensor4 mixed4; do
	$p/trainer --resume=a/step-00000008 --checkpoint=$p.at --steps=8 >log 2>&1
	same loads-on-$p a/step-00000008 $p.at/step-00000008
	losses $p/trainer --resume=a/step-00000008 --checkpoint=$p.on >got
	if why=$(near want got); then echo "ok goes-on-with-$p"; else echo "not ok goes-on-with-$p: $why $(head -n 2 err)"; fi
	data2/trainer --resume=$p.on/step-00000012 --checkpoint=$p.back --steps=12 >log 2>&1
	same comes-back-from-$p $p.on/step-00000012 $p.back/step-00000012
done
# Every rank that owns a piece has written it: the manifest names 4 pieces of w1, and they make up all of it.
pieces=$(tr -d '\n' <tensor4.on/step-00000012/manifest.json | grep -o '"name":"w1","parts":\[[^}]*\(},{[^}]*\)*}' | grep -o crc | wc -l)
[ "$pieces" = 4 ] && echo "ok ranks-write-what-they-own" || echo "not ok ranks-write-what-they-own: $pieces pieces of w1"
