/* Resize works along one axis after the other, each time with a constant matrix of weights (a MatMul) or, for the
 * nearest neighbour and long axes, constant indices (Gather): gradients and signatures come with these. */
#include "ops.h"

#include <math.h>
#include <string.h>

typedef struct Axis {
	int axis;
	int64_t in, out;
	double scale;  /* out / in before rounding */
	double lo, hi; /* region of interest, tf_crop_and_resize only */
} Axis;

typedef struct Mode {
	Name kind, nearest, coord;
	double a; /* cubic coefficient */
	bool antialias, exclude;
	double outside; /* value beyond the region of interest */
} Mode;

/* The position of output element j on the input axis. */
static double position(const Mode *m, const Axis *x, int64_t j)
{
	double width = x->scale * (double)x->in, last = (double)(x->in - 1), y = (double)j;

	if (!strcmp(m->coord, "align_corners"))
		return width == 1 ? 0 : y * last / (width - 1);
	if (!strcmp(m->coord, "asymmetric"))
		return y / x->scale;
	if (!strcmp(m->coord, "tf_crop_and_resize"))
		return width == 1 ? 0.5 * (x->lo + x->hi) * last
		                  : y * (x->hi - x->lo) * last / (width - 1) + x->lo * last;
	if (!strcmp(m->coord, "pytorch_half_pixel") && width == 1)
		return 0;
	if (!strcmp(m->coord, "tf_half_pixel_for_nn"))
		return (y + 0.5) / x->scale;
	if (!strcmp(m->coord, "half_pixel_symmetric"))
		return (double)x->in / 2 * (1 - (double)x->out / width) + (y + 0.5) / x->scale - 0.5;
	return (y + 0.5) / x->scale - 0.5;
}

static bool beyond(const Mode *m, const Axis *x, double p)
{
	return !strcmp(m->coord, "tf_crop_and_resize") && (p < 0 || p > (double)(x->in - 1));
}

static int64_t clamp(double v, int64_t n)
{
	return !(v > 0) ? 0 : v > (double)(n - 1) ? n - 1 : (int64_t)v;
}

static int64_t nearest(const Mode *m, const Axis *x, double p)
{
	double v = !strcmp(m->nearest, "floor")               ? floor(p)
	           : !strcmp(m->nearest, "ceil")              ? ceil(p)
	           : !strcmp(m->nearest, "round_prefer_ceil") ? floor(p + 0.5)
	                                                      : ceil(p - 0.5);
	return clamp(v, x->in);
}

