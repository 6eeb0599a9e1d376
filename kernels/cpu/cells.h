/* The steps of LSTM, GRU and RNN cells for one type of numbers T, of sequences lo to hi - 1, one after the other.  The
 * includer defines T, its EXP and TANH, and NAME(f), which appends the type to a name.  The scratch of a thread has
 * room for eight states. */

static T NAME(sigmoid)(T v)
{
	return 1 / (1 + EXP(-v));
}

/* v = x + R h, for n gates; r is [n, hidden]. */
static void NAME(gates_of)(T *v, const T *x, const T *r, const T *h, int64_t n, int64_t hidden)
{
	for (int64_t g = 0; g < n; g++) {
		v[g] = x ? x[g] : 0;
		for (int64_t k = 0; k < hidden; k++)
			v[g] += r[g * hidden + k] * h[k];
	}
}

/* dh += R' v, for n gates. */
static void NAME(back_through)(T *dh, const T *v, const T *r, int64_t n, int64_t hidden)
{
	for (int64_t g = 0; g < n; g++)
		for (int64_t k = 0; k < hidden; k++)
			dh[k] += r[g * hidden + k] * v[g];
}

/* Copies n numbers from x, or zeros if x is NULL; does nothing if y is NULL. */
static void NAME(put)(T *y, const T *x, int64_t n)
{
	for (int64_t i = 0; y && i < n; i++)
		y[i] = x ? x[i] : 0;
}

static T *NAME(at)(T *p, int64_t i)
{
	return p ? p + i : NULL;
}

static const T *NAME(from)(const T *p, int64_t i)
{
	return p ? p + i : NULL;
}

static void NAME(lstm)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Cells *a = arg;
	const KCells *k = a->k;
	const int32_t *lens = a->lens;
	T *y = a->y, *yh = a->yh, *before = a->before, *gates = a->gates, *yc = a->yc, *cells = a->cells,
		*work = turns_work(a->c, thread);
	const T *xw = a->xw, *r = a->r, *h0 = a->h0, *c0 = a->c0;
	int64_t n = k->hidden;
	T *h = work, *s = work + n, *v = work + 2 * n;
	for (int64_t b = lo; b < hi; b++) {
		NAME(put)(h, NAME(from)(h0, b * n), n);
		NAME(put)(s, NAME(from)(c0, b * n), n);
		for (int64_t t = 0; t < k->steps; t++) {
			int64_t row = t * k->batch + b;
			bool live = !lens || t < lens[b];
			NAME(put)(NAME(at)(before, row * n), h, n);
			NAME(gates_of)(v, xw + row * 4 * n, r, h, 4 * n, n);
			for (int64_t j = 0; j < n; j++) {
				T i = NAME(sigmoid)(v[j]), o = NAME(sigmoid)(v[n + j]),
					f = NAME(sigmoid)(v[2 * n + j]), g = TANH(v[3 * n + j]);
				T next = f * s[j] + i * g, out = o * TANH(next);
				v[j] = i;
				v[n + j] = o;
				v[2 * n + j] = f;
				v[3 * n + j] = g;
				if (y)
					y[row * n + j] = live ? out : 0;
				h[j] = live ? out : h[j];
				s[j] = live ? next : s[j];
			}
			NAME(put)(NAME(at)(gates, row * 4 * n), v, 4 * n);
			NAME(put)(NAME(at)(cells, row * n), s, n);
		}
		NAME(put)(NAME(at)(yh, b * n), h, n);
		NAME(put)(NAME(at)(yc, b * n), s, n);
	}
}

