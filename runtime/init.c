/* Values at the start: constants, random numbers, weights.
 *
 * A random number is a function of (seed, key of the tensor, index of the element in the logical tensor), so a shard
 * holds exactly what the whole tensor would hold there: no plan and no number of ranks changes a bit. */
#include "run.h"

#include <string.h>
#include <unistd.h>

size_t rt_width(RtType t)
{
	static const uint8_t width[RT_TYPES] = { [RT_F32] = 4, [RT_F64] = 8, [RT_F16] = 2, [RT_BF16] = 2, [RT_I64] = 8, [RT_I32] = 4, [RT_I16] = 2,
		[RT_I8] = 1, [RT_U64] = 8, [RT_U32] = 4, [RT_U16] = 2, [RT_U8] = 1, [RT_BOOL] = 1 };
	return width[t];
}

size_t rt_whole_bytes(const RtTensor *t)
{
	size_t n = rt_width(t->type);
	for (int a = 0; a < t->rank; a++)
		n *= (size_t)t->dim[a];
	return n;
}

typedef struct Fill { RtIsa isa; const RtKept *v; unsigned char *to; const unsigned char *from; size_t elem; uint64_t key; } Fill;

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

int rt_start(Ctx *c, const RtKept *row, const void *logical)
{
	RtKept given = *row, *v = &given;
	if (logical)
		v->start = RT_DATA_FILE;        /* from a file, whatever the model says */
	static RtRow *const how[] = { [RT_FILL] = fill, [RT_NORMAL] = normal, [RT_UNIFORM] = uniform,
		[RT_DATA_HERE] = copy, [RT_DATA_FILE] = copy };
	size_t elem = rt_width(v->t.type), bytes = rt_bytes(c, &v->t);
	void *to = rt_place(c, &v->t);
	Fill f = { c->isa, v, rt_host(c, to, bytes), logical ? logical : v->data, elem, rt_hash(c->seed, v->key) };
	if (v->start < RT_DATA_HERE && v->t.type != RT_F32)
		return rt_error(c, RT_PLAN, "%s is not float, but starts as a number", v->t.name);
	rt_rows_threaded(c, &v->t, v->start == RT_FILL && v->a == 0 ? zero : how[v->start], &f);
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

const RtKept *rt_averaged(const RtProgram *p, const RtKept *v)
{
	size_t n = strlen(v->t.name);
	if (!p->ema || v->keep != RT_STATE || n < 5 || strcmp(v->t.name + n - 4, ".ema"))
		return NULL;
	for (int i = 0; i < p->nkept; i++)
		if (p->kept[i].keep == RT_PARAMETER && !strncmp(p->kept[i].t.name, v->t.name, n - 4) && !p->kept[i].t.name[n - 4])
			return &p->kept[i];
	return NULL;
}

/* The row by whose rule, and under whose name in a file, this one starts: an average starts as its parameter, unless the file has
 * it; a program that only infers takes averages for its parameters, where the file has them. */
static RtKept start_of(const RtProgram *p, const RtKept *v, RtSafe *file, char name[RT_NAME])
{
	RtKept k = *v;
	const RtKept *of = rt_averaged(p, v);
	bool alone = p->ema && !p->role[0]->part[RT_TRAIN] && v->keep == RT_PARAMETER;
	if (of && !(file->file.data && rt_safe_find(file, v->t.name))) {
		k = *of;
		k.t = v->t;
		k.t.name = of->t.name;
	}
	if (alone && file->file.data && strlen(v->t.name) + 5 < RT_NAME) {
		strcat(strcpy(name, v->t.name), ".ema");
		if (rt_safe_find(file, name))
			k.t.name = name;
	}
	return k;
}

/* Of a file that the caller names, all that it has counts, a checkpoint's for instance; the one beside the program has what the
 * tables say. */
int rt_start_all(Ctx *c, const char *weights, bool resuming)
{
	RtSafe file = { 0 };
	char name[RT_NAME];
	int code = weights ? open_weights(c, weights, &file) : 0;
	for (int i = 0; i < c->program->nkept && !code; i++) {
		RtKept row = start_of(c->program, &c->program->kept[i], &file, name), *v = &row;
		const void *from = NULL;
		bool wanted = v->start == RT_DATA_FILE || (weights && v->keep != RT_CONSTANT && rt_safe_find(&file, v->t.name));
		if (resuming && v->keep != RT_CONSTANT)
			continue;
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
	if (value < p->nkept) {
		const RtTensor *t = &p->kept[value].t;
		return (RtValue){ t->name, t->type, t->form, t->window, t->offset, (int64_t)rt_bytes(c, t) };
	}
	RtValue v = p->value[value - p->nkept];
	if (v.form)
		v.bytes = form_elements(&c->part_of[v.form - 1]) * (int64_t)rt_width(v.type);
	return v;
}
