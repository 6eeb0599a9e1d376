# Windows of all kinds (windows.ir), split along the first axis that they move along: several ranks have the losses of
# one rank, and a plan whose transfers are strips reads back as itself.  With --long on more numbers of ranks.
model=$HERE/windows.ir
rows='"image", "r?", "r?.grad", "t?", "t?.grad", "s1", "s1.grad", "s3", "s3.grad"'
build() { # option of sbpcc...: one tree, in which what is as it was is not compiled again
	"$SBPCC" "$@" -o tree >log 2>&1 || return 1
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1
}
losses() { tree/trainer --every=1 2>err | grep -o '^step *[0-9]* *loss [^ ]*'; }
build "$model" && losses >one.txt && [ "$(wc -l <one.txt)" = 8 ] || { echo "not ok one: $(head -n 1 log err)" && exit; }
compare() { # name
	paste one.txt many.txt | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-5 * $4 + 1e-6 || $8 == "") bad = 1; k++ } END { exit bad || k != 8 }' &&
		echo "ok $1" || { echo "not ok $1: losses differ from one rank's $(head -n 1 err)" && paste one.txt many.txt | head -n 4; }
}
for n in 3 ${LONG:+2 4 7}; do
	printf '@mesh(m, cpu, [%s])\n@pin(%s, sbp: [S(2)])\n' "$n" "$rows" >plan.ir
	build "$model" --place=plan.ir --explain || { echo "not ok on-$n: $(head -n 1 log)" && continue; }
	losses >many.txt
	compare "on-$n"
	"$SBPCC" "$model" --place=plan.ir --dump-after=boxing --stop-after=boxing >dump.ir 2>log && "$SBPCC" dump.ir --dump-after=boxing --stop-after=boxing >again.ir 2>log
	grep -q 'reach(' dump.ir && cmp dump.ir again.ir >why && echo "ok read-back-$n" || echo "not ok read-back-$n: $(head -n 1 log why)"
done
# Split input channels give partial sums, and the bias is one term: with two channels on three ranks, one rank has
# only its term of the bias.
sed 's/^@train/@mesh(m, cpu, [3])\n&/; s/^  r1 = .*"k1.b")/& @sbp(S(1), S(1), P -> P)/' "$model" >channels.ir
build channels.ir && losses >many.txt && compare no-channels-on-one-rank || echo "not ok no-channels-on-one-rank: $(head -n 1 log)"
