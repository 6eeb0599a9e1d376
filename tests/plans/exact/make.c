/* Random models: 5 to 40 operators of all kinds over tensors of uneven and composite sizes, with shared parameters and
 * values that several nodes read, on one mesh or on several. */
#include "make.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 400 };

uint64_t make_next(uint64_t *rng)
{
	uint64_t z = *rng += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int upto(Made *m, int n)
{
	return (int)(make_next(&m->rng) % (uint64_t)n);
}

static int64_t elements(const MadeValue *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->ndim; i++)
		n *= v->dim[i];
	return n;
}

static int new_value(Made *m, char type, int ndim, const int64_t *dim, bool param)
{
	MadeValue *v = &m->value[m->nvalue];
	*v = (MadeValue){ .type = type, .ndim = ndim, .param = param, .on = -1 };
	memcpy(v->dim, dim, (size_t)ndim * sizeof *dim);
	return m->nvalue++;
}

/* A parameter of that shape: now and then one that is there already. */
static int param(Made *m, int ndim, const int64_t *dim)
{
	for (int i = 0; i < m->nvalue && upto(m, 3); i++) {
		const MadeValue *v = &m->value[i];
		if (v->param && v->type == 'f' && v->ndim == ndim && !memcmp(v->dim, dim, (size_t)ndim * sizeof *dim))
			return i;
	}
	return new_value(m, 'f', ndim, dim, true);
}

/* Some value of at least that rank that a node made, or an input. */
static int some(Made *m, int least)
{
	for (int t = 0; t < 12; t++) {
		int i = upto(m, 2) ? m->nvalue - 1 - upto(m, m->nvalue < 8 ? m->nvalue : 8) : upto(m, m->nvalue);
		if (m->value[i].type == 'f' && m->value[i].ndim >= least && !m->value[i].param)
			return i;
	}
	return -1;
}

/* A line with one result, of that shape. */
__attribute__((format(printf, 6, 7))) static int line(Made *m, int ndim, const int64_t *dim, int nin, const int *in,
	const char *fmt, ...)
{
	MadeLine *l = &m->line[m->nline];
	va_list ap;
	MadeValue v = { .ndim = ndim };
	memcpy(v.dim, dim, (size_t)ndim * sizeof *dim);
	if (elements(&v) > ELEMENTS)
		return -1;
	*l = (MadeLine){ .nin = nin, .nout = 1 };
	memcpy(l->in, in, (size_t)nin * sizeof *in);
	va_start(ap, fmt);
	vsnprintf(l->right, sizeof l->right, fmt, ap);
	va_end(ap);
	l->out[0] = new_value(m, 'f', ndim, dim, false);
	m->nline++;
	return l->out[0];
}

static const char *name(const Made *m, int i)
{
	static char ring[8][12];
	static int next;
	char *t = ring[next++ % 8];
	snprintf(t, sizeof ring[0], "%c%d", m->value[i].param ? 'p' : 'v', i);
	return t;
}

static char *list(const int64_t *v, int n)
{
	static char ring[4][96];
	static int next;
	char *t = ring[next++ % 4];
	size_t at = (size_t)snprintf(t, 96, "[");
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(t + at, 96 - at, "%s%lld", i ? ", " : "", (long long)v[i]);
	snprintf(t + at, 96 - at, "]");
	return t;
}

static void unary(Made *m)
{
	static const char *const op[] = { "Relu", "Tanh", "Exp", "Sigmoid", "Gelu", "Abs", "Softplus", "Neg", "Neg",
		"Identity", "Sqrt" };
	int a = some(m, 0);
	if (a >= 0)
		line(m, m->value[a].ndim, m->value[a].dim, 1, &a, "%s(%s)", op[upto(m, sizeof op / sizeof op[0])],
			name(m, a));
}

