# With --deterministic=any-ranks, 1, 2, 4 and 8 ranks under data-parallel, tensor-parallel, ZeRO-3 and mixed plans
# train to the same bits: the loss of every step, and everything in a checkpoint.  With local processes and, if Open
# MPI is installed, under mpirun.
STEPS=10
how="data: points(classes: 2), steps: $STEPS"
build() { # option of sbpcc...: one tree, in which what is as it was is not compiled again
	"$SBPCC" "$@" -o tree >log 2>&1 || return 1
	make -s -C tree STATIC= CFLAGS=-O1 $transport >log 2>&1
}
# The bits of the losses (9 digits distinguish floats) and of the checkpoint, in one file.
train() { # file, command...
	local to=$1
	shift
	rm -rf saved json
	"$@" tree/trainer --log=json --checkpoint=saved --threads=1 >out 2>err || { echo "$(tail -n 1 err)" >"$to" && return 1; }
	grep -o '"step":[0-9]*,"loss":[^,]*' json >"$to"
	cat saved/step-*"$STEPS"/state.safetensors >>"$to"
	[ "$(grep -ac '^"step":[0-9]*,"loss":[-0-9.e+]*$' "$to")" = "$STEPS" ]
}
one() { # model (of the examples, or a file here), batch, option...
	model=$ROOT/examples/$1.ir name=$1 batch=$2 transport=
	[ ! -f "$1.ir" ] || model=$1.ir
	shift 2
	mode=("$@")
	build "$model" "${mode[@]}" --train="$how, batch: $batch" || { echo "not ok $name: $(head -n 1 log)" && return 1; }
	train one || { echo "not ok $name: $(head -n 1 one)" && return 1; }
}
# plan NAME SHAPE [PINS...]: a mesh of SHAPE and the lines of pins.
plan() {
	local what=$name-$1-on-${2//, /x}${transport:+-mpi} shape=$2 ranks=$((${2//, /*}))
	shift 2
	{ echo "@mesh(m, cpu, [$shape])" && printf '%s\n' "$@"; } >plan.ir
	build "$model" "${mode[@]}" --place=plan.ir --train="$how, batch: $batch" || { echo "not ok $what: $(head -n 1 log)" && return; }
	if [ -n "$transport" ]; then
		train many mpirun --allow-run-as-root --oversubscribe -n $ranks
	else
		train many
	fi || { echo "not ok $what: $(head -n 1 many)" && return; }
	if [ -z "${mode[*]}" ]; then
		# Without the option the order of sums is that of the plan: what is compared above can differ.
		cmp -s one many && echo "not ok $what: the same bits without --deterministic" || echo "ok $what-differs"
		return
	fi
	cmp -s one many && echo "ok $what" || { echo "not ok $what: $(cmp one many 2>&1)" && diff -a <(head -n $STEPS one) <(head -n $STEPS many) | grep -a '^[<>]' | head -n 4; }
}
more() { [ -n "$LONG" ] && for n in "$@"; do echo "$n"; done; }
data() { for n in "$@"; do plan data "$n" "@pin($inputs, sbp: [S(0)])"; done; }
zero3() { for n in "$@"; do plan zero3 "$n" "@pin($kept, sbp: [S(0)])"; done; }
mpi() { command -v mpirun >/dev/null && command -v mpicc >/dev/null; }

kept='"w1", "w2", "b1", "b2"' inputs='"image", "label"'
if one mlp 16 --deterministic=any-ranks; then
	data 2 4 8
	for n in 2 8 $(more 4); do plan tensor $n '@pin("w1", sbp: [S(1)])' '@pin("b1", "w2", sbp: [S(0)])'; done
	zero3 4 $(more 2 8)
	plan mixed '2, 2' '@pin("image", "label", sbp: [S(0), B])' '@pin("w1", sbp: [B, S(1)])' '@pin("b1", "w2", sbp: [B, S(0)])'
	plan batch-by-both '2, 4' '@pin("image", "label", sbp: [S(0), S(0)])'
	plan free 4
	if mpi; then
		transport=TRANSPORT=mpi
		data 2 4
		transport=
	fi
fi
one mlp 4 --deterministic=any-ranks && data 8   # more ranks than samples: nothing of a sum is cut there
if one mlp 32 --deterministic=any-ranks:32; then       # a mesh of many axes
	plan batch-by-all '2, 2, 2, 2, 2' '@pin("image", "label", sbp: [S(0), S(0), S(0), S(0), S(0)])'
	plan batch-and-tensor '2, 2, 2, 2, 2' '@pin("image", "label", sbp: [S(0), S(0), B, B, B])' '@pin("h", sbp: [S(0), S(0), S(1), S(1), S(1)])'
fi
one mlp 16 && data 4
# A sum of 4800 terms, in 8 chunks of 600: more than a product takes at a time.
cat >tall.ir <<'E'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 4800, steps: 1, data: points(classes: 2))
tall (float[N, 5] image, int64[N] label) => (float loss)
<float[5, 6] w1 @init(kaiming_normal), float[6] b1 @init(zeros), float[6, 2] w2 @init(xavier_uniform)>
{
  h0 = MatMul(image, w1)
  h1 = Add(h0, b1)
  h = Relu(h1)
  scores = MatMul(h, w2)
  loss = SoftmaxCrossEntropyLoss(scores, label)
}
E
one tall 4800 --deterministic=any-ranks && data 2 8
# Output channels: a shard has fewer than Winograd's algorithm needs, the whole tensor has enough.
cat >wide.ir <<'E'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 8, steps: 1, data: points(classes: 2))
wide (float[N, 8, 6, 6] image, int64[N] label) => (float loss)
<float[8, 8, 3, 3] w1 @init(kaiming_normal), float[10, 8, 1, 1] w2 @init(kaiming_normal), float[360, 2] w3 @init(xavier_uniform)>
{
  h0 = Conv<pads = [1, 1, 1, 1]>(image, w1)
  h = Relu(h0)
  g = Conv(h, w2)
  flat = Flatten<axis = 1>(g)
  scores = MatMul(flat, w3)
  loss = SoftmaxCrossEntropyLoss(scores, label)
}
E
one wide 8 --deterministic=any-ranks && plan channels 2 '@pin("image", sbp: [B])' '@pin("w1", "w2", sbp: [S(0)])'
kept='"*.w", "*.b", "*.m", "*.v"' inputs='"tokens", "targets"'
heads() { # entries of weights and of inputs for the axes of the mesh before that of the heads
	echo "@pin(\"tokens\", \"targets\", sbp: [${2}B])"
	echo "@pin(\"*.qkv.w\", sbp: [${1}S(1/1)])"
	echo "@pin(\"*.qkv.b\", sbp: [${1}S(0/1)])"
	echo "@pin(\"*.out.w\", \"*.up.b\", \"*.down.w\", sbp: [${1}S(0)])"
	echo "@pin(\"*.up.w\", sbp: [${1}S(1)])"
}
if one gpt 8 --deterministic=any-ranks; then
	data 8 $(more 2 4)      # a sample for each: the next axis may not be cut in its place
	for n in 2 $(more 4); do plan tensor $n "$(heads '' '')"; done
	zero3 8 $(more 2 4)
	plan mixed '2, 2' "$(heads 'B, ' 'S(0), ')"
	[ -z "$LONG" ] || plan mixed '2, 4' "$(heads 'B, ' 'S(0), ')"
	if [ -n "$LONG" ] && mpi; then
		transport=TRANSPORT=mpi
		data 2 4
		plan mixed '2, 2' "$(heads 'B, ' 'S(0), ')"
		transport=
	fi
