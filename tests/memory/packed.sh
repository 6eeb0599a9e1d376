# Packed weights are kept for the products that read them: packed once for all micro-batches of a step, once for all
# batches of an evaluation and all calls of an inference, and again after every change of a weight.  The results are
# the same as without packing.
cat >net.ir <<'M'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adamw(lr: 0.01), batch: 64, accumulate: 4, steps: 12, ema: 0.9, data: points(classes: 10), seed: 1)
net (float[N, 40] x, int64[N] label) => (float loss, float[N, 10] scores)
<float[40, 300] w1 @init(kaiming_normal), float[300] b1 @init(zeros), float[10, 300] w2 @init(xavier_uniform), float[10] b2 @init(zeros)>
{ h = Relu(Add(MatMul(x, w1), b1))
  scores = Add(MatMul(h, Transpose<perm = [1, 0]>(w2)), b2)
  loss = SoftmaxCrossEntropyLoss(scores, label) }
M
cat >main.c <<'C'
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int packings;
static float x[16][40], y[16][10], w1[12000], w2[3000];
static void infer(net_context *c)
{
	net_infer(c, (const void *const[]){ x }, (void *const[]){ y });
	for (int i = 0; i < 160; i++)
		printf("%a\n", (double)y[i / 10][i % 10]);
}
static void count(const char *what, int *before)
{
	fprintf(stderr, "%s %d\n", what, packings - *before);
	*before = packings;
}
int main(int argc, char **argv)
{
	net_config *cfg = net_config_new();
	net_config_threads(cfg, argc > 1 ? atoi(argv[1]) : 1);
	net_context *c = net_context_new(cfg);
	int n = 0;
	float loss;
	double held;
	for (int i = 0; i < 640; i++)
		x[i / 40][i % 40] = (float)(i * 37 % 101) * 0.02f - 1;
	infer(c), count("first-inference", &n);
	infer(c), infer(c), count("more", &n);
	net_get(c, "w1", w1, sizeof w1), net_get(c, "w2", w2, sizeof w2);
	infer(c), count("read", &n);
	for (int i = 0; i < 12000; i++)
		w1[i] *= -0.5f;
	net_set(c, "w1", w1, sizeof w1), net_set(c, "w1.ema", w1, sizeof w1), net_set(c, "w2.ema", w2, sizeof w2);
	infer(c), count("set", &n);
	net_step(c, &loss), printf("%a\n", (double)loss), count("step", &n);
	net_step(c, &loss), printf("%a\n", (double)loss), count("step", &n);
	infer(c), infer(c), count("inference-after-steps", &n);
	net_evaluate(c, &held), printf("%a\n", held), count("evaluation", &n);
	net_evaluate(c, &held), printf("%a\n", held), count("again", &n);
	infer(c), count("inference-after-evaluation", &n);
	net_step(c, &loss), printf("%a\n", (double)loss), count("step", &n);
	net_evaluate(c, &held), printf("%a\n", held), count("evaluation", &n);
	net_context_free(c), net_config_free(cfg);
	return 0;
}
C
flags=-O1
"$SBPCC" net.ir --prefix net -o with >told 2>&1 || { cat told; exit 1; }
grep -q ' packed [1-9]' told && echo "ok the-plan-has-room" || echo "not ok the-plan-has-room: $(cat told)"
grep -q 'gemm_pack(c, &g, packed);' with/kernels/matmul_fast.c || echo "not ok counted: the text of matmul_fast.c is another"
sed -i 's/gemm_pack(c, &g, packed);/{ extern int packings __attribute__((weak)); if (\&packings) packings++; gemm_pack(c, \&g, packed); }/' with/kernels/matmul_fast.c
build() { make -s -C "$1" CFLAGS="$flags" trainer lib >log 2>&1 && gcc $flags -I"$1" -o "$1.main" main.c "$1/libnet.a" -pthread -lm >>log 2>&1; }
build with || { cat log; exit 1; }
cp -a with without
sed -i -E 's/, \.packed = [a-z]*_packed, \.npacked = [0-9]*//; /^\t\t\.n?packed = /d; /^static const RtPacked/,/^};/d' without/model.c
build without || { cat log; exit 1; }
for t in 1 2; do
	./with.main $t >with.out 2>count && ./without.main $t >without.out 2>/dev/null
	if [ -s with.out ] && cmp -s with.out without.out; then echo "ok same-bits-$t"; else echo "not ok same-bits-$t: $(diff with.out without.out | head -n 3)"; fi
done
# w1 and w2 in each program, and w2 as the backward pass reads it.
cat >want <<'W'
first-inference 2
more 0
read 0
set 2
step 3
step 3
inference-after-steps 2
evaluation 2
again 0
inference-after-evaluation 2
step 3
evaluation 2
W
if cmp -s want count; then echo "ok packed-as-often-as-weights-change"; else echo "not ok packed-as-often-as-weights-change: $(diff want count)"; fi
# A resumed run, and its evaluation.
for t in with without; do
	$t/trainer --steps=5 --threads=1 --checkpoint=$t.saved >log 2>&1
	$t/trainer --steps=9 --threads=1 --resume=$t.saved --log $t.log >log 2>&1 || cat log
	$t/trainer --eval --threads=1 --resume=$t.saved >$t.eval 2>&1
	grep -o '"loss":[^,]*' $t.log >$t.losses
done
if [ -s with.losses ] && cmp -s with.losses without.losses && cmp -s with.eval without.eval; then echo "ok resumed"; else echo "not ok resumed: $(diff with.losses without.losses) $(diff with.eval without.eval)"; fi
line=$(with/trainer --steps=3 --threads=1 | grep '^memory of rank 0')
set -- $(echo "${line#memory of rank 0}" | grep -o '[0-9][0-9]*')
if [ "$(sed -n 's/.*memory of a rank: \([0-9]*\) bytes.*/\1/p' told)" = "$1" ] && [ $(($2 - $1)) -le 20480 ] && [ $(($1 - $2)) -le 20480 ]; then
	echo "ok measured"
else
	echo "not ok measured: $line, $(cat told)"
fi