/* A second operand: a value of the same shape, or a parameter that is broadcast. */
static int partner(Made *m, int a)
{
	MadeValue v = m->value[a];
	for (int t = 0; t < 20; t++) {
		int i = upto(m, m->nvalue);
		const MadeValue *b = &m->value[i];
		if (b->type == 'f' && b->ndim == v.ndim && !memcmp(b->dim, v.dim, (size_t)v.ndim * sizeof *v.dim))
			return i;
	}
	int drop = v.ndim ? upto(m, v.ndim + 1) : 0;
	int64_t dim[MADE_NDIM];
	for (int k = drop; k < v.ndim; k++)
		dim[k - drop] = upto(m, 4) ? v.dim[k] : 1;
	return param(m, v.ndim - drop, dim);
}

static void binary(Made *m)
{
	static const char *const op[] = { "Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min" };
	int a = some(m, 0);
	if (a < 0)
		return;
	int b = partner(m, a), in[2] = { a, b };
	line(m, m->value[a].ndim, m->value[a].dim, 2, in, "%s(%s, %s)", op[upto(m, sizeof op / sizeof op[0])],
		name(m, a), name(m, b));
}

static void scaled(Made *m)
{
	int a = some(m, 0);
	if (a >= 0)
		line(m, m->value[a].ndim, m->value[a].dim, 1, &a, upto(m, 2) ? "Mul(%s, 0.125)" : "Div(%s, 3)",
			name(m, a));
}

static void choose(Made *m)
{
	int a = some(m, 0);
	if (a < 0)
		return;
	int b = partner(m, a), in[2] = { a, b };
	line(m, m->value[a].ndim, m->value[a].dim, 2, in, "Where(Less(%s, %s), %s, %s)", name(m, a), name(m, b),
		name(m, b), name(m, a));
}

static void product(Made *m)
{
	int a = some(m, 1);
	if (a < 0)
		return;
	MadeValue v = m->value[a];
	int64_t w[2] = { v.dim[v.ndim - 1], 1 + upto(m, 7) }, dim[MADE_NDIM];
	for (int t = 0; t < 10 && v.ndim >= 2; t++) {           /* of two activations */
		int b = some(m, v.ndim);
		if (b < 0 || m->value[b].ndim != v.ndim || m->value[b].dim[v.ndim - 2] != w[0] ||
			memcmp(v.dim, m->value[b].dim, (size_t)(v.ndim - 2) * sizeof *dim))
			continue;
		memcpy(dim, v.dim, sizeof dim);
		dim[v.ndim - 1] = m->value[b].dim[v.ndim - 1];
		int in[2] = { a, b };
		line(m, v.ndim, dim, 2, in, "MatMul(%s, %s)", name(m, a), name(m, b));
		return;
	}
	for (int i = 0; i < m->nvalue && upto(m, 4); i++)
		if (m->value[i].param && m->value[i].ndim == 2 && m->value[i].dim[0] == w[0])
			w[1] = m->value[i].dim[1];
	int b = param(m, 2, w), in[2] = { a, b };
	memcpy(dim, v.dim, sizeof dim);
	dim[v.ndim - 1] = w[1];
	line(m, v.ndim, dim, 2, in, "MatMul(%s, %s)", name(m, a), name(m, b));
}

static void transpose(Made *m)
{
	int a = some(m, 2);
	if (a < 0)
		return;
	MadeValue v = m->value[a];
	int64_t perm[MADE_NDIM], dim[MADE_NDIM];
	for (int i = 0; i < v.ndim; i++)
		perm[i] = i;
	for (int i = v.ndim - 1; i > 0; i--) {
		int k = upto(m, i + 1);
		int64_t t = perm[i];
		perm[i] = perm[k];
		perm[k] = t;
	}
	for (int i = 0; i < v.ndim; i++)
		dim[i] = v.dim[perm[i]];
	line(m, v.ndim, dim, 1, &a, "Transpose<perm = %s>(%s)", list(perm, v.ndim), name(m, a));
}

