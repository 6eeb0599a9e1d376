/* Elements of any width moved about, byte for byte, in the order of the result. */
#include "places.h"

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

int k_pad(Ctx *c, void *y, const void *x, const void *value, const KPad *p, int64_t width)
{
	(void)c;
	static const char zero[16];
	for (int64_t i = 0, n = pad_count(p, p->out); i < n; i++) {
		int64_t at = pad_behind(p, i);
		set(y, i, at < 0 ? value ? value : zero : x, at < 0 ? 0 : at, width);
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
