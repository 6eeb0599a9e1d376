# What README.md shows of examples/mlp.ir and examples/gpt.ir is what sbpcc and the trainer of mlp read, print and write
# today: model, plan, schedule and run.
set -u
cd "$ROOT" || exit 1
shown() { # pattern: the indented block of README.md that has such a line, without the indentation
	awk -v p="$1" '/^    / { block = block substr($0, 5) "\n"; next } { if (block ~ p) printf "%s", block; block = "" }' README.md
}
within() { # what, file of shown lines, file: each shown line is in it, in this order
	awk 'NR == FNR { want[++n] = $0; next } { sub(/^[\t]+/, "") } at < n && $0 == want[at + 1] { at++ } END { if (at < n || !n) { print "not found: " want[at + 1]; exit 1 } }' "$2" "$3" >"$TMP/why" &&
		echo "ok $1, $(wc -l <"$2") lines" || echo "not ok $1: $(cat "$TMP/why")"
}
shown 'scores0 = MatMul\(h, w2\)\n' >"$TMP/model"
within model "$TMP/model" examples/mlp.ir

"$SBPCC" examples/mlp.ir --ranks=2 -o "$TMP/out" >"$TMP/log" 2>&1 || echo "not ok tree: $(head -n 1 "$TMP/log")"
"$SBPCC" examples/mlp.ir --ranks=2 --explain --stop-after=prove >"$TMP/explain"
shown 'scores0 .* P -> B by all_reduce' >"$TMP/values"
sed '1,/^transfers/d' "$TMP/values" >"$TMP/transfers"
sed -i '/^transfers/,$d' "$TMP/values"
for part in values transfers; do
	while IFS= read -r line; do grep -qxF -- "$line" "$TMP/explain" || echo "not ok plan of mlp: not printed: $line"; done <"$TMP/$part"
	[ -s "$TMP/$part" ] && echo "ok $part of mlp, $(wc -l <"$TMP/$part") lines"
done
shown 'a2 mlp.ir' >"$TMP/actions"
within blocks "$TMP/actions" "$TMP/out/blocks.c"

"$SBPCC" examples/gpt.ir --ranks 2 --explain --stop-after=prove | sed 's/ in [0-9.]* s, / in X s, /' >"$TMP/explain"
shown 'build/gpt/two: 2 ranks' | sed -n '/^plan:/,/ by slice/p' | sed 's/ in [0-9.]* s, / in X s, /' >"$TMP/plan"
while IFS= read -r line; do grep -qxF -- "$line" "$TMP/explain" || echo "not ok plan of gpt: not printed: $line"; done <"$TMP/plan"
[ -s "$TMP/plan" ] && echo "ok plan of gpt, $(wc -l <"$TMP/plan") lines"

# The run on two ranks: the same lines, whatever the numbers, which depend on the processor.
plain() { sed "s|$TMP/||g; s/[0-9][0-9.:e-]*/N/g; s/  */ /g"; }
make -s -C "$TMP/out" STATIC= CFLAGS=-O1 >"$TMP/log" 2>&1 || echo "not ok trainer: $(head -n 1 "$TMP/log")"
{ "$TMP/out/trainer" --every=250 --checkpoint="$TMP/ck" && "$TMP/out/trainer" --resume="$TMP/ck" --eval; } 2>"$TMP/err" | plain >"$TMP/run"
shown '359 held-out samples' | plain >"$TMP/want"
diff "$TMP/want" "$TMP/run" >"$TMP/why" && [ -s "$TMP/want" ] && echo "ok run, $(wc -l <"$TMP/want") lines" || echo "not ok run: $(cat "$TMP/why" "$TMP/err")"

"$SBPCC" examples/gpt.ir --micro-batches=8 --ranks=2 --stages=2 --schedule=1f1b -o "$TMP/pipe" >"$TMP/log" 2>&1 || echo "not ok pipeline: $(head -n 1 "$TMP/log")"
shown 'pipeline 1f1b: 2 stages' | sed 1d >"$TMP/pipeline"
within pipeline "$TMP/pipeline" "$TMP/log"
