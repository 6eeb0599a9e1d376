/* The loops of window.c for one type of elements T, named by NAME(f); convolutions and sums where REAL is defined. */

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

static int NAME(maxpool)(T *y, int64_t *index, const T *x, int64_t planes, const KWindows *w, bool columns)
{
	int64_t nin = product(w, w->in), nout = product(w, w->out);
	for (int64_t i = 0; i < planes * nout; i++) {
		int64_t at = NAME(largest)(x + i / nout * nin, w, i % nout);
		if (y)
			y[i] = at < 0 ? LEAST : x[i / nout * nin + at];
		if (index)
			index[i] = at < 0 ? -1 : i / nout * nin + (columns ? by_columns(w, at) : at);
	}
	return 0;
}

#ifdef REAL

static int NAME(maxpool_grad)(T *dx, const T *g, const T *x, int64_t planes, const KWindows *w)
{
	int64_t nin = product(w, w->in), nout = product(w, w->out);
	for (int64_t i = 0; i < planes * nin; i++)
		dx[i] = 0;
	for (int64_t i = 0; i < planes * nout; i++) {
		int64_t at = NAME(largest)(x + i / nout * nin, w, i % nout);
		if (at >= 0)
			dx[i / nout * nin + at] += g[i];
	}
	return 0;
}

/* One of y, x and f is the result, to which products of the others are added. */
static int NAME(conv)(Way way, T *y, T *x, T *f, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *w)
{
	int64_t nin = product(w, w->in), nout = product(w, w->out), nk = product(w, w->k);
	bool inside;
	for (int64_t b = 0; b < batch; b++)
		for (int64_t g = 0; g < groups; g++)
			for (int64_t o = 0; o < cout; o++)
				for (int64_t i = 0; i < cin; i++)
					for (int64_t p = 0; p < nk; p++) {
						T *fp = f + ((g * cout + o) * cin + i) * nk + p;
						for (int64_t q = 0; q < nout; q++) {
							int64_t at = under(w, q, p, &inside);
							T *xp = x + ((b * groups + g) * cin + i) * nin + at, *yp = y + ((b * groups + g) * cout + o) * nout + q;
							if (at < 0)
								continue;
							if (way == FORWARD)
								*yp += *fp * *xp;
							else if (way == GRAD_X)
								*xp += *fp * *yp;
							else
								*fp += *xp * *yp;
						}
					}
	return 0;
}

/* y is the bias of its channel, or zero. */
static int NAME(begin)(T *y, const T *b, int64_t planes, int64_t channels, int64_t nout)
{
	for (int64_t i = 0; i < planes * nout; i++)
		y[i] = b ? b[i / nout % channels] : 0;
	return 0;
}

/* What the sum over a window is multiplied by. */
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

static int NAME(sumpool)(T *y, const T *x, int64_t planes, const KWindows *w, KPool kind)
{
	int64_t nin = product(w, w->in), nout = product(w, w->out), nk = product(w, w->k);
	bool inside;
	for (int64_t i = 0; i < planes * nout; i++) {
		T sum = 0;
		for (int64_t p = 0; p < nk; p++) {
			int64_t at = under(w, i % nout, p, &inside);
			if (at >= 0)
				sum += x[i / nout * nin + at];
		}
		y[i] = sum * NAME(weight)(w, i % nout, kind);
	}
	return 0;
}

static int NAME(sumpool_grad)(T *dx, const T *g, int64_t planes, const KWindows *w, KPool kind)
{
	int64_t nin = product(w, w->in), nout = product(w, w->out), nk = product(w, w->k);
	bool inside;
	for (int64_t i = 0; i < planes * nin; i++)
		dx[i] = 0;
	for (int64_t i = 0; i < planes * nout; i++) {
		T v = g[i] * NAME(weight)(w, i % nout, kind);
		for (int64_t p = 0; p < nk; p++) {
			int64_t at = under(w, i % nout, p, &inside);
			if (at >= 0)
				dx[i / nout * nin + at] += v;
		}
	}
	return 0;
}

#undef REAL
#endif
#undef T
#undef NAME
#undef LEAST
#undef ISNAN
