# A head is trained on a frozen body: the body keeps its bits, the head changes, and the head separates the held-out
# samples.
. "$ROOT/tests/runtime/tensors.bash"
cd "$ROOT" || exit 1
OUT=$TMP/out bash examples/finetune.sh >"$TMP/log" 2>"$TMP/err" || { echo "not ok runs: $(tail -n 3 "$TMP/err")" && exit; }
cd "$TMP" || exit 1
set -- $(sed -n 's/.*held-out samples, loss \([0-9.]*\).*/\1/p' log)
echo "$1 $2" | awk '{ exit !($1 > 0.6 && $2 < 0.3 && $2 > 0) }' && echo "ok held-out-loss" || echo "not ok held-out-loss: from $1 to $2"
[ "$(bytes out/finetuned body.w)" = "$(bytes out/pretrained w1)" ] && [ "$(bytes out/finetuned body.b)" = "$(bytes out/pretrained b1)" ] && [ -n "$(bytes out/pretrained w1)" ] &&
	echo "ok body-stays" || echo "not ok body-stays: $(bytes out/finetuned body.w), not $(bytes out/pretrained w1)"
(cd "$ROOT" && "$TMP/out/tree/trainer" --weights "$TMP/out/pretrained" --weights-map 'w1=body.w,b1=body.b,w2=,b2=' --weights-partial --steps=0 --export="$TMP/start") >log 2>&1
[ "$(bytes start body.w)" = "$(bytes out/pretrained w1)" ] && [ "$(bytes start head.w)" != "$(bytes out/finetuned head.w)" ] && echo "ok head-moves" || echo "not ok head-moves: $(head -n 2 log)"
grep -qx 'weights: 2 of 4 loaded from .*/pretrained' err && grep -qx 'weights: missing: head.w, head.b' err && grep -qx 'weights: 4 of 4 loaded from .*/finetuned' err && echo "ok says-what-was-found" || echo "not ok says-what-was-found: $(grep weights: err)"
