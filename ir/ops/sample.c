/* Reading images at computed positions: GridSample, and convolutions with deformed windows (DeformConv).
 *
 * Positions and weights are kept as [N, ..., P] for P points, one pair per axis of the image and neighbour; each
 * combination of neighbours is gathered from the image, seen as a list of pixels, and weighted.  So both operands have
 * their gradient from Gather and arithmetic. */
#include "ops.h"

#include <string.h>

typedef struct Grid {
	Node *n;
	DType gtype, work;     /* of positions; of values and weights */
	int r;                 /* spatial axes */
	int64_t len[NDIM_MAX]; /* of each */
	Name mode, pad;
	bool align;
	int taps;  /* neighbours per axis: 1, 2 or 4 */
	int batch; /* axes before the points */
	Value *idx[NDIM_MAX][4], *w[NDIM_MAX][4];
} Grid;

#define g2(g, op, a, b) expand_op((g)->n, op, NULL, a, b)

static Value *gk(Grid *g, const char *op, Value *a, double k)
{
	return g2(g, op, a, expand_num(g->n, g->gtype, k));
}

/* Mirrors positions at lo and hi until they are between. */
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
	return expand_op(
		g->n, "Clip", NULL, p, expand_num(g->n, g->gtype, lo), expand_num(g->n, g->gtype, hi));
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

/* Weights of the cubic filter (a = -0.75) for the four neighbours of a position that is t behind the second. */
static Value *cubic(Grid *g, Value *t, int tap)
{
	double a = -0.75;
	Value *d = tap == 0   ? gk(g, "Add", t, 1)
	           : tap == 1 ? t
	                      : gk(g, "Add", expand_op(g->n, "Neg", NULL, t), tap - 1);

	if (tap == 1 || tap == 2) { /* ((a + 2) d - (a + 3)) d d + 1 */
		Value *u = gk(g, "Sub", gk(g, "Mul", d, a + 2), a + 3);

		return gk(g, "Add", g2(g, "Mul", g2(g, "Mul", u, d), d), 1);
	}
	Value *u = gk(g, "Add", g2(g, "Mul", gk(g, "Sub", gk(g, "Mul", d, a), 5 * a), d), 8 * a);
	return gk(g, "Sub", g2(g, "Mul", u, d), 4 * a);
}