fi
kept='"*.w", "*.b"' inputs='"image", "label"'
if one cnn 16 --deterministic=any-ranks; then       # chunks of two images; on 8 ranks one alone, which goes the way of several
	data 8 $(more 2 4)
	for n in 2 $(more 4); do plan tensor $n '@pin("image", sbp: [B])' '@pin("conv1.w", "conv1.b", sbp: [S(0)])' '@pin("conv2.w", sbp: [S(1)])'; done
	zero3 4 $(more 2 8)
	plan mixed '2, 2' '@pin("image", "label", sbp: [S(0), B])' '@pin("conv1.w", "conv1.b", sbp: [B, S(0)])'
fi
# All optimizers that take norms, micro-batches, and batch normalisation: with --long.
[ -n "$LONG" ] || exit 0
kept='"*.w", "*.b", "*.m", "*.v"' inputs='"tokens"'
if one bert 8 --deterministic=any-ranks; then
	data 2 4 8
	plan tensor 2 '@pin("tokens", "segments", "labels", sbp: [B])' '@pin("*.q.w", "*.k.w", "*.v.w", sbp: [S(1)])' '@pin("*.q.b", "*.k.b", "*.v.b", "*.out.w", sbp: [S(0)])'
	zero3 4
fi
how="$how, optimizer: lamb(lr: 0.01), accumulate: 2" inputs='"image", "label"' kept='"w1", "w2"'
if one mlp 16 --deterministic=any-ranks:16; then
	data 2 4
	zero3 4
	plan mixed '2, 4' '@pin("image", "label", sbp: [S(0), B])' '@pin("w1", sbp: [B, S(1)])' '@pin("b1", "w2", sbp: [B, S(0)])'
fi
how="data: points(classes: 2), steps: $STEPS"
for m in llama lstm resnet wide_deep; do
	one $m 8 --deterministic=any-ranks || continue
	plan free 4
	plan weights '2, 2' '@pin("*.w", sbp: [B, S(0)])'
done
