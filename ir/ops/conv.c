/* Convolutions of any number of spatial axes.
 *
 * Conv is linear in x and in w, so its two gradients are operators of the same kind: ConvGradX (given g
 * and w) and ConvGradW (given x and g), and the gradient of each of the three is made of the other
 * two.  ConvTranspose is ConvGradX with explicit padding.  All are matrix products whose patches are read
 * in place (matmul_run).
 */
#include <string.h>

#include "ops.h"

/* The window's size along each axis: kernel_shape, or the spatial axes of the weight; false when not all
 * known. */
static int kernel_of(Node *n, bool conv, int wi, int nd, int64_t *k, bool *known)
{
	int len;
	const int64_t *attr = attr_ints(n, "kernel_shape", &len);
	Type *w = conv ? operand_type(n, wi) : NULL;
	*known = true;
	if (attr && len != nd) {
		err_at(n->loc, "%s: kernel_shape has %d entries, but the operand has %d spatial axes", n->op,
			len, nd);
		return -1;
	}
	for (int i = 0; i < nd; i++) {
		Dim d = w && w->ndim == nd + 2 ? w->dim[i + 2] : DIM_UNKNOWN;
		if (attr && dim_differ(d, attr[i])) {
			err_at(n->loc, "%s: kernel_shape says %lld along spatial axis %d, the weight is %s",
				n->op, (long long)attr[i], i, type_text(w));
			return -1;
		}
		k[i] = attr ? attr[i] : dim_known(d) ? d : 1;
		if (!attr && !dim_known(d))
			*known = false;
	}
	return 0;
}

/* x and w of a convolution agree; o and c are the channels of the result and of x. */
static int check_weight(Node *n, int xi, int wi)
{
	Type *x = operand_type(n, xi), *w = operand_type(n, wi);
	int64_t group = attr_int(n, "group");
	if (group < 1) {
		err_at(n->loc, "%s: group must be at least 1, not %lld", n->op, (long long)group);
		return -1;
	}
	if (!w || w->ndim < 0)
		return 0;
	if (x && x->ndim >= 0 && w->ndim != x->ndim) {
		err_at(operand_loc(n, wi), "%s: the weight %s has %d axes, the operand %s has %d", n->op,
			type_text(w), w->ndim, type_text(x), x->ndim);
		return -1;
	}
	if (dim_known(w->dim[0]) && w->dim[0] % group) {
		err_at(operand_loc(n, wi), "%s: %lld groups do not divide the %lld output channels of the weight",
			n->op, (long long)group, (long long)w->dim[0]);
		return -1;
	}
	return 0;
}