/* The filter at distance d: a triangle, or Keys' cubic. */
static double filter(const Mode *m, double d)
{
	double a = m->a;

	d = fabs(d);
	if (!strcmp(m->kind, "linear"))
		return d < 1 ? 1 - d : 0;
	if (d <= 1)
		return ((a + 2) * d - (a + 3)) * d * d + 1;
	return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* How far the filter reaches to the left of the neighbour at or left of a position, as a number of neighbours <= 0. */
static int64_t reach(const Mode *m, const Axis *x)
{
	double stretch = m->antialias && x->scale < 1 ? x->scale : 1;

	return (int64_t)floor((!strcmp(m->kind, "linear") ? -1 : -2) / stretch) + 1;
}

static int64_t taps(const Mode *m, const Axis *x)
{
	return 2 - 2 * reach(m, x);
}

/* The elements that make up output element j, with their weights: the filter, stretched when antialiased, edges
 * repeated or left out. */
static void read_taps(const Mode *m, const Axis *x, int64_t j, int64_t *idx, double *w)
{
	double stretch = m->antialias && x->scale < 1 ? x->scale : 1, sum = 0, p = position(m, x, j);
	double base = ceil(p) - 1 + (double)reach(m, x); /* p itself counts as right */
	int64_t n = taps(m, x);

	for (int64_t i = 0; i < n; i++) {
		double at = base + (double)i;

		idx[i] = clamp(at, x->in);
		w[i] = filter(m, stretch * (at - p));
		if (beyond(m, x, p) || (m->exclude && (at < 0 || at > (double)(x->in - 1))))
			w[i] = 0;
		sum += w[i];
	}
	for (int64_t i = 0; (m->exclude || m->antialias) && sum != 0 && i < n; i++)
		w[i] /= sum;
}

static Value *pick(Node *n, Value *v, const Mode *m, const Axis *x)
{
	int64_t *idx = arena_array(n->graph->scratch, int64_t, x->out);

	for (int64_t j = 0; j < x->out; j++)
		idx[j] = nearest(m, x, position(m, x, j));
	return expand_op(
		n, "Gather", expand_attr(n, "axis=%d", x->axis), v, expand_ints(n, idx, (int)x->out));
}

/* A sum of gathered and weighted copies, one for each tap: for long axes, where a matrix would be mostly zeros. */
static Value *blend_taps(Node *n, Value *v, DType type, int ndim, const Mode *m, const Axis *x)
{
	int64_t count = taps(m, x), dim[NDIM_MAX], *idx = arena_array(n->graph->scratch, int64_t, count);
	int64_t *at = arena_array(n->graph->scratch, int64_t, count * x->out);
	double *w = arena_array(n->graph->scratch, double, count),
	       *weight = arena_array(n->graph->scratch, double, count * x->out);
	char *axis = expand_attr(n, "axis=%d", x->axis);
	Value *sum = NULL;

	for (int64_t j = 0; j < x->out; j++) {
		read_taps(m, x, j, idx, w);
		for (int64_t k = 0; k < count; k++) {
			at[k * x->out + j] = idx[k];
			weight[k * x->out + j] = w[k];
		}
	}
	for (int i = 0; i < ndim; i++)
		dim[i] = i < x->axis ? 1 : i == x->axis ? x->out : 1;
	for (int64_t k = 0; k < count; k++) {
		Value *t = expand_op(n, "Gather", axis, v, expand_ints(n, at + k * x->out, (int)x->out));

		t = expand_op(n, "Mul", NULL, t, expand_table(n, type, weight + k * x->out, ndim, dim));
		sum = k ? expand_op(n, "Add", NULL, sum, t) : t;
	}
	return sum;
}

/* Multiplies axis x of v by the matrix of weights, at the left or at the right of a matrix product. */
static Value *blend_matrix(Node *n, Value *v, DType type, int ndim, const Mode *m, const Axis *x)
{
	int64_t count = taps(m, x), *idx = arena_array(n->graph->scratch, int64_t, count);
	double *w = arena_array(n->graph->scratch, double, x->out * x->in),
	       *one = arena_array(n->graph->scratch, double, count);
	bool left = x->axis == ndim - 2;
	int64_t perm[NDIM_MAX], dim[2] = { left ? x->out : x->in, left ? x->in : x->out };

	for (int64_t j = 0; j < x->out; j++) {
		read_taps(m, x, j, idx, one);
		for (int64_t k = 0; k < count; k++)
			w[left ? j * x->in + idx[k] : idx[k] * x->out + j] += one[k];
	}
	Value *mat = expand_table(n, type, w, 2, dim);
	if (left)
		return expand_op(n, "MatMul", NULL, mat, v);
	if (x->axis == ndim - 1)
		return expand_op(n, "MatMul", NULL, v, mat);
	for (int i = 0; i < ndim; i++)
		perm[i] = i;
	perm[x->axis] = ndim - 1;
	perm[ndim - 1] = x->axis;
	char *swap = expand_list(n, "perm", perm, ndim);
	return expand_op(
		n, "Transpose", swap, expand_op(n, "MatMul", NULL, expand_op(n, "Transpose", swap, v), mat));
}

/* Elements beyond the region of interest along any axis are one given value. */
static Value *fill_outside(Node *n, Value *v, DType type, int ndim, const Mode *m, const Axis *x, int nx)
{
	Value *inside = NULL;

	for (int a = 0; a < nx; a++) {
		double *in = arena_array(n->graph->scratch, double, x[a].out);
		int64_t dim[NDIM_MAX];

		for (int i = 0; i < ndim; i++)
			dim[i] = i == x[a].axis ? x[a].out : 1;
		for (int64_t j = 0; j < x[a].out; j++)
			in[j] = !beyond(m, &x[a], position(m, &x[a], j));
		Value *t = expand_table(n, DT_BOOL, in, ndim, dim);
		inside = inside ? expand_op(n, "And", NULL, inside, t) : t;
	}
	return inside ? expand_op(n, "Where", NULL, inside, v, expand_num(n, type, m->outside)) : v;
}

static int resample(Node *n, const Mode *m, Axis *x, int nx)
{
	DType type = operand_dtype(n, 0), work = dtype_is_float(type) ? type : DT_FLOAT;
	int ndim = operand_ndim(n, 0);
	bool near = !strcmp(m->kind, "nearest"), crop = !strcmp(m->coord, "tf_crop_and_resize");
	Value *v = n->in[0];

	for (int a = 0; a < nx; a++) {
		if (x[a].in == 0 && x[a].out) {
			err_at(operand_loc(n, 0), "%s cannot enlarge axis %d, which is empty", n->op, x[a].axis);
			return -1;
		}
		if (!expand_room(n, x[a].in, 1) ||
			!expand_room(n, x[a].out, near || x[a].out == 0 ? 1 : taps(m, &x[a])))
			return -1;
	}
	if (!near && work != type)
		v = expand_cast(n, v, work);
	for (int a = 0; a < nx; a++) {
		bool dense = x[a].in <= 64 || x[a].in <= 4 * taps(m, &x[a]);

		v = near    ? pick(n, v, m, &x[a])
		    : dense ? blend_matrix(n, v, work, ndim, m, &x[a])
		            : blend_taps(n, v, work, ndim, m, &x[a]);
	}
	if (crop)
		v = fill_outside(n, v, near ? type : work, ndim, m, x, nx);
	if (!near && work != type) {
		bool sign = dtype_is_signed(type);
		int bits = dtype_bits(type);
		double hi = ldexp(1, sign ? bits - 1 : bits) - 1, lo = sign ? -hi - 1 : 0;

		v = expand_op(n, "Clip", NULL, expand_op(n, "Round", NULL, v), expand_num(n, work, lo),
			expand_num(n, work, hi));
		v = expand_cast(n, v, type);
	}
	return expand_result(n, 0, v);
}

static bool given(Node *n, int i)
{
	if (i >= n->nin || !n->in[i])
		return false;
	Type *t = operand_type(n, i);
	return !(t && t->ndim == 1 && t->dim[0] == 0); /* before opset 13 an empty tensor meant "none" */
}

/* The axes that change, from scales; axes of unknown size must have scale 1. */
static int axes_from_scales(Node *n, const double *scale, const int *axes, int naxes, Axis *x)
{
	Type *t = operand_type(n, 0);
	int nx = 0;

	for (int i = 0; i < naxes; i++) {
		Dim d = t->dim[axes[i]];

		if (scale[i] == 1 && !dim_known(d))
			continue;
		if (!dim_known(d) || !(scale[i] > 0)) {
			err_at(operand_loc(n, 0),
				"%s scales axis %d of %s by %g: the size must be known and the scale above 0",
				n->op, axes[i], type_text(t), scale[i]);
			return -1;
		}
		double out = floor(scale[i] * (double)d);
		if (!(out <= (double)INT32_MAX)) {
			fail_at(EXIT_LIMIT, n->loc, "%s: axis %d becomes too long", n->op, axes[i]);
			return -1;
		}
		x[nx++] = (Axis){ .axis = axes[i], .in = d, .out = (int64_t)out, .scale = scale[i], .hi = 1 };
	}
	return nx;
}

static int axes_from_sizes(Node *n, const int *axes, int naxes, Axis *x)
{
	Type *t = operand_type(n, 0);
	const Tensor *given = operand_const(n, 3);
	Name policy = attr_str(n, "keep_aspect_ratio_policy");
	Dim size[NDIM_MAX];
	bool keep = policy && strcmp(policy, "stretch"), less = policy && !strcmp(policy, "not_larger");
	double best = less ? INFINITY : 0;
	int nx = 0;

	if (operand_dims(n, 3, size, NDIM_MAX) != naxes) {
		err_at(operand_loc(n, 3), "Resize needs %d sizes that can be computed before the program runs",
			naxes);
		return -1;
	}
	for (int i = 0; i < naxes; i++) {
		Dim d = t->dim[axes[i]];

		if (given && tensor_int(given, i) < 0) {
			err_at(operand_loc(n, 3), "Resize: a size is negative, %lld", (long long)tensor_int(given, i));
			return -1;
		}
		if (!keep && dim_same(d, size[i]) && !dim_known(d))
			continue;
		if (!dim_known(d) || !dim_known(size[i])) {
			err_at(operand_loc(n, 3), "Resize from %s to %s along axis %d: both must be known",
				dim_text(d), dim_text(size[i]), axes[i]);
			return -1;
		}
		double s = d ? (double)size[i] / (double)d : 1;
		best = less ? fmin(best, s) : fmax(best, s);
		x[nx++] = (Axis){ .axis = axes[i], .in = d, .out = size[i], .scale = s, .hi = 1 };
	}
	for (int i = 0; keep && i < nx; i++) {
		x[i].scale = best;
		x[i].out = (int64_t)fmin(best * (double)x[i].in + 0.5, (double)INT32_MAX);
	}
	return nx;
}

/* Drops axes that do not change. */
static int busy(const Mode *m, Axis *x, int nx)
{
	int k = 0;

	for (int i = 0; i < nx; i++) {
		bool whole = strcmp(m->coord, "tf_crop_and_resize") || (x[i].lo == 0 && x[i].hi == 1);

		if (!(x[i].in == x[i].out && fabs(x[i].scale - 1) < 1e-9 && whole))
			x[k++] = x[i];
	}
	return k;
}

static int read_roi(Node *n, const int *axes, int naxes, Axis *x, int nx)
{
	const Tensor *roi = given(n, 1) ? expand_const(n, 1, "a region of interest") : NULL;

	if (!roi || tensor_elements(roi) != 2 * naxes) {
		if (!given(n, 1) || roi)
			err_at(n->loc,
				"Resize with tf_crop_and_resize needs a region of interest of %d numbers",
				2 * naxes);
		return -1;
	}
	for (int i = 0; i < nx; i++)
		for (int k = 0; k < naxes; k++)
			if (axes[k] == x[i].axis) {
				x[i].lo = tensor_get(roi, k);
				x[i].hi = tensor_get(roi, naxes + k);
			}
	return 0;
}

static int read_scales(Node *n, const Tensor *t, int naxes, double *scale)
{
	if (tensor_elements(t) != naxes) {
		err_at(n->loc, "%s has %lld scales for %d axes", n->op, (long long)tensor_elements(t), naxes);
		return -1;
	}
	for (int i = 0; i < naxes; i++)
		scale[i] = tensor_get(t, i);
	return 0;
}

static int known_ndim(Node *n)
{
	int ndim = operand_ndim(n, 0);

	if (ndim < 0)
		err_at(operand_loc(n, 0), "%s needs an operand with a known number of axes", n->op);
	return ndim;
}

static int expand_resize(Node *n)
{
	static const char *const kinds[] = { "nearest", "linear", "cubic", NULL };
	static const char *const coords[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
		"align_corners", "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn", NULL };
	Mode m = { .kind = attr_str(n, "mode"), .nearest = attr_str(n, "nearest_mode"),
		.coord = attr_str(n, "coordinate_transformation_mode"), .a = attr_float(n, "cubic_coeff_a"),
		.antialias = attr_int(n, "antialias") != 0, .exclude = attr_int(n, "exclude_outside") != 0,
		.outside = attr_float(n, "extrapolation_value") };
	int ndim = known_ndim(n), axes[NDIM_MAX], naxes, nx;
	const int64_t *list = attr_ints(n, "axes", &naxes);
	double scale[NDIM_MAX];
	Axis x[NDIM_MAX];

	if (ndim < 0 || !expand_oneof(n, "mode", kinds) ||
		!expand_oneof(n, "coordinate_transformation_mode", coords))
		return -1;
	if (list && naxes > ndim) {
		err_at(n->loc, "Resize has %d axes for %s", naxes, type_text(operand_type(n, 0)));
		return -1;
	}
	for (int i = 0; list && i < naxes; i++)
		if (op_axis(n, list[i], ndim, &axes[i]))
			return -1;
	for (int i = 0; !list && i < ndim; i++)
		axes[i] = i;
	naxes = list ? naxes : ndim;
	if (given(n, 2) == given(n, 3)) {
		err_at(n->loc, "Resize needs either scales or sizes");
		return -1;
	}
	if (given(n, 2)) {
		const Tensor *t = expand_const(n, 2, "scales");

		if (!t || read_scales(n, t, naxes, scale))
			return -1;
		nx = axes_from_scales(n, scale, axes, naxes, x);
	} else {
		nx = axes_from_sizes(n, axes, naxes, x);
	}
	if (nx < 0 || (!strcmp(m.coord, "tf_crop_and_resize") && read_roi(n, axes, naxes, x, nx)))
		return -1;
	return resample(n, &m, x, busy(&m, x, nx));
}

/* Resize-10 and Upsample: scales only, positions are j / scale, the nearest is the one below. */
static int upsample(Node *n, const double *scale, int naxes)
{
	Mode m = { .kind = attr_str(n, "mode"), .nearest = name_of("floor"), .coord = name_of("asymmetric"),
		.a = -0.75 };
	static const char *const kinds[] = { "nearest", "linear", "bilinear", "trilinear", NULL };
	int axes[NDIM_MAX];
	Axis x[NDIM_MAX];

	if (!expand_oneof(n, "mode", kinds))
		return -1;
	if (strcmp(m.kind, "nearest"))
		m.kind = name_of("linear");
	for (int i = 0; i < naxes; i++)
		axes[i] = i;
	int nx = axes_from_scales(n, scale, axes, naxes, x);
	return nx < 0 ? -1 : resample(n, &m, x, busy(&m, x, nx));
}

static int expand_upsample(Node *n)
{
	int ndim = known_ndim(n);
	double scale[NDIM_MAX];
	const Tensor *t = ndim < 0 ? NULL : expand_const(n, 1, "scales");

	return !t || read_scales(n, t, ndim, scale) ? -1 : upsample(n, scale, ndim);
}

static int expand_upsample_old(Node *n)
{
	int ndim = known_ndim(n);
	const Attr *a = node_attr(n, "scales");
	double scale[NDIM_MAX];

	if (ndim < 0)
		return -1;
	if (!a || a->type != AT_FLOATS || a->n != ndim) {
		err_at(n->loc, "Upsample needs %d scales", ndim);
		return -1;
	}
	for (int i = 0; i < ndim; i++)
		scale[i] = a->u.fs[i];
	return upsample(n, scale, ndim);
}

/* clang-format off */
#define RESIZE_ATTRS \
	"mode:string=\"nearest\" nearest_mode:string=\"round_prefer_floor\" " \
	"coordinate_transformation_mode:string=\"half_pixel\" cubic_coeff_a:float=-0.75 antialias:int=0 " \
	"exclude_outside:int=0 extrapolation_value:float=0 axes:ints keep_aspect_ratio_policy:string=\"stretch\""

const Op ops_resize[] = {
	{ .name = "Resize", .since = 11, .sig = "x:T roi:F? scales:float? sizes:int64? -> y:T", .attrs = RESIZE_ATTRS,
	  .expand = expand_resize,
	  .test = "x:[1,1,3,4] scales:{1,1,2,2} =mode:\"linear\" | x:[1,2,4,3] sizes:{1,2,3,5} =mode:\"cubic\" | "
	          "x:[4,3] sizes:{2,6} =antialias:1 =mode:\"linear\" | x:[3,4] scales:{2,3}" },
	{ .name = "Resize", .since = 10, .until = 10, .sig = "x:T scales:float -> y:T",
	  .attrs = "mode:string=\"nearest\"", .expand = expand_upsample, .test = "x:[2,3] scales:{2,2}" },
	{ .name = "Upsample", .since = 9, .sig = "x:T scales:float -> y:T", .attrs = "mode:string=\"nearest\"",
	  .expand = expand_upsample, .test = "x:[2,3] scales:{2,2} =mode:\"linear\"" },
	{ .name = "Upsample", .since = 7, .until = 8, .sig = "x:T -> y:T",
	  .attrs = "mode:string=\"nearest\" scales:floats!", .expand = expand_upsample_old,
	  .test = "x:[2,3] =scales:[2.0,1.0]" },
	{ 0 },
};
/* clang-format on */
