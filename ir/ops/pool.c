/* Pools: the largest, the mean or the sum of each window.
 *
 * Windows are placed as for conv.c.  Padding never wins a maximum; a mean counts it only with count_include_pad, and
 * never what ceil_mode adds beyond it.  The gradient of MaxPool finds the winners again from x instead of keeping
 * ONNX's indices, which count through the full tensor and so change meaning when the batch is split. */
#include <math.h>
#include <string.h>

#include "ops.h"

/* One window: the elements of a plane that it sees, and its number of positions inside the padded plane. */
typedef struct Seen {
	int64_t *off, n, padded;
} Seen;

/* The number of the k positions at, at + dil, ... that are before end. */
static int64_t positions_before(int64_t at, int64_t dil, int64_t k, int64_t end)
{
	int64_t count = at >= end ? 0 : (end - 1 - at) / dil + 1;
	return count < k ? count : k;
}

static void seen_at(const Window *w, int64_t pixel, Seen *s)
{
	int64_t at[SPATIAL_MAX], first[SPATIAL_MAX], end[SPATIAL_MAX], k[SPATIAL_MAX];
	s->n = 0;
	s->padded = 1;
	bool none = false;
	for (int d = w->nd - 1; d >= 0; d--) {
		at[d] = pixel % w->out[d] * w->stride[d] - w->lo[d];
		pixel /= w->out[d];
		k[d] = first[d] = positions_before(at[d], w->dil[d], w->k[d], 0);
		end[d] = positions_before(at[d], w->dil[d], w->k[d], w->in[d]);
		s->padded *= positions_before(at[d], w->dil[d], w->k[d], w->in[d] + w->hi[d]);
		none |= first[d] >= end[d];
	}
	while (!none) {
		int64_t off = 0;
		for (int d = 0; d < w->nd; d++)
			off = off * w->in[d] + at[d] + k[d] * w->dil[d];
		s->off[s->n++] = off;
		int d = w->nd - 1;
		while (d >= 0 && ++k[d] == end[d]) {
			k[d] = first[d];
			d--;
		}
		none = d < 0;
	}
}

/* The window of a pool over an operand of these sizes, with room for what one window sees. */
static int pool_window(Node *n, int ndim, const int64_t *dim, Window *w, Seen *s)
{
	int len;
	const int64_t *k = attr_ints(n, "kernel_shape", &len);
	if (!k || len != ndim - 2) {
		err_at(n->loc, "%s: kernel_shape has %d entries, but the operand has %d spatial axes", n->op,
			len, ndim - 2);
		return -1;
	}
	if (window_read(n, len, k, w) || window_fit(n, w, dim + 2))
		return -1;
	s->off = eval_scratch(sizeof(int64_t) * (size_t)((w->nk < w->nin ? w->nk : w->nin) + 1));
	return 0;
}

/* The first largest element of a window, -1 when it sees none; a NaN counts as largest. */
static int64_t largest(const double *plane, const Seen *s)
{
	int64_t best = s->n ? s->off[0] : -1;
	for (int64_t i = 1; i < s->n; i++)
		if (plane[s->off[i]] > plane[best] || (isnan(plane[s->off[i]]) && !isnan(plane[best])))
			best = s->off[i];
	return best;
}

/* ONNX's storage_order 1 counts the first spatial axis fastest. */
static int64_t column_major(const Window *w, int64_t off)
{
	int64_t at[SPATIAL_MAX], r = 0;
	for (int d = w->nd - 1; d >= 0; d--) {
		at[d] = off % w->in[d];
		off /= w->in[d];
	}
	for (int d = w->nd - 1; d >= 0; d--)
		r = r * w->in[d] + at[d];
	return r;
}

static int eval_maxpool(Node *n, Tensor **in, Tensor **out)
{
	Tensor *x = in[0];
	Window w;
	Seen s;
	if (pool_window(n, x->ndim, x->dim, &w, &s))
		return -1;
	int64_t planes = x->dim[0] * x->dim[1];
	bool columns = attr_int(n, "storage_order") == 1, indices = n->nout > 1 && out[1];
	double *v = eval_doubles(x), *y = eval_scratch(sizeof(double) * (size_t)(planes * w.nout + 1));
	int64_t *idx = indices ? eval_scratch(sizeof(int64_t) * (size_t)(planes * w.nout + 1)) : NULL;
	for (int64_t o = 0; o < w.nout; o++) {
		seen_at(&w, o, &s);
		for (int64_t p = 0; p < planes; p++) {
			int64_t best = largest(v + p * w.nin, &s);
			y[p * w.nout + o] = best < 0 ? -INFINITY : v[p * w.nin + best];
			if (idx)
				idx[p * w.nout + o] =
					best < 0 ? -1 : p * w.nin + (columns ? column_major(&w, best) : best);
		}
	}
	eval_store(out[0], y);
	if (idx)
		eval_store_ints(out[1], idx);
	return 0;
}