/* Two axes into one, or one into two. */
static void reshape(Made *m)
{
	int a = some(m, 1), n = 0;
	if (a < 0)
		return;
	MadeValue v = m->value[a];
	int64_t dim[MADE_NDIM + 1];
	int at = upto(m, v.ndim);
	if (upto(m, 2) && v.ndim >= 2) {
		at = upto(m, v.ndim - 1);
		for (int i = 0; i < v.ndim; i++)
			if (i == at + 1)
				dim[n - 1] *= v.dim[i];
			else
				dim[n++] = v.dim[i];
	} else {
		int64_t by = 1;
		for (int64_t d = 2; d < v.dim[at]; d++)
			if (v.dim[at] % d == 0 && (by == 1 || upto(m, 2)))
				by = d;
		if (v.ndim == MADE_NDIM || by == 1)
			return;
		for (int i = 0; i < v.ndim; i++) {
			dim[n++] = i == at ? by : v.dim[i];
			if (i == at)
				dim[n++] = v.dim[i] / by;
		}
	}
	line(m, n, dim, 1, &a, "Reshape(%s, %s)", name(m, a), list(dim, n));
}

static void split(Made *m)
{
	int a = some(m, 1);
	if (a < 0 || m->nvalue + 4 > MADE_VALUES)
		return;
	MadeValue v = m->value[a];
	int axis = upto(m, v.ndim), parts = 2 + upto(m, 2);
	int64_t len[3], d = v.dim[axis];
	if (d < parts)
		return;
	bool even = d % parts == 0;
	len[0] = even ? d / parts : 1 + upto(m, (int)d - parts + 1);
	len[1] = even ? len[0] : parts == 2 ? d - len[0] : 1 + upto(m, (int)(d - len[0] - 1));
	len[2] = d - len[0] - len[1];
	MadeLine *l = &m->line[m->nline++];
	*l = (MadeLine){ .nin = 1, .nout = parts, .in = { a } };
	snprintf(l->right, sizeof l->right, "Split<axis = %d>(%s, %s)", axis, name(m, a), list(len, parts));
	for (int i = 0; i < parts; i++) {
		v.dim[axis] = len[i];
		l->out[i] = new_value(m, 'f', v.ndim, v.dim, false);
	}
}

static void concat(Made *m)
{
	int a = some(m, 1);
	if (a < 0)
		return;
	MadeValue v = m->value[a];
	int axis = upto(m, v.ndim), b = a;
	for (int t = 0; t < 20; t++) {
		int i = upto(m, m->nvalue);
		bool fits = m->value[i].type == 'f' && m->value[i].ndim == v.ndim;
		for (int k = 0; fits && k < v.ndim; k++)
			fits = k == axis || m->value[i].dim[k] == v.dim[k];
		if (fits)
			b = i;
	}
	int in[2] = { a, b };
	v.dim[axis] += m->value[b].dim[axis];
	line(m, v.ndim, v.dim, 2, in, "Concat<axis = %d>(%s, %s)", axis, name(m, a), name(m, b));
}

static void slice(Made *m)
{
	int a = some(m, 1);
	if (a < 0)
		return;
	MadeValue v = m->value[a];
	int axis = upto(m, v.ndim), from = upto(m, (int)v.dim[axis]), to = from + 1 + upto(m, (int)v.dim[axis] - from),
		step = 1 + upto(m, 2);
	v.dim[axis] = (to - from - 1) / step + 1;
	line(m, v.ndim, v.dim, 1, &a, "Slice(%s, [%d], [%d], [%d], [%d])", name(m, a), from, to, axis, step);
}

static void pad(Made *m)
{
	int a = some(m, 1);
	if (a < 0)
		return;
	MadeValue v = m->value[a];
	int64_t pads[2 * MADE_NDIM] = { 0 };
	int axis = upto(m, v.ndim);
	pads[axis] = upto(m, 3);
	pads[axis + v.ndim] = upto(m, 2);
	v.dim[axis] += pads[axis] + pads[axis + v.ndim];
	line(m, v.ndim, v.dim, 1, &a, "Pad(%s, %s)", name(m, a), list(pads, 2 * v.ndim));
}

