/* The loops of window.c for one type of elements T, named by NAME(f); convolutions and sums only if REAL is defined.
 * Each function runs iterations lo to hi - 1 of the loop over its results. */

static int64_t NAME(largest)(const T *x, const KWindows *w, int64_t o)
{
	int64_t best = -1;
	bool inside;
	for (int64_t p = 0, nk = product(w, w->k); p < nk; p++) {
		int64_t at = under(w, o, p, &inside);
		if (at >= 0 && (best < 0 || x[at] > x[best] || (ISNAN(x[at]) && !ISNAN(x[best]))))
			best = at;
	}
	return best;
}

static void NAME(maxpool)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Pool *l = arg;
	const KWindows *w = l->w;
	int64_t nin = product(w, w->in), nout = product(w, w->out);
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		const T *x = (const T *)l->x + i / nout * nin;
		int64_t at = NAME(largest)(x, w, i % nout);
		if (l->y)
			((T *)l->y)[i] = at < 0 ? LEAST : x[at];
		if (l->index)
			l->index[i] = at < 0 ? -1 : i / nout * nin + (l->columns ? by_columns(w, at) : at);
	}
}

#ifdef REAL

/* One iteration per plane of dx: windows of different planes do not overlap. */
static void NAME(maxpool_grad)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Pool *l = arg;
	const KWindows *w = l->w;
	int64_t nin = product(w, w->in), nout = product(w, w->out), own = product(w, l->own ? l->own->size : w->in);
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		const T *x = (const T *)l->x + i * nin, *g = (const T *)l->g + i * nout;
		T *dx = (T *)l->y + i * own;
		for (int64_t k = 0; k < own; k++)
			dx[k] = 0;
		for (int64_t o = 0; o < nout; o++) {
			int64_t at = NAME(largest)(x, w, o);
			if (at >= 0 && (at = stretch_at(l, at)) >= 0)
				dx[at] += g[o];
		}
	}
}

/* Adds the products of input channel i and output channel o of group g of one image to the result, which is one of y, x
 * and f. */
static void NAME(add_planes)(const Conv *v, int64_t b, int64_t g, int64_t o, int64_t i)
{
	const KWindows *w = v->w;
	int64_t nin = product(w, w->in), nout = product(w, w->out), nk = product(w, w->k);
	T *y = (T *)v->y + ((b * v->groups + g) * v->cout + o) * nout,
		*x = (T *)v->x + ((b * v->groups + g) * v->cin + i) * nin;
	T *f = (T *)v->f + ((g * v->cout + o) * v->cin + i) * nk;
	bool inside;
	for (int64_t p = 0; p < nk; p++)
		for (int64_t q = 0; q < nout; q++) {
			int64_t at = under(w, q, p, &inside);
			if (at < 0)
				continue;
			if (v->way == FORWARD)
				y[q] += f[p] * x[at];
			else if (v->way == GRAD_X)
				x[at] += f[p] * y[q];
			else
				f[p] += x[at] * y[q];
		}
}

/* One iteration per plane of the result, which begins as the bias of its channel, or zero. */
static void NAME(conv)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Conv *v = arg;
	const KWindows *w = v->w;
	int64_t n = product(w, v->way == FORWARD ? w->out : v->way == GRAD_X ? w->in : w->k),
		own = v->way == FORWARD ? v->cout : v->cin;
	T *to = v->way == FORWARD ? v->y : v->way == GRAD_X ? v->x : v->f;
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		int64_t mine = r % own, g = r / own % v->groups, b = r / own / v->groups;
		for (int64_t k = 0; k < n; k++)
			to[r * n + k] = v->bias ? ((const T *)v->bias)[g * own + mine] : 0;
		if (v->way == FORWARD)
			for (int64_t i = 0; i < v->cin; i++)
				NAME(add_planes)(v, b, g, mine, i);
		else if (v->way == GRAD_X)
			for (int64_t o = 0; o < v->cout; o++)
				NAME(add_planes)(v, b, g, o, mine);
		else
			for (int64_t image = 0; image < v->batch; image++)
				NAME(add_planes)(v, image, r / own / v->cout, r / own % v->cout, mine);
	}
}

/* The factor of the sum over a window. */
static T NAME(weight)(const KWindows *w, int64_t o, KPool kind)
{
	int64_t n = 0;
	bool inside;
	if (kind == K_POOL_SUM)
		return 1;
	for (int64_t p = 0, nk = product(w, w->k); p < nk; p++) {
		int64_t at = under(w, o, p, &inside);
		n += kind == K_POOL_PADDED ? inside : at >= 0;
	}
	return n ? 1 / (T)n : 0;
}

static void NAME(sumpool)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Pool *l = arg;
	const KWindows *w = l->w;
	int64_t nin = product(w, w->in), nout = product(w, w->out), nk = product(w, w->k);
	bool inside;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		const T *x = (const T *)l->x + i / nout * nin;
		T sum = 0;
		for (int64_t p = 0; p < nk; p++) {
			int64_t at = under(w, i % nout, p, &inside);
			if (at >= 0)
				sum += x[at];
		}
		((T *)l->y)[i] = sum * NAME(weight)(w, i % nout, l->kind);
	}
}

/* One iteration per plane of dx. */
static void NAME(sumpool_grad)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Pool *l = arg;
	const KWindows *w = l->w;
	int64_t nout = product(w, w->out), nk = product(w, w->k), own = product(w, l->own ? l->own->size : w->in);
	bool inside;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		const T *g = (const T *)l->g + i * nout;
		T *dx = (T *)l->y + i * own;
		for (int64_t k = 0; k < own; k++)
			dx[k] = 0;
		for (int64_t o = 0; o < nout; o++) {
			T v = g[o] * NAME(weight)(w, o, l->kind);
			for (int64_t p = 0; p < nk; p++) {
				int64_t at = under(w, o, p, &inside);
				if (at >= 0 && (at = stretch_at(l, at)) >= 0)
					dx[at] += v;
			}
		}
	}
}

#undef REAL
#endif
#undef T
#undef NAME
#undef LEAST
#undef ISNAN
