/* Fourier transforms as products with constant matrices, the mel filter bank as a constant, and the determinant.
 *
 * A transform along an axis of n (real or complex) numbers is linear, so it is one matrix of (n * parts in) rows and
 * (m * parts out) columns: padding, truncation, one-sided spectra and the inverse only change its entries.  Beyond
 * DIRECT points the matrix would be mostly wasted work: the axis is then made n complex numbers, and n = a * b is done
 * as transforms of a and of b with a product between them (Cooley and Tukey 1965); a length without a divisor that
 * helps is a convolution, done by transforms of a power of two (Bluestein 1970). */
#include "ops.h"

#include <math.h>
#include <string.h>

typedef struct Dft {
	int64_t in, len, out; /* elements of the operand, length of the transform, elements of the result */
	int pin, pout;        /* 1 real, 2 complex */
	bool inverse, half;   /* half: one side of a spectrum, as result or (inverse) as operand */
	bool bare;            /* an inverse that is not divided by its length */
} Dft;

/* The weight of part q of element k of the result for part p of element i of the operand. */
static double entry(const Dft *d, int64_t i, int p, int64_t k, int q)
{
	double turn = 2 * M_PI * (double)(i * k % d->len) / (double)d->len, c = cos(turn), s = sin(turn),
	       w = 1;

	if (!d->inverse)
		return q == p ? c : p ? s : -s;
	if (d->half) { /* the other half is the conjugate of this one */
		if (i > d->len / 2)
			return 0;
		w = i == 0 || 2 * i == d->len ? 1 : 2;
	}
	return w / (d->bare ? 1 : (double)d->len) * (q == p ? c : p ? -s : s);
}

static Value *matrix(Node *n, DType type, const Dft *d)
{
	int64_t dim[2] = { d->in * d->pin, d->out * d->pout };

	if (!expand_room(n, dim[0], dim[1]))
		return NULL;
	double *w = arena_array(n->graph->scratch, double, dim[0] * dim[1]);
	for (int64_t i = 0; i < d->in && i < d->len; i++)
		for (int p = 0; p < d->pin; p++)
			for (int64_t k = 0; k < d->out; k++)
				for (int q = 0; q < d->pout; q++)
					w[(i * d->pin + p) * dim[1] + k * d->pout + q] = entry(d, i, p, k, q);
	return expand_table(n, type, w, 2, dim);
}

enum { DIRECT = 512 };

/* x times constants, complex both: x is [m, count, 2], t holds count pairs. */
static Value *times(Node *n, Value *x, DType type, const double *t, int64_t count)
{
	int64_t dim[2] = { count, 2 }, other[2] = { 1, 0 };

	if (!expand_room(n, count, 2))
		return NULL;
	double *same = arena_array(n->graph->scratch, double, 2 * count),
	       *cross = arena_array(n->graph->scratch, double, 2 * count);
	for (int64_t i = 0; i < count; i++) {
		same[2 * i] = same[2 * i + 1] = t[2 * i];
		cross[2 * i] = -t[2 * i + 1];
		cross[2 * i + 1] = t[2 * i + 1];
	}
	Value *swapped = expand_op(n, "Gather", "axis=-1", x, expand_ints(n, other, 2));
	return expand_op(n, "Add", NULL, expand_op(n, "Mul", NULL, x, expand_table(n, type, same, 2, dim)),
		expand_op(n, "Mul", NULL, swapped, expand_table(n, type, cross, 2, dim)));
}

/* The transform of m = 2^k pairs in place. */
static void power_of_two(double *v, int64_t m)
{
	for (int64_t i = 1, j = 0; i < m; i++) {        /* bits of the index reversed */
		int64_t bit = m >> 1;

		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		for (int p = 0; p < 2 && i < j; p++) {
			double t = v[2 * i + p];

			v[2 * i + p] = v[2 * j + p];
			v[2 * j + p] = t;
		}
	}
	for (int64_t len = 2; len <= m; len *= 2)
		for (int64_t k = 0; k < len / 2; k++) {
			double c = cos(2 * M_PI * (double)k / (double)len),
			       s = -sin(2 * M_PI * (double)k / (double)len);

			for (int64_t i = k; i < m; i += len) {
				double *x = v + 2 * i, *y = x + len, re = y[0] * c - y[1] * s, im = y[0] * s + y[1] * c;

				y[0] = x[0] - re;
				y[1] = x[1] - im;
				x[0] += re;
				x[1] += im;
			}
		}
}

