# Examples on several ranks under data parallel, tensor parallel, ZeRO and mixed plans lose what one rank loses, step by step.  Batches are small,
# so that parts are uneven and, on eight ranks, some are empty.  With --long all examples, and more numbers of ranks.
# seconds: 3000
STEPS=20
how="data: points(classes: 2), steps: $STEPS"
build() { # option of sbpcc...: one tree, in which what is as it was is not compiled again
	rm -rf new
	"$SBPCC" "$@" -o new >log 2>&1 || return 1
	(cd new && find . -type f) | while read -r g; do
		cmp -s "new/$g" "tree/$g" || { mkdir -p "tree/$(dirname "$g")" && cp "new/$g" "tree/$g"; }
	done
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1
}
losses() { tree/trainer --every=1 2>err | grep -o '^step *[0-9]* *loss [^ ]*'; }
one() { # model, batch
	model=$ROOT/examples/$1.ir name=$1 batch=$2
	build "$model" --train="$how, batch: $batch" || { echo "not ok $1: $(head -n 1 log)" && return 1; }
	losses >one.txt
	[ "$(wc -l <one.txt)" = $STEPS ] || { echo "not ok $1: $(head -n 1 err)" && return 1; }
}
# plan NAME SHAPE [PINS...]: a mesh of SHAPE and the lines of pins.  Losses agree to 1e-4 of their size, and to 1e-6 where they are small.
plan() {
	local what=$name-$1-on-${2//, /x} shape=$2
	shift 2
	{ echo "@mesh(m, cpu, [$shape])" && printf '%s\n' "$@"; } >plan.ir
	build "$model" --place=plan.ir --train="$how, batch: $batch" || { echo "not ok $what: $(head -n 1 log)" && return; }
	losses >many.txt
	paste one.txt many.txt | awk -v n=$STEPS '{ d = $4 - $8; if (d < 0) d = -d; if ($2 != $6 || d > 1e-4 * $4 + 1e-6) { print " step " $2 ": " $4 " and " $8; bad = 1 } if ($8 == "") bad = 1; k++ } END { exit bad || k != n }' >why &&
		echo "ok $what" || { echo "not ok $what: losses differ from one rank's $(head -n 1 err)" && head -n 4 why; }
}
more() { [ -n "$LONG" ] && for n in "$@"; do echo "$n"; done; }
zero3() { for n in "$@"; do plan zero3 "$n" "@pin($kept, sbp: [S(0)])"; done; }
data() { for n in "$@"; do plan data "$n"; done; }

kept='"*.w", "*.b", "*.m", "*.v"'
if one gpt 4; then
	heads() { # one entry for each axis of the mesh before that of the heads
		echo "@pin(\"tokens\", \"targets\", sbp: [$2])"
		echo "@pin(\"*.qkv.w\", sbp: [${1}S(1/1)])"
		echo "@pin(\"*.qkv.b\", sbp: [${1}S(0/1)])"
		echo "@pin(\"*.out.w\", \"*.up.b\", \"*.down.w\", sbp: [${1}S(0)])"
		echo "@pin(\"*.up.w\", sbp: [${1}S(1)])"
	}
	data 3 $(more 2 4 8)
	for n in 2 3 $(more 4 8); do plan tensor $n "$(heads '' B)"; done
	plan zero1 2 '@pin("*.m", "*.v", sbp: [S(0)])'
	zero3 2 $(more 3 4 8)
	plan mixed '2, 2' "$(heads 'B, ' 'S(0), B')"
	plan sequence 2 '@pin("tokens", "targets", sbp: [S(1)])'
	[ -z "$LONG" ] || plan mixed '2, 2, 2' "$(heads 'B, S(0), ' 'S(0), S(0), B' | sed '/qkv\|out/s/S(0), S/B, S/')"
fi
if one mlp 6; then
	data 2 8 $(more 3 4)
	for n in 3 $(more 2 4 8); do plan tensor $n '@pin("w1", sbp: [S(1)])' '@pin("b1", "w2", sbp: [S(0)])'; done
	for n in 4 $(more 2 3 8); do plan zero3 $n '@pin("w1", "w2", "b1", "b2", sbp: [S(0)])'; done
	plan mixed '2, 2' '@pin("image", "label", sbp: [S(0), B])' '@pin("w1", sbp: [B, S(1)])' '@pin("b1", "w2", sbp: [B, S(0)])'
fi
kept='"*.w", "*.b"'
if one cnn 4; then
	data 3 $(more 2 4 8)
	for n in 2 $(more 3 4); do plan tensor $n '@pin("image", sbp: [B])' '@pin("conv1.w", "conv1.b", sbp: [S(0)])' '@pin("conv2.w", sbp: [S(1)])'; done
	zero3 2 $(more 3 4 8)
	plan mixed '2, 2' '@pin("image", "label", sbp: [S(0), B])' '@pin("conv1.w", "conv1.b", sbp: [B, S(0)])'
	rows='"image", "c?", "a?", "p?", "c?.grad", "a?.grad", "p?.grad"'    # of images, and of all that is made of them
	for n in 2 3 $(more 4 5); do plan space $n "@pin($rows, sbp: [S(2)])"; done
	plan space '2, 2' "@pin($rows, sbp: [S(3), S(2)])"
	[ -z "$LONG" ] || plan space-in-space '2, 2' "@pin($rows, sbp: [S(2), S(2)])"
	[ -z "$LONG" ] || plan data-and-space '2, 3' "@pin($rows, sbp: [S(0), S(2)])"
	plan channels 3 '@pin("image", sbp: [B])' '@pin("p1", sbp: [S(1)])' '@pin("c2", sbp: [P])'
fi
kept='"*.w", "*.b", "*.m", "*.v"'
if one bert 4; then
	data 2 $(more 3 4 8)
	for n in 2 $(more 3 4); do plan tensor $n '@pin("tokens", "segments", "labels", sbp: [B])' '@pin("*.q.w", "*.k.w", "*.v.w", sbp: [S(1)])' '@pin("*.q.b", "*.k.b", "*.v.b", "*.out.w", sbp: [S(0)])'; done
	zero3 3 $(more 2 4 8)
	plan mixed '2, 2' '@pin("tokens", sbp: [S(0), B])' '@pin("*.m", "*.v", sbp: [S(0), B])'
fi
[ -n "$LONG" ] || exit 0
kept='"*.w"'
for m in llama lstm resnet wide_deep; do
	one $m 4 || continue
	data 2 3 4 8
	zero3 2 3 4 8
	plan mixed '2, 2' '@pin("*.w", sbp: [B, S(0)])'
done
