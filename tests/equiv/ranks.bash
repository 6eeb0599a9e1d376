# For tests that train an example on several ranks and compare its losses with those of one rank.
STEPS=20
how="data: points(classes: 2), steps: $STEPS"
build() { # option of sbpcc...: one tree, in which what is as it was is not compiled again
	"$SBPCC" "$@" -o tree >log 2>&1 || return 1
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1
}
losses() { # trainer: "step 3 loss 2.5" of each
	rm -f steps.log
	"$@" --log=steps.log >log 2>err
	sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/step \1 loss \2/p' steps.log
}
one() { # model, batch
	model=$ROOT/examples/$1.ir name=${1##*/} batch=$2
	[ "$name" = "$1" ] || model=$1.ir
	build "$model" --train="$how, batch: $batch" || { echo "not ok $1: $(head -n 1 log)" && return 1; }
	losses tree/trainer >one.txt
	[ "$(wc -l <one.txt)" = $STEPS ] || { echo "not ok $1: $(head -n 1 err)" && return 1; }
}
# Losses agree to 1e-4 of their size, and to 1e-6 where they are small.
near() {
	paste one.txt many.txt | awk -v n=$STEPS 'function size(x) { return x < 0 ? -x : x }
		{ if ($2 != $6 || size($4 - $8) > 1e-4 * size($4) + 1e-6) { print " step " $2 ": " $4 " and " $8; bad = 1 } if ($8 == "") bad = 1; k++ } END { exit bad || k != n }' >why
}
