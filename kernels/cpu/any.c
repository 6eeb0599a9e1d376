/* Elements of any width moved about: what the fast copies do not do is done here, byte for byte, in the order of the result. */
#include "kernels.h"

#include <string.h>

/* Element i of an array of elements of `width` bytes. */
static void set(void *y, int64_t i, const void *x, int64_t j, int64_t width)
{
	memcpy((char *)y + i * width, (const char *)x + j * width, (size_t)width);
}

int k_fill(Ctx *c, void *y, int64_t offset, KLoops l, const void *value, int64_t width)
{
	(void)c;
	for (int64_t i = 0; i < k_count(&l); i++)
		set(y, offset + k_place(&l, i), value, 0, width);
	return 0;
}

int k_move(Ctx *c, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from, int64_t width)
{
	(void)c;
	for (int64_t i = 0; i < k_count(&to); i++)
		set(y, yoffset + k_place(&to, i), x, xoffset + k_place(&from, i), width);
	return 0;
}

/* Where on an axis of n elements place i of the padded axis comes from; -1: from nowhere. */
static int64_t source(KPadMode mode, int64_t i, int64_t n)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case K_PAD_EDGE: return i < 0 ? 0 : n - 1;
	case K_PAD_WRAP: return (i % n + n) % n;
	case K_PAD_REFLECT: {
		int64_t period = n > 1 ? 2 * (n - 1) : 1, k = (i % period + period) % period;
		return k < n ? k : period - k;
	}
	case K_PAD_CONSTANT: break;
	}
	return -1;
}

/* The element of the plain tensor behind element i of the padded one, or -1. */
static int64_t behind(const KPad *p, int64_t i)
{
	int64_t at = 0, stride = 1;
	for (int a = p->n - 1; a >= 0; a--) {
		int64_t s = source(p->mode, i % p->out[a] - p->lo[a], p->in[a]);
		if (s < 0)
			return -1;
		at += s * stride;
		stride *= p->in[a];
		i /= p->out[a];
	}
	return at;
}

static int64_t count(const KPad *p, const int64_t *dim)
{
	int64_t n = 1;
	for (int a = 0; a < p->n; a++)
		n *= dim[a];
	return n;
}

int k_pad(Ctx *c, void *y, const void *x, const void *value, const KPad *p, int64_t width)
{
	(void)c;
	static const char zero[16];
	for (int64_t i = 0, n = count(p, p->out); i < n; i++) {
		int64_t at = behind(p, i);
		set(y, i, at < 0 ? value ? value : zero : x, at < 0 ? 0 : at, width);
	}
	return 0;
}

int k_pad_grad_f32(Ctx *c, float *dx, const float *dy, const KPad *p)
{
	(void)c;
	for (int64_t i = 0, n = count(p, p->in); i < n; i++)
		dx[i] = 0;
	for (int64_t i = 0, n = count(p, p->out); i < n; i++) {
		int64_t at = behind(p, i);
		if (at >= 0)
			dx[at] += dy[i];
	}
	return 0;
}

int k_trilu(Ctx *c, void *y, const void *x, int64_t batch, int64_t rows, int64_t cols, int64_t k, bool upper, int64_t width)
{
	(void)c;
	static const char zero[16];
	for (int64_t i = 0; i < batch * rows * cols; i++) {
		int64_t row = i / cols % rows, col = i % cols;
		bool keep = upper ? col - row >= k : col - row <= k;
		set(y, i, keep ? x : zero, keep ? i : 0, width);
	}
	return 0;
}

int k_reverse_sequence(Ctx *c, void *y, const void *x, const int64_t *len, int64_t batch, int64_t time, int64_t bstride, int64_t tstride, int64_t width)
{
	for (int64_t b = 0; b < batch; b++) {
		if (len[b] < 0 || len[b] > time)
			return rt_error(c, RT_DATA, "sequence %lld has length %lld, but there are %lld places", (long long)b, (long long)len[b], (long long)time);
		for (int64_t t = 0; t < time; t++)
			set(y, b * bstride + t * tstride, x, b * bstride + (t < len[b] ? len[b] - 1 - t : t) * tstride, width);
	}
	return 0;
}

/* An index, counted from the end where it is negative; -1 when it is none. */
static int64_t index_of(int64_t i, int64_t n)
{
	i = i < 0 ? i + n : i;
	return i < 0 || i >= n ? -1 : i;
}

static int bad_index(Ctx *c, int64_t at, int64_t i, int64_t n)
{
	return rt_error(c, RT_DATA, "index %lld is %lld, but the axis has %lld elements", (long long)at, (long long)i, (long long)n);
}

