# The real thing.  In pipelines of gpt, bert, resnet with local statistics, and an encoder and decoder with connections over stages, dropout and a
# weight of two stages (net.ir), all gradients of step 0 and everything that a checkpoint has after 20 steps of sgd are those of one rank with as
# many micro-batches: to the bit with one rank for each stage, and under any-ranks whatever happens inside stages; otherwise to 1e-5 of their norm.
# So it is after a kill, under another cut, and by MPI.  Without --long some of the schedules on some numbers of ranks.
set -u
. "$ROOT/tests/equiv/recipes.bash"
sgd='optimizer: sgd(lr: 0.05), data: points(classes: 2), steps: 20, batch: 8'
cp "$ROOT/examples/gpt.ir" "$ROOT/examples/bert.ir" .
sed 's/BatchNormalization<training_mode = 1>(c, scale, shift, mean, var)/& @local_stats(4)/' "$ROOT/examples/resnet.ir" >resnet.ir
sed 's/accumulate: 4, //' "$HERE/net.ir" >both.ir
sed '/early\|side\|guess/d; s/^  main = /  loss = /; /loss = Add/d; s/, float main//' both.ir >net.ir
far=$PLAIN/test-pipelines-real any=--deterministic=any-ranks

tree() { # model, options: in tree-MODEL, where objects are kept
	local model=$1
	shift
	"$SBPCC" "$model.ir" -o "tree-$model" --train="$sgd" --micro-batches="${MICROS:-4}" "$@" >log 2>&1 && make -s -C "tree-$model" STATIC= CFLAGS=-O1 >log 2>&1
}
run() { # model, folder
	rm -rf "$2" && mkdir "$2" && ${LAUNCH:-} "tree-$1/trainer" --threads=1 --dump="$2/dump" ${DUMP:-} --checkpoint="$2/ck" >log 2>&1 &&
		mv "$2/ck/step-00000020/state.safetensors" "$2"
}
one() { # model, options: on one rank, in the folder MODEL.one
	tree "$@" && run "$1" "$1.one" && return
	echo "not ok $1 on one rank: $(grep -m 1 error log || head -n 1 log)"
	return 1
}
check() { # what, model, "exact" or how far
	local what="$2, $1" how=$3 text
	text=$("$far" "$2.one" many) || { echo "not ok $what: $text" && return; }
	echo "$text" | awk -v most="${how/exact/0}" '{ exit !($2 <= most && $6 <= most) }' && echo "ok $what" || echo "not ok $what: $text"
}
same() { # what, model, "exact" or how far, options
	tree "$2" "${@:4}" && run "$2" many && check "$@" && return
	echo "not ok $2, $1: $(grep -m 1 error log || head -n 1 log)"
}
# Lines for --place: the recipe of a model inside the stages of 2 (or PIPE) groups of ranks.
inside() { # model, kind, shape inside a stage, stages
	recipe "$1" "$2" "$3" | sed "s/sbp: \[/&_, /; s/@mesh(m, cpu, \[/&${PIPE:-2}, /"
	echo "@pipeline(axis: 0, stages: $4)"
}
placed() { # what, model, "exact" or how far, kind, shape, stages, options
	inside "$2" "$4" "$5" "$6" >place
	same "$4 ${PIPE:-2}x${5//, /x}, $1" "$2" "$3" --place=place "${@:7}"
}

if [ -z "$LONG" ]; then
	one net && same zb-h1 net exact --ranks=3 --stages=3 --schedule=zb-h1 && same v-half net exact --ranks=2 --stages=4 --schedule=v-half
	one bert && same 1f1b bert exact --ranks=8 --stages=8 --schedule=1f1b      # a stage of the accuracy alone
	one resnet && same interleaved resnet exact --ranks=2 --stages=6 --schedule=interleaved &&
		placed zb-h2 resnet 1e-5 data '2, 2' 2 --schedule=zb-h2
	one gpt $any && placed zb-v gpt exact mixed '2, 2' 4 $any --schedule=zb-v
	exit
fi

