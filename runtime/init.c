/* Values at the start: constants, random numbers, weights.
 *
 * A random number is a function of (seed, key of the tensor, index of the element in the logical tensor), so a shard
 * holds exactly what the whole tensor would hold there: no plan and no number of ranks changes a bit. */
#include "run.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* Mixes two words; the finaliser is that of splitmix64. */
uint64_t rt_hash(uint64_t a, uint64_t b)
{
	uint64_t x = a + 0x9E3779B97F4A7C15u * (b + 1);
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

double rt_unit(uint64_t key, uint64_t index)
{
	return ((double)(rt_hash(key, index) >> 11) + 0.5) * 0x1p-53;
}

double rt_gauss(uint64_t key, uint64_t index)
{
	double r = sqrt(-2.0 * log(rt_unit(key, 2 * index)));
	return r * cos(6.283185307179586 * rt_unit(key, 2 * index + 1));
}

size_t rt_width(RtType t)
{
	static const uint8_t width[RT_TYPES] = { [RT_F32] = 4, [RT_F64] = 8, [RT_F16] = 2, [RT_BF16] = 2, [RT_I64] = 8, [RT_I32] = 4, [RT_I16] = 2,
		[RT_I8] = 1, [RT_U64] = 8, [RT_U32] = 4, [RT_U16] = 2, [RT_U8] = 1, [RT_BOOL] = 1 };
	return width[t];
}

int64_t rt_elements(const RtBox *b)
{
	int64_t n = 1;
	for (int a = 0; a < b->rank; a++)
		n *= b->len[a];
	return n;
}

RtBox rt_box(const Ctx *c, const RtTensor *t)
{
	RtBox b = { .rank = t->rank };
	for (int a = 0; a < t->rank; a++) {
		b.dim[a] = t->dim[a];
		b.split[a] = t->split[a] - 1;
		b.len[a] = b.split[a] < 0 ? t->dim[a] : c->me->len[b.split[a]];
	}
	return b;
}

void *rt_place(const Ctx *c, const RtTensor *t)
{
	return (t->window ? c->window : c->slab) + t->offset;
}

/* A row: elements that lie side by side here and in the logical tensor, which is along the last axis.  Gives the index in the
 * logical tensor at which row i begins. */
static int64_t row_at(const Ctx *c, const RtBox *b, int64_t i)
{
	int64_t at = 0, stride = 1;
	for (int a = b->rank - 1; a >= 0; a--) {
		int64_t origin = b->split[a] < 0 ? 0 : c->me->origin[b->split[a]];
		int64_t k = a == b->rank - 1 ? origin : i % b->len[a] + origin;
		if (a < b->rank - 1)
			i /= b->len[a];
		at += k * stride;
		stride *= b->dim[a];
	}
	return at;
}

void rt_rows(const Ctx *c, const RtBox *b, void (*row)(void *arg, int64_t here, int64_t there, int64_t n), void *arg)
{
	int64_t n = rt_elements(b), width = b->rank ? b->len[b->rank - 1] : 1;
	for (int64_t i = 0; n && i < n / width; i++)
		row(arg, i * width, row_at(c, b, i), width);
}

/* The same, over the threads of this rank. */
typedef struct Rows { const Ctx *c; const RtBox *b; void (*row)(void *, int64_t, int64_t, int64_t); void *arg; int64_t width; } Rows;

static void some_rows(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Rows *r = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++)
		r->row(r->arg, i * r->width, row_at(r->c, r->b, i), r->width);
}

static void rows_threaded(Ctx *c, const RtBox *b, void (*row)(void *, int64_t, int64_t, int64_t), void *arg)
{
	enum { GRAIN = 1 << 14 };
	Rows r = { c, b, row, arg, b->rank ? b->len[b->rank - 1] : 1 };
	if (rt_elements(b))
		rt_parallel(c, rt_elements(b) / r.width, 1 + GRAIN / r.width, some_rows, &r);
}

typedef struct Fill { const RtKept *v; unsigned char *to; const unsigned char *from; size_t elem; uint64_t key; } Fill;

static void fill(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	float *p = (float *)(void *)f->to + here;
	(void)there;
	for (int64_t i = 0; i < n; i++)
		p[i] = f->v->a;
}

