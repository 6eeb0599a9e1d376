/* Start values and data: how the calls that fill parameters, constants and inputs are printed. */
#include "compiler.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The key of a value in random numbers: of its name. */
uint64_t emit_key(const char *s)
{
	uint64_t h = 0xCBF29CE484222325u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001B3u;
	return h;
}

static double arg_number(const Arg *call, const char *key, double otherwise)
{
	const Arg *a = arg_find(call->arg, call->narg, key);
	return !a ? otherwise : a->kind == ARG_INT ? (double)a->i : a->f;
}

/* Fans of a weight: [in, out] of a matrix, [out, in, window...] of a convolution. */
static void fans(const Type *t, double *in, double *out)
{
	*in = *out = 1;
	if (t->rank == 1)
		*in = *out = (double)t->dim[0];
	if (t->rank == 2) {
		*in = (double)t->dim[0];
		*out = (double)t->dim[1];
	}
	if (t->rank > 2) {
		double window = 1;
		for (int a = 2; a < t->rank; a++)
			window *= (double)t->dim[a];
		*in = (double)t->dim[1] * window;
		*out = (double)t->dim[0] * window;
	}
}

/* %.9g without a point is an int to C. */
static const char *real(const Emit *e, double v)
{
	char *s = arena_printf(e->tree.arena, "%.9g", v);
	return strpbrk(s, ".en") ? s : arena_printf(e->tree.arena, "%s.0", s);
}

static int print_random(const Print *p, const Slot *s, const char *how, double a, double b)
{
	text_add(p->t, "rt_%s(c, t[0], ", how);
	emit_box(p, s);
	text_add(p->t, ", 0x%016" PRIx64 "u, %sf, %sf)", emit_key(s->v->name), real(p->e, a), real(p->e, b));
	return 0;
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);
	return n >= k && !strcmp(s + n - k, end);
}

/* What @init says: "fill" with a, "normal" of mean a and deviation b, or "uniform" from a to b.  NULL after explaining. */
const char *emit_init(const Value *v, double *a, double *b)
{
	const Annot *an = annot_find(v->annot, "init");
	const Arg *how = an && an->narg ? &an->arg[0] : NULL;
	const char *k = how && how->s ? how->s : "";
	double in, out, dev = -1;
	fans(v->type, &in, &out);
	*a = *b = 0;
	if (!strcmp(k, "zeros") || !strcmp(k, "ones") || !strcmp(k, "constant")) {
		*a = *k == 'z' ? 0 : *k == 'o' ? 1 : arg_number(how, "value", 0);
		return "fill";
	}
	if (!strcmp(k, "normal") || !strcmp(k, "uniform")) {
		bool normal = *k == 'n';
		*a = arg_number(how, normal ? "mean" : "low", 0);
		*b = arg_number(how, normal ? "std" : "high", 1);
		return normal ? "normal" : "uniform";
	}
	if (!strncmp(k, "xavier", 6))
		dev = arg_number(how, "gain", 1) * sqrt(2 / (arg_number(how, "fan_in", in) + arg_number(how, "fan_out", out)));
	if (!strncmp(k, "kaiming", 7)) {
		const Arg *mode = arg_find(how->arg, how->narg, "mode");
		dev = arg_number(how, "gain", sqrt(2)) / sqrt(arg_number(how, "fan", mode && mode->s && !strcmp(mode->s, "fan_out") ? out : in));
	}
	if (dev < 0) {
		err_at(an ? an->loc : v->loc, "this back end has no initialiser %s yet", *k ? k : "of this form");
		return NULL;
	}
	if (!ends_in(k, "_uniform")) {
		*b = dev;
		return "normal";
	}
	*b = dev * sqrt(3);
	*a = -*b;
	return "uniform";
}

static int print_init(const Print *p, const Slot *s)
{
	double a, b;
	const char *how = emit_init(s->v, &a, &b);
	if (!how)
		return -1;
	if (strcmp(how, "fill"))
		return print_random(p, s, how, a, b);
	text_add(p->t, "rt_fill(c, t[0], ");
	emit_box(p, s);
	text_add(p->t, ", %sf)", real(p->e, a));
	return 0;
}

/* A constant as an array of its bits: exact for every type. */
static int print_constant(const Emit *e, Text *t, const Slot *s)
{
	const Tensor *d = s->v->data;
	int64_t n = tensor_elements(d);
	int w = dtype_bits(d->dtype) / 8;
	if (n > 1 << 20) {
		err_at(s->v->loc, "%s has %" PRId64 " elements; this back end writes constants of up to %d", s->v->name, n, 1 << 20);
		return -1;
	}
	text_add(t, "static const uint%d_t k%d[] = {      /* %s */", w * 8, s->id, emit_comment(e->tree.arena, s->v->name));
	for (int64_t i = 0; i < n; i++) {
		uint64_t bits = 0;
		memcpy(&bits, (const char *)d->data + i * w, (size_t)w);
		text_add(t, "%s0x%0*" PRIx64 "u,", i % 10 ? " " : "\n\t", w * 2, bits);
	}
	text_add(t, "%s\n};\n", n ? "" : "\n\t0,");
	return 0;
}

int emit_start(const Print *p, Text *constants)
{
	const Slot *s = p->a->make[0];
	if (!s->v->data) {
		if (s->v->type->elem == DT_FLOAT)
			return print_init(p, s);
		err_at(s->v->loc, "this back end initialises float parameters only; %s is %s", s->v->name, type_text(s->v->type));
		return -1;
	}
	if (tensor_load(s->v->data) || print_constant(p->e, constants, s))
		return -1;
	text_add(p->t, "rt_copy(c, t[0], ");
	emit_box(p, s);
	text_add(p->t, ", k%d, %d)", s->id, dtype_bits(s->v->type->elem) / 8);
	return 0;
}

int emit_load(const Print *p)
{
	const Slot *s = p->a->make[0];
	const Training *t = &p->e->plan->train;
	const Arg *d = t->data;
	if (!strcmp(s->v->name, "train.step")) {
		text_add(p->t, "rt_step(c, t[0])");
		return 0;
	}
	if (!d) {
		err_at(t->loc, "the training section names no data: write data: points(classes: 10, noise: 1)");
		return -1;
	}
	if (!d->s || strcmp(d->s, "points")) {
		err_at(d->loc, "this back end has no data source %s yet; it has points(classes: 10, noise: 1)", d->s ? d->s : "of this form");
		return -1;
	}
	int64_t classes = (int64_t)arg_number(d, "classes", 10);
	DType dt = s->v->type->elem;
	if (s->rank < 1 || (dt != DT_FLOAT && dt != DT_INT64 && dt != DT_BOOL) || classes < 1) {
		err_at(s->v->loc, "points gives float rows, int64 labels and bool masks; %s is %s", s->v->name, type_text(s->v->type));
		return -1;
	}
	text_add(p->t, "rt_data_%s(c, t[0], ", dt == DT_FLOAT ? "points" : dt == DT_INT64 ? "labels" : "present");
	emit_box(p, s);
	if (dt != DT_BOOL)
		text_add(p->t, ", %" PRId64, classes);
	if (dt == DT_FLOAT)
		text_add(p->t, ", %sf", real(p->e, arg_number(d, "noise", 1)));
	text_add(p->t, ")");
	return 0;
}
