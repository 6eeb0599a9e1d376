/* Kernels that compute with elements of any type: templates, each with a kernel that calls the instance for its type.
 * Where several updates may hit one element, a single thread applies them all, in the order of kernels/cpu. */
#include "dialect.h"

template <class T> __device__ static void reduce(T *y, const T *x, const KLoops &keep, const KLoops &over, int op,
	i64 rows, i64 n)
{
	i64 i = element();
	if (i >= rows)
		return;
	const T *from = x + offset_of(keep, i);
	typename As<T>::Sum sum = op == K_PROD ? 1 : 0;
	T best = 0;
	for (i64 j = 0; j < n; j++) {
		T e = from[offset_of(over, j)];
		if (op == K_PROD)
			sum *= (typename As<T>::Sum)e;
		else
			sum += (typename As<T>::Sum)e;
		if (j == 0 || (op == K_MAX ? e > best : e < best) || e != e)
			best = e;
	}
	y[i] = op == K_MAX ||
		op == K_MIN ? best : op == K_MEAN ? (T)((typename As<T>::Mean)sum / (typename As<T>::Mean)n) : (T)sum;
}

KERNEL g_reduce(Any y, Any x, KLoops keep, KLoops over, int op, i64 rows, i64 n, int type)
{
	BY_TYPE(type, reduce, y, x, keep, over, op, rows, n);
}

template <class T> __device__ static void matmul(T *y, const T *a, const T *b, i64 m, i64 n, i64 k, const KMat &as,
	const KMat &bs, i64 total)
{
	i64 i = element();
	if (i >= total)
		return;
	const T *row = a + i / n / m * as.batch + i / n % m * as.row, *col = b + i / n / m * bs.batch + i % n * bs.col;
	typename As<T>::Sum sum = 0;
	for (i64 j = 0; j < k; j++)
		sum += (typename As<T>::Sum)row[j * as.col] * (typename As<T>::Sum)col[j * bs.row];
	y[i] = (T)sum;
}

KERNEL g_matmul(Any y, Any a, Any b, i64 m, i64 n, i64 k, KMat as, KMat bs, i64 total, int type)
{
	BY_TYPE(type, matmul, y, a, b, m, n, k, as, bs, total);
}

template <class T> __device__ static void combine(T *y, T v, int how)
{
	typedef typename As<T>::Sum Sum;
	if (how == K_PUT)
		*y = v;
	else if (how == K_ADD)
		*y = (T)((Sum)*y + (Sum)v);
	else if (how == K_MUL)
		*y = (T)((Sum)*y * (Sum)v);
	else if ((how == K_LARGEST ? v > *y : v < *y) || v != v)
		*y = v;
}

template <class T> __device__ static void scatter_elements(T *y, const T *x, const i64 *index, const T *updates,
	i64 total, const KLoops &l, i64 n, i64 stride, int how, i64 many)
{
	if (element() != 0)
		return;
	for (i64 i = 0; i < total; i++)
		y[i] = x[i];
	for (i64 i = 0; i < many; i++) {
		i64 at = wrapped(index[i], n);
		if (at >= 0)
			combine(y + offset_of(l, i) + at * stride, updates[i], how);
	}
}

KERNEL g_scatter_elements(Any y, Any x, const i64 *index, Any updates, i64 total, KLoops l, i64 n, i64 stride, int how,
	i64 many, int type)
{
	BY_TYPE(type, scatter_elements, y, x, index, updates, total, l, n, stride, how, many);
}

template <class T> __device__ static void scatter_nd(T *y, const T *x, const i64 *index, const T *updates, i64 total,
	const KNd &d, int how)
{
	if (element() != 0)
		return;
	for (i64 i = 0; i < total; i++)
		y[i] = x ? x[i] : (T)0;
	for (i64 i = 0; i < d.batch * d.many; i++) {
		i64 at = tuple(index, i, d);
		for (i64 j = 0; j < d.run && at >= 0; j++)
			combine(y + at + j, updates[i * d.run + j], how);
	}
}

