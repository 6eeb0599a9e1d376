/* train WANT LOG DUMP STATE: the losses (LOG, as --log wrote them), the gradients of step 0 (DUMP, as --dump wrote
 * them) and the running statistics (STATE, a checkpoint after as many steps as WANT has) are those of PyTorch in
 * float64.  WANT is a want.txt of make.py.
 *
 * The distance of a tensor is the 2-norm of its difference from float64, that of the losses the largest relative
 * difference.  The limit is a multiple of the distance of PyTorch's own float32 (rule, in WANT: ten), but never more
 * than a part of the norm: 1e-4 for losses, 1e-3 for gradients.  There are two exceptions.  A result cannot be nearer
 * than its own rounding: one unit in the last place, 2^-23 of the norm, is always allowed.  A gradient that is zero but
 * for rounding, such as that of a bias before a softmax or a batch norm, has no norm to be a part of: where PyTorch's
 * float32 is itself further than the bound, only the multiple applies. */
#include "compiler.h"
#include "comm.h"
#include "save.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 20, LINE = 1 << 16 };
static const double ROUNDING = 0x1p-23;
typedef struct Far { double times, most_loss, most_grad, loss, grad, state; int bad, ngrad, nstate, nloss, noise; } Far;

/* A loss of the file, and ours. */
typedef struct Loss { double want, narrow, got; } Loss;

static void judge_losses(const Loss *l, int n, Far *f)
{
	double far = 0;
	for (int i = 0; i < n; i++)
		far = fmax(far, f->times * fabs(l[i].narrow / l[i].want - 1));
	far = fmin(fmax(far, ROUNDING), f->most_loss);
	for (int i = 0; i < n; i++) {
		double d = fabs(l[i].got / l[i].want - 1);
		f->loss = fmax(f->loss, d / far);
		if (d <= far)
			continue;
		printf(" step %d: the loss is %.9g, not %.9g: %.2g away where %.2g is allowed\n", i, l[i].got,
			l[i].want, d, far);
		f->bad++;
	}
}

/* How much of what is allowed a distance is. */
static double judge(const char *what, const char *name, double far, double norm, double narrow, double most, Far *f)
{
	double allowed = fmax(f->times * narrow, ROUNDING * norm);
	if (narrow > most * norm)
		f->noise++;
	else
		allowed = fmin(allowed, most * norm);
	if (!(far <= allowed)) {
		printf(" the %s %s is %.2g away where %.2g is allowed; its norm is %.2g\n", what, name, far,
			allowed, norm);
		f->bad++;
	}
	return allowed > 0 ? far / allowed : 0;
}

/* NAME.grad as the program wrote it; NULL: it is not there. */
static Tensor *gradient(const char *dump, const char *name, Arena *a)
{
	Text file = { 0 };
	for (const char *s = emit_comment(a, name); *s; s++)
		text_add(&file, *s == '/' ? "\\x2F" : "%c", *s);
	const char *path = arena_printf(a, "%s/step/%s.grad.npy", dump, file.s);
	return access(path, F_OK) ? NULL : npy_read(path, a);
}

static void judge_gradient(const char *dump, RtSafe *safe, const char *name, double norm, double narrow, Far *f,
	Arena *a)
{
	const RtEntry *e = rt_safe_find(safe, name);
	Tensor *got = e ? gradient(dump, name, a) : NULL;
	const float *want = e ? (const void *)(safe->data + e->from) : NULL;
	double far = 0;
	f->ngrad++;
	if (!got || (uint64_t)tensor_elements(got) * 4 != e->to - e->from || got->dtype != DT_FLOAT) {
		printf(" the gradient of %s is not there\n", name);
		f->bad++;
		return;
	}
	for (int64_t i = 0; i < tensor_elements(got); i++) {
		double d = tensor_get(got, i) - want[i];
		far += d * d;
	}
	f->grad = fmax(f->grad, judge("gradient of", name, sqrt(far), norm, narrow, f->most_grad, f));
}

/* state NAME N D V...: the rest of the line is what is wanted. */
static void judge_state(RtSafe *safe, const char *name, const char *rest, double norm, double narrow, Far *f)
{
	const RtEntry *e = rt_safe_find(safe, name);
	double far = 0;
	uint64_t n = 0;
	char *end;
	for (double want; e && (want = strtod(rest, &end), end != rest); rest = end, n++) {
		const float *got = (const void *)(safe->data + e->from);
		double d = n < (e->to - e->from) / 4 ? got[n] - want : INFINITY;
		far += d * d;
	}
	f->nstate++;
	if (!e || n * 4 != e->to - e->from)
		far = INFINITY;
	f->state = fmax(f->state, judge("state", name, sqrt(far), norm, narrow, f->most_grad, f));
}

static int read_losses(FILE *log, Loss *loss, char *line)
{
	int n = 0;
	while (n < STEPS && fgets(line, LINE, log)) {
		const char *at = strstr(line, "\"loss\":");
		n += at && sscanf(at + 7, "%lf", &loss[n].got) == 1;
	}
	return n;
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	static char line[LINE], name[1024];
	Loss loss[STEPS];
	Far f = { .times = 10, .most_loss = 1e-4, .most_grad = 1e-3 };
	double x, y;
	int n = 0, step, at;
	Arena a = { 0 };
	RtSafe safe = { 0 }, state = { 0 };
	Ctx c = { 0 };
	char *slash = strrchr(argv[1], '/');
	FILE *want = fopen(argv[1], "r"), *log = fopen(argv[2], "r");
	const char *grads = arena_printf(&a, "%.*s/grads.safetensors", slash ? (int)(slash - argv[1]) : 0, argv[1]);
	if (!want || !log || !slash || rt_safe_open(&c, 1, grads, &safe) ||
	    rt_safe_open(&c, 1, argv[4], &state))
		return 2;
	n = read_losses(log, loss, line);
	while (fgets(line, sizeof line, want)) {
		if (sscanf(line, "loss %d %lf %lf", &step, &x, &y) == 3 && step == f.nloss && step < STEPS)
			loss[f.nloss++] = (Loss){ x, y, loss[step].got };
		else if (sscanf(line, "grad %1023s %lf %lf", name, &x, &y) == 3)
			judge_gradient(argv[3], &safe, name, x, y, &f, &a);
		else if (sscanf(line, "state %1023s %lf %lf%n", name, &x, &y, &at) == 3)
			judge_state(&state, name, line + at, x, y, &f);
		else
			sscanf(line, "rule %lf %lf %lf", &f.times, &f.most_loss, &f.most_grad);
	}
	if (n != STEPS || f.nloss != STEPS || !f.ngrad) {
		printf(" there are %d losses, %d are wanted, and %d gradients\n", n, f.nloss, f.ngrad);
		return 1;
	}
	judge_losses(loss, n, &f);
	printf("# of what is allowed: losses %.2f, %d gradients %.2f (%d are zero but for rounding)", f.loss, f.ngrad,
		f.grad, f.noise);
	printf(f.nstate ? ", %d states %.2f\n" : "\n", f.nstate, f.state);
	fclose(want);
	fclose(log);
	rt_safe_close(&safe);
	rt_safe_close(&state);
	arena_free(&a);
	return f.bad != 0;
}