static void normal(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	float *p = (float *)(void *)f->to + here;
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)((double)f->v->a + (double)f->v->b * rt_gauss(f->key, (uint64_t)(there + i)));
}

static void uniform(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	float *p = (float *)(void *)f->to + here;
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)((double)f->v->a + ((double)f->v->b - (double)f->v->a) * rt_unit(f->key, (uint64_t)(there + i)));
}

static void copy(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fill *f = arg;
	memcpy(f->to + (size_t)here * f->elem, f->from + (size_t)there * f->elem, (size_t)n * f->elem);
}

int rt_start(Ctx *c, const RtKept *row, const void *logical)
{
	RtKept given = *row, *v = &given;
	if (logical)
		v->start = RT_DATA_FILE;        /* from a file, whatever the model says */
	static void (*const how[])(void *, int64_t, int64_t, int64_t) = { [RT_FILL] = fill, [RT_NORMAL] = normal, [RT_UNIFORM] = uniform,
		[RT_DATA_HERE] = copy, [RT_DATA_FILE] = copy };
	RtBox b = rt_box(c, &v->t);
	size_t elem = rt_width(v->t.type), bytes = (size_t)rt_elements(&b) * elem;
	void *to = rt_place(c, &v->t);
	Fill f = { v, rt_host(c, to, bytes), logical ? logical : v->data, elem, rt_hash(c->seed, v->key) };
	if (v->start < RT_DATA_HERE && v->t.type != RT_F32)
		return rt_error(c, RT_PLAN, "%s is not float, but starts as a number", v->t.name);
	if (v->start == RT_FILL && v->a == 0)
		memset(f.to, 0, bytes);
	else
		rows_threaded(c, &b, how[v->start], &f);
	return rt_put(c, to, bytes);
}

/* The weights file lies beside the program, wherever that is. */
static int open_weights(Ctx *c, const char *path, RtSafe *s)
{
	char beside[4096];
	static const char name[] = "weights.safetensors";
	ssize_t n = path ? 0 : readlink("/proc/self/exe", beside, sizeof beside - sizeof name);
	if (n < 0)
		return rt_error(c, RT_DATA, "cannot tell where this program lies, to find %s: give --weights FILE", name);
	while (n > 0 && beside[n - 1] != '/')
		n--;
	strcpy(beside + n, name);
	return rt_safe_open(c, RT_DATA, path ? path : beside, s);
}

static int from_weights(Ctx *c, RtSafe *s, const RtKept *v, const void **from)
{
	const RtEntry *e = rt_safe_find(s, v->t.name);
	char is[256], want[256];
	if (!e)
		return rt_error(c, RT_DATA, "the weights file has no %s", v->t.name);
	if (!rt_safe_fits(e, &v->t))
		return rt_error(c, RT_DATA, "the weights file has %s as %s; this program needs %s", v->t.name, rt_shape_text(is, sizeof is, e->type, e->rank, e->dim),
		                rt_shape_text(want, sizeof want, v->t.type, v->t.rank, v->t.dim));
	*from = s->data + e->from;
	return 0;
}

/* Of a file that the caller names, all that it has counts, a checkpoint's for instance; the one beside the program has what the
 * tables say. */
int rt_start_all(Ctx *c, const char *weights)
{
	RtSafe file = { 0 };
	int code = weights ? open_weights(c, weights, &file) : 0;
	for (int i = 0; i < c->program->nkept && !code; i++) {
		const RtKept *v = &c->program->kept[i];
		const void *from = NULL;
		bool wanted = v->start == RT_DATA_FILE || (weights && v->keep != RT_CONSTANT && rt_safe_find(&file, v->t.name));
		if (wanted && !file.file.data)
			code = open_weights(c, weights, &file);
		if (wanted && !code)
			code = from_weights(c, &file, v, &from);
		if (!code)
			code = rt_start(c, v, from);
	}
	rt_safe_close(&file);
	return code;
}

RtValue rt_about(const Ctx *c, int value)
{
	const RtProgram *p = c->program;
	if (value >= p->nkept)
		return p->value[value - p->nkept];
	const RtTensor *t = &p->kept[value].t;
	RtBox b = rt_box(c, t);
	return (RtValue){ t->name, t->type, t->window, t->offset, (int64_t)((size_t)rt_elements(&b) * rt_width(t->type)) };
}
