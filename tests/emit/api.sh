# A model as a library: two models in one program, several contexts, parameters read and written, errors returned and
# not printed; steps on samples of the caller follow the formula, inference takes any number of samples, and the
# trainer reads the library's checkpoints and exports.
cat >one.ir <<'M'
<ir_version: 10, opset_import: ["" : 23]>
@metric(accuracy(scores, label))
@train(loss: loss, optimizer: momentum(lr: 0.1), batch: 8, data: points(classes: 3), seed: 5)
one (float[N, 4] x, int64[N] label) => (float loss, float[N, 3] scores) <float[4, 3] w @init(normal(0, 0.1))>
{ scores = MatMul(x, w)
  loss = SoftmaxCrossEntropyLoss(scores, label) }
M
sed 's/^one /two /; s/0.1)>/0.5)>/; s/batch: 8/batch: 8, microbatch: 4/' one.ir >two.ir
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
/* A step of momentum from rest: the loss, and w after it. */
static double hits;
static double by_hand(float (*x)[4], const int64_t *label, float (*w)[3])
{
	hits = 0;
	double loss = 0, grad[4][3] = { { 0 } };
	for (int i = 0; i < 8; i++) {
		double p[3], sum = 0;
		for (int k = 0; k < 3; k++) {
			p[k] = 0;
			for (int j = 0; j < 4; j++)
				p[k] += (double)x[i][j] * (double)w[j][k];
			sum += p[k] = exp(p[k]);
		}
		loss -= log(p[label[i]] / sum) / 8;
		hits += p[label[i]] == fmax(p[0], fmax(p[1], p[2]));
		for (int k = 0; k < 3; k++)
			for (int j = 0; j < 4; j++)
				grad[j][k] += (double)x[i][j] * (p[k] / sum - (k == label[i])) / 8;
	}
	for (int k = 0; k < 3; k++)
		for (int j = 0; j < 4; j++)
			w[j][k] -= (float)(0.1 * grad[j][k]);
	return loss;
}

static int near(const float *a, const float *b, int n)
{
	for (int i = 0; i < n; i++)
		if (fabsf(a[i] - b[i]) > 1e-6f)
			return 0;
	return 1;
}

/* One step on the caller's samples, with micro-batches and without. */
static int steps_on(void)
{
	float x[8][4], w[4][3], got[4][3], loss;
	int64_t label[8];
	for (int i = 0; i < 32; i++)
		x[i / 4][i % 4] = (float)(i * 7 % 11) / 11 - 0.4f;
	for (int i = 0; i < 8; i++)
		label[i] = i % 3;
	const void *in[] = { x, label };
	one_context *a = one_context_new(NULL);
	two_context *t = two_context_new(NULL);
	CHECK(a && t && isnan(one_rate(a)) && one_steps(a) == 0 && one_batch() == 8 && two_batch() == 8);
	CHECK(!one_get(a, "w", w, sizeof w));
	double want = by_hand(x, label, w);
	CHECK(!one_step_on(a, 8, in, &loss) && fabs((double)loss - want) < 1e-6 && !one_get(a, "w", got, sizeof got) && near(&w[0][0], &got[0][0], 12));
	CHECK(!strcmp(one_metric_name(0), "accuracy") && !one_metric_name(1) && one_metric(a, "accuracy") == hits / 8 && isnan(one_metric(a, "mae")));
	CHECK(!two_get(t, "w", w, sizeof w) && isnan(two_metric(t, "accuracy")));
	want = by_hand(x, label, w);
	CHECK(!two_step_on(t, 8, in, &loss) && fabs((double)loss - want) < 1e-6 && !two_get(t, "w", got, sizeof got) && near(&w[0][0], &got[0][0], 12));
	CHECK(one_steps(a) == 1 && fabs(one_rate(a) - 0.1) < 1e-8);
	CHECK(one_step_on(a, 5, in, &loss) == 2 && strstr(one_error(a), "a step takes 8 samples, not 5"));
	label[6] = 3;
	CHECK(two_step_on(t, 8, in, &loss) == 20 && strstr(two_error(t), "of label is 3, not one of 0 .. 2"));
	CHECK(!one_step(a, &loss) && one_steps(a) == 2);        /* the data set after samples of one's own, and the other way round */
	label[6] = 0;
	CHECK(!one_step_on(a, 8, in, &loss) && !one_step(a, &loss) && !one_step(a, &loss) && one_steps(a) == 5);
	one_context_free(a);
	two_context_free(t);
	return 0;
}