/* The part of its plane that a gradient gives: all, or a stretch of each axis, which may extend beyond what windows
 * read. */
typedef struct Stretch { int64_t from[SPATIAL_MAX], size[SPATIAL_MAX], n; } Stretch;

static Stretch stretch_of(const Node *n, const Window *w)
{
	Stretch s = { .n = 1 };
	if (!window_crop(n, w->nd, s.from, s.size))
		memcpy(s.size, w->in, (size_t)w->nd * sizeof *w->in);
	for (int d = 0; d < w->nd; d++)
		s.n *= s.size[d];
	return s;
}

/* The element of the stretch that is at `off` of the plane; -1: outside. */
static int64_t stretch_at(const Stretch *s, const Window *w, int64_t off)
{
	int64_t at = 0, unit = 1;
	for (int d = w->nd - 1; d >= 0; d--) {
		int64_t i = off % w->in[d] - s->from[d];
		off /= w->in[d];
		if (i < 0 || i >= s->size[d])
			return -1;
		at += i * unit;
		unit *= s->size[d];
	}
	return at;
}

static int eval_maxpool_grad(Node *n, Tensor **in, Tensor **out)
{
	Tensor *g = in[0], *x = in[1];
	Window w;
	Seen s;
	if (pool_window(n, x->ndim, x->dim, &w, &s))
		return -1;
	int64_t planes = x->dim[0] * x->dim[1];
	Stretch own = stretch_of(n, &w);
	double *v = eval_doubles(x), *dy = eval_doubles(g),
	       *dx = eval_scratch(sizeof(double) * (size_t)(planes * own.n + 1));
	for (int64_t o = 0; o < w.nout; o++) {
		seen_at(&w, o, &s);
		for (int64_t p = 0; p < planes; p++) {
			int64_t best = largest(v + p * w.nin, &s);
			int64_t at = best < 0 ? -1 : stretch_at(&own, &w, best);
			if (at >= 0)
				dx[p * own.n + at] += dy[p * w.nout + o];
		}
	}
	eval_store(out[0], dx);
	return 0;
}

/* The factor of the sum of a window. */
static double window_weight(const Node *n, const Seen *s, bool mean)
{
	int64_t count = mean ? attr_int(n, "count_include_pad") ? s->padded : s->n : 1;
	return count ? 1.0 / (double)count : 0;
}

static bool is_mean(const Node *n)
{
	return !strncmp(n->op, "AveragePool", strlen("AveragePool"));
}

static int eval_sumpool(Node *n, Tensor **in, Tensor **out)
{
	Tensor *x = in[0];
	Window w;
	Seen s;
	if (pool_window(n, x->ndim, x->dim, &w, &s))
		return -1;
	int64_t planes = x->dim[0] * x->dim[1];
	double *v = eval_doubles(x), *y = eval_scratch(sizeof(double) * (size_t)(planes * w.nout + 1));
	for (int64_t o = 0; o < w.nout; o++) {
		seen_at(&w, o, &s);
		double weight = window_weight(n, &s, is_mean(n));
		for (int64_t p = 0; p < planes; p++) {
			double sum = 0;
			for (int64_t i = 0; i < s.n; i++)
				sum += v[p * w.nin + s.off[i]];
			y[p * w.nout + o] = sum * weight;
		}
	}
	eval_store(out[0], y);
	return 0;
}

