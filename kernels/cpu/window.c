/* Windows over any number of axes: convolutions, their gradients, and pools.  Windows over planes of float have kernels
 * of their own, except sums.  The loops are in windows.h, written once for all types. */
#include "turns.h"

#include <math.h>

static int64_t product(const KWindows *w, const int64_t *d)
{
	int64_t n = 1;
	for (int a = 0; a < w->n; a++)
		n *= d[a];
	return n;
}

/* The input element at position p of the window of output o, -1: padding; *inside: it lies within the padded input. */
static int64_t under(const KWindows *w, int64_t o, int64_t p, bool *inside)
{
	int64_t at = 0, stride = 1;
	bool pad = false;
	*inside = true;
	for (int a = w->n - 1; a >= 0; a--) {
		int64_t i = o % w->out[a] * w->stride[a] - w->lo[a] + p % w->k[a] * w->dil[a];
		*inside = *inside && i < w->in[a] + w->hi[a];
		pad = pad || i < 0 || i >= w->in[a];
		at += i * stride;
		stride *= w->in[a];
		o /= w->out[a];
		p /= w->k[a];
	}
	return pad ? -1 : at;
}

/* Converts position `at` of a plane to column-major order. */
static int64_t by_columns(const KWindows *w, int64_t at)
{
	int64_t to = 0, stride = product(w, w->in);
	for (int a = w->n - 1; a >= 0; a--) {
		stride /= w->in[a];
		to += at % w->in[a] * stride;
		at /= w->in[a];
	}
	return to;
}

/* One of y, x and f is the result. */
typedef enum { FORWARD, GRAD_X, GRAD_W } Way;
typedef struct Conv {
	Way way;
	void *y, *x, *f;
	const void *bias;
	int64_t batch, groups, cin, cout;
	const KWindows *w;
} Conv;

typedef struct Pool { void *y; int64_t *index; const void *x, *g; const KWindows *w; const KStretch *own; bool columns;
	KPool kind; } Pool;

/* Position `at` of a plane relative to the wanted stretch; -1: outside. */
static int64_t stretch_at(const Pool *l, int64_t at)
{
	const KWindows *w = l->w;
	int64_t to = 0, stride = 1;
	for (int a = w->n - 1; a >= 0 && l->own; a--) {
		int64_t i = at % w->in[a] - l->own->from[a];
		at /= w->in[a];
		if (i < 0 || i >= l->own->size[a])
			return -1;
		to += i * stride;
		stride *= l->own->size[a];
	}
	return l->own ? to : at;
}

#define T float
#define NAME(f) f##_f32
#define LEAST (-INFINITY)
#define ISNAN(v) isnan(v)
#define REAL
#include "windows.h"

#define T double
#define NAME(f) f##_f64
#define LEAST (-(double)INFINITY)
#define ISNAN(v) isnan(v)
#define REAL
#include "windows.h"

#define T int64_t
#define NAME(f) f##_i64
#define LEAST INT64_MIN
#define ISNAN(v) (false)
#include "windows.h"

#define T int32_t
#define NAME(f) f##_i32
#define LEAST INT32_MIN
#define ISNAN(v) (false)
#include "windows.h"

#define T uint8_t
#define NAME(f) f##_u8
#define LEAST 0
#define ISNAN(v) (false)
#include "windows.h"

#define maxpool_bool maxpool_u8

/* The result is writable, the two operands are const to the caller; the loops take all three without const. */
static void *writable(const void *p)
{
	union { const void *in; void *out; } u = { p };
	return u.out;
}

/* One iteration per plane of the result; its work is that of `others` planes over all windows. */
static int run_conv(Ctx *c, const Conv *v, int64_t planes, int64_t others, KType type)
{
	return turns(c, planes, others * product(v->w, v->w->out) * product(v->w, v->w->k), TURNS_REAL(conv), v);
}

int k_conv_nd(Ctx *c, void *y, const void *x, const void *f, const void *b, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, const KWindows *w, KType type)
{
	Conv v = { .way = FORWARD, .y = y, .x = writable(x), .f = writable(f), .bias = b, .batch = batch,
		.groups = groups, .cin = cin, .cout = cout, .w = w };
	return run_conv(c, &v, batch * groups * cout, cin, type);
}

int k_conv_nd_grad_x(Ctx *c, void *x, const void *g, const void *f, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, const KWindows *w, KType type)
{
	Conv v = { .way = GRAD_X, .y = writable(g), .x = x, .f = writable(f), .batch = batch,
		.groups = groups, .cin = cin, .cout = cout, .w = w };
	return run_conv(c, &v, batch * groups * cin, cout, type);
}

int k_conv_nd_grad_w(Ctx *c, void *f, const void *x, const void *g, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, const KWindows *w, KType type)
{
	Conv v = { .way = GRAD_W, .y = writable(g), .x = writable(x), .f = f, .batch = batch,
		.groups = groups, .cin = cin, .cout = cout, .w = w };
	return run_conv(c, &v, groups * cout * cin, batch, type);
}

int k_maxpool_nd(Ctx *c, void *y, int64_t *index, const void *x, int64_t planes, const KWindows *w,
	bool columns, KType type)
{
	return turns(c, planes * product(w, w->out), product(w, w->k), TURNS_ANY(maxpool),
		&(Pool){ .y = y, .index = index, .x = x, .w = w, .columns = columns });
}

int k_maxpool_nd_grad(Ctx *c, void *dx, const void *g, const void *x, int64_t planes, const KWindows *w, KType type)
{
	return turns(c, planes, product(w, w->out) * product(w, w->k), TURNS_REAL(maxpool_grad),
		&(Pool){ .y = dx, .g = g, .x = x, .w = w });
}

int k_maxpool_nd_grad_shard(Ctx *c, void *dx, const void *g, const void *x, int64_t planes, const KWindows *w,
	KStretch own, KType type)
{
	return turns(c, planes, product(w, w->out) * product(w, w->k), TURNS_REAL(maxpool_grad),
		&(Pool){ .y = dx, .g = g, .x = x, .w = w, .own = &own });
}

int k_sumpool_grad_shard(Ctx *c, void *dx, const void *g, int64_t planes, const KWindows *w, KStretch own,
	KPool kind, KType type)
{
	return turns(c, planes, product(w, w->out) * product(w, w->k), TURNS_REAL(sumpool_grad),
		&(Pool){ .y = dx, .g = g, .w = w, .own = &own, .kind = kind });
}

int k_sumpool(Ctx *c, void *y, const void *x, int64_t planes, const KWindows *w, KPool kind, KType type)
{
	return turns(c, planes * product(w, w->out), product(w, w->k), TURNS_REAL(sumpool),
		&(Pool){ .y = y, .x = x, .w = w, .kind = kind });
}

int k_sumpool_grad(Ctx *c, void *dx, const void *g, int64_t planes, const KWindows *w, KPool kind, KType type)
{
	return turns(c, planes, product(w, w->out) * product(w, w->k), TURNS_REAL(sumpool_grad),
		&(Pool){ .y = dx, .g = g, .w = w, .kind = kind });
}