int k_gather(Ctx *c, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner, int64_t many, int64_t width)
{
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < many; i++) {
			int64_t at = index_of(index[i], n);
			if (at < 0)
				return bad_index(c, i, index[i], n);
			memcpy((char *)y + (o * many + i) * inner * width, (const char *)x + (o * n + at) * inner * width, (size_t)(inner * width));
		}
	return 0;
}

int k_gather_elements(Ctx *c, void *y, const void *x, const int64_t *index, KLoops l, int64_t n, int64_t stride, int64_t width)
{
	for (int64_t i = 0; i < k_count(&l); i++) {
		int64_t at = index_of(index[i], n);
		if (at < 0)
			return bad_index(c, i, index[i], n);
		set(y, i, x, k_place(&l, i) + at * stride, width);
	}
	return 0;
}

/* Combines what stands at y with v: elements of that width are put there, floats are added and so on. */
static void combine(void *y, int64_t i, const void *v, int64_t j, KScatter how, int64_t width)
{
	if (how == K_PUT) {
		set(y, i, v, j, width);
		return;
	}
	float *a = (float *)y + i, b = ((const float *)v)[j];
	if (how == K_ADD)
		*a += b;
	else if (how == K_MUL)
		*a *= b;
	else if (how == K_LARGEST ? b > *a || b != b : b < *a || b != b)
		*a = b;
}

int k_scatter_elements(Ctx *c, void *y, const void *x, const int64_t *index, const void *updates, int64_t total, KLoops l, int64_t n, int64_t stride,
                       KScatter how, int64_t width)
{
	memcpy(y, x, (size_t)(total * width));
	for (int64_t i = 0; i < k_count(&l); i++) {
		int64_t at = index_of(index[i], n);
		if (at < 0)
			return bad_index(c, i, index[i], n);
		combine(y, k_place(&l, i) + at * stride, updates, i, how, width);
	}
	return 0;
}

/* Where in x place i of the indices points, or -1 after rt_error; *code is set then. */
static int64_t nd_place(Ctx *c, const int64_t *index, int64_t i, const KNd *d, int *code)
{
	int64_t at = i / d->many * d->xbatch;
	for (int a = 0; a < d->axes.n; a++) {
		int64_t k = index_of(index[i * d->axes.n + a], d->axes.len[a]);
		if (k < 0) {
			*code = bad_index(c, i, index[i * d->axes.n + a], d->axes.len[a]);
			return -1;
		}
		at += k * d->axes.stride[a];
	}
	return at;
}

int k_gather_nd(Ctx *c, void *y, const void *x, const int64_t *index, const KNd *d, int64_t width)
{
	int code = 0;
	for (int64_t i = 0; i < d->batch * d->many; i++) {
		int64_t at = nd_place(c, index, i, d, &code);
		if (code)
			return code;
		memcpy((char *)y + i * d->run * width, (const char *)x + at * width, (size_t)(d->run * width));
	}
	return 0;
}

int k_gather_nd_grad_f32(Ctx *c, float *dx, const float *dy, const int64_t *index, int64_t total, const KNd *d)
{
	int code = 0;
	for (int64_t i = 0; i < total; i++)
		dx[i] = 0;
	for (int64_t i = 0; i < d->batch * d->many; i++) {
		int64_t at = nd_place(c, index, i, d, &code);
		if (code)
			return code;
		for (int64_t j = 0; j < d->run; j++)
			dx[at + j] += dy[i * d->run + j];
	}
	return 0;
}

int k_scatter_nd(Ctx *c, void *y, const void *x, const int64_t *index, const void *updates, int64_t total, const KNd *d, KScatter how, int64_t width)
{
	int code = 0;
	memcpy(y, x, (size_t)(total * width));
	for (int64_t i = 0; i < d->batch * d->many; i++) {
		int64_t at = nd_place(c, index, i, d, &code);
		if (code)
			return code;
		for (int64_t j = 0; j < d->run; j++)
			combine(y, at + j, updates, i * d->run + j, how, width);
	}
	return 0;
}

int k_one_hot(Ctx *c, void *y, const int64_t *index, const void *values, int64_t outer, int64_t depth, int64_t inner, int64_t width)
{
	(void)c;
	for (int64_t i = 0; i < outer * depth * inner; i++) {
		int64_t at = index[i / inner / depth * inner + i % inner];
		set(y, i, values, i / inner % depth == (at < 0 ? at + depth : at), width);
	}
	return 0;
}

int k_compress(Ctx *c, void *y, const void *x, const uint8_t *keep, int64_t nkeep, int64_t outer, int64_t n, int64_t inner, int64_t width)
{
	(void)c;
	char *to = y;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < n && i < nkeep; i++)
			if (keep[i]) {
				memcpy(to, (const char *)x + (o * n + i) * inner * width, (size_t)(inner * width));
				to += inner * width;
			}
	return 0;
}

