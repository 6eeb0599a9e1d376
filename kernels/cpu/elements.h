/* The loops of typed.c for one type of elements, of which these say:
 *
 *     T        the type in memory               NAME(f)  f with the name of the type
 *     SUM      what sums and products are of:   FROM(s)  such a number as a T
 *              whole numbers wrap around there  ISNAN(v) whether v is no number
 *     MEAN     what is divided by a count
 */

static int NAME(reduce)(T *y, const T *x, const KLoops *keep, const KLoops *over, KReduce op)
{
	for (int64_t i = 0, n = k_count(over); i < k_count(keep); i++) {
		const T *from = x + k_place(keep, i);
		T best = 0;
		SUM sum = op == K_PROD ? 1 : 0;
		for (int64_t j = 0; j < n; j++) {
			T e = from[k_place(over, j)];
			if (op == K_PROD)
				sum *= (SUM)e;
			else
				sum += (SUM)e;
			if (j == 0 || (op == K_MAX ? e > best : e < best) || ISNAN(e))
				best = e;
		}
		y[i] = op == K_MAX || op == K_MIN ? best : op == K_MEAN ? FROM((MEAN)sum / (MEAN)n) : FROM(sum);
	}
	return 0;
}

static int NAME(matmul)(T *y, const T *a, const T *b, int64_t batch, int64_t m, int64_t n, int64_t k, KMat as, KMat bs)
{
	for (int64_t i = 0; i < batch * m * n; i++) {
		const T *row = a + i / n / m * as.batch + i / n % m * as.row, *col = b + i / n / m * bs.batch + i % n * bs.col;
		SUM sum = 0;
		for (int64_t j = 0; j < k; j++)
			sum += (SUM)row[j * as.col] * (SUM)col[j * bs.row];
		y[i] = FROM(sum);
	}
	return 0;
}

/* What stands at y and v, combined. */
static void NAME(combine)(T *y, T v, KScatter how)
{
	if (how == K_PUT)
		*y = v;
	else if (how == K_ADD)
		*y = FROM((SUM)*y + (SUM)v);
	else if (how == K_MUL)
		*y = FROM((SUM)*y * (SUM)v);
	else if ((how == K_LARGEST ? v > *y : v < *y) || ISNAN(v))
		*y = v;
}

static int NAME(scatter_elements)(Ctx *c, T *y, const T *x, const int64_t *index, const T *updates, int64_t total, const KLoops *l, int64_t n,
                                  int64_t stride, KScatter how)
{
	memmove(y, x, (size_t)total * sizeof *y);
	for (int64_t i = 0; i < k_count(l); i++) {
		int64_t at = index_of(index[i], n);
		if (at < 0)
			return bad_index(c, i, index[i], n);
		NAME(combine)(y + k_place(l, i) + at * stride, updates[i], how);
	}
	return 0;
}

static int NAME(scatter_nd)(Ctx *c, T *y, const T *x, const int64_t *index, const T *updates, int64_t total, const KNd *d, KScatter how)
{
	int code = 0;
	for (int64_t i = 0; i < total; i++)
		y[i] = x ? x[i] : 0;
	for (int64_t i = 0; i < d->batch * d->many; i++) {
		int64_t at = nd_place(c, index, i, d, &code);
		if (code)
			return code;
		for (int64_t j = 0; j < d->run; j++)
			NAME(combine)(y + at + j, updates[i * d->run + j], how);
	}
	return 0;
}

static int NAME(gather_grad)(Ctx *c, T *y, const T *dy, const int64_t *index, int64_t outer, int64_t n, int64_t inner, int64_t many)
{
	for (int64_t i = 0; i < outer * n * inner; i++)
		y[i] = 0;
	for (int64_t i = 0; i < outer * many; i++) {
		int64_t at = index_of(index[i % many], n);
		if (at < 0)
			return bad_index(c, i % many, index[i % many], n);
		for (int64_t j = 0; j < inner; j++)
			NAME(combine)(y + (i / many * n + at) * inner + j, dy[i * inner + j], K_ADD);
	}
	return 0;
}

static int NAME(pad_grad)(T *dx, const T *dy, const KPad *p)
{
	for (int64_t i = 0, n = pad_count(p, p->in); i < n; i++)
		dx[i] = 0;
	for (int64_t i = 0, n = pad_count(p, p->out); i < n; i++) {
		int64_t at = pad_behind(p, i);
		if (at >= 0)
			NAME(combine)(dx + at, dy[i], K_ADD);
	}
	return 0;
}

static int NAME(cumsum)(T *y, const T *x, int64_t outer, int64_t n, int64_t inner, bool exclusive, bool reverse)
{
	for (int64_t r = 0; r < outer * inner; r++) {
		SUM sum = 0;
		for (int64_t k = 0; k < n; k++) {
			int64_t at = r / inner * n * inner + r % inner + (reverse ? n - 1 - k : k) * inner;
			SUM v = (SUM)x[at];
			y[at] = FROM(exclusive ? sum : sum + v);
			sum += v;
		}
	}
	return 0;
}

/* Which of two comes first among the largest (or smallest): NaN is the largest, and of equals the one that stands first. */
static bool NAME(before)(T a, int64_t i, T b, int64_t j, bool largest)
{
	bool na = ISNAN(a), nb = ISNAN(b);
	if (na != nb)
		return largest ? na : nb;
	if (!na && a != b)
		return largest ? a > b : a < b;
	return i < j;
}

static int NAME(topk)(T *y, int64_t *index, const T *x, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest)
{
	for (int64_t r = 0; r < outer * inner; r++) {
		const T *v = x + r / inner * n * inner + r % inner;
		int64_t last = -1;
		for (int64_t m = 0; m < k; m++) {
			int64_t best = -1, to = r / inner * k * inner + r % inner + m * inner;
			for (int64_t i = 0; i < n; i++)
				if ((last < 0 || NAME(before)(v[last * inner], last, v[i * inner], i, largest)) &&
				    (best < 0 || NAME(before)(v[i * inner], i, v[best * inner], best, largest)))
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

static int NAME(argmax)(int64_t *y, const T *x, int64_t outer, int64_t n, int64_t inner, bool largest, bool last)
{
	for (int64_t r = 0; r < outer * inner; r++) {
		const T *v = x + r / inner * n * inner + r % inner;
		int64_t best = 0;
		for (int64_t i = 1; i < n; i++)         /* of equals the first, or the last: then the other way round */
			if (NAME(before)(v[i * inner], last ? -i : i, v[best * inner], last ? -best : best, largest))
				best = i;
		y[r] = best;
	}
	return 0;
}

#undef T
#undef SUM
#undef MEAN
#undef NAME
#undef FROM
#undef ISNAN