static int eval_sumpool_grad(Node *n, Tensor **in, Tensor **out)
{
	Tensor *g = in[0], *x = out[0];
	Window w;
	Seen s;
	int64_t dim[NDIM_MAX];
	memcpy(dim, x->dim, (size_t)x->ndim * sizeof *dim);
	for (int i = 0; i < x->ndim && node_attr(n, "from"); i++)
		dim[i] = tensor_int(in[1], i);
	if (pool_window(n, x->ndim, dim, &w, &s))
		return -1;
	int64_t planes = x->dim[0] * x->dim[1];
	Stretch own = stretch_of(n, &w);
	double *dy = eval_doubles(g), *dx = eval_scratch(sizeof(double) * (size_t)(planes * own.n + 1));
	for (int64_t o = 0; o < w.nout; o++) {
		seen_at(&w, o, &s);
		double weight = window_weight(n, &s, is_mean(n));
		for (int64_t p = 0; p < planes; p++)
			for (int64_t i = 0; i < s.n; i++) {
				int64_t at = stretch_at(&own, &w, s.off[i]);
				if (at >= 0)
					dx[p * own.n + at] += dy[p * w.nout + o] * weight;
			}
	}
	eval_store(x, dx);
	return 0;
}

static int shape_plain(Node *n)
{
	return conv_shape(n, false);
}

static int shape_maxpool(Node *n)
{
	if (conv_shape(n, false))
		return -1;
	Type *y = n->out[0]->type;
	if (n->nout > 1 && n->out[1])
		operand_set_result(n, 1, DT_INT64, y->ndim, y->dim);
	return 0;
}

/* g must have the shape of a pool of x. */
static int check_pooled(Node *n, const Type *x, const Type *g)
{
	int len;
	const int64_t *k = attr_ints(n, "kernel_shape", &len);
	Dim want[SPATIAL_MAX];
	if (!x || x->ndim < 0 || !g || g->ndim < 0)
		return 0;
	if (len != x->ndim - 2) {
		err_at(n->loc, "%s: kernel_shape has %d entries, but the operand %s has %d spatial axes",
			n->op, len, type_text(x), x->ndim - 2);
		return -1;
	}
	if (window_dims(n, x, k, want))
		return -1;
	bool clash = g->ndim != x->ndim;
	for (int i = 0; !clash && i < g->ndim; i++)
		clash = dim_differ(g->dim[i], i < 2 ? x->dim[i] : want[i - 2]);
	if (clash)
		err_at(operand_loc(n, 0), "%s: %s is no pool of %s", n->op, type_text(g), type_text(x));
	return clash ? -1 : 0;
}

/* A shard that is a stretch of what its windows read. */
static int shape_stretch(Node *n)
{
	const Type *x = n->out[0] ? n->out[0]->type : NULL;
	int64_t from[SPATIAL_MAX];
	Dim dim[SPATIAL_MAX + 2];
	if (!n->shard || !x || x->ndim < 3 || x->ndim > SPATIAL_MAX + 2 || !window_crop(n, x->ndim - 2, from, dim + 2))
		return 0;
	dim[0] = x->dim[0];
	dim[1] = x->dim[1];
	operand_set_result(n, 0, x->elem, x->ndim, dim);
	return 0;
}

static int shape_maxpool_grad(Node *n)
{
	Type *x = operand_type(n, 1);
	operand_set_result(n, 0, operand_dtype(n, 0), x ? x->ndim : -1, x ? x->dim : NULL);
	return check_pooled(n, x, operand_type(n, 0)) || shape_stretch(n) ? -1 : 0;
}

/* g, shape -> x.  Batch and channels are those of g, which may be a shard; `shape` is that of the logical value. */
static int shape_pool_grad(Node *n)
{
	Type *g = operand_type(n, 0);
	Dim dim[NDIM_MAX];
	int ndim = g ? g->ndim : -1;
	if (ndim >= 0 && window_sizes(n, 1, ndim, dim))
		return -1;
	for (int i = 0; i < 2 && i < ndim; i++)
		dim[i] = g->dim[i];
	operand_set_result(n, 0, operand_dtype(n, 0), ndim, dim);
	return check_pooled(n, n->out[0] ? n->out[0]->type : NULL, g) || shape_stretch(n) ? -1 : 0;
}

/* Batch and channels are split together.  Indices count through the full tensor: with them nothing may be split. */
static int factor_pool(Node *n, FactorRule *r)
{
	Type *x = operand_type(n, 0);
	if (!x || x->ndim < 3 || (n->nout > 1 && n->out[1]))
		return -1;
	for (int axis = 0; axis < 2; axis++) {
		int f = factor_add(r, x->dim[axis]);
		for (int i = 0; i < n->nin; i++)
			if (r->in[i] && operand_ndim(n, i) == x->ndim)
				r->in[i][axis] = f;
		if (r->out[0])
			r->out[0][axis] = f;
	}
	return 0;
}

