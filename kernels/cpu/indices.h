/* The elements that indices, tuples of indices and positions of a padded tensor refer to. */
#ifndef INDICES_H
#define INDICES_H

#include "kernels.h"

/* An index, counted from the end if it is negative; -1: out of range. */
static inline int64_t index_of(int64_t i, int64_t n)
{
	i = i < 0 ? i + n : i;
	return i < 0 || i >= n ? -1 : i;
}

/* Checks all indices first; one out of range ends the job. */
static inline int check_indices(Ctx *c, const int64_t *index, int64_t count, int64_t n)
{
	for (int64_t i = 0; i < count; i++)
		if (index_of(index[i], n) < 0)
			return rt_error(c, RT_DATA, "index %lld is %lld, but the axis has %lld elements",
				(long long)i, (long long)index[i], (long long)n);
	return 0;
}

/* The position of an index into `all` elements among the n from `first` on; -1: outside. */
static inline int64_t shard_index(int64_t i, int64_t all, int64_t first, int64_t n)
{
	int64_t k = index_of(i, all) - first;
	return k < 0 || k >= n ? -1 : k;
}

/* The same for tuples of indices. */
static inline int check_tuples(Ctx *c, const int64_t *index, const KNd *d)
{
	for (int64_t i = 0; i < d->batch * d->many; i++)
		for (int a = 0; a < d->axes.n; a++) {
			int64_t k = index[i * d->axes.n + a], n = d->axes.len[a];
			if (index_of(k, n) < 0)
				return rt_error(c, RT_DATA, "index %lld is %lld, but the axis has %lld elements",
					(long long)i, (long long)k, (long long)n);
		}
	return 0;
}

/* The element of x that tuple i refers to. */
static inline int64_t nd_place(const int64_t *index, int64_t i, const KNd *d)
{
	int64_t at = i / d->many * d->xbatch;
	for (int a = 0; a < d->axes.n; a++)
		at += index_of(index[i * d->axes.n + a], d->axes.len[a]) * d->axes.stride[a];
	return at;
}

/* The element of an axis of n that position i of the padded axis copies; -1: padding. */
static inline int64_t pad_source(KPadMode mode, int64_t i, int64_t n)
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

/* The element of the input that element i of the padded tensor copies, or -1. */
static inline int64_t pad_behind(const KPad *p, int64_t i)
{
	int64_t at = 0, stride = 1;
	for (int a = p->n - 1; a >= 0; a--) {
		int64_t s = pad_source(p->mode, i % p->out[a] - p->lo[a], p->in[a]);
		if (s < 0)
			return -1;
		at += s * stride;
		stride *= p->in[a];
		i /= p->out[a];
	}
	return at;
}

static inline int64_t pad_count(const KPad *p, const int64_t *dim)
{
	int64_t n = 1;
	for (int a = 0; a < p->n; a++)
		n *= dim[a];
	return n;
}

#endif
