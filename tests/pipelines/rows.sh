# What a pipeline reports and moves.
# A row for each stage: its ranks, the operators and calls at the top level of the model that it has, and its parameters.
rows() { # options: stage, ranks, layers, parameters
	"$SBPCC" "$@" --schedule=1f1b -o tree 2>&1 | sed -n '/^stage /,/^predicted/p' | awk '$1 ~ /^[0-9]/ { print $1, $2, $3, $4 }' | tr '\n' ';'
}
check() { # what, wanted, got
	if [ "$2" = "$3" ]; then echo "ok $1"; else echo "not ok $1: $3, not $2"; fi
}
mesh() { sed "s/^@train/@mesh(ranks, cpu, $1) @pipeline(axis: $2)\n&/" "$HERE/layers.ir" >mesh.ir; }
mesh '[2, 4]' 0
check 'stages of adjacent ranks' '0 0..3 3 576;1 4..7 4 432;' "$(rows mesh.ir)"
mesh '[4, 2]' 1
check 'stages of ranks that are apart' '0 0,2..6 3 576;1 1,3..7 4 432;' "$(rows mesh.ir)"
sed 's/^  loss = .*)/& @stage(1)/' "$HERE/layers.ir" >tail.ir
check 'a stage of the loss alone' '0 0 6 1008;1 1 1 0;' "$(rows tail.ir --ranks=2 --stages=2)"

# --stages=N is short for a mesh whose first axis has N entries, and @pipeline.
mesh '[2, 4]' 0
plan() { "$SBPCC" "$@" --dump-after=boxing --stop-after=boxing | sed 's/@from([^)]*)//g' | grep -v '^@'; }
plan mesh.ir >long
plan "$HERE/layers.ir" --ranks=8 --stages=2 >short
if grep -q 'stage(1)' long && cmp -s long short; then echo "ok the short form"; else echo "not ok the short form: $(diff long short | head -n 3)"; fi

# What depends on inputs and constants alone is not moved: masks of net.ir, tables of rotary positions in two blocks of llama.
sent() { "$SBPCC" "$@" --dump-after=boxing --stop-after=boxing | sed -n 's/.*sbpcc\.Boxing<how = "send">(\([^)]*\)).*/\1/p' | tr -d '"' | sort -u | tr '\n' ' '; }
moved=$(sent "$HERE/net.ir" --ranks=3 --stages=3)
case " $moved" in
*' mask '* | *' seen '* | *' odd '* | *' tokens '* | *' label '* | *' train.step '*) echo "not ok masks stay: $moved" ;;
*' x1 '*) echo "ok masks stay" ;;
*) echo "not ok masks stay: nothing is moved: $moved" ;;
esac
awk '/^  x1 = / { print; sub(/x1 = llama.block\(x0/, "x2 = llama.block(x1"); gsub(/\.w"/, "2&"); sub(/\)$/, ") @stage(1)"); print; next }
	/RMSNorm.*x1/ { sub(/x1/, "x2") }
	/"(norm1|q|k|v|out|norm2|gate|up|down)\.w" @init/ { print; sub(/\.w"/, "2&") }
	{ print }' "$ROOT/examples/llama.ir" >llama.ir
check 'tables stay' 'x1 x1.term.1 x2.mid.grad ' "$(sent llama.ir --ranks=2 --stages=2 --micro-batches=4)"

# A sum of losses is added to where its loss is computed, so that one kernel computes the loss and its gradient: also if ranks have three stages.
"$SBPCC" "$ROOT/examples/cnn.ir" --ranks=2 --stages=6 --schedule=interleaved --micro-batches=4 --dump-after=fuse --stop-after=fuse |
	sed -n 's/.* = \(sbpcc.\)*SoftmaxCrossEntropy.*@fused(\([0-9]*\)).*/\2/p' >pair
check 'a loss and its gradient together' 1 "$(sort pair | uniq -d | wc -l)"