/* The window of a pool by the type of what it sees; false where sizes are not known. */
static bool types_window(Node *n, const Type *x, Window *w)
{
	int len;
	const int64_t *k = attr_ints(n, "kernel_shape", &len);
	if (!x || !k || len != x->ndim - 2 || len > SPATIAL_MAX || type_elements(x) < 0)
		return false;
	return window_read(n, len, k, w) == 0 && window_fit(n, w, x->dim + 2) == 0;
}

static int factor_windows(Node *n, FactorRule *r)
{
	Window w;
	if (factor_pool(n, r))
		return -1;
	if (types_window(n, operand_type(n, 0), &w))
		window_factors(r, &w, (At){ true, 0 }, (At){ false, 0 });
	return 0;
}

/* The operand x of a gradient: MaxPool's gradient reads it (operand 1); the others read its size only. */
static At seen_by_grad(const Node *n)
{
	return (At){ false, operand_ndim(n, 1) == operand_ndim(n, 0) ? 1 : -1 };
}

static int factor_windows_back(Node *n, FactorRule *r)
{
	Window w;
	if (factor_pool(n, r))
		return -1;
	if (types_window(n, n->out[0] ? n->out[0]->type : NULL, &w))
		window_factors_back(r, &w, (At){ true, 0 }, (At){ false, 0 }, seen_by_grad(n));
	return 0;
}

static void place_pool(Node *shard, const Node *logical, const int64_t *const *at)
{
	Window w;
	if (types_window((Node *)logical, operand_type(logical, 0), &w))
		window_place(shard, &w, (At){ true, 0 }, (At){ false, 0 }, at);
}

static void place_pool_grad(Node *shard, const Node *logical, const int64_t *const *at)
{
	Window w;
	if (types_window((Node *)logical, logical->out[0]->type, &w))
		window_place_within(shard, &w, (At){ true, 0 }, (At){ false, 0 }, seen_by_grad(logical), at);
}

/* One operation per position of each window. */
static Cost cost_pool(const Node *n)
{
	Cost c = cost_bytes(n);
	const Type *small = strstr(n->op, "Grad") ? operand_type(n, 0) : n->out[0]->type;
	int64_t e = small ? type_elements(small) : -1;
	int len;
	const int64_t *k = attr_ints(n, "kernel_shape", &len);
	c.flops = e > 0 ? (double)e : 0;
	for (int i = 0; i < len; i++)
		c.flops *= (double)k[i];
	return c;
}

/* GlobalAveragePool, GlobalMaxPool, GlobalLpPool: reductions over all spatial axes. */
static int expand_global(Node *n)
{
	Type *x = operand_type(n, 0);
	const char *op = !strcmp(n->op, "GlobalMaxPool") ? "ReduceMax" : "ReduceMean";
	if (!x || x->ndim < 3) {
		err_at(operand_loc(n, 0), "%s needs batch, channels and spatial axes, the operand is %s", n->op,
			x ? type_text(x) : "of unknown shape");
		return -1;
	}
	Value *v = n->in[0], *axes = make_axes(n, 2, x->ndim), *y = operand_result(n, 0);
	if (strcmp(n->op, "GlobalLpPool"))
		return make(n, y, op, "keepdims=1", v, axes, NULL) ? 0 : -1;
	int64_t p = attr_int(n, "p");
	if (p == 1 || p == 2)
		return make(n, y, p == 1 ? "ReduceL1" : "ReduceL2", "keepdims=1", v, axes, NULL) ? 0 : -1;
	Value *power = make2(n, "Pow", make1(n, "Abs", v), make_num(n, v, (double)p));
	Value *sum = make(n, NULL, "ReduceSum", "keepdims=1", power, axes, NULL);
	Value *zero = make_num(n, v, 0),
	      *some = make2(n, "Greater", sum, zero); /* at 0 the root has no slope: 0 */
	Value *safe = make(n, NULL, "Where", NULL, some, sum, make_num(n, v, 1));
	return make(n, y, "Where", NULL, some, make2(n, "Pow", safe, make_num(n, v, 1.0 / (double)p)), zero)
	               ? 0
	               : -1;
}

/* Each element goes to its index in a tensor of zeros as large as MaxPool's operand was; a larger
 * output_shape adds zeros behind. */
