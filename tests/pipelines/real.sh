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
	rm -rf "$2" && mkdir "$2" && ${LAUNCH:-} "tree-$1/trainer" --threads=1 --dump="$2/dump" --checkpoint="$2/ck" >log 2>&1 &&
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
