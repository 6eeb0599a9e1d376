# The losses of examples/mlp.ir on several ranks, under several plans, are those of one rank.
rounding() { # file A, file B: all losses agree to 1e-5 of their size
	paste "$1" "$2" | awk '/^step/ { d = $4 - $8; if (d < 0) d = -d; if ($2 != $6 || d > 1e-5 * $4) { print "step " $2 ": " $4 " and " $8; bad = 1 } n++ } END { exit bad || n < 20 }'
}
train() { # name, options of sbpcc...: losses in NAME.txt
	local name=$1
	shift
	"$SBPCC" "$@" -o "tree-$name" >/dev/null && make -s -C "tree-$name" STATIC= && "tree-$name/trainer" --steps=20 --every=1 --data="$ROOT/examples/data/digits" | grep -o '^step *[0-9]* *loss [^ ]*' >"$name.txt" && return
	echo "not ok $name: does not compile, build or run"
	return 1
}
agrees() { # name, what
	if rounding one.txt "$1.txt" >why; then echo "ok $2"; else echo "not ok $2: losses differ from one rank's" && sed 's/^/ /' why; fi
}
model=$ROOT/examples/mlp.ir
train one "$model" || exit 1
head -n 1 one.txt | grep -q 'step *0' || exit 1
awk 'NR == 1 { first = $4 } { last = $4 } END { exit !(last < 0.75 * first) }' one.txt && echo "ok loss-falls" || echo "not ok loss-falls: $(tail -n 1 one.txt)"

for n in 2 3 4; do
	train "data$n" "$model" --ranks=$n && agrees "data$n" "data-parallel-on-$n-ranks"
done
# Column and row parallel: the hidden axis is split, unevenly on three ranks.
for n in 2 3; do
	sed "s/^@train/@mesh(m, cpu, [$n])\n&/; s/w1 @init/w1 @sbp(S(1)) @init/; s/b1 @init/b1 @sbp(S(0)) @init/; s/w2 @init/w2 @sbp(S(0)) @init/" "$model" >"tensor$n.ir"
	train "tensor$n" "tensor$n.ir" && agrees "tensor$n" "tensor-parallel-on-$n-ranks"
done
# A batch that the ranks do not divide: the last rank has fewer rows.
train odd1 "$model" --train='batch: 31' && cp odd1.txt one.txt && train odd2 "$model" --ranks=2 --train='batch: 31' && agrees odd2 uneven-batch
# Same plan, same bits.
"tree-data2/trainer" --steps=20 --every=1 --data="$ROOT/examples/data/digits" | grep -o '^step *[0-9]* *loss [^ ]*' | cmp -s - data2.txt && echo "ok same-bits-again" || echo "not ok same-bits-again: two runs differ"
