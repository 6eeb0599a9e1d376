/* train WANT LOSSES DUMP [momentum]: losses (one per line) and gradients of step 0 (as --dump wrote them) are those of PyTorch in float64: not further from
 * them than ten times what PyTorch's own float32 is, and never further than 1e-4 of a loss and 1e-3 of the largest element of a
 * gradient.  Where float32 is off by less than a few units in the last place, it was lucky: 1e-6 is always allowed.  A gradient of which
 * float32 keeps less than two digits is noise, and may be ten times as much.  WANT is a want.txt of make.py.
 *
 * A gradient that is only added up inside a larger loop is in no memory: exit status 3.  Then a program with momentum is asked, whose state
 * after the first step is the gradient: a fourth argument says that DUMP is of such a one. */
#include "compiler.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 20 };
static const double LUCK = 1e-6;
typedef struct Far { double loss, grad; int bad, gone, ngrad, nloss; } Far;

/* A loss of the file, and ours. */
typedef struct Loss { double want, narrow, got; } Loss;

static void judge_losses(const Loss *l, int n, Far *f)
{
	double far = LUCK;
	for (int i = 0; i < n; i++)
		far = fmax(far, 10 * fabs(l[i].narrow / l[i].want - 1));
	far = fmin(far, 1e-4);
	for (int i = 0; i < n; i++) {
		double d = fabs(l[i].got / l[i].want - 1);
		f->loss = d > f->loss ? d : f->loss;
		if (d <= far)
			continue;
		printf(" step %d: the loss is %.7f, not %.7f: %.2g away where %.2g is allowed\n", i, l[i].got, l[i].want, d, far);
		f->bad++;
	}
}

/* NAME.grad as the program wrote it; where micro-batches add up, what NAME.grad.sum is after the last.  NULL: neither is there. */
static Tensor *gradient(const char *dump, bool momentum, const char *name, Arena *a)
{
	Text file = { 0 };
	for (const char *s = emit_comment(a, name); *s; s++)
		text_add(&file, *s == '/' ? "\\x2F" : "%c", *s);
	const char *path = arena_printf(a, "%s/step/%s.%s.npy", dump, file.s, momentum ? "m" : "grad");
	for (int k = 64; k-- > 0 && access(path, F_OK);)
		path = arena_printf(a, "%s/step/%s.grad.sum.micro%d.npy", dump, file.s, k);
	return access(path, F_OK) ? NULL : npy_read(path, a);
}

static void judge_gradient(const char *dump, bool momentum, RtSafe *safe, const char *name, double most, double narrow, Far *f, Arena *a)
{
	const RtEntry *e = rt_safe_find(safe, name);
	Tensor *got = e ? gradient(dump, momentum, name, a) : NULL;
	const float *want = e ? (const void *)(safe->data + e->from) : NULL;
	double far = 0, allowed = narrow > 0.01 * most ? 10 * narrow : fmin(fmax(10 * narrow, LUCK * most), 1e-3 * most);
	f->ngrad++;
	if (!got || (uint64_t)tensor_elements(got) * 4 != e->to - e->from || got->dtype != DT_FLOAT) {
		printf(" the gradient of %s is not there\n", name);
		f->gone++;
		return;
	}
	for (int64_t i = 0; i < tensor_elements(got); i++) {
		double d = fabs(tensor_get(got, i) - want[i]);
		far = d <= far ? far : d;
	}
	if (narrow <= 0.01 * most)
		f->grad = fmax(f->grad, far / most);
	if (far <= allowed)
		return;
	printf(" the gradient of %s is %.2g away where %.2g is allowed; its largest element is %.2g\n", name, far, allowed, most);
	f->bad++;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	char line[4096], name[1024];
	Loss loss[STEPS];
	Far f = { 0 };
	double x, y;
	int n = 0, step;
	Arena a = { 0 };
	RtSafe safe = { 0 };
	Ctx c = { 0 };
	char *slash = strrchr(argv[1], '/');
	FILE *want = fopen(argv[1], "r"), *got = fopen(argv[2], "r");
	if (!want || !got || !slash || rt_safe_open(&c, 1, arena_printf(&a, "%.*s/grads.safetensors", (int)(slash - argv[1]), argv[1]), &safe))
		return 2;
	while (n < STEPS && fscanf(got, "%lf", &loss[n].got) == 1)
		n++;
	while (fgets(line, sizeof line, want)) {
		if (sscanf(line, "loss %d %lf %lf", &step, &x, &y) == 3 && step == f.nloss && step < STEPS)
			loss[f.nloss++] = (Loss){ x, y, loss[step].got };
		else if (sscanf(line, "grad %1023s %lf %lf", name, &x, &y) == 3)
			judge_gradient(argv[3], argc > 4, &safe, name, x, y, &f, &a);
	}
	if (n != STEPS || f.nloss != STEPS || !f.ngrad) {
		printf(" there are %d losses, %d are wanted, and %d gradients\n", n, f.nloss, f.ngrad);
		return 1;
	}
	judge_losses(loss, n, &f);
	printf("# losses are %.1e and %d gradients %.1e away from float64\n", f.loss, f.ngrad, f.grad);
	fclose(want);
	fclose(got);
	rt_safe_close(&safe);
	arena_free(&a);
	return f.bad ? 1 : f.gone ? 3 : 0;
}