/* Rows of a table by an input of integers, or of an activation. */
static void gather(Made *m)
{
	int64_t dim[2] = { 1 + upto(m, 5), 1 + upto(m, 4) }, out[MADE_NDIM];
	int ndim = 1 + upto(m, 2), ids = new_value(m, 'i', ndim, dim, false);
	if (upto(m, 2)) {
		int64_t t[2] = { 2 + upto(m, 6), 1 + upto(m, 6) };
		int table = param(m, 2, t), in[2] = { table, ids };
		memcpy(out, dim, (size_t)ndim * sizeof *dim);
		out[ndim] = m->value[table].dim[1];
		line(m, ndim + 1, out, 2, in, "Gather(%s, %s)", name(m, table), name(m, ids));
		return;
	}
	int a = some(m, 1);
	if (a < 0 || m->value[a].ndim + ndim - 1 > MADE_NDIM)
		return;
	MadeValue v = m->value[a];
	int axis = upto(m, v.ndim), n = 0, in[2] = { a, ids };
	for (int k = 0; k < v.ndim; k++) {
		for (int i = 0; k == axis && i < ndim; i++)
			out[n++] = dim[i];
		if (k != axis)
			out[n++] = v.dim[k];
	}
	line(m, n, out, 2, in, "Gather<axis = %d>(%s, %s)", axis, name(m, a), name(m, ids));
}

static void expand(Made *m)
{
	int a = some(m, 0);
	if (a < 0 || m->value[a].ndim >= MADE_NDIM)
		return;
	MadeValue v = m->value[a];
	int64_t dim[MADE_NDIM];
	dim[0] = 1 + upto(m, 3);
	for (int k = 0; k < v.ndim; k++)
		dim[k + 1] = v.dim[k] == 1 ? 1 + upto(m, 4) : v.dim[k];
	line(m, v.ndim + 1, dim, 1, &a, "Expand(%s, %s)", name(m, a), list(dim, v.ndim + 1));
}

static void unsqueeze(Made *m)
{
	int a = some(m, 0), n = 0;
	if (a < 0)
		return;
	MadeValue v = m->value[a];
	int64_t dim[MADE_NDIM];
	for (int k = 0; k < v.ndim; k++)
		if (v.dim[k] == 1 && upto(m, 2)) {
			memcpy(dim, v.dim, sizeof dim);
			memmove(&dim[k], &dim[k + 1], (size_t)(v.ndim - k - 1) * sizeof *dim);
			line(m, v.ndim - 1, dim, 1, &a, "Squeeze(%s, [%d])", name(m, a), k);
			return;
		}
	if (v.ndim == MADE_NDIM)
		return;
	int at = upto(m, v.ndim + 1);
	for (int k = 0; k <= v.ndim; k++)
		dim[k] = k == at ? 1 : v.dim[n++];
	line(m, v.ndim + 1, dim, 1, &a, "Unsqueeze(%s, [%d])", name(m, a), at);
}

static void reduce(Made *m)
{
	static const char *const op[] = { "Sum", "Sum", "Max", "Min", "Mean", "Prod", "SumSquare", "LogSumExp" };
	int a = some(m, 1), n = 0, naxis = 0;
	if (a < 0)
		return;
	MadeValue v = m->value[a];
	int64_t axes[MADE_NDIM], dim[MADE_NDIM];
	bool keep = upto(m, 2);
	for (int k = 0; k < v.ndim; k++) {
		bool on = upto(m, 2) || (k == v.ndim - 1 && !naxis);
		if (on)
			axes[naxis++] = k;
		if (!on || keep)
			dim[n++] = on ? 1 : v.dim[k];
	}
	line(m, n, dim, 1, &a, "Reduce%s<keepdims = %d>(%s, %s)", op[upto(m, sizeof op / sizeof op[0])], keep,
		name(m, a), list(axes, naxis));
}

static void along(Made *m)
{
	static const char *const op[] = { "Softmax", "Softmax", "LogSoftmax" };
	int a = some(m, 1);
	if (a < 0)
		return;
	int k = upto(m, 4), axis = upto(m, m->value[a].ndim);
	if (k == 3)
		line(m, m->value[a].ndim, m->value[a].dim, 1, &a, "CumSum(%s, %d)", name(m, a), axis);
	else
		line(m, m->value[a].ndim, m->value[a].dim, 1, &a, "%s<axis = %d>(%s)", op[k], axis, name(m, a));
}