KERNEL g_scatter_nd(Any y, Any x, const i64 *index, Any updates, i64 total, KNd d, int how, int type)
{
	BY_TYPE(type, scatter_nd, y, x, index, updates, total, d, how);
}

/* One thread per column of the result. */
template <class T> __device__ static void gather_grad(T *y, const T *dy, const i64 *index, i64 n, i64 inner,
	i64 many, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 o = e / inner, j = e % inner;
	for (i64 k = 0; k < n; k++)
		y[(o * n + k) * inner + j] = 0;
	for (i64 i = 0; i < many; i++) {
		i64 at = wrapped(index[i], n);
		if (at >= 0)
			combine(y + (o * n + at) * inner + j, dy[(o * many + i) * inner + j], K_ADD);
	}
}

KERNEL g_gather_grad(Any y, Any dy, const i64 *index, i64 n, i64 inner, i64 many, i64 total, int type)
{
	BY_TYPE(type, gather_grad, y, dy, index, n, inner, many, total);
}

template <class T> __device__ static void pad_grad(T *dx, const T *dy, const KPad &p, i64 nin, i64 nout)
{
	if (element() != 0)
		return;
	for (i64 i = 0; i < nin; i++)
		dx[i] = 0;
	for (i64 i = 0; i < nout; i++) {
		i64 at = behind(p, i);
		if (at >= 0)
			combine(dx + at, dy[i], K_ADD);
	}
}

KERNEL g_pad_grad(Any dx, Any dy, KPad p, i64 nin, i64 nout, int type)
{
	BY_TYPE(type, pad_grad, dx, dy, p, nin, nout);
}

template <class T> __device__ static void cumsum(T *y, const T *x, i64 rows, i64 n, i64 inner,
	int exclusive, int reverse)
{
	i64 r = element();
	if (r >= rows)
		return;
	typename As<T>::Sum sum = 0;
	for (i64 k = 0; k < n; k++) {
		i64 at = r / inner * n * inner + r % inner + (reverse ? n - 1 - k : k) * inner;
		typename As<T>::Sum v = x[at];
		y[at] = (T)(exclusive ? sum : sum + v);
		sum += v;
	}
}

KERNEL g_cumsum(Any y, Any x, i64 rows, i64 n, i64 inner, int exclusive, int reverse, int type)
{
	BY_TYPE(type, cumsum, y, x, rows, n, inner, exclusive, reverse);
}

template <class T> __device__ static int before(T a, i64 i, T b, i64 j, int largest)
{
	int na = a != a, nb = b != b;
	if (na != nb)
		return largest ? na : nb;
	if (!na && a != b)
		return largest ? a > b : a < b;
	return i < j;
}

template <class T> __device__ static void topk(T *y, i64 *index, const T *x, i64 rows, i64 n, i64 inner,
	i64 k, int largest)
{
	i64 r = element(), last = -1;
	if (r >= rows)
		return;
	const T *v = x + r / inner * n * inner + r % inner;
	for (i64 m = 0; m < k; m++) {
		i64 best = -1, to = r / inner * k * inner + r % inner + m * inner;
		for (i64 i = 0; i < n; i++)
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

KERNEL g_topk(Any y, i64 *index, Any x, i64 rows, i64 n, i64 inner, i64 k, int largest, int type)
{
	BY_TYPE(type, topk, y, index, x, rows, n, inner, k, largest);
}

template <class T> __device__ static void argmax(i64 *y, const T *x, i64 rows, i64 n, i64 inner, int largest, int last)
{
	i64 r = element(), best = 0;
	if (r >= rows)
		return;
	const T *v = x + r / inner * n * inner + r % inner;
	for (i64 i = 1; i < n; i++)
		if (before(v[i * inner], last ? -i : i, v[best * inner], last ? -best : best, largest))
			best = i;
	y[r] = best;
}

KERNEL g_argmax(i64 *y, Any x, i64 rows, i64 n, i64 inner, int largest, int last, int type)
{
	BY_TYPE(type, argmax, y, x, rows, n, inner, largest, last);
}
