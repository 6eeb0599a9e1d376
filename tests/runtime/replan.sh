# A checkpoint belongs to the model, not to the plan: saved on 2 ranks, it is loaded on 1, 3 and 4 under other plans
# and by the other transport bit for bit, and back; and training continues from it as it would have.  No rank holds
# more than its own shards while it is saved.
. "$HERE/common.bash"
FLAGS=-O1
cat >net.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adamw(lr: 0.01), batch: 15, steps: 12, data: points(classes: 10, noise: 0.5), clip: norm(1.0), ema: 0.9)
@freeze("scale")
net (float[N, 50] x, int64[N] label) => (float loss)
<float[50, 33] w1 @init(normal(0, 0.2)), float[33] b1 @init(zeros), float[11] scale @init(normal(1, 0.1)), float[33, 10] w2 @init(normal(0, 0.2))>
{
	h = Reshape(Relu(Add(MatMul(x, w1), b1)), [0, 3, 11])
	loss = SoftmaxCrossEntropyLoss(MatMul(Reshape(Mul(h, scale), [0, 33]), w2), label)
}
IR
pinned() { # mesh, pins
	sed "s|^@train|@mesh(m, cpu, [$1])\n$2\n&|" net.ir
}
pinned 4 '@pin("w1", sbp: [S(1)])\n@pin("b1", sbp: [S(0)])\n@pin("w2", sbp: [S(0)])' >tensor4.ir
pinned 3 '@pin("*.m", "*.v", "*.ema", "w1", "b1", "w2", sbp: [S(0)])' >zero3.ir
pinned '2, 2' '@pin("w1", sbp: [B, S(1)])\n@pin("b1", sbp: [B, S(0)])\n@pin("w2", sbp: [B, S(0)])\n@pin("w2.m", "w2.v", sbp: [S(0), S(0)])' >mixed4.ir
pinned 4 '@pin("w1", sbp: [S(1/1)])\n@pin("b1", "w2", sbp: [S(0/1)])\n@pin("scale", sbp: [S(0)])' >factor4.ir
pinned '2, 2' '@pin("w1", "w1.m", "w1.v", sbp: [S(1/1), S(1/0)])\n@pin("w2", sbp: [S(0), S(0)])' >nested4.ir
tree data2 net.ir --ranks=2
tree one net.ir
tree tensor4 tensor4.ir
tree zero3 zero3.ir
tree mixed4 mixed4.ir
tree factor4 factor4.ir
tree nested4 nested4.ir
same() { # name, checkpoint, checkpoint
	if why=$("$BUILD/test-runtime-replan" "$2/state.safetensors" "$3/state.safetensors" 2>&1); then echo "ok $1"; else echo "not ok $1: $why $(head -n 2 log)"; fi
}
near() { # file, file: losses of the last steps agree
	paste <(tail -n 4 "$1") <(tail -n 4 "$2") | awk '{ d = $4 - $8; if (d < 0) d = -d; if ($2 != $6 || d > 1e-5 * $4) { print "step " $2 ": " $4 " and " $8; bad = 1 } n++ } END { exit bad || n < 4 }'
}
losses data2/trainer --checkpoint=a --every-checkpoint=8 >want
[ -e a/step-00000008 ] && [ "$(wc -l <want)" = 12 ] || { echo "not ok saves: $(head -n 2 err)" && exit; }
for p in one zero3 tensor4 mixed4 factor4 nested4; do
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

# By mpirun, split along a factor: loaded bit for bit from local ranks, and by them; trained to the same bits.
if "$ROOT/tests/setup" openmpi-bin libopenmpi-dev >log 2>&1; then
	run() { OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 mpirun "$@"; }
	"$SBPCC" factor4.ir -o by.mpi >log 2>&1 && make -s -C by.mpi TRANSPORT=mpi CFLAGS=-O1 >log 2>&1 || echo "not ok mpi: $(head -n 3 log)"
	run -n 4 by.mpi/trainer --resume=a/step-00000008 --checkpoint=m.at --steps=8 >log 2>&1
	same loads-with-mpi a/step-00000008 m.at/step-00000008
	run -n 4 by.mpi/trainer --resume=tensor4.on/step-00000012 --checkpoint=m.other --steps=12 >log 2>&1
	same loads-another-plan-with-mpi tensor4.on/step-00000012 m.other/step-00000012
	run -n 4 by.mpi/trainer --resume=a/step-00000008 --checkpoint=m.on >log 2>&1
	same mpi-goes-on-with-the-same-bits factor4.on/step-00000012 m.on/step-00000012
	zero3/trainer --resume=m.on/step-00000012 --checkpoint=m.back --steps=12 >log 2>&1
	same comes-back-from-mpi m.on/step-00000012 m.back/step-00000012
else
	echo "skip mpi: $(head -n 1 log)"
fi

# A model of 96 MiB, state included, on 4 ranks: each keeps 24 MiB and copies them to save them, and has 8 MiB of
# gradients; none has it whole.
cat >large.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@mesh(m, cpu, [4])
@pin("x", sbp: [B])
@pin("w", sbp: [S(1)])
@train(loss: loss, optimizer: adamw(lr: 0.01), batch: 2, steps: 1, data: points(classes: 2))
net (float[N, 1024] x) => (float loss) <float[1024, 8192] w @init(normal(0, 0.1))> { loss = ReduceMean<keepdims = 0>(Tanh(MatMul(x, w))) }
IR
tree large large.ir
large/trainer --checkpoint=large.to >log 2>&1
most=$(sed -n 's/^memory of rank 0: [0-9]* bytes planned, \([0-9]*\) measured.*/\1/p' log)
[ "$(stat -c %s large.to/step-00000001/state.safetensors)" -gt 100663296 ] && [ "${most:-0}" -gt 0 ] && [ "$most" -lt 67108864 ] && echo "ok nobody-gathers-the-model" ||
	echo "not ok nobody-gathers-the-model: rank 0 had $most bytes $(head -n 2 log)"