static int expand_unpool(Node *n)
{
	Type *x = operand_type(n, 0);
	int len;
	const int64_t *k = attr_ints(n, "kernel_shape", &len);
	int64_t shape[NDIM_MAX], pads[2 * NDIM_MAX] = { 0 }, total = 1;
	Dim want[NDIM_MAX];
	Window w;
	if (!x || x->ndim != len + 2 || type_elements(x) < 0) {
		err_at(n->loc, "MaxUnpool needs an operand of known size with %d spatial axes", len);
		return -1;
	}
	if (window_read(n, len, k, &w))
		return -1;
	for (int i = 0; i < x->ndim; i++) {
		shape[i] = i < 2 ? x->dim[i]
		                 : (x->dim[i] - 1) * w.stride[i - 2] - w.lo[i - 2] - w.hi[i - 2] + w.k[i - 2];
		if (shape[i] < 0 || __builtin_mul_overflow(total, shape[i], &total)) {
			err_at(n->loc, "MaxUnpool: axis %d of the result has no legal size", i);
			return -1;
		}
	}
	Value *flat = expand_ints(n, (int64_t[]){ -1 }, 1), *last = operand_value(n, 2), *y = operand_result(n, 0);
	Value *zero = make2(n, "Expand", make_num(n, n->in[0], 0), expand_ints(n, &total, 1));
	Value *full = make(n, NULL, "ScatterElements", "axis=0", zero, make2(n, "Reshape", n->in[1], flat),
		make2(n, "Reshape", n->in[0], flat));
	full = make(n, last ? NULL : y, "Reshape", NULL, full, expand_ints(n, shape, x->ndim), NULL);
	if (last) {
		if (operand_dims(n, 2, want, x->ndim) != x->ndim) {
			err_at(operand_loc(n, 2), "MaxUnpool: output_shape must be a constant with %d entries",
				x->ndim);
			return -1;
		}
		for (int i = 0; i < x->ndim; i++) {
			if (!dim_known(want[i])) {
				err_at(operand_loc(n, 2),
					"MaxUnpool: entry %d of output_shape is negative or not known", i);
				return -1;
			}
			pads[x->ndim + i] = want[i] - shape[i];
		}
		full = make(n, y, "Pad", NULL, full, expand_ints(n, pads, 2 * x->ndim), NULL);
	}
	return full ? 0 : -1;
}

#define POOL_ATTRS                                                                                \
	"auto_pad:string=\"NOTSET\" ceil_mode:int=0 dilations:ints kernel_shape:ints! pads:ints " \
	"strides:ints"
#define POOL_SAME                                                                                      \
	"auto_pad=@auto_pad, ceil_mode=@ceil_mode, dilations=@dilations, kernel_shape=@kernel_shape, " \
	"pads=@pads, strides=@strides"