static void NAME(lstm_grad)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Cells *a = arg;
	const KCells *k = a->k;
	const int32_t *lens = a->lens;
	T *dxw = a->dxw, *dh0 = a->dh0, *dc0 = a->dc0, *work = turns_work(a->c, thread);
	const T *dy = a->dy, *dyh = a->dyh, *gates = a->stay, *r = a->r, *dyc = a->dyc, *cells = a->state, *c0 = a->c0;
	int64_t n = k->hidden;
	T *dh = work, *ds = work + n, *d = work + 2 * n;
	for (int64_t b = lo; b < hi; b++) {
		NAME(put)(dh, NAME(from)(dyh, b * n), n);
		NAME(put)(ds, NAME(from)(dyc, b * n), n);
		for (int64_t t = k->steps - 1; t >= 0; t--) {
			int64_t row = t * k->batch + b;
			const T *v = gates + row * 4 * n,
				*old = t ? cells + (row - k->batch) * n : NAME(from)(c0, b * n);
			NAME(put)(NAME(at)(dxw, row * 4 * n), NULL, 4 * n);
			if (lens && t >= lens[b])
				continue;
			for (int64_t j = 0; j < n; j++) {
				T i = v[j], o = v[n + j], f = v[2 * n + j], g = v[3 * n + j],
					out = TANH(cells[row * n + j]);
				T dout = dh[j] + dy[row * n + j], dnext = ds[j] + dout * o * (1 - out * out);
				d[j] = dnext * g * i * (1 - i);
				d[n + j] = dout * out * o * (1 - o);
				d[2 * n + j] = dnext * (old ? old[j] : 0) * f * (1 - f);
				d[3 * n + j] = dnext * i * (1 - g * g);
				ds[j] = dnext * f;
			}
			NAME(put)(dh, NULL, n);
			NAME(back_through)(dh, d, r, 4 * n, n);
			NAME(put)(NAME(at)(dxw, row * 4 * n), d, 4 * n);
		}
		NAME(put)(NAME(at)(dh0, b * n), dh, n);
		NAME(put)(NAME(at)(dc0, b * n), ds, n);
	}
}

/* inner is the factor of the reset gate: R h plus its bias (linear), or else the reset state r * h. */
static void NAME(gru)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Cells *a = arg;
	const KCells *k = a->k;
	const int32_t *lens = a->lens;
	T *y = a->y, *yh = a->yh, *before = a->before, *gates = a->gates, *inner = a->inner,
		*work = turns_work(a->c, thread);
	const T *xw = a->xw, *r = a->r, *h0 = a->h0, *rb = a->rb;
	int64_t n = k->hidden;
	T *h = work, *v = work + n, *u = work + 4 * n;
	for (int64_t b = lo; b < hi; b++) {
		NAME(put)(h, NAME(from)(h0, b * n), n);
		for (int64_t t = 0; t < k->steps; t++) {
			int64_t row = t * k->batch + b;
			const T *x = xw + row * 3 * n;
			bool live = !lens || t < lens[b];
			NAME(put)(NAME(at)(before, row * n), h, n);
			NAME(gates_of)(v, x, r, h, 2 * n, n);
			for (int64_t j = 0; j < 2 * n; j++)
				v[j] = NAME(sigmoid)(v[j]);
			if (k->linear) {
				NAME(gates_of)(u, rb, r + 2 * n * n, h, n, n);
				for (int64_t j = 0; j < n; j++)
					v[2 * n + j] = TANH(x[2 * n + j] + v[n + j] * u[j]);
			} else {
				for (int64_t j = 0; j < n; j++)
					u[j] = v[n + j] * h[j];
				NAME(gates_of)(v + 2 * n, x + 2 * n, r + 2 * n * n, u, n, n);
				for (int64_t j = 0; j < n; j++)
					v[2 * n + j] = TANH(v[2 * n + j]);
			}
			for (int64_t j = 0; j < n; j++) {
				T out = (1 - v[j]) * v[2 * n + j] + v[j] * h[j];
				if (y)
					y[row * n + j] = live ? out : 0;
				h[j] = live ? out : h[j];
			}
			NAME(put)(NAME(at)(gates, row * 3 * n), v, 3 * n);
			NAME(put)(NAME(at)(inner, row * n), u, n);
		}
		NAME(put)(NAME(at)(yh, b * n), h, n);
	}
}

