# trainer --dump writes the gradient of every parameter in the shape of the model, as the reference evaluator computes
# it: also if a fused loop computes it, if it belongs to two parameters, is a view, is a sum over micro-batches, or is
# split over ranks.
model=$HERE/gradients.ir
names="w a b r p q u v s"
# momentum(lr: 0) keeps the gradient of a step
# shellcheck disable=SC2046
"$PLAIN/test-equiv-evaluator" "$model" 1 'optimizer: momentum(lr: 0)' $(printf '%s.m ' $names) >want.txt 2>log || { echo "not ok evaluator: $(head -n 1 log)" && exit; }
shape() { case $1 in w | p | q | u | v) echo '(8, 8,)' ;; a | b) echo '(8,)' ;; r) echo '(64,)' ;; s) echo '()' ;; esac; }
check() { # name, option of sbpcc...
	local name=$1 n bad=''
	shift
	"$SBPCC" "$model" "$@" -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 && rm -rf dump && tree/trainer --steps=1 --dump=dump >log 2>&1 ||
		{ echo "not ok $name: $(head -n 1 log)" && return; }
	for n in $names; do
		f=dump/step/$n.grad.npy
		[ -f "$f" ] && head -c 128 "$f" | grep -aq "'shape': $(shape "$n")" || { bad="$bad $n: no file, or another shape;" && continue; }
		paste <(sed -n "s/^$n.m //p" want.txt | tr ' ' '\n') <(tail -c +129 "$f" | od -An -v -t f4 -w4) | awk '
			{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || !(d <= 1e-5)) bad = 1 } END { exit bad || !NR }' || bad="$bad $n: other numbers;"
	done
	if [ -z "$bad" ]; then echo "ok $name"; else echo "not ok $name:$bad"; fi
}
check one-rank
check micro --train='microbatch: 2'
check clip --train='clip: norm(0.1)'
check adamw --train='optimizer: adamw(lr: 0.1)'
cat >data.place <<'P'
@mesh(m, cpu, [2])
@pin("x", "label", sbp: [S(0)])
@pin("w", "a", "b", "r", "p", "q", "u", "v", "s", sbp: [B])
P
check data-parallel --place=data.place
cat >zero.place <<'P'
@mesh(m, cpu, [3])
@pin("x", "label", sbp: [S(0)])
@pin("w.grad", "q.grad", sbp: [S(0)])
@pin("v.grad", sbp: [S(1)])
P
check parts --place=zero.place --train='microbatch: 4'