/* Images are made of whatever there is. */
static int image(Made *m)
{
	for (int t = 0; t < 6; t++) {
		int i = some(m, 4);
		if (i >= 0 && m->value[i].ndim == 4)
			return i;
	}
	int64_t dim[4] = { 1 + upto(m, 3), 1 + upto(m, 4), 3 + upto(m, 4), 3 + upto(m, 4) };
	return new_value(m, 'f', 4, dim, false);
}

/* Of images: by sample and channel, by groups of channels, by channel over the batch. */
static void norm_channels(Made *m, int kind)
{
	int a = image(m);
	MadeValue v = m->value[a];
	int s = param(m, 1, &v.dim[1]), b = param(m, 1, &v.dim[1]), in[5] = { a, s, b };
	if (kind == 0)
		line(m, v.ndim, v.dim, 3, in, "InstanceNormalization(%s, %s, %s)", name(m, a), name(m, s), name(m, b));
	else if (kind == 1)
		line(m, v.ndim, v.dim, 3, in, "GroupNormalization<num_groups = %d>(%s, %s, %s)", v.dim[1] % 2 ? 1 : 2,
			name(m, a), name(m, s), name(m, b));
	if (kind < 2)
		return;
	in[3] = new_value(m, 'f', 1, &v.dim[1], false);
	in[4] = new_value(m, 'f', 1, &v.dim[1], false);
	line(m, v.ndim, v.dim, 5, in, "BatchNormalization<training_mode = 1>(%s, %s, %s, %s, %s)", name(m, a),
		name(m, s), name(m, b), name(m, in[3]), name(m, in[4]));
}

static void norm(Made *m)
{
	int a = some(m, 2), kind = upto(m, 5);
	if (kind > 1)
		norm_channels(m, kind - 2);
	if (kind > 1 || a < 0)
		return;
	MadeValue v = m->value[a];
	int s = param(m, 1, &v.dim[v.ndim - 1]), b = param(m, 1, &v.dim[v.ndim - 1]), in[3] = { a, s, b };
	if (kind)
		line(m, v.ndim, v.dim, 3, in, "LayerNormalization<axis = -1>(%s, %s, %s)", name(m, a), name(m, s),
			name(m, b));
	else
		line(m, v.ndim, v.dim, 2, in, "RMSNormalization<axis = -1>(%s, %s)", name(m, a), name(m, s));
}

static void conv(Made *m)
{
	int a = image(m), stride = 1 + upto(m, 2), before = upto(m, 2), after = upto(m, 2);
	MadeValue v = m->value[a];
	int64_t group = v.dim[1] % 2 == 0 && upto(m, 3) == 0 ? 2 : 1;
	int64_t w[4] = { group * (1 + upto(m, 3)), v.dim[1] / group, 1 + upto(m, 3), 1 + upto(m, 3) };
	int64_t h = v.dim[2] + before + after - w[2], k = v.dim[3] + before + after - w[3];
	if (h < 0 || k < 0)
		return;
	int p = param(m, 4, w), b = param(m, 1, w), in[3] = { a, p, b };
	int64_t dim[4] = { v.dim[0], w[0], h / stride + 1, k / stride + 1 };
	bool bias = upto(m, 2);
	line(m, 4, dim, bias ? 3 : 2, in, "Conv<group = %lld, strides = [%d, %d], pads = [%d, %d, %d, %d]>(%s, %s%s%s)",
		(long long)group, stride, stride, before,
	     before, after, after, name(m, a), name(m, p), bias ? ", " : "", bias ? name(m, b) : "");
}

static void pool(Made *m)
{
	int a = image(m), k = 2 + upto(m, 2), stride = 1 + upto(m, 2);
	MadeValue v = m->value[a];
	if (v.dim[2] < k || v.dim[3] < k)
		return;
	int64_t dim[4] = { v.dim[0], v.dim[1], (v.dim[2] - k) / stride + 1, (v.dim[3] - k) / stride + 1 };
	line(m, 4, dim, 1, &a, "%s<kernel_shape = [%d, %d], strides = [%d, %d]>(%s)",
		upto(m, 2) ? "MaxPool" : "AveragePool", k, k, stride, stride, name(m, a));
}

