/* Initial values: constants, random numbers, weights.
 *
 * A random number is a function of (seed, key of the tensor, index of the element in the logical tensor), so initial
 * values do not depend on the plan or on the number of ranks, to the bit. */
#include "bits.h"
#include "comm.h"
#include "save.h"

#include <string.h>
#include <unistd.h>

typedef struct Fill { RtIsa isa; const RtKept *v; unsigned char *to; const unsigned char *from; size_t elem;
	uint64_t key; RtType is; } Fill;

static void fill(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	float *p = (float *)(void *)f->to + here;
	(void)there;
	for (int64_t i = 0; i < n; i++)
		p[i] = f->v->a;
}

static void zero(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	(void)there;
	memset(f->to + (size_t)here * f->elem, 0, (size_t)n * f->elem);
}

static void normal(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	rt_gauss_many(f->isa, (float *)(void *)f->to + here, f->key, (uint64_t)there, n, f->v->a, f->v->b);
}

static void uniform(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	rt_unit_many(f->isa, (float *)(void *)f->to + here, f->key, (uint64_t)there, n, f->v->a, f->v->b - f->v->a);
}

static void copy(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	memcpy(f->to + (size_t)here * f->elem, f->from + (size_t)there * f->elem, (size_t)n * f->elem);
}

static double number_at(RtType is, const unsigned char *from)
{
	uint16_t h;
	uint32_t w;
	double d;
	switch (is) {
	case RT_F64:
		memcpy(&d, from, sizeof d);
		return d;
	case RT_F32:
		memcpy(&w, from, sizeof w);
		return (double)rt_from_bits(w);
	default:
		memcpy(&h, from, sizeof h);
		return (double)(is == RT_BF16 ? rt_from_bits((uint32_t)h << 16) : rt_from_half(h));
	}
}

/* Numbers in files may be unaligned. */
static void convert(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	size_t width = rt_width(f->is);
	for (int64_t i = 0; i < n; i++) {
		double v = number_at(f->is, f->from + (size_t)(there + i) * width);
		if (f->elem == sizeof v)
			((double *)(void *)f->to)[here + i] = v;
		else
			((float *)(void *)f->to)[here + i] = (float)v;
	}
}

int rt_take(Ctx *c, const RtTensor *t, RtType is, const void *logical)
{
	size_t bytes = rt_bytes(c, t);
	void *to = rt_address(c, t);
	Fill f = { .isa = c->isa, .to = rt_host(c, to, bytes), .from = logical, .elem = rt_width(t->type), .is = is };
	rt_rows_threaded(c, t, is == t->type ? copy : convert, &f);
	return rt_put(c, to, bytes);
}

int rt_start(Ctx *c, const RtKept *v, const void *logical)
{
	static RtRow *const how[] = { [RT_FILL] = fill, [RT_NORMAL] = normal, [RT_UNIFORM] = uniform };
	if (logical || v->start >= RT_DATA_HERE)
		return rt_take(c, &v->t, v->t.type, logical ? logical : v->data);
	size_t bytes = rt_bytes(c, &v->t);
	void *to = rt_address(c, &v->t);
	Fill f = { .isa = c->isa, .v = v, .to = rt_host(c, to, bytes), .elem = rt_width(v->t.type),
		.key = rt_hash(c->seed, v->key) };
	if (v->t.type != RT_F32)
		return rt_error(c, RT_PLAN, "%s is not float, but is initialized as one", v->t.name);
	rt_rows_threaded(c, &v->t, v->start == RT_FILL && v->a == 0 ? zero : how[v->start], &f);
	return rt_put(c, to, bytes);
}

/* Opens the weights that the compiler wrote beside the program. */
static int open_beside(Ctx *c, RtSafe *s)
{
	char beside[4096];
	static const char name[] = "weights.safetensors";
	ssize_t n = readlink("/proc/self/exe", beside, sizeof beside - sizeof name);
	if (n < 0)
		return rt_error(c, RT_DATA,
			"cannot find the folder of this program, which holds %s: give --weights=FILE", name);
	while (n > 0 && beside[n - 1] != '/')
		n--;
	strcpy(beside + n, name);
	return rt_safe_open(c, RT_DATA, beside, s);
}

static int from_beside(Ctx *c, RtSafe *s, const RtKept *v, const void **from)
{
	int code = s->file.data ? 0 : open_beside(c, s);
	const RtEntry *e = code ? NULL : rt_safe_find(s, v->t.name);
	char is[256], want[256];
	if (code)
		return code;
	if (!e)
		return rt_error(c, RT_DATA, "weights.safetensors beside this program has no %s", v->t.name);
	if (!rt_safe_fits(e, &v->t))
		return rt_error(c, RT_DATA,
			"weights.safetensors beside this program has %s as %s; this program needs %s",
			v->t.name, rt_shape_text(is, sizeof is, e->type, e->naxis, e->dim),
			rt_shape_text(want, sizeof want, v->t.type, v->t.naxis, v->t.dim));
	*from = s->data + e->from;
	return 0;
}

const RtKept *rt_averaged(const RtProgram *p, const RtKept *v)
{
	for (int i = 0; i < p->nkept && v->average_of; i++)
		if (p->kept[i].keep == RT_PARAMETER && !strcmp(p->kept[i].t.name, v->average_of))
			return &p->kept[i];
	return NULL;
}

/* Initializes a row by the rule of the program; an average is initialized as its parameter. */
static int start_row(Ctx *c, RtSafe *beside, const RtKept *v)
{
	const RtKept *of = rt_averaged(c->program, v);
	RtKept k = of ? *of : *v;
	const void *from = NULL;
	int code = k.start == RT_DATA_FILE ? from_beside(c, beside, &k, &from) : 0;
	k.t = v->t;
	return code ? code : rt_start(c, &k, from);
}

/* Every rank opens the files itself; if one cannot, all end. */
int rt_start_all(Ctx *c, const RtFrom *given, bool resuming, int *drawn)
{
	RtSafe beside = { 0 };
	RtWeights w = { 0 };
	RtType is;
	const void *from;
	int code = given->path && !resuming ? rt_weights_open(c, given, &w) : 0;
	*drawn = 0;
	for (int i = 0; i < c->program->nkept && !code; i++) {
		const RtKept *v = &c->program->kept[i];
		if (resuming && rt_is_saved(v))
			continue;
		if (rt_weights_row(&w, i, &is, &from)) {
			code = rt_take(c, &v->t, is, from);
			continue;
		}
		*drawn += (v->keep == RT_PARAMETER || v->keep == RT_FROZEN) &&
			(v->start == RT_NORMAL || v->start == RT_UNIFORM);
		code = start_row(c, &beside, v);
	}
	rt_memory_closing(c);
	rt_safe_close(&beside);
	rt_weights_close(&w);
	rt_memory_closed(c);
	return (int)rt_worst(c, (uint32_t)code);
}
