/* Kernels that compute with elements of any type: the loops of elements.h, once for each.  Where a model spends its time, in float,
 * there are kernels for that type alone; these are for all others. */
#include "places.h"

#include <math.h>
#include <string.h>

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

#define BY_TYPE(name, ...) \
	switch (type) { \
	case K_F32: return name##_f32(__VA_ARGS__); \
	case K_F64: return name##_f64(__VA_ARGS__); \
	case K_I64: return name##_i64(__VA_ARGS__); \
	case K_I32: return name##_i32(__VA_ARGS__); \
	case K_U8: return name##_u8(__VA_ARGS__); \
	case K_BOOL: break; \
	} \
	return name##_bool(__VA_ARGS__)

int k_reduce(Ctx *c, void *y, const void *x, KLoops keep, KLoops over, KReduce op, KType type)
{
	(void)c;
	BY_TYPE(reduce, y, x, &keep, &over, op);
}

int k_matmul(Ctx *c, void *y, const void *a, const void *b, int64_t batch, int64_t m, int64_t n, int64_t k, KMat as, KMat bs, KType type)
{
	(void)c;
	BY_TYPE(matmul, y, a, b, batch, m, n, k, as, bs);
}

int k_scatter_elements(Ctx *c, void *y, const void *x, const int64_t *index, const void *updates, int64_t total, KLoops l, int64_t n, int64_t stride,
                       KScatter how, KType type)
{
	BY_TYPE(scatter_elements, c, y, x, index, updates, total, &l, n, stride, how);
}

int k_scatter_nd(Ctx *c, void *y, const void *x, const int64_t *index, const void *updates, int64_t total, const KNd *d, KScatter how, KType type)
{
	BY_TYPE(scatter_nd, c, y, x, index, updates, total, d, how);
}

int k_gather_grad(Ctx *c, void *y, const void *dy, const int64_t *index, int64_t outer, int64_t n, int64_t inner, int64_t many, KType type)
{
	BY_TYPE(gather_grad, c, y, dy, index, outer, n, inner, many);
}

int k_pad_grad(Ctx *c, void *dx, const void *dy, const KPad *p, KType type)
{
	(void)c;
	BY_TYPE(pad_grad, dx, dy, p);
}

int k_cumsum(Ctx *c, void *y, const void *x, int64_t outer, int64_t n, int64_t inner, bool exclusive, bool reverse, KType type)
{
	(void)c;
	BY_TYPE(cumsum, y, x, outer, n, inner, exclusive, reverse);
}

int k_topk(Ctx *c, void *y, int64_t *index, const void *x, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest, KType type)
{
	(void)c;
	BY_TYPE(topk, y, index, x, outer, n, inner, k, largest);
}

int k_argmax(Ctx *c, int64_t *y, const void *x, int64_t outer, int64_t n, int64_t inner, bool largest, bool last, KType type)
{
	(void)c;
	BY_TYPE(argmax, y, x, outer, n, inner, largest, last);
}
