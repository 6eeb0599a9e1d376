# Large language models without pins on 8 x 8 GPUs: the plan is the one that people write by hand.
llama() { "$ROOT/bench/llama" "$@" >m.ir; }
plan() { "$PLAIN/sbpcc" m.ir --stop-after=plan --dump-after=plan --machine=h100x8 "$@" >plan.ir 2>log; }
form() { grep -oE "^  [a-z]+\[[0-9, ]*\] \"?$1\"? .*@sbp\([^@]*\)" plan.ir | head -n 1 | sed 's/.*@sbp(\(.*\))$/\1/'; }
made() { grep -oE "^  \"?$1\"? @sbp\([^=@]*\)" plan.ir | head -n 1 | sed 's/.*@sbp(\(.*\))$/\1/'; }
same() { if [ "$2" = "$3" ]; then echo "ok $1"; else echo "not ok $1: $2, not $3"; fi; }

# 70B, one sequence for each row of the mesh: Megatron's columns and rows along the quick axis, a sequence split
# between them, parameters and state split along the slow one.
llama 3 8192 28672 64 8 128256 8 4096 "8, 8"
plan || { echo "not ok plan: $(head -n 1 log)" && exit 1; }
for w in q k v gate up; do same "70b: $w is cut by columns" "$(form "1.$w.w")" "S(0), S(1)"; done
for w in out down; do same "70b: $w is cut by rows" "$(form "1.$w.w")" "S(1), S(0)"; done
for s in m v; do same "70b: state $s lies as its parameter" "$(form "1.up.w.$s")" "S(0), S(1)"; done
same "70b: the sum of a row is scattered along the sequence" "$(made x2)" "S(0), S(1)"
same "70b: heads are cut" "$(made x2.seen.low)" "S(0), S(2)"
same "70b: what is between column and row is cut" "$(made x2.act)" "S(0), S(2)"

# 8B with much data: parameters are gathered, nothing else moves; solved exactly, whatever the number of layers.  Of
# the small ones, keys and values, all along the slow axis may update what is theirs along the quick one.
for n in 2 12; do
	llama $n 4096 14336 32 8 128256 64 4096 "8, 8"
	"$PLAIN/sbpcc" m.ir --stop-after=plan --explain --machine=h100x8 2>&1 | grep '^plan:' >told
	if grep -q 'gap 0 %' told; then echo "ok 8b: gap 0 with $n layers"; else echo "not ok 8b: gap with $n layers: $(cat told)"; fi
	plan
	cut=$(grep -cE '"[0-9]*\.(q|out|gate|up|down)\.w" .*@sbp\(S\([01]\), S\([01]\)\)' plan.ir)
	same "8b: large parameters of $n layers are cut along both axes, in step and eval" "$cut" $((10 * n))
	cut=$(grep -cE '"[0-9]*\.(k|v)\.w" .*@sbp\((B|S\([01]\)), S\([01]\)\)' plan.ir)
	same "8b: keys and values of $n layers are cut, in step and eval" "$cut" $((4 * n))
done

# With less memory than that plan takes, another plan fits.
bytes=$(sed -n 's/.*; about \([0-9]*\) bytes a rank of.*/\1/p' told)
"$PLAIN/sbpcc" m.ir --stop-after=plan --explain --machine=h100x8 --memory=$((bytes * 9 / 10)) >less 2>&1
if grep -q '^plan:' less; then
	fits=$(sed -n 's/.*; about \([0-9]*\) bytes a rank of.*/\1/p' less | head -n 1)
	if [ "$fits" -le $((bytes * 9 / 10)) ]; then echo "ok less memory is kept to"; else echo "not ok less memory: $fits"; fi
else
	echo "not ok less memory: $(head -n 1 less)"
fi
