# Everything at once: tied weights, micro-batches, clipping by the norm, fp16 with skipped steps, averages, an embedding
# that is also the output layer.  With --deterministic=any-ranks, 1, 2 and 4 ranks give the bits of one rank with the
# same number of micro-batches: losses, loss scale and checkpoint.
cat >m.ir <<'X'
<ir_version: 10, opset_import: ["" : 23, "f" : 1]>
@train(loss: loss, optimizer: adamw(lr: 0.02), schedule: cosine(total: 40), clip: norm(0.5), ema: 0.9, batch: 32, steps: 10, data: points(classes: 2),
  precision: fp16(loss_scale: 16777216, growth: 2, backoff: 0.25, every: 3))
g (int64[N, 4] token, int64[N, 4] next) => (float loss)
<float[16, 8] embed @init(normal(0, 0.5)), float[8, 8] w @init(normal(0, 0.5)), float[1, 8] b @init(normal(0, 0.1))>
{
  e = Gather(embed, token)
  h1 = f.layer(e, w, b)
  h2 = f.layer(h1, w, b)
  t = Transpose<perm = [1, 0]>(embed)
  s0 = MatMul(h2, t)
  s = Transpose<perm = [0, 2, 1]>(s0)
  loss = SoftmaxCrossEntropyLoss(s, next)
}
<domain: "f", opset_import: ["" : 23]>
layer (x, w, b) => (y) {
  m = MatMul(x, w)
  a = Add(m, b)
  y = Tanh(a)
}
X
train() { # file, option of sbpcc...: the bits of losses and of the checkpoint
	local to=$1
	shift
	rm -rf saved json
	"$SBPCC" m.ir --deterministic=any-ranks "$@" -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 || { head -n 1 log >why && return 1; }
	tree/trainer --log=json --checkpoint=saved --threads=1 >out 2>err || { tail -n 1 err >why && return 1; }
	grep -o '"step":[0-9]*,"loss":[^,]*' json >"$to"
	[ "$(grep -c 'loss":[-0-9.e+]*$' "$to")" = 10 ] || { echo "losses are missing" >why && return 1; }
	cat saved/step-*10/state.safetensors >>"$to"
}
plan() { # M, name, ranks, pins...
	local what=$2-on-${3//, /x}-in-$1-micro-batches
	{ echo "@mesh(m, cpu, [$3])" && printf '%s\n' "${@:4}"; } >plan.place
	train many --micro-batches=$1 --place=plan.place || { echo "not ok $what: $(cat why)" && return; }
	cmp -s one many && echo "ok $what" || echo "not ok $what: $(cmp one many 2>&1)"
}
for m in 4 2; do
	train one --micro-batches=$m || { echo "not ok one-in-$m-micro-batches: $(cat why)" && continue; }
	cp one one-$m
	for n in 2 4; do plan $m data $n '@pin("token", "next", sbp: [S(0)])'; done
	plan $m zero 4 '@pin("embed", "w", "*.m", "*.v", "*.ema", sbp: [S(0)])'
	plan $m uses-apart 2 '@pin("token", "next", sbp: [S(0)])' '@pin("embed.grad.use0", sbp: [P])' '@pin("embed.grad.use1", sbp: [S(0)])'
	plan $m mixed '2, 2' '@pin("token", "next", sbp: [S(0), B])' '@pin("w", sbp: [B, S(1)])'
done
# Another M rounds differently: what is compared above can differ.
cmp -s one-4 one-2 && echo "not ok the-order-shows: 4 micro-batches give the bits of 2" || echo "ok the-order-shows"
# Some steps were skipped, and some taken; the evaluator agrees.
"$PLAIN/test-equiv-evaluator" m.ir 10 'accumulate: 4' train.taken embed embed.ema 2>log >want.txt
awk '$1 == "train.taken" { took = $2 != last + 0; last = $2; skipped += !took; taken += took }
	$1 ~ /^embed/ { if (($1 in old) && took == ($0 == old[$1])) print " " $1 " after " last " updates"; old[$1] = $0 }
	END { if (!skipped || taken < 3) print " skipped " skipped + 0 ", taken " taken + 0 }' want.txt >why
[ -s why ] && echo "not ok skips-and-trains:$(head -n 1 why)" || echo "ok skips-and-trains"
head -n 10 one-4 | tr ',:' '  ' | grep -a '^"step"' | paste - <(grep ^step want.txt) | awk '{ d = $4 - $8; if (d > 2e-3 * $4 || -d > 2e-3 * $4) { print " " $0; bad = 1 } n++ } END { exit bad || n != 10 }' >why &&
	echo "ok trains-as-the-evaluator" || { echo "not ok trains-as-the-evaluator: losses differ" && head -n 3 why; }