static Value *fourier(Node *n, Value *x, DType type, int64_t len, int sign);

/* j k = (j^2 + k^2 - (k - j)^2) / 2: the sum over j is a convolution with e^(i pi j^2 / len), its ends multiplied by
 * the conjugate; long enough that nothing wraps around, it is done in the spectrum. */
static Value *convolved(Node *n, Value *x, DType type, int64_t len, int sign)
{
	int64_t m = 1, pads[6] = { 0 }, from = 0, axis = 1;

	while (m < 2 * len - 1)
		m *= 2;
	if (!expand_room(n, m, 4))
		return NULL;
	double *chirp = arena_array(n->graph->scratch, double, 2 * len),
	       *kernel = arena_array(n->graph->scratch, double, 2 * m);
	for (int64_t j = 0; j < len; j++) {
		double turn = M_PI * (double)(j * j % (2 * len)) / (double)len, c = cos(turn), s = sign * sin(turn);

		chirp[2 * j] = c;
		chirp[2 * j + 1] = s;
		kernel[2 * j] = c;
		kernel[2 * j + 1] = -s;
		kernel[2 * ((m - j) % m)] = c;
		kernel[2 * ((m - j) % m) + 1] = -s;
	}
	power_of_two(kernel, m);
	for (int64_t i = 0; i < 2 * m; i++)
		kernel[i] /= (double)m;         /* the inverse transform's share */
	pads[4] = m - len;
	x = expand_op(n, "Pad", NULL, times(n, x, type, chirp, len), expand_ints(n, pads, 6), expand_num(n, type, 0));
	x = times(n, fourier(n, x, type, m, -1), type, kernel, m);
	x = expand_op(n, "Slice", NULL, fourier(n, x, type, m, 1), expand_ints(n, &from, 1), expand_ints(n, &len, 1),
		expand_ints(n, &axis, 1));
	return times(n, x, type, chirp, len);
}

/* x is [m, len, 2]: each row's transform, with e^(sign 2 pi i j k / len), not scaled. */
static Value *fourier(Node *n, Value *x, DType type, int64_t len, int sign)
{
	int64_t flat[2] = { -1, 2 * len }, pairs[3] = { -1, len, 2 }, a = (int64_t)sqrt((double)len);

	if (len <= DIRECT) {
		Dft d = { .in = len, .len = len, .out = len, .pin = 2, .pout = 2, .inverse = sign > 0, .bare = true };

		x = expand_op(n, "Reshape", NULL, x, expand_ints(n, flat, 2));
		return expand_op(n, "Reshape", NULL, expand_op(n, "MatMul", NULL, x, matrix(n, type, &d)),
			expand_ints(n, pairs, 3));
	}
	for (a = a > DIRECT ? DIRECT : a; len % a;)     /* the nearest to the root: both products small */
		a--;
	if (a == 1)
		return convolved(n, x, type, len, sign);
	/* j = j1 b + j2 and k = k1 + a k2: over j1, then e^(j2 k1), then over j2. */
	int64_t b = len / a, split[4] = { -1, a, b, 2 }, rows[3] = { -1, a, 2 }, mid[4] = { -1, b, a, 2 },
	        cols[3] = { -1, b, 2 };
	if (!expand_room(n, len, 4))
		return NULL;
	double *turns = arena_array(n->graph->scratch, double, 2 * len);
	for (int64_t j = 0; j < b; j++)
		for (int64_t k = 0; k < a; k++) {
			double turn = 2 * M_PI * (double)(j * k) / (double)len;

			turns[2 * (j * a + k)] = cos(turn);
			turns[2 * (j * a + k) + 1] = sign * sin(turn);
		}
	x = expand_op(n, "Transpose", "perm=[0, 2, 1, 3]", expand_op(n, "Reshape", NULL, x, expand_ints(n, split, 4)));
	x = fourier(n, expand_op(n, "Reshape", NULL, x, expand_ints(n, rows, 3)), type, a, sign);
	x = times(n, expand_op(n, "Reshape", NULL, x, expand_ints(n, pairs, 3)), type, turns, len);
	x = expand_op(n, "Transpose", "perm=[0, 2, 1, 3]", expand_op(n, "Reshape", NULL, x, expand_ints(n, mid, 4)));
	x = fourier(n, expand_op(n, "Reshape", NULL, x, expand_ints(n, cols, 3)), type, b, sign);
	x = expand_op(n, "Transpose", "perm=[0, 2, 1, 3]", expand_op(n, "Reshape", NULL, x, expand_ints(n, split, 4)));
	return expand_op(n, "Reshape", NULL, x, expand_ints(n, pairs, 3));
}