int conv_shape(Node *n, bool conv)
{
	Type *x = operand_type(n, 0), *wt = conv ? operand_type(n, 1) : NULL;
	int64_t k[SPATIAL_MAX];
	Dim dim[SPATIAL_MAX + 2];
	bool known = true;
	if (!x || x->ndim < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	int nd = x->ndim - 2;
	for (int i = 0; i < SPATIAL_MAX; i++)
		k[i] = 1;
	if ((conv && check_weight(n, 0, 1)) ||
		(nd >= 1 && nd <= SPATIAL_MAX && kernel_of(n, conv, 1, nd, k, &known)) ||
		window_dims(n, x, k, dim + 2))
		return -1;
	dim[0] = x->dim[0];
	dim[1] = !conv ? x->dim[1] : wt && wt->ndim >= 0 ? wt->dim[0] : DIM_UNKNOWN;
	for (int i = 0; !known && i < nd; i++)
		dim[i + 2] = DIM_UNKNOWN;
	operand_set_result(n, 0, x->elem, x->ndim, dim);
	return 0;
}

static int shape_conv(Node *n)
{
	Type *x = operand_type(n, 0), *w = operand_type(n, 1), *b = operand_type(n, 2);
	if (conv_shape(n, true))
		return -1;
	if (x && w && x->ndim > 1 && w->ndim > 1 &&
		dim_differ(x->dim[1], dim_mul(w->dim[1], attr_int(n, "group")))) {
		err_at(operand_loc(n, 1),
			"Conv: the operand %s has %s channels, the weight %s in %lld groups needs %s",
			type_text(x), dim_text(x->dim[1]), type_text(w), (long long)attr_int(n, "group"),
			dim_text(dim_mul(w->dim[1], attr_int(n, "group"))));
		return -1;
	}
	if (b && b->ndim >= 0 && (b->ndim != 1 || (w && w->ndim > 0 && dim_differ(b->dim[0], w->dim[0])))) {
		err_at(operand_loc(n, 2), "Conv: the bias is %s, one number per output channel of %s is needed",
			type_text(b), type_text(w));
		return -1;
	}
	return 0;
}

/* g and w -> x.  The size of x is the operand `shape`, or follows from output_padding. */
static int shape_gradx(Node *n)
{
	Type *g = operand_type(n, 0), *wt = operand_type(n, 1);
	int64_t k[SPATIAL_MAX + 1], extra[SPATIAL_MAX + 1];
	Dim dim[SPATIAL_MAX + 2], given[SPATIAL_MAX + 2];
	bool known;
	Window w;
	if (!g || g->ndim < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	int nd = g->ndim - 2;
	if (nd < 1 || nd > SPATIAL_MAX) {
		err_at(operand_loc(n, 0), "%s needs batch, channels and 1 to %d spatial axes, the operand is %s",
			n->op, (int)SPATIAL_MAX, type_text(g));
		return -1;
	}
	if (check_weight(n, 0, 1) || kernel_of(n, true, 1, nd, k, &known) || window_read(n, nd, k, &w) ||
		window_list(n, "output_padding", nd, 0, 0, extra))
		return -1;
	if (wt && wt->ndim > 0 && dim_differ(g->dim[1], wt->dim[0])) {
		err_at(operand_loc(n, 0), "%s: the operand %s has %s channels, the weight %s needs %s", n->op,
			type_text(g), dim_text(g->dim[1]), type_text(wt), dim_text(wt->dim[0]));
		return -1;
	}
	dim[0] = g->dim[0];
	dim[1] = wt && wt->ndim > 1 ? dim_mul(wt->dim[1], attr_int(n, "group")) : DIM_UNKNOWN;
	bool sized = operand_value(n, 2) != NULL;
	if (sized && window_sizes(n, 2, nd + 2, given))
		return -1;
	for (int i = 0; i < nd; i++) {
		dim[i + 2] = DIM_UNKNOWN;
		if (sized)
			dim[i + 2] = given[i + 2];
		else if (known)
			dim[i + 2] = dim_sub(dim_add(dim_mul(dim_sub(g->dim[i + 2], 1), w.stride[i]),
						     window_span(&w, i) + extra[i]),
				w.lo[i] + w.hi[i]);
		if (dim_known(g->dim[i + 2]) && dim_known(dim[i + 2]) && dim[i + 2] < 1 &&
			g->dim[i + 2] > 0) {
			err_at(n->loc, "%s: padding %lld and %lld leaves nothing of axis %d", n->op,
				(long long)w.lo[i], (long long)w.hi[i], i + 2);
			return -1;
		}
	}
	operand_set_result(n, 0, g->elem, g->ndim, dim);
	return 0;
}

/* x and g -> w, whose size is the operand `shape`. */
static int shape_gradw(Node *n)
{
	Type *x = operand_type(n, 0), *g = operand_type(n, 1);
	Dim dim[SPATIAL_MAX + 2];
	int ndim = x && x->ndim >= 0 ? x->ndim : g ? g->ndim : -1;
	if (ndim > SPATIAL_MAX + 2 || (ndim >= 0 && ndim < 3)) {
		err_at(operand_loc(n, 0), "%s needs batch, channels and 1 to %d spatial axes", n->op,
			(int)SPATIAL_MAX);
		return -1;
	}
	if (x && g && x->ndim >= 0 && g->ndim >= 0 &&
		(x->ndim != g->ndim || dim_differ(x->dim[0], g->dim[0]))) {
		err_at(n->loc, "%s: %s and %s do not belong to one convolution", n->op, type_text(x),
			type_text(g));
		return -1;
	}
	int64_t group = attr_int(n, "group");
	for (int i = 0; i < 2; i++) {
		Dim c = operand_ndim(n, i) > 1 ? operand_type(n, i)->dim[1] : DIM_UNKNOWN;
		if (group < 1 || (dim_known(c) && c % group)) {
			err_at(operand_loc(n, i), "%s: %lld groups do not divide %s channels", n->op,
				(long long)group, dim_text(c));
			return -1;
		}
	}
	if (ndim >= 0 && window_sizes(n, 2, ndim, dim))
		return -1;
	for (int i = 2; i < ndim; i++)
		if (dim_known(dim[i]) && (dim[i] < 1 || dim[i] > INT32_MAX)) {
			err_at(operand_loc(n, 2), "%s: a window of %lld elements along axis %d", n->op,
				(long long)dim[i], i);
			return -1;
		}
	if (ndim >= 0) { /* from the operands, which may be shards; `shape` is that of the logical value */
		dim[0] = g && g->ndim > 1 ? g->dim[1] : DIM_UNKNOWN;
		dim[1] = x && x->ndim > 1 ? dim_div(x->dim[1], attr_int(n, "group")) : DIM_UNKNOWN;
	}
	operand_set_result(n, 0, operand_dtype(n, 0), ndim, dim);
	return 0;
}

/* How pack finds patches: elements of a plane per channel, addressed by pixel and by position in the window. */
typedef struct Patch {
	const Window *w;
	bool back;       /* pixels are of x and elements of g: the transposed walk */
	int64_t plane;   /* elements of one channel */
	int64_t *kcoord; /* nk x nd */
	int64_t *off;    /* nk x width, for one panel */
} Patch;

static void unravel(int nd, const int64_t *size, int64_t i, int64_t *at)
{
	for (int d = nd - 1; d >= 0; d--) {
		at[d] = i % size[d];
		i /= size[d];
	}
}

/* The element that position kc of the window reads for the pixel `at`; -1 in the padding. */
static int64_t patch_offset(const Patch *p, const int64_t *at, const int64_t *kc)
{
	const Window *w = p->w;
	int64_t off = 0;
	for (int d = 0; d < w->nd; d++) {
		int64_t t, size;
		if (p->back) {
			t = at[d] + w->lo[d] - kc[d] * w->dil[d];
			size = w->out[d];
			if (t < 0 || t % w->stride[d])
				return -1;
			t /= w->stride[d];
		} else {
			t = at[d] * w->stride[d] - w->lo[d] + kc[d] * w->dil[d];
			size = w->in[d];
		}
		if (t < 0 || t >= size)
			return -1;
		off = off * size + t;
	}
	return off;
}

/* Outer index: pixel; inner index: channel and position in the window. */
static void pack_pixels(const Mat *m, int64_t o0, int64_t no, int64_t k0, int64_t nk, int width, double *to)
{
	const Patch *p = m->ctx;
	const Window *w = p->w;
	int64_t at[SPATIAL_MAX];
	for (int64_t o = 0; o < no; o += width, to += nk * width) {
		for (int j = 0; j < width; j++) {
			if (o + j < no)
				unravel(w->nd, p->back ? w->in : w->out, o0 + o + j, at);
			for (int64_t q = 0; q < w->nk; q++)
				p->off[q * width + j] =
					o + j < no ? patch_offset(p, at, p->kcoord + q * w->nd) : -1;
		}
		int64_t base = k0 / w->nk * p->plane, q = k0 % w->nk;
		for (int64_t k = 0; k < nk; k++) {
			const int64_t *off = p->off + q * width;
			double *row = to + k * width;
			for (int j = 0; j < width; j++)
				row[j] = off[j] < 0 ? 0 : matmul_get(m, base + off[j]);
			if (++q == w->nk)
				q = 0, base += p->plane;
		}
	}
}

/* Outer index: channel and position in the window; inner index: pixel. */
static void pack_positions(const Mat *m, int64_t o0, int64_t no, int64_t k0, int64_t nk, int width, double *to)
{
	const Patch *p = m->ctx;
	const Window *w = p->w;
	int64_t at[SPATIAL_MAX];
	for (int64_t o = 0; o < no; o += width, to += nk * width)
		for (int64_t k = 0; k < nk; k++) {
			unravel(w->nd, w->out, k0 + k, at);
			for (int j = 0; j < width; j++) {
				int64_t i = o0 + o + j;
				int64_t off =
					o + j < no ? patch_offset(p, at, p->kcoord + i % w->nk * w->nd) : -1;
				to[k * width + j] = off < 0 ? 0 : matmul_get(m, i / w->nk * p->plane + off);
			}
		}
}

static Patch patch_of(const Window *w, bool back)
{
	enum { WIDEST = 16 };
	Patch p = { .w = w, .back = back, .plane = back ? w->nout : w->nin };
	p.kcoord = eval_scratch(sizeof(int64_t) * (size_t)(w->nk * w->nd));
	p.off = eval_scratch(sizeof(int64_t) * (size_t)(w->nk * WIDEST));
	for (int64_t q = 0; q < w->nk; q++)
		unravel(w->nd, w->k, q, p.kcoord + q * w->nd);
	return p;
}

/* The window of a convolution from the sizes of x (in), w and g (out), all with batch and channel axes
 * before. */
static int conv_window(Node *n, int ndim, const int64_t *x, const int64_t *wt, const int64_t *g, Window *w)
{
	if (window_read(n, ndim - 2, wt + 2, w) || window_fit(n, w, x + 2))
		return -1;
	w->nout = 1;
	for (int i = 0; i < w->nd; i++) {
		w->out[i] = g[i + 2];
		w->nout *= g[i + 2];
	}
	return 0;
}

static int eval_conv(Node *n, Tensor **in, Tensor **out)
{
	Tensor *x = in[0], *wt = in[1], *b = n->nin > 2 ? in[2] : NULL, *y = out[0];
	Window w;
	if (conv_window(n, x->ndim, x->dim, wt->dim, y->dim, &w))
		return -1;
	int64_t groups = attr_int(n, "group"), batch = x->dim[0], o = wt->dim[0], c = x->dim[1],
		og = o / groups, cg = wt->dim[1];
	double *sum = eval_scratch(sizeof(double) * (size_t)(tensor_elements(y) + 1));
	if (b) {
		double *bias = eval_doubles(b);
		for (int64_t i = 0; i < batch * o; i++)
			for (int64_t j = 0; j < w.nout; j++)
				sum[i * w.nout + j] = bias[i % o];
	}
	Mat mw = matmul_of(wt), mx = matmul_of(x);
	Patch patch = patch_of(&w, false);
	mw.outer = cg * w.nk, mw.inner = 1;
	mx.pack = pack_pixels, mx.ctx = &patch;
	for (int64_t i = 0; i < batch; i++)
		for (int64_t g = 0; g < groups; g++) {
			Mat a = matmul_at(mw, g * og * cg * w.nk), p = matmul_at(mx, (i * c + g * cg) * w.nin);
			matmul_run(og, w.nout, cg * w.nk, &a, &p, sum + (i * o + g * og) * w.nout, w.nout);
		}
	eval_store(y, sum);
	return 0;
}

static int eval_gradx(Node *n, Tensor **in, Tensor **out)
{
	Tensor *g = in[0], *wt = in[1], *x = out[0];
	Window w;
	if (conv_window(n, x->ndim, x->dim, wt->dim, g->dim, &w))
		return -1;
	int64_t groups = attr_int(n, "group"), batch = x->dim[0], o = wt->dim[0], c = x->dim[1],
		og = o / groups, cg = wt->dim[1];
	double *sum = eval_scratch(sizeof(double) * (size_t)(tensor_elements(x) + 1));
	Mat mw = matmul_of(wt), mg = matmul_of(g);
	Patch patch = patch_of(&w, true);
	mw.outer = w.nk, mw.inner = 1, mw.fold = w.nk, mw.far = cg * w.nk;
	mg.pack = pack_pixels, mg.ctx = &patch;
	for (int64_t i = 0; i < batch; i++)
		for (int64_t q = 0; q < groups; q++) {
			Mat a = matmul_at(mw, q * og * cg * w.nk), p = matmul_at(mg, (i * o + q * og) * w.nout);
			matmul_run(cg, w.nin, og * w.nk, &a, &p, sum + (i * c + q * cg) * w.nin, w.nin);
		}
	eval_store(x, sum);
	return 0;
}

static int eval_gradw(Node *n, Tensor **in, Tensor **out)
{
	Tensor *x = in[0], *g = in[1], *wt = out[0];
	Window w;
	if (conv_window(n, x->ndim, x->dim, wt->dim, g->dim, &w))
		return -1;
	int64_t groups = attr_int(n, "group"), batch = x->dim[0], o = wt->dim[0], c = x->dim[1],
		og = o / groups, cg = wt->dim[1];
	double *sum = eval_scratch(sizeof(double) * (size_t)(tensor_elements(wt) + 1));
	Mat mg = matmul_of(g), mx = matmul_of(x);
	Patch patch = patch_of(&w, false);
	mg.outer = w.nout, mg.inner = 1;
	mx.pack = pack_positions, mx.ctx = &patch;
	for (int64_t i = 0; i < batch; i++)
		for (int64_t q = 0; q < groups; q++) {
			Mat a = matmul_at(mg, (i * o + q * og) * w.nout),
			    p = matmul_at(mx, (i * c + q * cg) * w.nin);
			matmul_run(og, cg * w.nk, w.nout, &a, &p, sum + q * og * cg * w.nk, cg * w.nk);
		}
	eval_store(wt, sum);
	return 0;
}

/* An axis that is one factor, or groups x another. */
static void channels(FactorRule *r, At a, int axis, int group, int each)
{
	if (group < 0)
		window_row(r, a)[axis] = each;
	else
		factor_product(r, a.out, a.i, axis, 2, (SubFactor[]){ { group, 0 }, { each, r->len[each] } });
}

/* The window of a convolution by its types; false where sizes are not known. */
static bool types_window(Node *n, At x, At w, At g, Window *win)
{
	const Type *xt = window_type(n, x), *wt = window_type(n, w), *gt = window_type(n, g);
	for (int i = 0; i < xt->ndim; i++)
		if (!dim_known(xt->dim[i]) || !dim_known(wt->dim[i]) || !dim_known(gt->dim[i]))
			return false;
	return xt->ndim > 2 && xt->ndim <= SPATIAL_MAX + 2 &&
	       conv_window(n, xt->ndim, xt->dim, wt->dim, gt->dim, win) == 0;
}

/* Batch n, groups, output channels o and input channels c of each.  A bias is added once: where the sum over input
 * channels is partial, so is the bias. */
static void conv_factors(Node *n, FactorRule *r, At x, At w, At g, bool bias)
{
	Type *xt = window_type(n, x), *wt = window_type(n, w), *gt = window_type(n, g);
	int64_t groups = attr_int(n, "group");
	window_row(r, x)[0] = window_row(r, g)[0] = factor_add(r, xt->dim[0]);
	if (groups < 1 || !dim_known(dim_div(gt->dim[1], groups)))
		return;
	int group = groups > 1 ? factor_add(r, groups) : -1, o = factor_add(r, dim_div(gt->dim[1], groups)),
	    c = factor_add(r, wt->dim[1]);
	channels(r, w, 0, group, o);
	channels(r, g, 1, group, o);
	window_row(r, w)[1] = c;
	channels(r, x, 1, group, c);
	if (bias)
		channels(r, (At){ false, 2 }, 0, group, o);
}

/* The number of groups: the channels of x divided by those that one filter sees. */
static void fit_conv(Node *shard, const Node *logical)
{
	bool gradx = !strcmp(shard->op, "ConvGradX"), gradw = !strcmp(shard->op, "ConvGradW");
	int64_t x = (gradx ? shard->out[0] : shard->in[0])->type->dim[1],
		each = (gradw ? shard->out[0] : shard->in[1])->type->dim[1];
	Attr *a = node_attr(shard, "group");
	if (a)
		a->u.i = each > 0 && x > each ? x / each : 1;
	if (gradx || gradw)
		shape_fit(shard, logical);
}

/* x, w and y of a convolution are other operands or results in its gradients. */
static const At conv_at[] = { { false, 0 }, { false, 1 }, { true, 0 } },
		gradx_at[] = { { true, 0 }, { false, 1 }, { false, 0 } },
		gradw_at[] = { { false, 0 }, { true, 0 }, { false, 1 } };

static int factor_conv(Node *n, FactorRule *r)
{
	const At *at = conv_at;
	Window w;
	if (!r->in[0] || !r->in[1] || !r->out[0])
		return -1;
	conv_factors(n, r, at[0], at[1], at[2], n->nin > 2 && r->in[2]);
	if (types_window(n, at[0], at[1], at[2], &w))
		window_factors(r, &w, at[2], at[0]);
	return 0;
}

static int factor_gradx(Node *n, FactorRule *r)
{
	const At *at = gradx_at;
	Window w;
	if (!r->in[0] || !r->in[1] || !r->out[0])
		return -1;
	conv_factors(n, r, at[0], at[1], at[2], false);
	if (types_window(n, at[0], at[1], at[2], &w))
		window_factors_back(r, &w, at[0], at[2], (At){ false, -1 });
	return 0;
}

static int factor_gradw(Node *n, FactorRule *r)
{
	const At *at = gradw_at;
	Window w;
	if (!r->in[0] || !r->in[1] || !r->out[0])
		return -1;
	conv_factors(n, r, at[0], at[1], at[2], false);
	if (types_window(n, at[0], at[1], at[2], &w))
		window_factors(r, &w, at[2], at[0]);
	return 0;
}

static void place_conv(Node *shard, const Node *logical, const int64_t *const *at)
{
	bool gradx = !strcmp(shard->op, "ConvGradX"), gradw = !strcmp(shard->op, "ConvGradW");
	const At *a = conv_at;
	if (gradx)
		a = gradx_at;
	else if (gradw)
		a = gradw_at;
	Window w;
	if (!types_window((Node *)logical, a[0], a[1], a[2], &w))
		return;
	if (gradx)
		window_place_back(shard, &w, a[0], a[2], at);
	else
		window_place(shard, &w, a[2], a[0], at);
}

/* Twice the multiplications: outputs of the forward convolution times the weights that meet in one. */
static Cost cost_conv(const Node *n)
{
	Cost c = cost_bytes(n);
	const Type *w = !strcmp(n->op, "ConvGradW") ? n->out[0]->type : operand_type(n, 1);
	const Type *g =
		!strcmp(n->op, "Conv") ? n->out[0]->type : operand_type(n, strcmp(n->op, "ConvGradX") ? 1 : 0);
	int64_t all = w ? type_elements(w) : -1, out = g ? type_elements(g) : -1;
	if (all >= 0 && out >= 0 && w->ndim > 0 && w->dim[0] > 0)
		c.flops = 2.0 * (double)out * (double)(all / w->dim[0]);
	return c;
}

/* ConvTranspose's padding: given, or from auto_pad or output_shape such that the result has that size.  Negative
 * padding becomes output padding. */
static int transpose_pads(Node *n, Window *w, int64_t *pads, int64_t *extra)
{
	int nd = w->nd, mode, nshape;
	Type *x = operand_type(n, 0);
	const int64_t *shape = attr_ints(n, "output_shape", &nshape);
	if (window_mode(n, &mode) || window_list(n, "output_padding", nd, 0, 0, extra))
		return -1;
	if (shape && nshape != nd && nshape != nd + 2) {
		err_at(n->loc, "ConvTranspose: output_shape has %d entries for %d spatial axes", nshape, nd);
		return -1;
	}
	for (int i = 0; i < nd; i++) {
		int64_t total = w->lo[i] + w->hi[i], full = window_span(w, i) + extra[i];
		if (shape) {
			int64_t want = shape[nshape - nd + i];
			if (!dim_known(x->dim[i + 2]) || x->dim[i + 2] > INT32_MAX || want < 1 ||
				want > INT32_MAX) {
				err_at(n->loc, "ConvTranspose: no output_shape of %lld along axis %d of %s",
					(long long)want, i + 2, type_text(x));
				return -1;
			}
			total = (x->dim[i + 2] - 1) * w->stride[i] + full - want;
		} else if (mode == PAD_UPPER || mode == PAD_LOWER) {
			total = full - w->stride[i];
		} else {
			pads[i] = w->lo[i], pads[nd + i] = w->hi[i];
			continue;
		}
		if (total < 0)
			extra[i] -= total, total = 0;
		pads[i] = mode == PAD_UPPER ? total / 2 : total - total / 2;
		pads[nd + i] = total - pads[i];
	}
	return 0;
}

static int expand_transpose(Node *n)
{
	Graph *g = n->graph;
	Type *x = operand_type(n, 0), *wt = operand_type(n, 1);
	int64_t k[SPATIAL_MAX + 1], pads[2 * SPATIAL_MAX], extra[SPATIAL_MAX];
	bool known;
	Window w;
	if (!x || x->ndim < 0 || !wt || wt->ndim < 0) {
		err_at(n->loc, "ConvTranspose needs operands with a known number of axes");
		return -1;
	}
	int nd = x->ndim - 2;
	if (nd < 1 || nd > SPATIAL_MAX) {
		err_at(operand_loc(n, 0),
			"ConvTranspose needs batch, channels and 1 to %d spatial axes, the operand is %s",
			(int)SPATIAL_MAX, type_text(x));
		return -1;
	}
	if (check_weight(n, 0, 1) || kernel_of(n, true, 1, nd, k, &known) || window_read(n, nd, k, &w) ||
		transpose_pads(n, &w, pads, extra))
		return -1;
	const char *attrs = arena_printf(g->arena, "%s, %s, %s, %s, %s, group=%lld",
		expand_list(n, "kernel_shape", k, nd), expand_list(n, "strides", w.stride, nd),
		expand_list(n, "dilations", w.dil, nd), expand_list(n, "pads", pads, 2 * nd),
		expand_list(n, "output_padding", extra, nd), (long long)attr_int(n, "group"));
	Value *b = operand_value(n, 2), *y = operand_result(n, 0);
	Value *x1 = make(n, b ? NULL : y, "ConvGradX", attrs, n->in[0], n->in[1], NULL);
	if (b)
		x1 = make(n, y, "Add", NULL, x1, make2(n, "Unsqueeze", b, make_axes(n, 1, nd + 1)), NULL);
	return x1 ? 0 : -1;
}

#define CONV_ATTRS \
	"auto_pad:string=\"NOTSET\" dilations:ints group:int=1 kernel_shape:ints pads:ints strides:ints"
#define CONV_SAME "<auto_pad=@auto_pad, dilations=@dilations, group=@group, pads=@pads, strides=@strides>"

/* clang-format off */
const Op ops_conv[] = {
	/* Batch: S0 B -> S0; output channels: B S0 -> S1; input channels: S1 S1 -> P, with a bias that is P;
	 * space: S2, as far as windows reach, B -> S2. */
	{ .name = "Conv", .since = 1, .precision = PRECISION_LOW, .sig = "x:F w:F b:F? -> y:F", .attrs = CONV_ATTRS,
	  .shape = shape_conv, .kernel = "conv", .eval = eval_conv,
	  .factor_fn = factor_conv, .fit = fit_conv, .place = place_conv, .linear = "x+b", .added = "b",
	  .grad = "dx = ConvGradX" CONV_SAME "(dy, w, Shape(x)); "
	          "dw = ConvGradW" CONV_SAME "(x, dy, Shape(w));"
	          "db = ReduceSum<keepdims=0>(Reshape(dy, [0, 0, -1]), [0, 2])",
	  .cost = cost_conv,
	  .test = "x:[2,3,5,4] w:[2,3,3,2] b:[2] =pads:[1,0,1,1] =strides:[2,1] | "
	          "x:[1,4,7] w:[6,2,3] =group:2 =dilations:[2] | "
	          "x:[1,2,6,5] w:[2,2,3,3] =auto_pad:\"SAME_LOWER\" =strides:[2,2] | "
	          "x:[1,1,5,4,3] w:[1,1,3,2,2] =pads:[1,0,1,1,1,0] =strides:[2,1,1] | "
	          "x:[1,2,7,3] w:[2,2,5,1] b:[2] =pads:[2,0,2,0] | x:[1,1,9] w:[1,1,2] =strides:[4] | "
	          "x:[1,1,11] w:[2,1,3] =dilations:[3] =pads:[3,2] =strides:[2]" },
	{ .name = "ConvGradX", .domain = "sbpcc", .since = 1, .sig = "g:F w:F shape:int64? -> x:F",
	  .attrs = CONV_ATTRS " output_padding:ints",
	  .shape = shape_gradx, .kernel = "conv_grad_x", .eval = eval_gradx,
	  .factor_fn = factor_gradx, .fit = fit_conv, .place = place_conv, .linear = "g w",
	  .grad = "dg = Conv" CONV_SAME "(dx, w); dw = ConvGradW" CONV_SAME "(dx, g, Shape(w))", .cost = cost_conv,
	  .test = "g:[2,2,3,4] w:[2,3,3,2] shape:{2,3,5,4} =pads:[1,0,1,1] =strides:[2,1] | "
	          "g:[1,6,3] w:[6,2,3] =group:2 =strides:[2] =output_padding:[1] | "
	          "g:[1,1,3] w:[1,1,2] shape:{1,1,13} =strides:[4] | "
	          "g:[1,2,5] w:[2,1,3] shape:{1,1,11} =dilations:[3] =pads:[3,2] =strides:[2] | "
	          "g:[1,2,3,4,2] w:[2,1,3,2,2] shape:{1,1,5,4,3} =pads:[1,0,0,1,1,0] =strides:[2,1,1]" },
	{ .name = "ConvGradW", .domain = "sbpcc", .since = 1, .sig = "x:F g:F shape:int64 -> w:F",
	  .attrs = CONV_ATTRS, .shape = shape_gradw, .kernel = "conv_grad_w", .eval = eval_gradw,
	  .factor_fn = factor_gradw, .fit = fit_conv, .place = place_conv, .linear = "x g",
	  .grad = "dx = ConvGradX" CONV_SAME "(g, dw, Shape(x)); dg = Conv" CONV_SAME "(x, dw)", .cost = cost_conv,
	  .test = "x:[2,3,5,4] g:[2,2,3,4] shape:{2,3,3,2} =pads:[1,0,1,1] =strides:[2,1] | "
	          "x:[1,1,11] g:[1,2,5] shape:{2,1,3} =dilations:[3] =pads:[3,2] =strides:[2] | "
	          "x:[1,1,9] g:[1,1,2] shape:{1,1,2} =strides:[4] | "
	          "x:[1,2,6,5] g:[1,2,3,3] shape:{2,2,3,3} =auto_pad:\"SAME_LOWER\" =strides:[2,2]" },
	{ .name = "ConvTranspose", .since = 1, .sig = "x:F w:F b:F? -> y:F",
	  .attrs = CONV_ATTRS " output_padding:ints output_shape:ints", .expand = expand_transpose,
	  .test = "x:[1,2,3,3] w:[2,3,3,2] b:[3] =strides:[2,1] =pads:[1,0,0,1] =output_padding:[1,0] | "
	          "x:[1,2,4] w:[2,1,3] =group:2 =auto_pad:\"SAME_UPPER\" =strides:[2] | "
	          "x:[1,1,3] w:[1,1,3] =output_shape:[8] =strides:[3]" },
	{ 0 },
};
/* clang-format on */