/* Any number of samples gives what each gives alone. */
static int infers_some(void)
{
	float x[19][4], all[20][3], one[2][3];
	for (int i = 0; i < 19 * 4; i++)
		x[i / 4][i % 4] = (float)(i * 5 % 13);
	one_context *a = one_context_new(NULL);
	all[19][0] = one[1][0] = 12345;
	CHECK(a && !one_infer_some(a, 19, (const void *[]){ x }, (void *[]){ all }) && all[19][0] == 12345);
	for (int i = 0; i < 19; i++)
		CHECK(!one_infer_some(a, 1, (const void *[]){ x[i] }, (void *[]){ one }) && near(one[0], all[i], 3) && one[1][0] == 12345);
	CHECK(one_infer_some(a, 0, (const void *[]){ x }, (void *[]){ all }) == 2 && strstr(one_error(a), "1 sample at least"));
	one_context_free(a);
	return 0;
}

/* Saved, resumed elsewhere, and on as if nothing had been. */
static int resumes(void)
{
	float loss, more;
	one_context *a = one_context_new(NULL), *b = one_context_new(NULL);
	for (int i = 0; i < 3; i++)
		CHECK(!one_step(a, &loss));
	CHECK(!one_save(a, "ck") && !one_resume(b, "ck") && one_steps(b) == 3);
	for (int i = 0; i < 2; i++)
		CHECK(!one_step(a, &loss) && !one_step(b, &more) && loss == more);
	CHECK(!one_save(a, "ck") && !one_save(a, "ck2") && !one_export(a, "exported") && one_steps(a) == 5);
	CHECK(!one_step(b, &loss) && one_save(b, "ck") == 21 && strstr(one_error(b), "ck"));        /* another context has that folder */
	one_context_free(a);
	CHECK(one_save(b, "/proc/nowhere") == 21 && strstr(one_error(b), "/proc/nowhere"));
	CHECK(one_resume(b, "nothing") == 21 && strstr(one_error(b), "nothing") && one_steps(b) == 6);
	CHECK(!one_resume(b, "ck/step-00000003") && one_steps(b) == 3);
	one_context_free(b);
	one_config *cfg = one_config_new();
	CHECK(!one_config_weights(cfg, "exported") && !one_config_weights_map(cfg, "w=v"));
	one_context *c = one_context_new(cfg);
	CHECK(c && strstr(one_error(c), "exported has nothing that this program needs: w"));
	one_context_free(c);
	CHECK(!one_config_weights_map(cfg, "v=w"));
	c = one_context_new(cfg);
	CHECK(c && !*one_error(c));
	one_context_free(c);
	one_config_free(cfg);
	return 0;
}

int main(void)
{
	if (steps_on() || infers_some() || resumes())
		return 1;
	puts("ok own-samples-any-number-checkpoints");
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
cc -std=c11 -Wall -Wextra -Werror -I. -o both main.c one/libone.a two/libtwo.a -pthread -lm >log 2>&1 && ./both 2>said || { sed 's/^/    /' log; echo "not ok two-models-in-one-program"; exit 1; }
[ ! -s said ] && echo "ok nothing-is-printed" || echo "not ok nothing-is-printed: $(head -n 1 said)"
one/trainer --resume=ck2 --steps=6 --threads=1 >log 2>&1 && grep -q '^step *5 ' log && echo "ok trainer-goes-on" || echo "not ok trainer-goes-on: $(head -n 2 log)"
for m in one two; do
	if [ -s $m.want ] && cmp -s $m.want $m.got; then echo "ok $m-steps-as-its-trainer"; else echo "not ok $m-steps-as-its-trainer: $(paste $m.want $m.got | head -n 1)"; fi
done
"$SBPCC" one.ir --prefix '1;x' -o bad >log 2>&1
[ $? -eq 2 ] && grep -q 'must be letters' log && echo "ok prefix-is-checked" || echo "not ok prefix-is-checked"
"$SBPCC" one.ir --infer -o alone >log 2>&1 && make -s -C alone STATIC= CFLAGS=-O1 lib >log 2>&1 && echo "ok inference-alone" || echo "not ok inference-alone: $(head -n 1 log)"