static Value *until(Node *n, Value *x, int64_t axis, int64_t end)
{
	int64_t from = 0;

	return expand_op(n, "Slice", NULL, x, expand_ints(n, &from, 1), expand_ints(n, &end, 1),
		expand_ints(n, &axis, 1));
}

/* x is [m, d->in, d->pin]: as complex numbers, as many as the transform is long; transformed; cut to the result. */
static Value *long_transform(Node *n, Value *x, DType type, const Dft *d)
{
	int64_t pads[6] = { 0 }, rows[3] = { -1, d->in, d->pin }, in = d->in < d->len ? d->in : d->len;

	x = expand_op(n, "Reshape", NULL, x, expand_ints(n, rows, 3));
	if (d->inverse && d->half && in > d->len / 2 + 1)
		in = d->len / 2 + 1;
	if (in < d->in)
		x = until(n, x, 1, in);
	if (d->inverse && d->half) {    /* the other half is the conjugate of this one; only the real part is used */
		int64_t dim[2] = { in, 1 };
		double *w = arena_array(n->graph->scratch, double, in);

		for (int64_t i = 0; i < in; i++)
			w[i] = i == 0 || 2 * i == d->len ? 1 : 2;
		x = expand_op(n, "Mul", NULL, x, expand_table(n, type, w, 2, dim));
	}
	if (d->pin == 1)                /* times (1, 0) */
		x = expand_op(n, "Mul", NULL, x, expand_table(n, type, (double[]){ 1, 0 }, 1, (int64_t[]){ 2 }));
	pads[4] = d->len - in;
	if (pads[4])
		x = expand_op(n, "Pad", NULL, x, expand_ints(n, pads, 6), expand_num(n, type, 0));
	x = fourier(n, x, type, d->len, d->inverse ? 1 : -1);
	if (d->inverse)
		x = expand_op(n, "Mul", NULL, x, expand_num(n, type, 1 / (double)d->len));
	if (d->out < d->len)
		x = until(n, x, 1, d->out);
	return d->pout == 1 ? until(n, x, 2, 1) : x;
}

/* The transform of x along axis, which has ndim axes, the last of them the parts of a number. */
static Value *transform(Node *n, Value *x, DType type, int ndim, int axis, const Dft *d)
{
	int64_t perm[NDIM_MAX], flat = d->in * d->pin, back[2] = { d->out, d->pout };
	DType work = type == DT_DOUBLE ? type : DT_FLOAT;

	for (int i = 0; i < ndim; i++)
		perm[i] = i;
	perm[axis] = ndim - 2;
	perm[ndim - 2] = axis;
	char *swap = expand_list(n, "perm", perm, ndim);
	if (work != type)
		x = expand_cast(n, x, work);
	if (axis != ndim - 2)
		x = expand_op(n, "Transpose", swap, x);
	Value *lead = expand_op(n, "Shape", "end=-2", x);
	Value *y;
	if (d->len <= DIRECT) {
		y = expand_op(n, "Reshape", "allowzero=1", x,
			expand_op(n, "Concat", "axis=0", lead, expand_ints(n, &flat, 1)));
		y = expand_op(n, "MatMul", NULL, y, matrix(n, work, d));
	} else {
		y = long_transform(n, x, work, d);
	}
	y = expand_op(n, "Reshape", "allowzero=1", y,
		expand_op(n, "Concat", "axis=0", lead, expand_ints(n, back, 2)));
	if (axis != ndim - 2)
		y = expand_op(n, "Transpose", swap, y);
	return work != type ? expand_cast(n, y, type) : y;
}

