/* Resampling.  Resize works along one axis after the other, each time with a constant matrix of weights (a MatMul) or,
 * for the nearest neighbour, constant indices (a Gather): gradients and signatures come with these.  GridSample takes
 * its positions from an operand, so its neighbours are gathered and weighted one by one. */
#include "ops.h"

#include <math.h>
#include <string.h>

typedef struct Axis {
	int axis;
	int64_t in, out;
	double scale;                   /* out / in before rounding */
	double lo, hi;                  /* region of interest, tf_crop_and_resize only */
} Axis;

typedef struct Mode {
	Name kind, nearest, coord;
	double a;                       /* cubic coefficient */
	bool antialias, exclude;
	double outside;                 /* value beyond the region of interest */
} Mode;

/* Where output element j lies on the input axis. */
static double position(const Mode *m, const Axis *x, int64_t j)
{
	double width = x->scale * (double)x->in, last = (double)(x->in - 1), y = (double)j;

	if (!strcmp(m->coord, "align_corners"))
		return width == 1 ? 0 : y * last / (width - 1);
	if (!strcmp(m->coord, "asymmetric"))
		return y / x->scale;
	if (!strcmp(m->coord, "tf_crop_and_resize"))
		return width == 1 ? 0.5 * (x->lo + x->hi) * last : y * (x->hi - x->lo) * last / (width - 1) + x->lo * last;
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
	return v < 0 ? 0 : v > (double)(n - 1) ? n - 1 : (int64_t)v;
}