# ---- with --long ----
chains() { # model, "exact" or how far: stages of one rank each, and ranks of several stages
	local p s
	one "$1" || return
	for p in 2 3 4 8; do
		for s in gpipe 1f1b pe zb-h1 zb-h2; do
			same "$s on $p" "$1" "$2" --ranks=$p --stages=$p --schedule=$s
		done
		same "solver on $p" "$1" "$2" --ranks=$p --stages=$p
	done
	for p in 2 3 4; do
		for s in interleaved zb-v v-half v-min dualpipev; do
			same "$s on $p" "$1" "$2" --ranks=$p --stages=$((2 * p)) --schedule=$s
		done
	done
	for s in 6 8; do
		same "interleaved on 2 in $s" "$1" "$2" --ranks=2 --stages=$s --schedule=interleaved
	done
}
insides() { # model, "exact" or how far, options: data and tensor parallelism and ZeRO 3 inside stages
	local kind s model=$1 how=$2
	shift 2
	one "$model" "$@" || return
	for kind in data tensor zero3; do
		for s in gpipe 1f1b pe zb-h1 zb-h2; do placed $s "$model" "$how" $kind 2 2 "$@" --schedule=$s; done
		for s in interleaved zb-v v-half v-min dualpipev; do placed $s "$model" "$how" $kind 2 4 "$@" --schedule=$s; done
		placed solver "$model" "$how" $kind 3 2 "$@"
		PIPE=4 placed 1f1b "$model" "$how" $kind 2 4 "$@" --schedule=1f1b
	done
	for kind in mixed data zero3; do
		for s in 1f1b zb-h2; do placed $s "$model" "$how" $kind '2, 2' 2 "$@" --schedule=$s; done
		for s in interleaved dualpipev; do placed $s "$model" "$how" $kind '2, 2' 4 "$@" --schedule=$s; done
	done
}
for m in gpt bert resnet net; do
	chains $m exact
done
chains both 1e-5        # a later stage reads the first loss: one rank computes that loss and its gradient by one kernel
for m in gpt bert resnet; do
	insides $m 1e-5
	insides $m exact $any
done
one gpt && for p in 3 4; do      # fewer micro-batches than stages
	MICROS=2 one gpt && MICROS=2 same "zb-h1 on $p, 2 micro-batches" gpt exact --ranks=$p --stages=$p --schedule=zb-h1
	MICROS=1 one gpt && MICROS=1 same "1f1b on $p, 1 micro-batch" gpt exact --ranks=$p --stages=$p --schedule=1f1b
done

# Stages of the embedding alone and of the loss alone, uneven ones between them.
awk '/x0 = Gather/ { sub(/$/, " @stage(0)") } /h1 = MatMul/ { sub(/$/, " @stage(1)") } /h4 = MatMul/ { sub(/$/, " @stage(2)") }
	/loss = Soft/ { sub(/$/, " @stage(3)") } { print }' net.ir >cut.ir
one cut && for s in gpipe 1f1b pe zb-h1 zb-h2; do same $s cut exact --ranks=4 --stages=4 --schedule=$s; done &&
	for s in interleaved zb-v v-half v-min dualpipev; do same $s cut exact --ranks=2 --stages=4 --schedule=$s; done

# By MPI.
"$ROOT/tests/setup" openmpi-bin libopenmpi-dev >log 2>&1 && one net && for o in "4 zb-h1" "8 zb-v"; do
	tree net --ranks=4 --stages="${o% *}" --schedule="${o#* }" && make -s -C tree-net TRANSPORT=mpi STATIC= CFLAGS=-O1 >log 2>&1 &&
		LAUNCH='mpirun --allow-run-as-root --oversubscribe -n 4' run net many && check "${o#* } on 4 by MPI" net exact || echo "not ok MPI: $(head -n 1 log)"
done

# fp16: the first steps are skipped because the scale is too large; the gradients are those of step 10.
sgd="$sgd, precision: fp16(loss_scale: 16777216, backoff: 0.25)" DUMP=--dump-step=10
cp net.ir half.ir
one half && same 1f1b half exact --ranks=2 --stages=2 --schedule=1f1b && same zb-v half exact --ranks=3 --stages=6 --schedule=zb-v