static int read_int(Node *n, int i, const char *what, int64_t *v)
{
	if (i >= n->nin || !n->in[i])
		return 0;
	const Tensor *t = expand_const(n, i, what);
	if (!t)
		return -1;
	if (tensor_elements(t) != 1) {
		err_at(operand_loc(n, i), "%s: %s must be one number", n->op, what);
		return -1;
	}
	*v = tensor_int(t, 0);
	return 0;
}

static int expand_dft(Node *n)
{
	Type *t = operand_type(n, 0);
	bool old = n->row->until != 0;
	int64_t at = old ? attr_int(n, "axis") : -2, len = -1;
	Dft d = { .inverse = attr_int(n, "inverse") != 0, .half = attr_int(n, "onesided") != 0 };
	int axis;

	if (read_int(n, 1, "a length", &len) || (!old && read_int(n, 2, "an axis", &at)))
		return -1;
	if (!t || t->ndim < 2 || !dim_known(t->dim[t->ndim - 1]) || t->dim[t->ndim - 1] < 1 ||
		t->dim[t->ndim - 1] > 2) {
		err_at(operand_loc(n, 0), "DFT takes [..., n, 1] (real) or [..., n, 2] (complex), not %s",
			type_text(t));
		return -1;
	}
	if (op_axis(n, at, t->ndim, &axis))
		return -1;
	d.pin = (int)t->dim[t->ndim - 1];
	d.in = t->dim[axis];
	if (!dim_known(d.in) || d.in > INT32_MAX || axis == t->ndim - 1) {
		err_at(operand_loc(n, 0), "DFT needs an axis of known length, not axis %d of %s", axis,
			type_text(t));
		return -1;
	}
	d.len = n->nin > 1 && n->in[1] ? len : d.inverse && d.half ? 2 * (d.in - 1) : d.in;
	if (d.len <= 0 || d.len > INT32_MAX) {
		err_at(n->loc, "DFT of length %lld", (long long)d.len);
		return -1;
	}
	d.out = d.half && !d.inverse ? d.len / 2 + 1 : d.len;
	d.pout = d.half && d.inverse ? 1 : 2;
	return expand_result(n, 0, transform(n, n->in[0], t->elem, t->ndim, axis, &d));
}

static int expand_stft(Node *n)
{
	Type *t = operand_type(n, 0), *w = operand_type(n, 2);
	int64_t step = 0, len = -1;
	Dft d = { .half = attr_int(n, "onesided") != 0, .pout = 2 };

	if (read_int(n, 1, "a frame step", &step) || read_int(n, 3, "a frame length", &len))
		return -1;
	if (!t || t->ndim != 3 || !dim_known(t->dim[1]) || !dim_known(t->dim[2]) || t->dim[2] < 1 ||
		t->dim[2] > 2) {
		err_at(operand_loc(n, 0), "STFT takes a signal [batch, length, 1 or 2] of known length, not %s",
			type_text(t));
		return -1;
	}
	if (len < 0 && !w)
		len = t->dim[1];
	else if (len < 0)
		len = w->ndim == 1 ? w->dim[0] : -1;
	if (w && (w->ndim != 1 || dim_differ(w->dim[0], len))) {
		err_at(operand_loc(n, 2), "STFT: the window must be float[%lld], not %s", (long long)len,
			type_text(w));
		return -1;
	}
	if (len <= 0 || len > t->dim[1] || step <= 0) {
		err_at(n->loc, "STFT of frames of %lld, every %lld, of a signal of %lld", (long long)len,
			(long long)step, (long long)t->dim[1]);
		return -1;
	}
	int64_t frames = 1 + (t->dim[1] - len) / step, dim[2] = { frames, len }, column[2] = { len, 1 };
	if (!expand_room(n, frames, len))
		return -1;
	double *idx = arena_array(n->graph->scratch, double, frames *len);
	for (int64_t f = 0; f < frames; f++)
		for (int64_t i = 0; i < len; i++)
			idx[f * len + i] = (double)(f * step + i);
	Value *x = expand_op(n, "Gather", "axis=1", n->in[0], expand_table(n, DT_INT64, idx, 2, dim));
	if (w)
		x = expand_op(n, "Mul", NULL, x,
			expand_op(n, "Reshape", NULL, n->in[2], expand_ints(n, column, 2)));
	d.in = d.len = len;
	d.pin = (int)t->dim[2];
	d.out = d.half ? len / 2 + 1 : len;
	return expand_result(n, 0, transform(n, x, t->elem, 4, 2, &d));
}