/* side is the gradient of the products with R.  It equals dxw, except for the candidate gate of a linear reset. */
static void NAME(gru_grad)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Cells *a = arg;
	const KCells *k = a->k;
	const int32_t *lens = a->lens;
	T *dxw = a->dxw, *dh0 = a->dh0, *side = a->side, *work = turns_work(a->c, thread);
	const T *dy = a->dy, *dyh = a->dyh, *gates = a->stay, *r = a->r, *before = a->was, *inner = a->saved;
	int64_t n = k->hidden;
	T *dh = work, *dreset = work + n, *e = work + 2 * n, *d = work + 5 * n;
	for (int64_t b = lo; b < hi; b++) {
		NAME(put)(dh, NAME(from)(dyh, b * n), n);
		for (int64_t t = k->steps - 1; t >= 0; t--) {
			int64_t row = t * k->batch + b;
			const T *z = gates + row * 3 * n, *reset = z + n, *g = z + 2 * n, *h = before + row * n;
			NAME(put)(NAME(at)(dxw, row * 3 * n), NULL, 3 * n);
			NAME(put)(NAME(at)(side, row * 3 * n), NULL, 3 * n);
			if (lens && t >= lens[b])
				continue;
			for (int64_t j = 0; j < n; j++) {
				T dout = dh[j] + dy[row * n + j];
				d[j] = dout * (h[j] - g[j]) * z[j] * (1 - z[j]);
				d[2 * n + j] = dout * (1 - z[j]) * (1 - g[j] * g[j]);
				dh[j] = dout * z[j];
				dreset[j] = k->linear ? d[2 * n + j] * inner[row * n + j] : 0;
			}
			if (!k->linear) {
				NAME(back_through)(dreset, d + 2 * n, r + 2 * n * n, n, n);
				for (int64_t j = 0; j < n; j++) {
					dh[j] += dreset[j] * reset[j];
					dreset[j] *= h[j];
				}
			}
			for (int64_t j = 0; j < n; j++) {
				d[n + j] = dreset[j] * reset[j] * (1 - reset[j]);
				e[j] = d[j];
				e[n + j] = d[n + j];
				e[2 * n + j] = k->linear ? d[2 * n + j] * reset[j] : d[2 * n + j];
			}
			NAME(back_through)(dh, e, r, k->linear ? 3 * n : 2 * n, n);
			NAME(put)(NAME(at)(dxw, row * 3 * n), d, 3 * n);
			NAME(put)(NAME(at)(side, row * 3 * n), e, 3 * n);
		}
		NAME(put)(NAME(at)(dh0, b * n), dh, n);
	}
}

static void NAME(rnn)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Cells *a = arg;
	const KCells *k = a->k;
	const int32_t *lens = a->lens;
	T *y = a->y, *yh = a->yh, *before = a->before, *work = turns_work(a->c, thread);
	const T *xw = a->xw, *r = a->r, *h0 = a->h0;
	int64_t n = k->hidden;
	T *h = work, *v = work + n;
	for (int64_t b = lo; b < hi; b++) {
		NAME(put)(h, NAME(from)(h0, b * n), n);
		for (int64_t t = 0; t < k->steps; t++) {
			int64_t row = t * k->batch + b;
			bool live = !lens || t < lens[b];
			NAME(put)(NAME(at)(before, row * n), h, n);
			NAME(gates_of)(v, xw + row * n, r, h, n, n);
			for (int64_t j = 0; j < n; j++) {
				T out = TANH(v[j]);
				if (y)
					y[row * n + j] = live ? out : 0;
				h[j] = live ? out : h[j];
			}
		}
		NAME(put)(NAME(at)(yh, b * n), h, n);
	}
}

static void NAME(rnn_grad)(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Cells *a = arg;
	const KCells *k = a->k;
	const int32_t *lens = a->lens;
	T *dxw = a->dxw, *dh0 = a->dh0, *work = turns_work(a->c, thread);
	const T *dy = a->dy, *dyh = a->dyh, *y = a->state, *r = a->r;
	int64_t n = k->hidden;
	T *dh = work, *d = work + n;
	for (int64_t b = lo; b < hi; b++) {
		NAME(put)(dh, NAME(from)(dyh, b * n), n);
		for (int64_t t = k->steps - 1; t >= 0; t--) {
			int64_t row = t * k->batch + b;
			NAME(put)(NAME(at)(dxw, row * n), NULL, n);
			if (lens && t >= lens[b])
				continue;
			for (int64_t j = 0; j < n; j++)
				d[j] = (dh[j] + dy[row * n + j]) * (1 - y[row * n + j] * y[row * n + j]);
			NAME(put)(dh, NULL, n);
			NAME(back_through)(dh, d, r, n, n);
			NAME(put)(NAME(at)(dxw, row * n), d, n);
		}
		NAME(put)(NAME(at)(dh0, b * n), dh, n);
	}
}

#undef T
#undef NAME
#undef EXP
#undef TANH