/* clang-format off */
const Op ops_pool[] = {
	{ .name = "MaxPool", .since = 1, .sig = "x:N -> y:N indices:int64?",
	  .attrs = POOL_ATTRS " storage_order:int=0",
	  .shape = shape_maxpool, .kernel = "maxpool", .eval = eval_maxpool,
	  .factor_fn = factor_windows, .place = place_pool, .grad = "dx = MaxPoolGrad<" POOL_SAME ">(dy, x)",
	  .cost = cost_pool,
	  .test = "x:[2,2,5,6] =kernel_shape:[3,2] =strides:[2,1] =pads:[1,0,1,1] | "
	          "x:[1,2,9] =kernel_shape:[3] =dilations:[2] =ceil_mode:1 =strides:[2]" },
	{ .name = "MaxPoolGrad", .domain = "sbpcc", .since = 1, .sig = "g:F x:F -> y:F", .attrs = POOL_ATTRS,
	  .shape = shape_maxpool_grad, .kernel = "maxpool_grad", .eval = eval_maxpool_grad,
	  .factor_fn = factor_windows_back, .place = place_pool_grad, .linear = "g",
	  .grad = "v, i = MaxPool<" POOL_SAME ">(x); dg = Gather<axis=0>(Reshape(dy, [-1]), i)", .cost = cost_pool,
	  .test = "g:[2,2,3,6] x:(0.1,9)[2,2,5,6] =kernel_shape:[3,2] =strides:[2,1] =pads:[1,0,1,1] | "
	          "g:[1,1,3] x:(0.1,9)[1,1,13] =kernel_shape:[2] =strides:[4] | "
	          "g:[1,2,4] x:(0.1,9)[1,2,8] =kernel_shape:[3] =strides:[2] =ceil_mode:1" },
	{ .name = "AveragePool", .since = 1, .sig = "x:F -> y:F", .attrs = POOL_ATTRS " count_include_pad:int=0",
	  .shape = shape_plain, .kernel = "avgpool", .eval = eval_sumpool,
	  .factor_fn = factor_windows, .place = place_pool, .linear = "x",
	  .grad = "dx = AveragePoolGrad<" POOL_SAME ", count_include_pad=@count_include_pad>(dy, Shape(x))",
	  .cost = cost_pool,
	  .test = "x:[2,2,5,6] =kernel_shape:[3,2] =strides:[2,1] =pads:[1,0,1,1] | "
	          "x:[1,2,9] =kernel_shape:[3] =strides:[2] =count_include_pad:1 =pads:[1,1] | "
	          "x:[1,1,8] =kernel_shape:[3] =strides:[2] =count_include_pad:1 =pads:[1,1] =ceil_mode:1" },
	{ .name = "AveragePoolGrad", .domain = "sbpcc", .since = 1, .sig = "g:F shape:int64 -> x:F",
	  .attrs = POOL_ATTRS " count_include_pad:int=0",
	  .shape = shape_pool_grad, .kernel = "avgpool_grad", .eval = eval_sumpool_grad,
	  .factor_fn = factor_windows_back, .fit = shape_fit, .place = place_pool_grad, .linear = "g",
	  .grad = "dg = AveragePool<" POOL_SAME ", count_include_pad=@count_include_pad>(dx)", .cost = cost_pool,
	  .test = "g:[2,2,3,6] shape:{2,2,5,6} =kernel_shape:[3,2] =strides:[2,1] =pads:[1,0,1,1] | "
	          "g:[1,1,5] shape:{1,1,8} =kernel_shape:[3] =strides:[2] =count_include_pad:1 =pads:[1,1] "
	          "=ceil_mode:1" },
	{ .name = "WindowSum", .domain = "sbpcc", .since = 1, .sig = "x:F -> y:F", .attrs = POOL_ATTRS,
	  .shape = shape_plain, .kernel = "sumpool", .eval = eval_sumpool,
	  .factor_fn = factor_windows, .place = place_pool, .linear = "x",
	  .grad = "dx = WindowSumGrad<" POOL_SAME ">(dy, Shape(x))", .cost = cost_pool,
	  .test = "x:[2,2,5,6] =kernel_shape:[3,2] =strides:[2,1] =pads:[1,0,1,1]" },
	{ .name = "WindowSumGrad", .domain = "sbpcc", .since = 1, .sig = "g:F shape:int64 -> x:F",
	  .attrs = POOL_ATTRS, .shape = shape_pool_grad, .kernel = "sumpool_grad", .eval = eval_sumpool_grad,
	  .factor_fn = factor_windows_back, .fit = shape_fit, .place = place_pool_grad, .linear = "g",
	  .grad = "dg = WindowSum<" POOL_SAME ">(dx)", .cost = cost_pool,
	  .test = "g:[2,2,3,6] shape:{2,2,5,6} =kernel_shape:[3,2] =strides:[2,1] =pads:[1,0,1,1] | "
	          "g:[1,1,3] shape:{1,1,13} =kernel_shape:[2] =strides:[4]" },
	{ .name = "GlobalAveragePool", .since = 1, .sig = "x:F -> y:F", .expand = expand_global,
	  .test = "x:[2,3,4] | x:[1,2,3,2]" },
	{ .name = "GlobalMaxPool", .since = 1, .sig = "x:F -> y:F", .expand = expand_global,
	  .test = "x:[2,3,4] | x:[1,2,3,2]" },
	{ .name = "GlobalLpPool", .since = 1, .sig = "x:F -> y:F", .attrs = "p:int=2", .expand = expand_global,
	  .test = "x:[2,3,4] | x:[1,2,3,2] =p:1 | x:[1,2,3,2] =p:3" },
	{ .name = "MaxUnpool", .since = 9, .sig = "x:F i:int64 output_shape:int64? -> y:F",
	  .attrs = "kernel_shape:ints! pads:ints strides:ints", .expand = expand_unpool,
	  .test = "x:[1,1,2] i:{1,3} =kernel_shape:[2] =strides:[2]" },
	{ 0 },
};
/* clang-format on */