/* Triangles whose corners are equally spaced on the mel scale, in bins of the spectrum. */
static int expand_mel(Node *n)
{
	double v[5];
	static const char *const what[] = { "a number of bands", "a length", "a sample rate", "a lower edge",
		"an upper edge" };

	for (int i = 0; i < 5; i++) {
		const Tensor *t = expand_const(n, i, what[i]);

		if (!t || tensor_elements(t) != 1)
			return -1;
		v[i] = tensor_get(t, 0);
	}
	if (!(v[0] >= 0 && v[0] < INT32_MAX && v[1] >= 0 && v[1] < INT32_MAX && v[2] > 0 && v[3] >= 0 &&
		    v[4] >= v[3] && isfinite(v[4]))) {
		err_at(n->loc, "MelWeightMatrix: %g bands, length %g, rate %g, from %g to %g", v[0], v[1],
			v[2], v[3], v[4]);
		return -1;
	}
	int64_t bands = (int64_t)v[0], len = (int64_t)v[1], bins = len / 2 + 1, dim[2] = { bins, bands };
	if (!expand_room(n, bins, bands + 2))
		return -1;
	double low = 2595 * log10(1 + v[3] / 700), high = 2595 * log10(1 + v[4] / 700),
	       step = (high - low) / (double)(bands + 2);
	double *w = arena_array(n->graph->scratch, double, bins *bands + 1);
	int64_t *bin = arena_array(n->graph->scratch, int64_t, bands + 2);
	for (int64_t i = 0; i < bands + 2; i++) {
		double hertz = 700 * (pow(10, (low + (double)i * step) / 2595) - 1);
		double at = floor((double)(len + 1) * hertz / v[2]);

		bin[i] = at < 0 ? 0 : at > (double)(bins - 1) ? bins - 1 : (int64_t)at;
	}
	for (int64_t i = 0; i < bands; i++) {
		int64_t l = bin[i], c = bin[i + 1], r = bin[i + 2];

		w[c * bands + i] = 1;
		for (int64_t j = l; j < c; j++)
			w[j * bands + i] = (double)(j - l) / (double)(c - l);
		for (int64_t j = c; j < r; j++)
			w[j * bands + i] = (double)(r - j) / (double)(r - c);
	}
	return expand_result(n, 0, expand_table(n, (DType)attr_int(n, "output_datatype"), w, 2, dim));
}

/* ---- the determinant ---- */

/* The determinant of the m by m matrix a, by elimination with partial pivoting; overwrites a. */
static double determinant(double *a, int64_t m)
{
	double det = 1;

	for (int64_t c = 0; c < m; c++) {
		int64_t p = c;

		for (int64_t r = c + 1; r < m; r++)
			if (fabs(a[r * m + c]) > fabs(a[p * m + c]))
				p = r;
		if (a[p * m + c] == 0)
			return 0;
		for (int64_t k = 0; k < m && p != c; k++) {
			double t = a[p * m + k];

			a[p * m + k] = a[c * m + k];
			a[c * m + k] = t;
		}
		det *= p == c ? a[c * m + c] : -a[c * m + c];
		for (int64_t r = c + 1; r < m; r++) {
			double f = a[r * m + c] / a[c * m + c];

			for (int64_t k = c; k < m; k++)
				a[r * m + k] -= f * a[c * m + k];
		}
	}
	return det;
}

static int square(Node *n)
{
	Type *t = operand_type(n, 0);

	if (t && t->ndim >= 0 && (t->ndim < 2 || dim_differ(t->dim[t->ndim - 1], t->dim[t->ndim - 2]))) {
		err_at(operand_loc(n, 0), "%s takes square matrices, not %s", n->op, type_text(t));
		return -1;
	}
	return 0;
}

static int shape_det(Node *n)
{
	Type *t = operand_type(n, 0);

	if (square(n))
		return -1;
	operand_set_result(n, 0, operand_dtype(n, 0), t && t->ndim >= 0 ? t->ndim - 2 : -1, t ? t->dim : NULL);
	return 0;
}

