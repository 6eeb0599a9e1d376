# A model as a library: two in one program, several contexts, parameters read and written, errors told and not printed.
cat >one.ir <<'M'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: momentum(lr: 0.1), batch: 8, data: points(classes: 3), seed: 5)
one (float[N, 4] x, int64[N] label) => (float loss, float[N, 3] scores) <float[4, 3] w @init(normal(0, 0.1))>
{ scores = MatMul(x, w)
  loss = SoftmaxCrossEntropyLoss(scores, label) }
M
sed 's/^one /two /; s/0.1)>/0.5)>/' one.ir >two.ir
for m in one two; do
	"$SBPCC" $m.ir --ranks 1 --prefix $m -o $m >log 2>&1 && make -s -C $m STATIC= CFLAGS=-O1 trainer lib >log 2>&1 || { cat log; exit 1; }
	$m/trainer --steps=5 --every=1 --threads=1 2>/dev/null | sed -n 's/^step.*loss \([0-9.]*\).*/\1/p' >$m.want
done
strangers=$(nm -g --defined-only one/libone.a | awk 'NF == 3 && $3 !~ /^one_/ { print $3 }')
if [ -z "$strangers" ]; then echo "ok only-the-interface-is-seen"; else echo "not ok only-the-interface-is-seen: $(echo $strangers)"; fi
cat >main.c <<'C'
#include "one/model.h"
#include "two/model.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#define CHECK(x) do { if (!(x)) { printf("not ok %s\n", #x); return 1; } } while (0)
int main(void)
{
	one_config *cfg = one_config_new();
	one_config_threads(cfg, 2);
	one_context *a = one_context_new(cfg), *b = one_context_new(NULL);
	two_context *t = two_context_new(NULL);
	one_config_free(cfg);
	CHECK(a && b && t && !*one_error(a) && !*two_error(t));
	FILE *f = fopen("one.got", "w"), *g = fopen("two.got", "w");
	for (int i = 0; i < 5; i++) {
		float la, lb, lt;
		CHECK(!one_step(a, &la) && !one_step(b, &lb) && !two_step(t, &lt));
		CHECK(la == lb);
		fprintf(f, "%.7f\n", (double)la);
		fprintf(g, "%.7f\n", (double)lt);
	}
	fclose(f);
	fclose(g);
	float w[12], v[12], x[8][4] = { { 1, 0, 0, 0 } }, y[8][3];
	size_t bytes;
	CHECK(one_parameters() == 2 && !strcmp(one_parameter(0, &bytes), "w") && bytes == sizeof w && !one_parameter(2, &bytes));
	CHECK(!one_get(a, "w", w, sizeof w) && !one_set(b, "w", w, sizeof w) && !one_get(b, "w", v, sizeof v) && !memcmp(w, v, sizeof w));
	CHECK(one_get(a, "nothing", w, 4) && strstr(one_error(a), "no parameter nothing"));
	CHECK(one_get(a, "w", w, 4) && strstr(one_error(a), "48 bytes"));
	const void *in[] = { x };
	void *out[] = { y };
	CHECK(!one_infer(a, in, out));
	for (int k = 0; k < 3; k++)
		CHECK(fabsf(y[0][k] - w[k]) < 1e-6f && y[1][k] == 0);
	double loss;
	CHECK(!one_evaluate(a, &loss) && loss > 0 && loss < 2);
	one_context_free(a);
	one_context_free(b);
	two_context_free(t);
	puts("ok contexts-parameters-inference");
	return 0;
}
C
cc -std=c11 -Wall -Wextra -Werror -I. -o both main.c one/libone.a two/libtwo.a -pthread -lm >log 2>&1 && ./both || { sed 's/^/    /' log; echo "not ok two-models-in-one-program"; exit 1; }
for m in one two; do
	if [ -s $m.want ] && cmp -s $m.want $m.got; then echo "ok $m-steps-as-its-trainer"; else echo "not ok $m-steps-as-its-trainer: $(paste $m.want $m.got | head -n 1)"; fi
done
"$SBPCC" one.ir --prefix '1;x' -o bad >log 2>&1
[ $? -eq 2 ] && grep -q 'must be letters' log && echo "ok prefix-is-checked" || echo "not ok prefix-is-checked"
"$SBPCC" one.ir --infer -o alone >log 2>&1 && make -s -C alone STATIC= CFLAGS=-O1 lib >log 2>&1 && echo "ok inference-alone" || echo "not ok inference-alone: $(head -n 1 log)"
