# Several meshes in one model: layers on separate ranks, on ranks that two meshes share, on meshes of other shapes and
# on parts of a mesh.  The losses are those of one rank, with both transports; a checkpoint belongs to the model, not
# to its meshes; rank 0 knows everything that is reported.
. "$ROOT/tests/runtime/common.bash"
FLAGS=-O1
"$ROOT/tests/setup" openmpi-bin libopenmpi-dev >log 2>&1 && mpi=1 || { mpi= && echo "skip mpi: $(head -n 1 log)"; }
run() { # ranks, trainer, options...
	local n=$1
	shift
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 mpirun -n "$n" "$@"
}
net() { # meshes and pins, place of the first layer, place of the second
	cat <<IR
<ir_version: 10, opset_import: ["" : 23]>
$1
@train(loss: loss, optimizer: adamw(lr: 0.01), schedule: linear(warmup: 4, total: 30), batch: 15, steps: 12,
       data: points(classes: 10, noise: 0.5), clip: norm(1.0), ema: 0.9)
net (float[N, 50] x, int64[N] label) => (float loss, float[N, 10] y)
<float[50, 33] w1 @init(normal(0, 0.2)), float[33] b1 @init(zeros), float[33, 10] w2 @init(normal(0, 0.2))>
{
	h = Relu(Add(MatMul(x, w1), b1)) $2
	y = MatMul(h, w2) $3
	loss = SoftmaxCrossEntropyLoss(y, label)
}
IR
}
near() { # file, file: losses of the last steps agree
	paste "$1" "$2" | awk '{ d = $4 - $8; if (d < 0) d = -d; if ($2 != $6 || d > 1e-5 * $4) { print "step " $2 ": " $4 " and " $8; bad = 1 } n++ } END { exit bad || n < 6 }'
}
same() { # name, checkpoint, checkpoint
	if why=$("$BUILD/test-runtime-replan" "$2/state.safetensors" "$3/state.safetensors" 2>&1); then echo "ok $1"; else echo "not ok $1: $why $(head -n 2 log)"; fi
}
net '' '' '' >one.ir
tree one one.ir
losses one/trainer --checkpoint=one.to --every-checkpoint=6 >one.txt
[ "$(wc -l <one.txt)" = 12 ] || { echo "not ok one: $(head -n 2 err)" && exit; }
# build NAME MODEL OPTION...: NAME/trainer; files that equal those of the last tree are not compiled again.
build() {
	local name=$1
	shift
	"$SBPCC" "$@" -o "$name" >log 2>&1 && "$PLAIN/sbpcc" "$@" -o shared >log 2>&1 || return 1
	make -s -C shared STATIC= CFLAGS=-O1 >log 2>&1 && [ ! -s log ] && cp shared/trainer "$name"
}
on() { # name, ranks, meshes and pins, place of the first layer, place of the second, "mpi": with that, too
	local name=$1 n=$2
	net "$3" "$4" "$5" >"$name.ir"
	build "$name" "$name.ir" || { echo "not ok $name: $(head -n 3 log)" && return; }
	losses "$name/trainer" --checkpoint="$name.to" --every-checkpoint=6 >"$name.txt"
	if why=$(near one.txt "$name.txt"); then echo "ok $name-trains-as-one-rank"; else echo "not ok $name-trains-as-one-rank: $why $(head -n 2 err)"; fi
	# The plan, read again, is itself.
	"$SBPCC" "$name/plan.ir" -o again >log 2>&1 && diff -r -x Makefile -x README.md -x trainer again "$name" >why 2>&1 && echo "ok $name-is-its-plan" || echo "not ok $name-is-its-plan: $(head -n 2 log) $(head -n 3 why)"
	rm -rf again
	# From its checkpoint one rank goes on, and it from that of one rank.
	one/trainer --resume="$name.to/step-00000006" --steps=6 --checkpoint="$name.at" >log 2>&1
	same "$name-loads-on-one" "$name.to/step-00000006" "$name.at/step-00000006"
	losses "$name/trainer" --resume=one.to/step-00000006 >got
	if why=$(near <(tail -n 6 one.txt) got); then echo "ok $name-goes-on"; else echo "not ok $name-goes-on: $why $(head -n 2 err)"; fi
	[ -n "$mpi" ] && { [ -n "$LONG" ] || [ "$6" = mpi ]; } || return 0
	cp -r "$name" "$name.mpi" && make -s -C "$name.mpi" TRANSPORT=mpi CFLAGS=-O1 >log 2>&1 || { echo "not ok $name-mpi: $(head -n 3 log)" && return; }
	run "$n" "$name.mpi/trainer" --checkpoint="$name.by" --every-checkpoint=6 >log 2>&1
	cmp -s "$name.by/step-00000012/state.safetensors" "$name.to/step-00000012/state.safetensors" && echo "ok $name-same-bits-with-mpi" || echo "not ok $name-same-bits-with-mpi: $(head -n 2 log)"
}
on apart 4 '@mesh(a, cpu, [2], 0:1)
@mesh(b, cpu, [2], 2:3)' '@on(a)' '@on(b)' mpi
on sharing 4 '@mesh(a, cpu, [3], 0:2)
@mesh(b, cpu, [2], 3, 1)
@pin("w1", sbp: [S(1)])
@pin("x", sbp: [B])' '@on(a)' '@on(b)'
on shapes 7 '@mesh(a, cpu, [2, 2])
@mesh(b, cpu, [3], 4:6)
@pin("x", sbp: [S(0), B])
@pin("w1", sbp: [B, S(1)])
@pin("w2", sbp: [S(0)])' '@on(a)' '@on(b)' mpi
on parts 4 '@mesh(m, cpu, [4])' '@on(m[0:1])' '@on(m[1:3])'
on one-first 3 '@mesh(a, cpu, [1], 2)
@mesh(b, cpu, [2], 0:1)
@pin("w2", on: b)' '@on(a)' ''

# Each rank stores only the values of its own meshes: less than a single rank stores.
of() { "$1"/trainer --help | grep -o 'with [0-9]* bytes' | grep -o '[0-9]*'; }
[ "$(of apart)" -lt "$(of one)" ] && echo "ok ranks-keep-their-own" || echo "not ok ranks-keep-their-own: $(of apart) bytes, $(of one) on one"
# A rank runs only the nodes of its meshes: rank 0 does not run the product with w2.
grep -q '^<tr id=step0-.*MatMul(h' shapes/report.html && echo "not ok ranks-do-their-own: rank 0 multiplies by w2" || echo "ok ranks-do-their-own"

# A model with blocks on two meshes; both use its embedding.
how='data: points(classes: 256), batch: 4, steps: 6'
build gpt1 "$ROOT/examples/gpt.ir" --train="$how"
losses gpt1/trainer >one.txt
cat >two.place <<'IR'
@mesh(a, cpu, [2], 0:1)
@mesh(b, cpu, [2], 1:2)
@pin("h1.*", "norm.w", "norm.b", on: b)
@pin("h1.qkv.w", sbp: [S(1/1)])
IR
build gpt2 "$ROOT/examples/gpt.ir" --place=two.place --train="$how" || echo "not ok gpt: $(head -n 2 log)"
losses gpt2/trainer >got
if why=$(near one.txt got); then echo "ok gpt-on-two-meshes"; else echo "not ok gpt-on-two-meshes: $why $(head -n 2 err)"; fi