static int shape_cofactor(Node *n)
{
	return square(n) ? -1 : shape_like_first(n);
}

static int eval_det(Node *n, Tensor **in, Tensor **out)
{
	int64_t m = in[0]->dim[in[0]->ndim - 1], count = tensor_elements(out[0]);
	double *a = eval_doubles(in[0]);

	(void)n;
	for (int64_t b = 0; b < count; b++)
		tensor_set(out[0], b, determinant(a + b * m * m, m));
	return 0;
}

/* The derivative of the determinant: the signed minors.  They exist where the inverse does not. */
static int eval_cofactor(Node *n, Tensor **in, Tensor **out)
{
	int64_t m = in[0]->dim[in[0]->ndim - 1], count = tensor_elements(in[0]);
	double *a = eval_doubles(in[0]), *minor = eval_scratch(sizeof(double) * (size_t)(m * m + 1));

	(void)n;
	for (int64_t i = 0; i < count; i++) {
		const double *x = a + i / (m * m) * (m * m);
		int64_t row = i / m % m, col = i % m, k = 0;

		for (int64_t r = 0; r < m; r++)
			for (int64_t c = 0; c < m; c++)
				if (r != row && c != col)
					minor[k++] = x[r * m + c];
		tensor_set(out[0], i, ((row + col) % 2 ? -1 : 1) * determinant(minor, m - 1));
	}
	return 0;
}

static Cost cost_det(const Node *n)
{
	Type *t = operand_type(n, 0);
	Cost c = cost_bytes(n);
	int64_t e = t ? type_elements(t) : -1, m = t && t->ndim >= 2 ? t->dim[t->ndim - 1] : -1;

	if (e >= 0 && m >= 0)
		c.flops = (double)e * (double)m *
		          (!strcmp(n->op, "Det") ? 2.0 / 3 : 2.0 / 3 * (double)m * (double)m);
	return c;
}

/* clang-format off */
const Op ops_spectral[] = {
	{ .name = "DFT", .since = 20, .sig = "x:F dft_length:I? axis:int64? -> y:F",
	  .attrs = "inverse:int=0 onesided:int=0", .expand = expand_dft,
	  .test = "x:[2,5,1] | x:[2,4,2] =inverse:1 | x:[3,4,1] axis:{0} =onesided:1 | "
	          "x:[2,4,2] =inverse:1 =onesided:1" },
	{ .name = "DFT", .since = 17, .until = 19, .sig = "x:F dft_length:I? -> y:F",
	  .attrs = "axis:int=1 inverse:int=0 onesided:int=0", .expand = expand_dft,
	  .test = "x:[2,5,1] dft_length:{6} | x:[2,4,2] =axis:0" },
	{ .name = "STFT", .since = 17, .sig = "signal:F frame_step:I window:F? frame_length:I? -> y:F",
	  .attrs = "onesided:int=1", .expand = expand_stft,
	  .test = "signal:[1,12,1] frame_step:{3} window:[4] | "
	          "signal:[2,8,2] frame_step:{2} frame_length:{4} =onesided:0" },
	{ .name = "MelWeightMatrix", .since = 17,
	  .sig = "num_mel_bins:I dft_length:I sample_rate:I lower_edge_hertz:F upper_edge_hertz:F -> y:N",
	  .attrs = "output_datatype:int=1", .expand = expand_mel,
	  .test = "num_mel_bins:{4} dft_length:{16} sample_rate:{8192} lower_edge_hertz:float{0} "
	          "upper_edge_hertz:float{4096}" },
	{ .name = "Det", .since = 11, .precision = PRECISION_FLOAT, .sig = "x:F -> y:F",
	  .shape = shape_det, .kernel = "det", .eval = eval_det, .factors = "... * * -> ...",
	  .grad = "dx = Mul(Unsqueeze(dy, [-2, -1]), Cofactor(x))", .cost = cost_det, .test = "x:[3,3] | x:[2,4,4]" },
	{ .name = "Cofactor", .domain = "sbpcc", .since = 1, .sig = "x:F -> y:F",
	  .shape = shape_cofactor, .kernel = "cofactor", .eval = eval_cofactor, .factors = "... * * -> ... * *",
	  .nograd = true, .cost = cost_det, .test = "x:[3,3]" },
	{ 0 },
};
/* clang-format on */