static void attention(Made *m)
{
	int a = some(m, 3);
	if (a < 0 || m->value[a].ndim != 3)
		return;
	MadeValue v = m->value[a];
	int heads = v.dim[2] % 3 == 0 ? 3 : v.dim[2] % 2 == 0 ? 2 : 1, b = partner(m, a);
	if (m->value[b].ndim != 3 || memcmp(m->value[b].dim, v.dim, 3 * sizeof *v.dim))
		b = a;
	int in[3] = { a, b, a };
	line(m, 3, v.dim, 3, in, "Attention<q_num_heads = %d, kv_num_heads = %d, is_causal = %d>(%s, %s, %s)", heads,
		heads, upto(m, 2), name(m, a), name(m, b), name(m, a));
}

static void loss(Made *m)
{
	int a = some(m, 2);
	if (a < 0 || m->value[a].ndim != 2 || m->value[a].dim[1] < 2)
		return;
	int label = new_value(m, 'i', 1, m->value[a].dim, false), in[2] = { a, label };
	line(m, 0, m->value[a].dim, 2, in, "SoftmaxCrossEntropyLoss%s(%s, %s)",
		upto(m, 2) ? "<reduction = \"sum\">" : "", name(m, a), name(m, label));
}

static void wider(Made *m)
{
	int a = some(m, 0);
	if (a >= 0)
		line(m, m->value[a].ndim, m->value[a].dim, 1, &a, "Cast<to = 1>(Tanh(Cast<to = 11>(%s)))", name(m, a));
}

static void best(Made *m)
{
	int a = some(m, 1), n = 0;
	if (a < 0 || m->train)          /* it has no gradient */
		return;
	MadeValue v = m->value[a];
	int64_t dim[MADE_NDIM];
	int axis = upto(m, v.ndim);
	for (int k = 0; k < v.ndim; k++)
		if (k != axis)
			dim[n++] = v.dim[k];
	line(m, n, dim, 1, &a, "Cast<to = 1>(ArgMax<axis = %d, keepdims = 0>(%s))", axis, name(m, a));
}

static void tile(Made *m)
{
	int a = some(m, 2);
	if (a < 0)
		return;
	MadeValue v = m->value[a];
	int64_t by[MADE_NDIM];
	if (upto(m, 2)) {
		line(m, v.ndim, v.dim, 1, &a, "Trilu<upper = %d>(%s)", upto(m, 2), name(m, a));
		return;
	}
	for (int k = 0; k < v.ndim; k++)
		v.dim[k] *= by[k] = upto(m, 3) ? 1 : 2;
	if (v.ndim > 4)                 /* its gradient has twice as many axes, and a form has at most 8 */
		return;
	line(m, v.ndim, v.dim, 1, &a, "Tile(%s, %s)", name(m, a), list(by, v.ndim));
}

/* ---- pins ---- */

static void pin(Made *m, MadeValue *v)
{
	size_t at = (size_t)snprintf(v->pin, sizeof v->pin, " @sbp(");
	bool partial = upto(m, 8) == 0 && v->type == 'f' && !v->param;
	for (int k = 0; k < m->mesh[v->on < 0 ? 0 : v->on].ndim; k++) {
		int what = upto(m, 4);
		at += (size_t)snprintf(v->pin + at, sizeof v->pin - at, k ? ", " : "");
		if (what == 0 && partial)
			at += (size_t)snprintf(v->pin + at, sizeof v->pin - at, "P");
		else if (what < 3 && v->ndim)
			at += (size_t)snprintf(v->pin + at, sizeof v->pin - at, "S(%d)", upto(m, v->ndim));
		else
			at += (size_t)snprintf(v->pin + at, sizeof v->pin - at, what == 3 ? "B" : "_");
	}
	snprintf(v->pin + at, sizeof v->pin - at, ")");
}

