/* Windows over any number of axes: convolutions, their gradients, and pools.  Those over planes of float have kernels of their own; this
 * is for the others, and for sums.  The loops are in windows.h, written once for all types. */
#include "kernels.h"

#include <math.h>

static int64_t product(const KWindows *w, const int64_t *d)
{
	int64_t n = 1;
	for (int a = 0; a < w->n; a++)
		n *= d[a];
	return n;
}

/* The input under place p of the window of output o, or -1: padding; *inside: it lies within the padded input. */
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

/* Place `at` of a plane, counted along its first axis first. */
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

typedef enum { FORWARD, GRAD_X, GRAD_W } Way;

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

/* The operands that a way only reads are const to its caller. */
static void *writable(const void *p)
{
	union { const void *in; void *out; } u = { p };
	return u.out;
}

#define REAL_ONLY(name, ...) type == K_F64 ? name##_f64(__VA_ARGS__) : name##_f32(__VA_ARGS__)

int k_conv_nd(Ctx *c, void *y, const void *x, const void *f, const void *b, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *w, KType type)
{
	(void)c;
	REAL_ONLY(begin, y, b, batch * groups * cout, groups * cout, product(w, w->out));
	return REAL_ONLY(conv, FORWARD, y, writable(x), writable(f), batch, groups, cin, cout, w);
}

int k_conv_nd_grad_x(Ctx *c, void *x, const void *g, const void *f, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *w, KType type)
{
	(void)c;
	REAL_ONLY(begin, x, NULL, batch * groups * cin, 1, product(w, w->in));
	return REAL_ONLY(conv, GRAD_X, writable(g), x, writable(f), batch, groups, cin, cout, w);
}

int k_conv_nd_grad_w(Ctx *c, void *f, const void *x, const void *g, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *w, KType type)
{
	(void)c;
	REAL_ONLY(begin, f, NULL, groups * cout * cin, 1, product(w, w->k));
	return REAL_ONLY(conv, GRAD_W, writable(g), writable(x), f, batch, groups, cin, cout, w);
}

int k_maxpool_nd(Ctx *c, void *y, int64_t *index, const void *x, int64_t planes, const KWindows *w, bool columns, KType type)
{
	(void)c;
	switch (type) {
	case K_F32: return maxpool_f32(y, index, x, planes, w, columns);
	case K_F64: return maxpool_f64(y, index, x, planes, w, columns);
	case K_I64: return maxpool_i64(y, index, x, planes, w, columns);
	case K_I32: return maxpool_i32(y, index, x, planes, w, columns);
	case K_U8: case K_BOOL: break;
	}
	return maxpool_u8(y, index, x, planes, w, columns);
}

int k_maxpool_nd_grad(Ctx *c, void *dx, const void *g, const void *x, int64_t planes, const KWindows *w, KType type)
{
	(void)c;
	return REAL_ONLY(maxpool_grad, dx, g, x, planes, w);
}

int k_sumpool(Ctx *c, void *y, const void *x, int64_t planes, const KWindows *w, KPool kind, KType type)
{
	(void)c;
	return REAL_ONLY(sumpool, y, x, planes, w, kind);
}

int k_sumpool_grad(Ctx *c, void *dx, const void *g, int64_t planes, const KWindows *w, KPool kind, KType type)
{
	(void)c;
	return REAL_ONLY(sumpool_grad, dx, g, planes, w, kind);
}