int k_cumsum_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner, bool exclusive, bool reverse)
{
	(void)c;
	for (int64_t r = 0; r < outer * inner; r++) {
		float sum = 0;
		for (int64_t k = 0; k < n; k++) {
			int64_t at = r / inner * n * inner + r % inner + (reverse ? n - 1 - k : k) * inner;
			float v = x[at];
			y[at] = exclusive ? sum : sum + v;
			sum += v;
		}
	}
	return 0;
}

int k_cumsum_i64(Ctx *c, int64_t *y, const int64_t *x, int64_t outer, int64_t n, int64_t inner, bool exclusive, bool reverse)
{
	(void)c;
	for (int64_t r = 0; r < outer * inner; r++) {
		uint64_t sum = 0;
		for (int64_t k = 0; k < n; k++) {
			int64_t at = r / inner * n * inner + r % inner + (reverse ? n - 1 - k : k) * inner;
			uint64_t v = (uint64_t)x[at];
			y[at] = (int64_t)(exclusive ? sum : sum + v);
			sum += v;
		}
	}
	return 0;
}

/* Which of two comes first among the largest (or smallest): NaN is the largest, and of equals the one that stands first. */
static bool before(float a, int64_t i, float b, int64_t j, bool largest)
{
	bool na = a != a, nb = b != b;
	if (na != nb)
		return largest ? na : nb;
	if (!na && a != b)
		return largest ? a > b : a < b;
	return i < j;
}

int k_topk_f32(Ctx *c, float *y, int64_t *index, const float *x, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest)
{
	(void)c;
	for (int64_t r = 0; r < outer * inner; r++) {
		const float *v = x + r / inner * n * inner + r % inner;
		int64_t last = -1;
		for (int64_t m = 0; m < k; m++) {
			int64_t best = -1, to = r / inner * k * inner + r % inner + m * inner;
			for (int64_t i = 0; i < n; i++)
				if ((last < 0 || before(v[last * inner], last, v[i * inner], i, largest)) &&
				    (best < 0 || before(v[i * inner], i, v[best * inner], best, largest)))
					best = i;
			if (y)
				y[to] = v[best * inner];
			if (index)
				index[to] = best;
			last = best;
		}
	}
	return 0;
}

int k_argmax_f32(Ctx *c, int64_t *y, const float *x, int64_t outer, int64_t n, int64_t inner, bool largest, bool last)
{
	(void)c;
	for (int64_t r = 0; r < outer * inner; r++) {
		const float *v = x + r / inner * n * inner + r % inner;
		int64_t best = 0;
		for (int64_t i = 1; i < n; i++)         /* of equals the first, or the last: then the other way round */
			if (before(v[i * inner], last ? -i : i, v[best * inner], last ? -best : best, largest))
				best = i;
		y[r] = best;
	}
	return 0;
}

/* ---- sums and products of other types ---- */

int k_reduce_f64(Ctx *c, double *y, const double *x, KLoops keep, KLoops over, KReduce op)
{
	(void)c;
	for (int64_t i = 0; i < k_count(&keep); i++) {
		const double *from = x + k_place(&keep, i);
		double v = op == K_PROD ? 1 : 0;
		for (int64_t j = 0; j < k_count(&over); j++) {
			double e = from[k_place(&over, j)];
			if (op == K_PROD)
				v *= e;
			else if (op == K_SUM || op == K_MEAN)
				v += e;
			else if (j == 0 || (op == K_MAX ? e > v : e < v) || e != e)
				v = e;
		}
		y[i] = op == K_MEAN ? v / (double)k_count(&over) : v;
	}
	return 0;
}

int k_reduce_i64(Ctx *c, int64_t *y, const int64_t *x, KLoops keep, KLoops over, KReduce op)
{
	(void)c;
	for (int64_t i = 0; i < k_count(&keep); i++) {
		const int64_t *from = x + k_place(&keep, i);
		uint64_t v = op == K_PROD ? 1 : 0;
		for (int64_t j = 0; j < k_count(&over); j++) {
			int64_t e = from[k_place(&over, j)];
			if (op == K_PROD)
				v *= (uint64_t)e;
			else if (op == K_SUM || op == K_MEAN)
				v += (uint64_t)e;
			else if (j == 0 || (op == K_MAX ? e > (int64_t)v : e < (int64_t)v))
				v = (uint64_t)e;
		}
		y[i] = op == K_MEAN ? (int64_t)v / k_count(&over) : (int64_t)v;
	}
	return 0;
}