/* Ranks of a mesh: the last axis quickest, at most 8.  In one model of 64 there are many axes, most of which have one
 * rank. */
static int shape(Made *m, MadeMesh *x, int most)
{
	int ranks = 1;
	bool many = m->seed % 64 == 5;
	x->ndim = many ? 5 + upto(m, 4) : 1 + upto(m, 3);
	for (int k = 0; k < x->ndim; k++) {
		x->dim[k] = 1 + upto(m, many ? 2 : x->ndim == 1 ? most : 4);
		if (ranks * x->dim[k] > most)
			x->dim[k] = most / ranks;
		ranks *= x->dim[k];
	}
	return ranks;
}

/* In every third model, more meshes of a few ranks in any order: apart from the others, or sharing some with them. */
static void more_meshes(Made *m, int ranks)
{
	while (m->nmesh < MADE_MESHES && upto(m, 3)) {
		MadeMesh *x = &m->mesh[m->nmesh++];
		int n = shape(m, x, 4), first = upto(m, ranks + 1);
		for (int i = 0; i < n; i++) {
			int k = upto(m, i + 1);
			x->rank[i] = x->rank[k];
			x->rank[k] = first + i;
		}
		ranks = first + n > ranks ? first + n : ranks;
	}
}

/* Most nodes, and some of what they read, say where they are. */
static void place(Made *m)
{
	bool made[MADE_VALUES] = { false };
	for (int i = 0; i < m->nline; i++)
		for (int k = 0, on = upto(m, 4) ? upto(m, m->nmesh) : -1; k < m->line[i].nout; k++) {
			m->value[m->line[i].out[k]].on = on;
			made[m->line[i].out[k]] = true;
		}
	for (int i = 0; i < m->nvalue; i++)
		if (!made[i] && upto(m, 2))
			m->value[i].on = upto(m, m->nmesh);
}

void make_model(Made *m, uint64_t seed)
{
	static void (*const kind[])(Made *) = {
		unary, unary, binary, binary, binary, scaled, choose, product, product, product, transpose, transpose,
		reshape, reshape, reshape, split, split, concat, concat, slice, pad, gather, expand, unsqueeze, reduce,
		reduce, reduce, along, norm, conv, pool, attention, loss, wider, best, tile,
	};
	static const int64_t size[] = { 1, 2, 3, 4, 5, 6, 6, 7, 8, 12 };
	*m = (Made){ .seed = seed, .rng = seed * 1000003 + 17 };
	m->train = upto(m, 3) == 0;
	m->nmesh = 1;
	int ranks = shape(m, &m->mesh[0], 8);
	for (int i = 0, n = 1 + upto(m, 3); i < n; i++) {
		int64_t dim[4];
		int ndim = 1 + upto(m, 3);
		for (int k = 0; k < ndim; k++)
			dim[k] = size[upto(m, ndim == 1 ? 10 : ndim == 2 ? 10 : 7)];
		new_value(m, 'f', ndim, dim, false);
	}
	int nodes = 5 + upto(m, 36);
	for (int t = 0; t < 4 * nodes && m->nline < nodes && m->nvalue < MADE_VALUES - 16; t++)
		kind[upto(m, sizeof kind / sizeof kind[0])](m);
	if (seed % 3 == 0) {
		more_meshes(m, ranks);
		place(m);
	}
	for (int i = 0; i < m->nvalue; i++)
		if (upto(m, 4) == 0 && (m->nmesh == 1 || m->value[i].on >= 0))
			pin(m, &m->value[i]);
}

/* ---- text ---- */

static void declare(FILE *f, const Made *m, int i, bool pinned)
{
	const MadeValue *v = &m->value[i];
	fprintf(f, "%s", v->type == 'f' ? "float" : "int64");
	for (int k = 0; k < v->ndim; k++)
		fprintf(f, "%s%lld%s", k ? ", " : "[", (long long)v->dim[k], k == v->ndim - 1 ? "]" : "");
	fprintf(f, " %s", name(m, i));
	if (pinned && m->nmesh > 1 && v->on >= 0)
		fprintf(f, " @on(m%d)", v->on);
	/* what is read is not partial */
	fprintf(f, "%s", pinned && !strchr(v->pin, 'P') ? v->pin : "");
}

