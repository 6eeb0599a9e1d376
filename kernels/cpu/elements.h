/* The loops of typed.c for one type of elements.  The includer defines:
 *
 *     T        the type in memory               NAME(f)  f with the type appended
 *     SUM      the type of sums and products,   FROM(s)  a SUM converted to T
 *              in which integers wrap around    ISNAN(v) whether v is not a number
 *     MEAN     the type in which a mean is divided
 *
 * Each function runs iterations lo to hi - 1 of the loop over its results. */

static void NAME(reduce)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Reduce *r = arg;
	KReduce op = r->op;
	int64_t n = k_count(&r->over);
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		const T *from = (const T *)r->x + k_offset(&r->keep, i);
		T best = 0;
		SUM sum = op == K_PROD ? 1 : 0;
		for (int64_t j = 0; j < n; j++) {
			T e = from[k_offset(&r->over, j)];
			if (op == K_PROD)
				sum *= (SUM)e;
			else
				sum += (SUM)e;
			if (j == 0 || (op == K_MAX ? e > best : e < best) || ISNAN(e))
				best = e;
		}
		((T *)r->y)[i] = op == K_MAX ||
			op == K_MIN ? best : op == K_MEAN ? FROM((MEAN)sum / (MEAN)n) : FROM(sum);
	}
}

static void NAME(matmul)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Product *p = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t row = i / p->n, col = i % p->n, batch = row / p->m;
		const T *a = (const T *)p->a + batch * p->as.batch + row % p->m * p->as.row,
			*b = (const T *)p->b + batch * p->bs.batch + col * p->bs.col;
		SUM sum = 0;
		for (int64_t j = 0; j < p->k; j++)
			sum += (SUM)a[j * p->as.col] * (SUM)b[j * p->bs.row];
		((T *)p->y)[i] = FROM(sum);
	}
}

/* *y = *y combined with v. */
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

/* Sets the elements of y before updates are scattered into them. */
static void NAME(begin)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Scatter *s = arg;
	(void)thread;
	if (s->x)
		memcpy((T *)s->y + lo, (const T *)s->x + lo, (size_t)(hi - lo) * sizeof(T));
	else
		memset((T *)s->y + lo, 0, (size_t)(hi - lo) * sizeof(T));
}

/* One iteration for each line along the indexed axis. */
static void NAME(scatter_lines)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Scatter *s = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		T *y = (T *)s->y + k_offset(&s->to, i);
		int64_t from = k_offset(&s->from, i);
		for (int64_t j = from; j < from + s->many * s->step; j += s->step)
			NAME(combine)(y + index_of(s->index[j], s->n) * s->stride, ((const T *)s->updates)[j], s->how);
	}
}

/* One iteration for each column of the rows that tuples select, for each element of the batch. */
static void NAME(scatter_columns)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Scatter *s = arg;
	const KNd *d = &s->nd;
	(void)thread;
	for (int64_t b = lo / d->run; b * d->run < hi; b++) {
		int64_t from = lo - b * d->run, to = hi - b * d->run;
		from = from > 0 ? from : 0;
		to = to < d->run ? to : d->run;
		for (int64_t i = b * d->many; i < (b + 1) * d->many; i++) {
			T *y = (T *)s->y + (s->shared ? b * d->xbatch + nd_place(s->index, i - b * d->many, d)
				: nd_place(s->index, i, d));
			const T *update = (const T *)s->updates + i * d->run;
			for (int64_t j = from; j < to; j++)
				NAME(combine)(y + j, update[j], s->how);
		}
	}
}

/* One iteration for each index of the axes before the first padded axis. */
static void NAME(pad_grad)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const PadGrad *g = arg;
	int64_t nin = pad_count(&g->pad, g->pad.in), nout = pad_count(&g->pad, g->pad.out);
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		T *dx = (T *)g->dx + i * nin;
		const T *dy = (const T *)g->dy + i * nout;
		memset(dx, 0, (size_t)nin * sizeof *dx);
		for (int64_t j = 0; j < nout; j++) {
			int64_t at = pad_behind(&g->pad, j);
			if (at >= 0)
				NAME(combine)(dx + at, dy[j], K_ADD);
		}
	}
}

static void NAME(cumsum)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Lines *l = arg;
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		SUM sum = 0;
		for (int64_t k = 0; k < l->n; k++) {
			int64_t at = r / l->inner * l->n * l->inner + r % l->inner +
				(l->reverse ? l->n - 1 - k : k) * l->inner;
			SUM v = (SUM)((const T *)l->x)[at];
			((T *)l->y)[at] = FROM(l->exclusive ? sum : sum + v);
			sum += v;
		}
	}
}

/* Whether a (at index i) comes before b (at index j) in order of size: NaN is the largest, and of equal elements the
 * one with the lower index comes first. */
static bool NAME(before)(T a, int64_t i, T b, int64_t j, bool largest)
{
	bool na = ISNAN(a), nb = ISNAN(b);
	if (na != nb)
		return largest ? na : nb;
	if (!na && a != b)
		return largest ? a > b : a < b;
	return i < j;
}

static void NAME(topk)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Lines *l = arg;
	int64_t inner = l->inner;
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		const T *v = (const T *)l->x + r / inner * l->n * inner + r % inner;
		int64_t last = -1;
		for (int64_t m = 0; m < l->k; m++) {
			int64_t best = -1, to = r / inner * l->k * inner + r % inner + m * inner;
			for (int64_t i = 0; i < l->n; i++)
				if ((last < 0 || NAME(before)(v[last * inner], last, v[i * inner], i, l->largest)) &&
				    (best < 0 || NAME(before)(v[i * inner], i, v[best * inner], best, l->largest)))
					best = i;
			if (l->y)
				((T *)l->y)[to] = v[best * inner];
			if (l->index)
				l->index[to] = best;
			last = best;
		}
	}
}

static void NAME(argmax)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Lines *l = arg;
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		const T *v = (const T *)l->x + r / l->inner * l->n * l->inner + r % l->inner;
		int64_t best = 0;
		for (int64_t i = 1; i < l->n; i++)      /* negated indices prefer the last of equals */
			if (NAME(before)(v[i * l->inner], l->last ? -i : i,
			                 v[best * l->inner], l->last ? -best : best, l->largest))
				best = i;
		l->index[r] = best;
	}
}

#undef T
#undef SUM
#undef MEAN
#undef NAME
#undef FROM
#undef ISNAN