static int64_t nearest(const Mode *m, const Axis *x, double p)
{
	double v = !strcmp(m->nearest, "floor")            ? floor(p)
	         : !strcmp(m->nearest, "ceil")             ? ceil(p)
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

/* One row of the weight matrix: the filter, stretched when antialiased, edges repeated or left out. */
static void weights(const Mode *m, const Axis *x, double p, double *row)
{
	double stretch = m->antialias && x->scale < 1 ? x->scale : 1, sum = 0;
	double reach = !strcmp(m->kind, "linear") ? 1 : 2;
	int64_t start = (int64_t)floor(-reach / stretch) + 1, end = 2 - start;
	double base = ceil(p) - 1;      /* the neighbour at or left of p; p itself counts as right */

	for (int64_t i = start; i < end; i++) {
		double at = base + (double)i, w = filter(m, stretch * (at - p));

		if (m->exclude && (at < 0 || at > (double)(x->in - 1)))
			continue;
		row[clamp(at, x->in)] += w;
		sum += w;
	}
	if (m->exclude || m->antialias)
		for (int64_t i = 0; i < x->in && sum != 0; i++)
			row[i] /= sum;
}

static Value *pick(Node *n, Value *v, const Mode *m, const Axis *x)
{
	int64_t *idx = arena_array(n->graph->scratch, int64_t, x->out);

	for (int64_t j = 0; j < x->out; j++)
		idx[j] = nearest(m, x, position(m, x, j));
	return expand_op(n, "Gather", expand_attr(n, "axis=%d", x->axis), v, expand_ints(n, idx, (int)x->out));
}

/* Multiplies axis x of v by the matrix of weights, at the left or at the right of a matrix product. */
static Value *blend(Node *n, Value *v, DType type, int rank, const Mode *m, const Axis *x)
{
	double *w = arena_array(n->graph->scratch, double, x->out * x->in);
	bool left = x->axis == rank - 2;
	int64_t perm[RANK_MAX], dim[2] = { left ? x->out : x->in, left ? x->in : x->out };

	for (int64_t j = 0; j < x->out; j++) {
		double p = position(m, x, j);

		if (!beyond(m, x, p))
			weights(m, x, p, w + j * x->in);
	}
	if (left)
		return expand_op(n, "MatMul", NULL, expand_table(n, type, w, 2, dim), v);

	double *t = arena_array(n->graph->scratch, double, x->out * x->in);
	for (int64_t j = 0; j < x->out; j++)
		for (int64_t i = 0; i < x->in; i++)
			t[i * x->out + j] = w[j * x->in + i];
	Value *mat = expand_table(n, type, t, 2, dim);
	if (x->axis == rank - 1)
		return expand_op(n, "MatMul", NULL, v, mat);
	for (int i = 0; i < rank; i++)
		perm[i] = i;
	perm[x->axis] = rank - 1;
	perm[rank - 1] = x->axis;
	char *swap = expand_list(n, "perm", perm, rank);
	return expand_op(n, "Transpose", swap, expand_op(n, "MatMul", NULL, expand_op(n, "Transpose", swap, v), mat));
}

/* What lies beyond the region of interest along any axis is one given value. */
static Value *fill_outside(Node *n, Value *v, DType type, int rank, const Mode *m, const Axis *x, int nx)
{
	Value *inside = NULL;

	for (int a = 0; a < nx; a++) {
		double *in = arena_array(n->graph->scratch, double, x[a].out);
		int64_t dim[RANK_MAX];

		for (int i = 0; i < rank; i++)
			dim[i] = i == x[a].axis ? x[a].out : 1;
		for (int64_t j = 0; j < x[a].out; j++)
			in[j] = !beyond(m, &x[a], position(m, &x[a], j));
		Value *t = expand_table(n, DT_BOOL, in, rank, dim);
		inside = inside ? expand_op(n, "And", NULL, inside, t) : t;
	}
	return inside ? expand_op(n, "Where", NULL, inside, v, expand_num(n, type, m->outside)) : v;
}

static int resample(Node *n, const Mode *m, Axis *x, int nx)
{
	DType type = in_dtype(n, 0), work = dtype_is_float(type) ? type : DT_FLOAT;
	int rank = in_rank(n, 0);
	bool near = !strcmp(m->kind, "nearest"), crop = !strcmp(m->coord, "tf_crop_and_resize");
	Value *v = n->in[0];

	for (int a = 0; a < nx; a++) {
		int64_t cells;

		if (__builtin_mul_overflow(x[a].in, x[a].out, &cells) || cells > limits.elements || x[a].out > INT32_MAX) {
			fail_at(EXIT_LIMIT, n->loc, "%s: the weights from %lld to %lld elements do not fit --max-elements", n->op, (long long)x[a].in, (long long)x[a].out);
			return -1;
		}
		if (x[a].in == 0 && x[a].out) {
			err_at(in_loc(n, 0), "%s cannot enlarge axis %d, which is empty", n->op, x[a].axis);
			return -1;
		}
	}
	if (!near && work != type)
		v = expand_cast(n, v, work);
	for (int a = 0; a < nx; a++)
		v = near ? pick(n, v, m, &x[a]) : blend(n, v, work, rank, m, &x[a]);
	if (crop)
		v = fill_outside(n, v, near ? type : work, rank, m, x, nx);
	if (!near && work != type) {
		bool sign = dtype_is_signed(type);
		int bits = dtype_bits(type);
		double hi = ldexp(1, sign ? bits - 1 : bits) - 1, lo = sign ? -hi - 1 : 0;

		v = expand_op(n, "Clip", NULL, expand_op(n, "Round", NULL, v), expand_num(n, work, lo), expand_num(n, work, hi));
		v = expand_cast(n, v, type);
	}
	return expand_result(n, 0, v);
}

static bool given(Node *n, int i)
{
	if (i >= n->nin || !n->in[i])
		return false;
	Type *t = in_type(n, i);
	return !(t && t->rank == 1 && t->dim[0] == 0);          /* before opset 13 an empty tensor stood for "none" */
}

/* The axes that change, from scales; axes of unknown size must have scale 1. */
static int axes_from_scales(Node *n, const double *scale, const int *axes, int naxes, Axis *x)
{
	Type *t = in_type(n, 0);
	int nx = 0;

	for (int i = 0; i < naxes; i++) {
		Dim d = t->dim[axes[i]];

		if (scale[i] == 1 && !dim_known(d))
			continue;
		if (!dim_known(d) || !(scale[i] > 0)) {
			err_at(in_loc(n, 0), "%s scales axis %d of %s by %g: the size must be known and the scale above 0", n->op, axes[i], type_text(t), scale[i]);
			return -1;
		}
		double out = floor(scale[i] * (double)d);
		if (out > (double)INT32_MAX) {
			fail_at(EXIT_LIMIT, n->loc, "%s: axis %d becomes too long", n->op, axes[i]);
			return -1;
		}
		x[nx++] = (Axis){ axes[i], d, (int64_t)out, scale[i], 0, 1 };
	}
	return nx;
}

static int axes_from_sizes(Node *n, const int *axes, int naxes, Axis *x)
{
	Type *t = in_type(n, 0);
	Name policy = attr_str(n, "keep_aspect_ratio_policy");
	Dim size[RANK_MAX];
	bool keep = policy && strcmp(policy, "stretch"), less = policy && !strcmp(policy, "not_larger");
	double best = less ? INFINITY : 0;
	int nx = 0;

	if (in_dims(n, 3, size, RANK_MAX) != naxes) {
		err_at(in_loc(n, 3), "Resize needs %d sizes that can be computed before the program runs", naxes);
		return -1;
	}
	for (int i = 0; i < naxes; i++) {
		Dim d = t->dim[axes[i]];

		if (!keep && dim_same(d, size[i]) && !dim_known(d))
			continue;
		if (!dim_known(d) || !dim_known(size[i])) {
			err_at(in_loc(n, 3), "Resize from %s to %s along axis %d: both must be known", dim_text(d), dim_text(size[i]), axes[i]);
			return -1;
		}
		double s = d ? (double)size[i] / (double)d : 1;
		best = less ? fmin(best, s) : fmax(best, s);
		x[nx++] = (Axis){ axes[i], d, size[i], s, 0, 1 };
	}
	for (int i = 0; keep && i < nx; i++) {
		x[i].scale = best;
		x[i].out = (int64_t)(best * (double)x[i].in + 0.5);
	}
	return nx;
}

/* Axes along which nothing happens are dropped. */
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
			err_at(n->loc, "Resize with tf_crop_and_resize needs a region of interest of %d numbers", 2 * naxes);
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

static int known_rank(Node *n)
{
	int rank = in_rank(n, 0);

	if (rank < 0)
		err_at(in_loc(n, 0), "%s needs an operand of known rank", n->op);
	return rank;
}

static int expand_resize(Node *n)
{
	static const char *const kinds[] = { "nearest", "linear", "cubic", NULL };
	static const char *const coords[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
		"asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn", NULL };
	Mode m = { attr_str(n, "mode"), attr_str(n, "nearest_mode"), attr_str(n, "coordinate_transformation_mode"),
		attr_float(n, "cubic_coeff_a"), attr_int(n, "antialias") != 0, attr_int(n, "exclude_outside") != 0,
		attr_float(n, "extrapolation_value") };
	int rank = known_rank(n), axes[RANK_MAX], naxes, nx;
	const int64_t *list = attr_ints(n, "axes", &naxes);
	double scale[RANK_MAX];
	Axis x[RANK_MAX];

	if (rank < 0 || !expand_oneof(n, "mode", kinds) || !expand_oneof(n, "coordinate_transformation_mode", coords))
		return -1;
	if (list && naxes > rank) {
		err_at(n->loc, "Resize has %d axes for %s", naxes, type_text(in_type(n, 0)));
		return -1;
	}
	for (int i = 0; list && i < naxes; i++)
		if (op_axis(n, list[i], rank, &axes[i]))
			return -1;
	for (int i = 0; !list && i < rank; i++)
		axes[i] = i;
	naxes = list ? naxes : rank;
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
	Mode m = { attr_str(n, "mode"), name_of("floor"), name_of("asymmetric"), -0.75, false, false, 0 };
	static const char *const kinds[] = { "nearest", "linear", "bilinear", "trilinear", NULL };
	int axes[RANK_MAX];
	Axis x[RANK_MAX];

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
	int rank = known_rank(n);
	double scale[RANK_MAX];
	const Tensor *t = rank < 0 ? NULL : expand_const(n, 1, "scales");

	return !t || read_scales(n, t, rank, scale) ? -1 : upsample(n, scale, rank);
}

static int expand_upsample_old(Node *n)
{
	int rank = known_rank(n);
	const Attr *a = node_attr(n, "scales");
	double scale[RANK_MAX];

	if (rank < 0)
		return -1;
	if (!a || a->type != AT_FLOATS || a->n != rank) {
		err_at(n->loc, "Upsample needs %d scales", rank);
		return -1;
	}
	for (int i = 0; i < rank; i++)
		scale[i] = a->u.fs[i];
	return upsample(n, scale, rank);
}

/* GridSample.  Positions and weights are kept as [N, P] for P output points, one pair per axis of the image. */
typedef struct Grid {
	Node *n;
	DType gtype, work;              /* of positions; of values and weights */
	int r;                          /* spatial axes */
	int64_t len[RANK_MAX];          /* of each */
	Name mode, pad;
	bool align;
	int taps;                       /* neighbours per axis: 1, 2 or 4 */
	Value *idx[RANK_MAX][4], *w[RANK_MAX][4];
} Grid;

static Value *g2(Grid *g, const char *op, Value *a, Value *b) { return expand_op(g->n, op, NULL, a, b); }
static Value *gk(Grid *g, const char *op, Value *a, double k) { return g2(g, op, a, expand_num(g->n, g->gtype, k)); }

/* Mirrors positions at lo and hi until they lie between. */
static Value *reflect(Grid *g, Value *p, double lo, double hi)
{
	double span = 2 * (hi - lo);

	if (span <= 0)
		return gk(g, "Add", gk(g, "Mul", p, 0), lo);
	Value *d = gk(g, "Sub", p, lo);
	Value *turn = gk(g, "Mul", expand_op(g->n, "Floor", NULL, gk(g, "Div", d, span)), span);
	Value *t = g2(g, "Sub", d, turn), *back = gk(g, "Add", expand_op(g->n, "Neg", NULL, t), span);
	return gk(g, "Add", expand_op(g->n, "Where", NULL, gk(g, "Greater", t, hi - lo), back, t), lo);
}

static Value *clip(Grid *g, Value *p, double lo, double hi)
{
	return expand_op(g->n, "Clip", NULL, p, expand_num(g->n, g->gtype, lo), expand_num(g->n, g->gtype, hi));
}

/* A neighbour at integral position p: its index, within the image, and the factor that cancels it when outside. */
static Value *neighbour(Grid *g, int axis, Value *p, Value **inside)
{
	double last = (double)(g->len[axis] - 1);

	*inside = NULL;
	if (!strcmp(g->pad, "zeros")) {
		Value *q = clip(g, p, 0, last);

		*inside = expand_cast(g->n, g2(g, "Equal", p, q), g->work);
		p = q;
	} else if (!strcmp(g->pad, "reflection")) {
		p = clip(g, g->align ? reflect(g, p, 0, last) : reflect(g, p, -0.5, last + 0.5), 0, last);
	} else {
		p = clip(g, p, 0, last);
	}
	return expand_op(g->n, "Cast", "to=7", p);
}

/* Weights of the cubic filter (a = -0.75) for the four neighbours of a position t behind the second. */
static Value *cubic(Grid *g, Value *t, int tap)
{
	double a = -0.75;
	Value *d = tap == 0 ? gk(g, "Add", t, 1) : tap == 1 ? t : gk(g, "Add", expand_op(g->n, "Neg", NULL, t), tap - 1);

	if (tap == 1 || tap == 2) {     /* ((a + 2) d - (a + 3)) d d + 1 */
		Value *u = gk(g, "Sub", gk(g, "Mul", d, a + 2), a + 3);

		return gk(g, "Add", g2(g, "Mul", g2(g, "Mul", u, d), d), 1);
	}
	Value *u = gk(g, "Add", g2(g, "Mul", gk(g, "Sub", gk(g, "Mul", d, a), 5 * a), d), 8 * a);
	return gk(g, "Sub", g2(g, "Mul", u, d), 4 * a);
}

/* Neighbours and weights along one axis, from normalised positions. */
static void along(Grid *g, int axis, Value *p)
{
	Node *n = g->n;
	double len = (double)g->len[axis], lo = g->align ? 0 : -0.5, hi = g->align ? len - 1 : len - 0.5;

	p = gk(g, "Add", p, 1);
	p = g->align ? gk(g, "Mul", p, (len - 1) / 2) : gk(g, "Mul", gk(g, "Sub", gk(g, "Mul", p, len), 1), 0.5);
	if (g->taps == 1)
		p = expand_op(n, "Round", NULL, p);
	if (!strcmp(g->pad, "border")) {
		Value *out = g2(g, "Or", gk(g, "Less", p, lo), gk(g, "Greater", p, hi));

		p = expand_op(n, "Where", NULL, out, clip(g, p, 0, len - 1), p);
	} else if (!strcmp(g->pad, "reflection")) {
		p = reflect(g, p, lo, hi);
	}
	Value *base = g->taps == 1 ? p : expand_op(n, "Floor", NULL, p), *t = g->taps == 1 ? NULL : g2(g, "Sub", p, base);
	for (int k = 0; k < g->taps; k++) {
		Value *inside, *w = NULL;
		int step = g->taps == 4 ? k - 1 : k;

		g->idx[axis][k] = neighbour(g, axis, step ? gk(g, "Add", base, step) : base, &inside);
		if (g->taps == 2)
			w = k ? t : gk(g, "Add", expand_op(n, "Neg", NULL, t), 1);
		else if (g->taps == 4)
			w = cubic(g, t, k);
		if (w && g->gtype != g->work)
			w = expand_cast(n, w, g->work);
		g->w[axis][k] = w && inside ? g2(g, "Mul", w, inside) : w ? w : inside;
	}
}

/* The sum over all combinations of neighbours: x is [N, points of the image, C], the result [N, P, C]. */
static Value *gather_all(Grid *g, Value *x)
{
	Node *n = g->n;
	int64_t combos = 1, last = 2;
	Value *sum = NULL, *minus = expand_ints(n, &last, 1);

	for (int i = 0; i < g->r; i++)
		combos *= g->taps;
	for (int64_t c = 0; c < combos; c++) {
		Value *flat = NULL, *w = NULL;
		int64_t rest = c;

		for (int i = 0; i < g->r; i++, rest /= g->taps) {
			Value *idx = g->idx[i][rest % g->taps], *f = g->w[i][rest % g->taps];

			flat = flat ? g2(g, "Add", g2(g, "Mul", flat, expand_num(n, DT_INT64, (double)g->len[i])), idx) : idx;
			w = w && f ? g2(g, "Mul", w, f) : w ? w : f;
		}
		Value *v = expand_op(n, "GatherND", "batch_dims=1", x, g2(g, "Unsqueeze", flat, minus));
		if (w)
			v = g2(g, "Mul", v, g2(g, "Unsqueeze", w, minus));
		sum = sum ? g2(g, "Add", sum, v) : v;
	}
	return sum;
}

static int read_grid(Grid *g)
{
	Node *n = g->n;
	static const char *const modes[] = { "nearest", "linear", "bilinear", "cubic", "bicubic", NULL };
	static const char *const pads[] = { "zeros", "border", "reflection", NULL };
	Type *x = in_type(n, 0), *p = in_type(n, 1);

	if (!expand_oneof(n, "mode", modes) || !expand_oneof(n, "padding_mode", pads))
		return -1;
	g->mode = attr_str(n, "mode");
	g->taps = !strcmp(g->mode, "nearest") ? 1 : strstr(g->mode, "cubic") ? 4 : 2;
	if (!x || !p || x->rank < 3 || p->rank != x->rank || (dim_known(p->dim[p->rank - 1]) && p->dim[p->rank - 1] != x->rank - 2)) {
		err_at(n->loc, "GridSample needs an image [N, C, D1, ..., Dr] and positions [N, O1, ..., Or, r], not %s and %s", type_text(x), type_text(p));
		return -1;
	}
	g->r = x->rank - 2;
	if (g->r > (g->taps == 4 ? 3 : 6)) {
		err_at(n->loc, "GridSample over %d axes is more than it can do", g->r);
		return -1;
	}
	for (int i = 0; i < g->r; i++) {
		g->len[i] = x->dim[i + 2];
		if (g->len[i] <= 0) {
			err_at(in_loc(n, 0), "GridSample needs an image of known size above 0, not %s", type_text(x));
			return -1;
		}
	}
	g->gtype = p->elem;
	g->work = dtype_is_float(x->elem) ? x->elem : DT_FLOAT;
	return 0;
}

static int expand_grid(Node *n)
{
	Grid g = { .n = n, .pad = attr_str(n, "padding_mode"), .align = attr_int(n, "align_corners") != 0 };
	int64_t flat[3] = { 0, 0, 1 }, points[3] = { 0, -1, 0 };

	if (read_grid(&g))
		return -1;
	DType type = in_dtype(n, 0);
	for (int i = 0; i < g.r; i++)
		if (__builtin_mul_overflow(flat[2], g.len[i], &flat[2])) {
			err_at(in_loc(n, 0), "GridSample: the image is too large");
			return -1;
		}
	points[2] = g.r;
	Value *grid = expand_op(n, "Reshape", NULL, n->in[1], expand_ints(n, points, 3));
	for (int i = 0; i < g.r; i++) {
		Value *which = expand_num(n, DT_INT64, g.r - 1 - i);

		along(&g, i, expand_op(n, "Gather", "axis=2", grid, which));
	}
	Value *x = type == g.work ? n->in[0] : expand_cast(n, n->in[0], g.work);
	x = expand_op(n, "Transpose", "perm=[0, 2, 1]", expand_op(n, "Reshape", NULL, x, expand_ints(n, flat, 3)));
	Value *y = expand_op(n, "Transpose", "perm=[0, 2, 1]", gather_all(&g, x));
	Value *shape = expand_op(n, "Concat", "axis=0", expand_op(n, "Shape", "start=0, end=2", n->in[0]),
		expand_op(n, "Shape", "start=1, end=-1", n->in[1]));
	y = expand_op(n, "Reshape", "allowzero=1", y, shape);
	return expand_result(n, 0, type == g.work ? y : expand_cast(n, y, type));
}

#define RESIZE_ATTRS "mode:string=\"nearest\" nearest_mode:string=\"round_prefer_floor\" " \
	"coordinate_transformation_mode:string=\"half_pixel\" cubic_coeff_a:float=-0.75 antialias:int=0 exclude_outside:int=0 " \
	"extrapolation_value:float=0 axes:ints keep_aspect_ratio_policy:string=\"stretch\""
#define GRID_ATTRS "align_corners:int=0 padding_mode:string=\"zeros\""

const Op ops_resize[] = {
	{ .name = "Resize", .since = 11, .sig = "x:T roi:F? scales:float? sizes:int64? -> y:T", .attrs = RESIZE_ATTRS, .expand = expand_resize },
	{ .name = "Resize", .since = 10, .until = 10, .sig = "x:T scales:float -> y:T", .attrs = "mode:string=\"nearest\"", .expand = expand_upsample },
	{ .name = "Upsample", .since = 9, .sig = "x:T scales:float -> y:T", .attrs = "mode:string=\"nearest\"", .expand = expand_upsample },
	{ .name = "Upsample", .since = 7, .until = 8, .sig = "x:T -> y:T", .attrs = "mode:string=\"nearest\" scales:floats!", .expand = expand_upsample_old },
	{ .name = "GridSample", .since = 20, .sig = "x:T grid:F -> y:T", .attrs = "mode:string=\"linear\" " GRID_ATTRS, .expand = expand_grid },
	{ .name = "GridSample", .since = 16, .until = 19, .sig = "x:T grid:F -> y:T", .attrs = "mode:string=\"bilinear\" " GRID_ATTRS, .expand = expand_grid },
	{ 0 },
};