char *make_text(const Made *m)
{
	char *text;
	size_t bytes;
	bool used[MADE_VALUES] = { false }, made[MADE_VALUES] = { false }, any = false;
	FILE *f = open_memstream(&text, &bytes);
	for (int i = 0; i < m->nline; i++) {
		const MadeLine *l = &m->line[i];
		for (int k = 0; !l->gone && k < l->nin; k++)
			used[l->in[k]] = true;
		for (int k = 0; !l->gone && k < l->nout; k++)
			made[l->out[k]] = true;
	}
	bool trains = false;
	for (int i = 0; i < m->nvalue; i++)
		trains |= m->train && m->value[i].param && used[i];
	fprintf(f, "<ir_version: 10, opset_import: [\"\" : 23]>\n");
	for (int i = 0; i < m->nmesh; i++) {
		const MadeMesh *x = &m->mesh[i];
		int n = 1;
		fprintf(f, "@mesh(m%d, cpu, [", i);
		for (int k = 0; k < x->ndim; n *= x->dim[k++])
			fprintf(f, "%s%d", k ? ", " : "", x->dim[k]);
		fprintf(f, "]");
		for (int k = 0; k < n && i; k++)
			fprintf(f, ", %d", x->rank[k]);
		fprintf(f, ")\n");
	}
	if (trains)
		fprintf(f, "@train(loss: loss, optimizer: sgd(lr: 0.5, momentum: 0.25), batch: 1, steps: 1)\n");
	fprintf(f, "g (");
	for (int i = 0; i < m->nvalue; i++)
		if (used[i] && !made[i] && !m->value[i].param) {
			fprintf(f, any ? ", " : "");
			declare(f, m, i, true);
			any = true;
		}
	fprintf(f, ") => (");
	any = false;
	for (int i = 0; i < m->nvalue && !trains; i++)
		if (made[i] && !used[i]) {
			fprintf(f, any ? ", " : "");
			declare(f, m, i, false);
			any = true;
		}
	fprintf(f, "%s)\n", trains ? "float loss" : "");
	any = false;
	for (int i = 0; i < m->nvalue; i++)
		if (used[i] && m->value[i].param) {
			fprintf(f, any ? ",\n " : "<");
			declare(f, m, i, true);
			fprintf(f, " @init(normal(0, 1))");
			any = true;
		}
	fprintf(f, any ? ">\n{\n" : "{\n");
	for (int i = 0; i < m->nline; i++) {
		const MadeLine *l = &m->line[i];
		if (l->gone)
			continue;
		for (int k = 0; k < l->nout; k++) {
			/* such an output is on all ranks, and cannot be partial */
			bool reported = !trains && !used[l->out[k]] &&
				(m->nmesh > 1 || strchr(m->value[l->out[k]].pin, 'P'));
			fprintf(f, "%s%s%s", k ? ", " : "  ", name(m, l->out[k]),
				reported ? "" : m->value[l->out[k]].pin);
		}
		fprintf(f, " = %s", l->right);
		if (m->nmesh > 1 && m->value[l->out[0]].on >= 0)
			fprintf(f, " @on(m%d)", m->value[l->out[0]].on);
		fprintf(f, "\n");
	}
	const char *sum = NULL;
	char text2[32] = "";
	int n = 0;
	for (int i = 0; i < m->nvalue && trains; i++)
		if (made[i] && !used[i]) {
			fprintf(f, "  s%d = ReduceSum<keepdims = 0>(%s)\n", n, name(m, i));
			if (sum)
				fprintf(f, "  t%d = Add(%s, s%d)\n", n, sum, n);
			snprintf(text2, sizeof text2, sum ? "t%d" : "s%d", n++);
			sum = text2;
		}
	if (trains)
		fprintf(f, "  loss = Identity(%s)\n", sum ? sum : "0.0");
	fprintf(f, "}\n");
	fclose(f);
	return text;
}