/* Neighbours and weights along one axis, from positions in pixels. */
static void along(Grid *g, int axis, Value *p)
{
	Node *n = g->n;
	double len = (double)g->len[axis], lo = g->align ? 0 : -0.5, hi = g->align ? len - 1 : len - 0.5;

	if (g->taps == 1)
		p = expand_op(n, "Round", NULL, p);
	if (!strcmp(g->pad, "border")) {
		Value *out = g2(g, "Or", gk(g, "Less", p, lo), gk(g, "Greater", p, hi));

		p = expand_op(n, "Where", NULL, out, clip(g, p, 0, len - 1), p);
	} else if (!strcmp(g->pad, "reflection")) {
		p = reflect(g, p, lo, hi);
	}
	Value *base = g->taps == 1 ? p : expand_op(n, "Floor", NULL, p),
	      *t = g->taps == 1 ? NULL : g2(g, "Sub", p, base);
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

/* The sum over all combinations of neighbours: x is [N, ..., pixels, C], the result [N, ..., P, C]. */
static Value *gather_all(Grid *g, Value *x)
{
	Node *n = g->n;
	int64_t combos = 1, last = g->batch + 1;
	char *attrs = expand_attr(n, "batch_dims=%d", g->batch);
	Value *sum = NULL, *column = expand_ints(n, &last, 1);

	for (int i = 0; i < g->r; i++)
		combos *= g->taps;
	for (int64_t c = 0; c < combos; c++) {
		Value *flat = NULL, *w = NULL;
		int64_t rest = c;

		for (int i = 0; i < g->r; i++, rest /= g->taps) {
			Value *idx = g->idx[i][rest % g->taps], *f = g->w[i][rest % g->taps];

			flat = flat ? g2(g, "Add",
					      g2(g, "Mul", flat, expand_num(n, DT_INT64, (double)g->len[i])),
					      idx)
			            : idx;
			w = w && f ? g2(g, "Mul", w, f) : w ? w : f;
		}
		Value *v = expand_op(n, "GatherND", attrs, x, g2(g, "Unsqueeze", flat, column));
		if (w)
			v = g2(g, "Mul", v, g2(g, "Unsqueeze", w, column));
		sum = sum ? g2(g, "Add", sum, v) : v;
	}
	return sum;
}

/* From [-1, 1] to pixels. */
static Value *pixels(Grid *g, int axis, Value *p)
{
	double len = (double)g->len[axis];

	p = gk(g, "Add", p, 1);
	return g->align ? gk(g, "Mul", p, (len - 1) / 2)
	                : gk(g, "Mul", gk(g, "Sub", gk(g, "Mul", p, len), 1), 0.5);
}

static int read_grid(Grid *g)
{
	Node *n = g->n;
	static const char *const modes[] = { "nearest", "linear", "bilinear", "cubic", "bicubic", NULL };
	static const char *const pads[] = { "zeros", "border", "reflection", NULL };
	Type *x = operand_type(n, 0), *p = operand_type(n, 1);

	if (!expand_oneof(n, "mode", modes) || !expand_oneof(n, "padding_mode", pads))
		return -1;
	g->mode = attr_str(n, "mode");
	g->taps = !strcmp(g->mode, "nearest") ? 1 : strstr(g->mode, "cubic") ? 4 : 2;
	if (!x || !p || x->ndim < 3 || p->ndim != x->ndim ||
		(dim_known(p->dim[p->ndim - 1]) && p->dim[p->ndim - 1] != x->ndim - 2)) {
		err_at(n->loc,
			"GridSample needs an image [N, C, D1, ..., Dr] and positions [N, O1, ..., Or, r], "
		        "not %s and %s",
			type_text(x), type_text(p));
		return -1;
	}
	g->r = x->ndim - 2;
	if (g->r > (g->taps == 4 ? 3 : 6)) {
		err_at(n->loc, "GridSample over %d axes is more than it can do", g->r);
		return -1;
	}
	for (int i = 0; i < g->r; i++) {
		g->len[i] = x->dim[i + 2];
		if (g->len[i] <= 0) {
			err_at(operand_loc(n, 0), "GridSample needs an image of known size above 0, not %s",
				type_text(x));
			return -1;
		}
	}
	g->gtype = p->elem;
	g->work = dtype_is_float(x->elem) ? x->elem : DT_FLOAT;
	return 0;
}

static int expand_grid(Node *n)
{
	Grid g = { .n = n,
		.batch = 1,
		.pad = attr_str(n, "padding_mode"),
		.align = attr_int(n, "align_corners") != 0 };
	int64_t flat[3] = { 0, 0, 1 }, points[3] = { 0, -1, 0 };

	if (read_grid(&g))
		return -1;
	DType type = operand_dtype(n, 0);
	for (int i = 0; i < g.r; i++)
		if (__builtin_mul_overflow(flat[2], g.len[i], &flat[2])) {
			err_at(operand_loc(n, 0), "GridSample: the image is too large");
			return -1;
		}
	points[2] = g.r;
	Value *grid = expand_op(n, "Reshape", NULL, n->in[1], expand_ints(n, points, 3));
	for (int i = 0; i < g.r; i++) {
		Value *which = expand_num(n, DT_INT64, g.r - 1 - i);

		along(&g, i, pixels(&g, i, expand_op(n, "Gather", "axis=2", grid, which)));
	}
	Value *x = type == g.work ? n->in[0] : expand_cast(n, n->in[0], g.work);
	x = expand_op(
		n, "Transpose", "perm=[0, 2, 1]", expand_op(n, "Reshape", NULL, x, expand_ints(n, flat, 3)));
	Value *y = expand_op(n, "Transpose", "perm=[0, 2, 1]", gather_all(&g, x));
	Value *shape = expand_op(n, "Concat", "axis=0", expand_op(n, "Shape", "start=0, end=2", n->in[0]),
		expand_op(n, "Shape", "start=1, end=-1", n->in[1]));
	y = expand_op(n, "Reshape", "allowzero=1", y, shape);
	return expand_result(n, 0, type == g.work ? y : expand_cast(n, y, type));
}

/* ---- DeformConv ---- */

typedef struct Deform {
	int64_t group, spots, k[NDIM_MAX],
		out[NDIM_MAX];             /* spots: groups of channels with offsets of their own */
	int64_t nk, np, channels, filters; /* elements of a window, windows, sizes of axis 1 of x and y */
} Deform;

static int64_t nth(const int64_t *list, int i, int64_t none)
{
	return list ? list[i] : none;
}

static int read_deform(Node *n, Grid *g, Deform *d)
{
	Type *x = operand_type(n, 0);
	int64_t xd[NDIM_MAX], wd[NDIM_MAX], od[NDIM_MAX];
	int no = expand_shape(n, 2, od), nw = expand_shape(n, 1, wd), nx = x ? x->ndim : -1;

	if (no < 0 || nw < 0 || nx < 3 || no != nx || nw != nx || nx - 2 > 4) {
		if (no >= 0 && nw >= 0)
			err_at(n->loc, "DeformConv needs x, w and offset with the same number of axes, at least 3");
		return -1;
	}
	g->r = nx - 2;
	d->group = attr_int(n, "group");
	d->spots = attr_int(n, "offset_group");
	d->nk = d->np = 1;
	bool bad = d->group < 1 || d->spots < 1;
	for (int i = 0; i < nx; i++) {
		xd[i] = x->dim[i];
		bad = bad || (i > 0 && xd[i] < 1) || wd[i] < 1;
	}
	for (int i = 0; i < g->r && !bad; i++) {
		g->len[i] = xd[i + 2];
		d->k[i] = wd[i + 2];
		d->out[i] = od[i + 2];
		bad = __builtin_mul_overflow(d->nk, d->k[i], &d->nk) ||
		      __builtin_mul_overflow(d->np, d->out[i], &d->np) || d->nk > INT32_MAX ||
		      d->np > INT32_MAX;
	}
	d->channels = xd[1];
	d->filters = wd[0];
	if (bad || d->channels != wd[1] * d->group || d->filters % d->group || d->channels % d->spots ||
		od[1] != d->spots * d->nk * g->r) {
		err_at(n->loc,
			"DeformConv: x %s, w %s and offset %s do not fit each other with %lld groups and "
		        "%lld offset groups",
			type_text(x), type_text(operand_type(n, 1)), type_text(operand_type(n, 2)), (long long)d->group,
			(long long)d->spots);
		return -1;
	}
	return expand_room(n, d->nk, d->np) ? 0 : -1;
}

/* Where each element of each window would be read without an offset, along one axis: [elements of a window,
 * windows]. */
static Value *regular(Node *n, const Grid *g, const Deform *d, int axis, const int64_t *stride,
	const int64_t *dil, const int64_t *pad)
{
	double *v = arena_array(n->graph->scratch, double, d->nk * d->np);
	int64_t kin = 1, pin = 1, dim[2] = { d->nk, d->np };

	for (int i = axis + 1; i < g->r; i++) {
		kin *= d->k[i];
		pin *= d->out[i];
	}
	for (int64_t k = 0; k < d->nk; k++)
		for (int64_t p = 0; p < d->np; p++)
			v[k * d->np + p] =
				(double)(p / pin % d->out[axis] * nth(stride, axis, 1) +
					 k / kin % d->k[axis] * nth(dil, axis, 1) - nth(pad, axis, 0));
	return expand_table(n, g->gtype, v, 2, dim);
}

static int expand_deform(Node *n)
{
	Grid g = { .n = n,
		.batch = 2,
		.pad = name_of("zeros"),
		.taps = 2,
		.align = true,
		.gtype = operand_dtype(n, 2),
		.work = operand_dtype(n, 0) };
	Deform d;
	int ns, nd, np;
	const int64_t *stride = attr_ints(n, "strides", &ns), *dil = attr_ints(n, "dilations", &nd),
		      *pad = attr_ints(n, "pads", &np);

	if (read_deform(n, &g, &d))
		return -1;
	if ((stride && ns != g.r) || (dil && nd != g.r) || (pad && np != 2 * g.r)) {
		err_at(n->loc, "DeformConv: strides, dilations and pads must be given for %d axes", g.r);
		return -1;
	}
	/* positions [N, spots, window elements, r, windows] -> per axis [N, spots, window elements * windows] */
	int64_t o5[5] = { 0, d.spots, d.nk, g.r, d.np }, o3[3] = { 0, d.spots, d.nk * d.np },
		o4[4] = { 0, d.spots, d.nk * d.np, 1 };
	Value *off = g2(&g, "Reshape", n->in[2], expand_ints(n, o5, 5));
	for (int i = 0; i < g.r; i++) {
		Value *p = expand_op(n, "Gather", "axis=3", off, expand_num(n, DT_INT64, i));

		p = g2(&g, "Add", p, regular(n, &g, &d, i, stride, dil, pad));
		along(&g, i, g2(&g, "Reshape", p, expand_ints(n, o3, 3)));
	}
	int64_t per = d.channels / d.spots, wide = d.channels / d.group * d.nk;
	int64_t x4[4] = { 0, d.spots, per, -1 }, c5[5] = { 0, d.spots, d.nk, d.np, per },
		c4[4] = { 0, d.group, wide, d.np };
	int64_t w3[3] = { d.group, d.filters / d.group, wide }, y[NDIM_MAX] = { 0, d.filters },
		b[NDIM_MAX] = { -1 };
	Value *x = expand_op(
		n, "Transpose", "perm=[0, 1, 3, 2]", g2(&g, "Reshape", n->in[0], expand_ints(n, x4, 4)));
	Value *cols = gather_all(&g, x);
	if (n->nin > 4 && n->in[4])
		cols = g2(&g, "Mul", cols, g2(&g, "Reshape", n->in[4], expand_ints(n, o4, 4)));
	cols = expand_op(
		n, "Transpose", "perm=[0, 1, 4, 2, 3]", g2(&g, "Reshape", cols, expand_ints(n, c5, 5)));
	cols = g2(&g, "Reshape", cols, expand_ints(n, c4, 4));
	Value *v = g2(&g, "MatMul", g2(&g, "Reshape", n->in[1], expand_ints(n, w3, 3)), cols);
	for (int i = 0; i < g.r; i++) {
		y[i + 2] = d.out[i];
		b[i + 1] = 1;
	}
	v = g2(&g, "Reshape", v, expand_ints(n, y, g.r + 2));
	if (n->nin > 3 && n->in[3])
		v = g2(&g, "Add", v, g2(&g, "Reshape", n->in[3], expand_ints(n, b, g.r + 1)));
	return expand_result(n, 0, v);
}

/* clang-format off */
#define GRID_ATTRS "align_corners:int=0 padding_mode:string=\"zeros\""

const Op ops_sample[] = {
	{ .name = "GridSample", .since = 20, .sig = "x:T grid:F -> y:T",
	  .attrs = "mode:string=\"linear\" " GRID_ATTRS, .expand = expand_grid,
	  .test = "x:[1,2,3,4] grid:[1,2,3,2] | "
	          "x:[2,1,3,3] grid:[2,2,2,2] =mode:\"cubic\" =padding_mode:\"border\" | "
	          "x:[1,1,2,3,3] grid:[1,2,2,1,3] =align_corners:1 =padding_mode:\"reflection\" | "
	          "x:[1,2,3,4] grid:[1,2,3,2] =mode:\"nearest\"" },
	{ .name = "GridSample", .since = 16, .until = 19, .sig = "x:T grid:F -> y:T",
	  .attrs = "mode:string=\"bilinear\" " GRID_ATTRS, .expand = expand_grid,
	  .test = "x:[1,2,3,4] grid:[1,2,3,2]" },
	{ .name = "DeformConv", .since = 19, .sig = "x:F w:F offset:F b:F? mask:F? -> y:F",
	  .attrs = "dilations:ints group:int=1 kernel_shape:ints offset_group:int=1 pads:ints strides:ints",
	  .expand = expand_deform,
	  .test = "x:[1,2,4,4] w:[2,2,2,2] offset:[1,8,3,3] b:[2] mask:[1,4,3,3] | "
	          "x:[1,2,3,3] w:[2,1,2,2] offset:[1,16,2,2] =group:2 =offset_group:2" },
	{ 0 },
};
/* clang-format on */
