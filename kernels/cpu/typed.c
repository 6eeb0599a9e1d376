/* Kernels that compute with elements of any type: instances of the loops of elements.h.  Float has faster kernels of
 * its own where models spend their time. */
#include "indices.h"
#include "turns.h"

#include <math.h>
#include <string.h>

typedef struct Reduce { void *y; const void *x; KLoops keep, over; KReduce op; } Reduce;
typedef struct Product { void *y; const void *a, *b; int64_t m, n, k; KMat as, bs; } Product;
typedef struct PadGrad { void *dx; const void *dy; KPad pad; } PadGrad;

/* Lines along the middle of outer x n x inner. */
typedef struct Lines { void *y; int64_t *index; const void *x; int64_t n, inner, k; bool exclusive, reverse, largest,
	last; } Lines;

typedef struct Scatter {
	void *y;
	const void *x, *updates;                        /* x NULL: zeros */
	const int64_t *index;
	KScatter how;
	KLoops to, from;                                /* single indices: starts of lines in y and in the index;
	                                                 * `many` indices each, `step` apart */
	int64_t many, step, n, stride;                  /* of an axis of n elements, which lie `stride` apart in y */
	KNd nd;                                         /* tuples; shared: one set of tuples for the whole batch */
	bool shared;
} Scatter;

#define T float
#define SUM float
#define MEAN float
#define NAME(f) f##_f32
#define FROM(s) (s)
#define ISNAN(v) isnan(v)
#include "elements.h"

#define T double
#define SUM double
#define MEAN double
#define NAME(f) f##_f64
#define FROM(s) (s)
#define ISNAN(v) isnan(v)
#include "elements.h"

#define T int64_t
#define SUM uint64_t
#define MEAN int64_t
#define NAME(f) f##_i64
#define FROM(s) ((int64_t)(s))
#define ISNAN(v) (false)
#include "elements.h"

#define T int32_t
#define SUM uint64_t
#define MEAN int64_t
#define NAME(f) f##_i32
#define FROM(s) ((int32_t)(uint32_t)(s))
#define ISNAN(v) (false)
#include "elements.h"

#define T uint8_t
#define SUM uint64_t
#define MEAN uint64_t
#define NAME(f) f##_u8
#define FROM(s) ((uint8_t)(s))
#define ISNAN(v) (false)
#include "elements.h"

#define T uint8_t
#define SUM uint64_t
#define MEAN uint64_t
#define NAME(f) f##_bool
#define FROM(s) ((uint8_t)((s) != 0))
#define ISNAN(v) (false)
#include "elements.h"

int k_reduce(Ctx *c, void *y, const void *x, KLoops keep, KLoops over, KReduce op, KType type)
{
	return turns(c, k_count(&keep), k_count(&over), TURNS_ANY(reduce),
		&(Reduce){ .y = y, .x = x, .keep = keep, .over = over, .op = op });
}

int k_matmul(Ctx *c, void *y, const void *a, const void *b, int64_t batch, int64_t m, int64_t n, int64_t k, KMat as,
	KMat bs, KType type)
{
	return turns(c, batch * m * n, k, TURNS_ANY(matmul),
		&(Product){ .y = y, .a = a, .b = b, .m = m, .n = n, .k = k, .as = as, .bs = bs });
}

/* The loops run over the index.  Those that move in y enumerate lines; the one that does not runs along a line. */
int k_scatter_elements(Ctx *c, void *y, const void *x, const int64_t *index, const void *updates, int64_t total,
	KLoops l, int64_t n, int64_t stride, KScatter how, KType type)
{
	Scatter s = { .y = y, .x = x, .updates = updates, .index = index, .how = how, .many = 1, .step = 1, .n = n,
		.stride = stride };
	int64_t dense = k_count(&l);
	int code = check_indices(c, index, dense, n);
	if (code)
		return code;
	for (int a = 0; a < l.n; a++) {
		dense /= l.len[a];
		if (l.stride[a] == 0) {
			s.many = l.len[a];
			s.step = dense;
			continue;
		}
		s.to.len[s.to.n] = s.from.len[s.to.n] = l.len[a];
		s.to.stride[s.to.n] = l.stride[a];
		s.from.stride[s.to.n] = dense;
		s.from.n = ++s.to.n;
	}
	if (x != y)
		turns(c, total, 1, TURNS_ANY(begin), &s);
	return turns(c, k_count(&s.to), s.many, TURNS_ANY(scatter_lines), &s);
}

static int scatter_nd(Ctx *c, const Scatter *s, int64_t total, KType type)
{
	if (s->x != s->y)
		turns(c, total, 1, TURNS_ANY(begin), s);
	return turns(c, s->nd.batch * s->nd.run, s->nd.many, TURNS_ANY(scatter_columns), s);
}

int k_scatter_nd(Ctx *c, void *y, const void *x, const int64_t *index, const void *updates, int64_t total,
	const KNd *d, KScatter how, KType type)
{
	int code = check_tuples(c, index, d);
	return code ? code : scatter_nd(c,
		&(Scatter){ .y = y, .x = x, .updates = updates, .index = index, .how = how, .nd = *d }, total, type);
}

int k_gather_grad(Ctx *c, void *y, const void *dy, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t many, KType type)
{
	Scatter s = { .y = y, .updates = dy, .index = index, .how = K_ADD, .nd = { .batch = outer, .many = many,
		.xbatch = n * inner, .run = inner, .axes = { 1, { n }, { inner } } }, .shared = true };
	int code = check_indices(c, index, many, n);
	return code ? code : scatter_nd(c, &s, outer * n * inner, type);
}

/* Padding may copy any element along its axis, so threads share the axes before the first padded one. */
int k_pad_grad(Ctx *c, void *dx, const void *dy, const KPad *p, KType type)
{
	PadGrad g = { dx, dy, { .mode = p->mode } };
	int64_t n = 1;
	int a = 0;
	for (; a < p->n && p->in[a] == p->out[a] && !p->lo[a]; a++)
		n *= p->in[a];
	for (; a < p->n; a++) {
		g.pad.in[g.pad.n] = p->in[a];
		g.pad.out[g.pad.n] = p->out[a];
		g.pad.lo[g.pad.n++] = p->lo[a];
	}
	return turns(c, n, pad_count(&g.pad, g.pad.out), TURNS_ANY(pad_grad), &g);
}

int k_cumsum(Ctx *c, void *y, const void *x, int64_t outer, int64_t n, int64_t inner, bool exclusive,
	bool reverse, KType type)
{
	return turns(c, outer * inner, n, TURNS_ANY(cumsum),
		&(Lines){ .y = y, .x = x, .n = n, .inner = inner, .exclusive = exclusive, .reverse = reverse });
}

int k_topk(Ctx *c, void *y, int64_t *index, const void *x, int64_t outer, int64_t n, int64_t inner, int64_t k,
	bool largest, KType type)
{
	return turns(c, outer * inner, n * k, TURNS_ANY(topk),
		&(Lines){ .y = y, .index = index, .x = x, .n = n, .inner = inner, .k = k, .largest = largest });
}

int k_argmax(Ctx *c, int64_t *y, const void *x, int64_t outer, int64_t n, int64_t inner, bool largest,
	bool last, KType type)
{
	return turns(c, outer * inner, n, TURNS_ANY(argmax),
		&(Lines){ .index = y, .x = x, .n = n, .inner = inner, .largest = largest, .last = last });
}
