# Examples on several ranks under data-parallel, tensor-parallel, ZeRO-3 and mixed plans have the losses of one rank,
# step by step.  Batches are small, so that shards are uneven and, on eight ranks, some are empty.  With --long every
# example runs under every plan on 2, 3, 4 and 8 local ranks and on 2 and 4 ranks of mpirun; PLANS_OF names some of
# the examples.
. "$HERE/recipes.bash"
. "$HERE/ranks.bash"
"$ROOT/tests/setup" openmpi-bin libopenmpi-dev >log 2>&1 && mpi=1 || { mpi= && echo "skip mpi: $(head -n 1 log)"; }
# placed NAME SHAPE LINES...: the plan that these lines ask for.
placed() {
	local what=$name-$1-on-${2//, /x} ranks=$((${2//, /*}))
	shift 2
	printf '%s\n' "$@" >plan.ir
	build "$model" --place=plan.ir $figures --train="$how, batch: $batch" || { echo "not ok $what: $(head -n 1 log)" && return; }
	losses tree/trainer >many.txt
	if near; then echo "ok $what"; else echo "not ok $what: losses differ from one rank's $(head -n 1 err)" && head -n 4 why; fi
	[ -n "$LONG$with_mpi" ] && [ -n "$mpi" ] && { [ $ranks = 2 ] || [ $ranks = 4 ]; } || return 0
	make -s -C tree TRANSPORT=mpi STATIC= CFLAGS=-O1 >log 2>&1 || { echo "not ok $what-mpi: $(head -n 1 log)" && return; }
	mv many.txt local.txt
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 losses mpirun -n $ranks tree/trainer >many.txt
	cmp -s local.txt many.txt && echo "ok $what-mpi" || { echo "not ok $what-mpi: losses differ from those without $(head -n 1 err)" && diff local.txt many.txt | head -n 4 | sed 's/^/ /'; }
}
# plan KIND SHAPE...
plan() {
	local kind=$1 shape
	shift
	for shape in "$@"; do placed "$kind" "$shape" "$(recipe "$name" "$kind" "$shape")"; done
}
pinned() { # name, shape, lines...
	local what=$1 shape=$2
	shift 2
	placed "$what" "$shape" "@mesh(m, cpu, [$shape])" "$@"
}
rows='"image", "c?", "a?", "p?", "c?.grad", "a?.grad", "p?.grad"'        # of images, and of all that is made of them
space() { for n in "$@"; do pinned space "$n" "@pin($rows, sbp: [S(2)])"; done; }
# With slow links the plan with the fewest bytes is taken, even for models as small as these: numbers for each label
# instead of scores, statistics instead of images.  uses NAME KERNEL...: the last tree calls these.
printf '%s\n' 'flops 6e10' 'half 6e10' 'bytes 1e10' 'start 2e-7' 'link * 1e-7 1e7' >slow.machine
slowly() { figures=--machine=slow.machine pinned "$@"; }
uses() {
	local what=$1 k
	shift
	for k in "$@"; do grep -rq "$k(" tree/blocks.c || { echo "not ok $what: no $k" && return; }; done
	echo "ok $what"
}
vocabulary() {
	for n in "$@"; do slowly vocabulary "$n" '@pin("tokens", "targets", sbp: [B])' '@pin("embed.w", sbp: [S(0)])' '@pin("token", sbp: [P])' '@pin("logits", sbp: [S(2)])'; done
	uses gpt-scores-are-not-gathered k_gather_shard k_gather_grad_shard_f32 k_sum_exp_f32 k_nll_shard_f32 k_xent_grad_shard_f32
}
images='@pin("image", "label", "x?", "a?", "s?", "short", sbp: [S(0)])'
statistics() { for n in "$@"; do slowly statistics "$n" "$images" '@pin("*.w", "*.b", "*.mean", "*.var", "*.conv*", "*.short", sbp: [B])'; done; }
layers() { # optimizers that compare the lengths of a weight and of its step, cut unevenly
	local was=$how o
	for o in 'lamb(lr: 0.01)' 'lars(lr: 0.5)'; do
		how="$was, optimizer: $o"
		one mlp 6 && pinned "${o%%(*}-zero3" 3 '@pin("w1", "w2", "b1", "b2", "*.m", sbp: [S(0)])'
	done
	how=$was
}
parts() { # statistics of two parts of the batch, as asked for, are those on any number of ranks
	sed 's/BatchNormalization<training_mode = 1>(c, scale, shift, mean, var)/& @local_stats(2)/' "$ROOT/examples/resnet.ir" >local.ir
	one "$PWD/local" 8 && for n in "$@"; do slowly local-statistics "$n" "$images"; done
}
with_mpi= figures=
if [ -n "$LONG" ]; then
	for m in ${PLANS_OF:-bert cnn gpt llama lstm mlp resnet wide_deep}; do
		one "$m" 4 || continue
		for kind in data tensor zero3; do plan $kind 2 3 4 8; done
		plan mixed '2, 2' '2, 4' '2, 2, 2'
		pinned unpinned 2
		pinned unpinned '2, 2'
	done
	one gpt 4 && pinned sequence 2 '@pin("tokens", "targets", sbp: [S(1)])' && vocabulary 2 3 4
	one resnet 6 && statistics 2 3 4
	layers
	parts 2 4
	if one cnn 4; then
		space 2 3 4 5
		pinned space-in-space '2, 2' "@pin($rows, sbp: [S(2), S(2)])"
		pinned data-and-space '2, 3' "@pin($rows, sbp: [S(0), S(2)])"
	fi
	exit
fi
if one gpt 4; then
	plan data 3
	plan tensor 2 3
	with_mpi=1
	plan mixed '2, 2'
	with_mpi=
	pinned zero1 2 '@pin("*.m", "*.v", sbp: [S(0)])'
	pinned sequence 3 '@pin("tokens", "targets", sbp: [S(1)])'
	plan zero3 2
	vocabulary 2 3
fi
if one mlp 6; then
	plan data 8
	plan tensor 3
	plan zero3 4
	pinned unpinned 2
	pinned unpinned '2, 1, 2, 1, 1, 2, 1, 1'
	pinned five-axes '2, 2, 2, 2, 2' '@pin("image", "label", sbp: [S(0), S(0), B, B, B])' '@pin("w1", "w1.m", "w1.v", sbp: [B, B, S(1), S(1), S(1)])' '@pin("w2", sbp: [B, B, S(0), S(0), S(0)])' '@pin("h", sbp: [S(0), S(0), S(1), S(1), S(1)])'
fi
if one cnn 4; then
	plan data 3
	plan tensor 2
	space 2 3
	pinned space '2, 2' "@pin($rows, sbp: [S(3), S(2)])"
	pinned channels 3 '@pin("image", sbp: [B])' '@pin("p1", sbp: [S(1)])' '@pin("c2", sbp: [P])'
fi
if one bert 4; then
	plan tensor 2
	plan zero3 3
	plan mixed '2, 2'
fi
if one llama 4; then plan tensor 4; fi
if one resnet 6; then
	statistics 2 3
	uses resnet-batches-are-not-gathered k_mean_shard_f32
fi
layers
parts 2
