/* The positions of the windows of convolutions and pools: along an axis of a tensor, and along the shard of it that a
 * rank holds.
 *
 * Along a spatial axis, window o begins at o x stride - padding and has positions that are `dilation` apart; its span
 * is from the first position to the last.  If the windows are split, a rank needs all elements that its windows read
 * (factor_reach): a rank in the middle has no padding, the first has the padding at the beginning, the last has that at
 * the end; if shards are small, several ranks have some of it.  If the elements that windows read are split, as in
 * gradients, a rank needs all windows that read some of its shard.  These may read more than the shard, which is then
 * a range of what the rank computes ("from" and "size" of its node).
 *
 *   windows    0 1 2 3 | 4 5 6      span 3, stride 1, padding 1
 *   read     . 0 1 2 3   4 5 6 .    one rank needs 0..4, with padding before; the other 3..6, with padding behind */
#include "ops.h"

#include <string.h>

int window_mode(Node *n, int *mode)
{
	static const char *const names[] = { "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID" };
	Name s = attr_str(n, "auto_pad");
	*mode = PAD_NOTSET;
	if (!s || !*s)
		return 0;
	for (*mode = 0; *mode < 4; ++*mode)
		if (!strcmp(s, names[*mode]))
			return 0;
	err_at(n->loc, "%s: auto_pad \"%s\" is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID", n->op, s);
	return -1;
}

int window_list(Node *n, const char *name, int want, int64_t least, int64_t init, int64_t *to)
{
	int len;
	const int64_t *v = attr_ints(n, name, &len);
	for (int i = 0; i < want; i++)
		to[i] = init;
	if (!v || len == 0)
		return 0;
	if (len != want) {
		err_at(n->loc, "%s: %s has %d entries, this operand needs %d", n->op, name, len, want);
		return -1;
	}
	for (int i = 0; i < want; i++) {
		if (v[i] < least || v[i] > INT32_MAX) {
			err_at(n->loc, "%s: %s must be at least %lld, entry %d is %lld", n->op, name,
				(long long)least, i, (long long)v[i]);
			return -1;
		}
		to[i] = v[i];
	}
	return 0;
}

int window_read(Node *n, int nd, const int64_t *kernel, Window *w)
{
	int64_t pads[2 * SPATIAL_MAX];
	int mode;
	memset(w, 0, sizeof *w);
	if (nd > SPATIAL_MAX) {
		fail_at(EXIT_LIMIT, n->loc, "%s over %d spatial axes: at most %d are supported", n->op, nd,
			(int)SPATIAL_MAX);
		return -1;
	}
	w->nd = nd;
	w->nk = 1;
	if (window_mode(n, &mode) || window_list(n, "strides", nd, 1, 1, w->stride) ||
		window_list(n, "dilations", nd, 1, 1, w->dil) || window_list(n, "pads", 2 * nd, 0, 0, pads))
		return -1;
	for (int i = 0; i < nd; i++) {
		if (kernel[i] < 1 || kernel[i] > INT32_MAX ||
			__builtin_mul_overflow(w->nk, kernel[i], &w->nk)) {
			err_at(n->loc, "%s: a window of %lld elements along spatial axis %d", n->op,
				(long long)kernel[i], i);
			return -1;
		}
		w->k[i] = kernel[i];
		if (mode == PAD_NOTSET)
			w->lo[i] = pads[i], w->hi[i] = pads[nd + i];
	}
	return 0;
}

int64_t window_span(const Window *w, int i)
{
	return (w->k[i] - 1) * w->dil[i] + 1;
}

/* How many windows fit along axis i of size in.  With ceil_mode the last one may stick out, but must begin
 * before the padding at the end. */
static Dim window_count(const Window *w, int i, int mode, bool ceil, Dim in)
{
	int64_t span = window_span(w, i), s = w->stride[i], lo = w->lo[i], hi = w->hi[i];
	if (mode == PAD_UPPER || mode == PAD_LOWER)
		return dim_ceildiv(in, s);
	if (dim_known(in) && in > INT64_MAX / 4)
		return DIM_OVERFLOW;
	Dim room = dim_sub(dim_add(in, lo + hi), span);
	if (dim_known(in) && in + lo + hi < span && !(ceil && in + lo + hi + s > span))
		return 0;
	if (!ceil)
		return dim_add(dim_floordiv(room, s), 1);
	if (!dim_known(in))
		return hi + s - 1 <= span - 1 ? dim_add(dim_ceildiv(room, s), 1) : DIM_UNKNOWN;
	int64_t over = in + lo + hi - span, out = (over > 0 ? (over + s - 1) / s : 0) + 1;
	return (out - 1) * s >= in + lo ? out - 1 : out;
}

int window_fit(Node *n, Window *w, const int64_t *in)
{
	int mode;
	if (window_mode(n, &mode))
		return -1;
	bool ceil = node_attr(n, "ceil_mode") && attr_int(n, "ceil_mode") != 0;
	w->nin = w->nout = 1;
	for (int i = 0; i < w->nd; i++) {
		w->in[i] = in[i];
		w->out[i] = window_count(w, i, mode, ceil, in[i]);
		if (mode == PAD_UPPER || mode == PAD_LOWER) {
			int64_t total = (w->out[i] - 1) * w->stride[i] + window_span(w, i) - in[i];
			if (total < 0)
				total = 0;
			w->lo[i] = mode == PAD_UPPER ? total / 2 : total - total / 2;
			w->hi[i] = total - w->lo[i];
		}
		w->nin *= w->in[i];
		w->nout *= w->out[i];
	}
	return 0;
}

int window_dims(Node *n, const Type *x, const int64_t *kernel, Dim *out)
{
	Window w;
	int mode, nd = x->ndim - 2;
	if (nd < 1 || nd > SPATIAL_MAX) {
		err_at(n->loc, "%s needs batch, channels and 1 to %d spatial axes, the operand is %s", n->op,
			(int)SPATIAL_MAX, type_text(x));
		return -1;
	}
	if (window_read(n, nd, kernel, &w) || window_mode(n, &mode))
		return -1;
	bool ceil = node_attr(n, "ceil_mode") && attr_int(n, "ceil_mode") != 0,
	     same = mode == PAD_UPPER || mode == PAD_LOWER;
	for (int i = 0; i < nd; i++) {
		Dim in = x->dim[i + 2];
		out[i] = window_count(&w, i, mode, ceil, in);
		if (dim_known(out[i]) && out[i] < 1 && !(same && in == 0)) {
			err_at(n->loc,
				"%s: a window of %lld does not fit into axis %d of %s with padding %lld and "
			        "%lld",
				n->op, (long long)window_span(&w, i), i + 2, type_text(x), (long long)w.lo[i],
				(long long)w.hi[i]);
			return -1;
		}
	}
	return 0;
}

int window_sizes(Node *n, int i, int ndim, Dim *dim)
{
	const Tensor *t = operand_const(n, i);
	bool known = operand_dims(n, i, dim, ndim) == ndim;
	for (int k = 0; k < ndim; k++)
		if (!known) {
			dim[k] = DIM_UNKNOWN;
		} else if (t && tensor_int(t, k) < 0) {
			err_at(operand_loc(n, i), "%s: a size of %lld", n->op, (long long)tensor_int(t, k));
			return -1;
		}
	return 0;
}

/* ---- cut ---- */

/* Whether windows may be split: sizes are known, and each window reads some of the axis. */
static bool may_cut(const Window *w, int i)
{
	int64_t span = window_span(w, i);
	return dim_known(w->in[i]) && dim_known(w->out[i]) && w->in[i] > 0 && w->out[i] > 0 &&
	       w->in[i] <= INT32_MAX && w->out[i] <= INT32_MAX && span <= INT32_MAX && w->lo[i] < span &&
	       w->hi[i] < span;
}

/* The elements that a shard of the windows reads. */
static FactorReach seen_by(const Window *w, int i)
{
	int64_t from = -w->lo[i];
	return (FactorReach){ .of = w->out[i], .div = 1, .mid = w->out[i], .mul = w->stride[i],
		.from = from, .to = from + window_span(w, i) - 1 };
}

/* The windows that read some of a shard of the axis.  If a stride skips some elements, also the window before, so that
 * the windows never begin behind the shard. */
static FactorReach seeing(const Window *w, int i)
{
	int64_t more = window_span(w, i) - w->stride[i];
	return (FactorReach){ .of = w->in[i], .div = w->stride[i], .mid = w->out[i], .mul = 1,
		.lo = w->lo[i] - (more > 0 ? more : 0), .hi = w->lo[i] };
}

void window_factors(FactorRule *r, const Window *w, At y, At x)
{
	for (int i = 0; i < w->nd; i++) {
		if (!may_cut(w, i))
			continue;
		int f = factor_add(r, w->out[i]);
		window_row(r, y)[i + 2] = f;
		factor_reach(r, f, x.i, i + 2, seen_by(w, i));
	}
}

void window_factors_back(FactorRule *r, const Window *w, At dx, At g, At x)
{
	for (int i = 0; i < w->nd; i++) {
		if (!may_cut(w, i))
			continue;
		int f = factor_add(r, w->in[i]);
		FactorReach back = seeing(w, i), all = seen_by(w, i);
		window_row(r, dx)[i + 2] = f;
		factor_reach(r, f, g.i, i + 2, back);
		back.mul = all.mul, back.from = all.from, back.to = all.to;
		if (x.i >= 0)
			factor_reach(r, f, x.i, i + 2, back);
	}
}

/* ---- shards ---- */

static Attr *attr_at(Node *shard, const char *name, AttrType type)
{
	Attr *a = node_attr(shard, name);
	if (!a)
		a = &shard->attr[shard->nattr++];         /* there is room (shard_node.c) */
	*a = (Attr){ .name = name_of(name), .type = type };
	return a;
}

static void set_ints(Node *shard, const char *name, const int64_t *v, int n)
{
	Attr *a = attr_at(shard, name, AT_INTS);
	a->n = n;
	a->u.is = arena_array(shard->graph->scratch, int64_t, n + 1);
	memcpy(a->u.is, v, (size_t)n * sizeof *v);
}

static void set_pads(Node *shard, const int64_t *pads, int nd)
{
	set_ints(shard, "pads", pads, 2 * nd);
	if (node_attr(shard, "auto_pad"))
		attr_at(shard, "auto_pad", AT_STRING)->u.s = name_of("NOTSET");
}

static const int64_t *begin(const Node *n, At a, const int64_t *const *at)
{
	return at[a.out ? n->nin + a.i : a.i];
}

static bool is_cut(const Node *shard, const Window *w, At large, At small)
{
	bool cut = false;
	for (int i = 0; i < w->nd; i++)
		cut |= window_type(shard, small)->dim[i + 2] != w->out[i] ||
		       (large.i >= 0 && window_type(shard, large)->dim[i + 2] != w->in[i]);
	return cut;
}

/* The padding of n windows from `first` on over len elements from `from` on.  What ceil_mode adds is not padding. */
static void pads_of(const Window *w, int i, int64_t first, int64_t n, int64_t from, int64_t len, int64_t *pads)
{
	int64_t start = first * w->stride[i] - w->lo[i],
		end = (first + n - 1) * w->stride[i] - w->lo[i] + window_span(w, i), behind = end - from - len;
	pads[i] = from - start;
	pads[w->nd + i] = behind < 0 ? 0 : behind < w->hi[i] ? behind : w->hi[i];
}

void window_place(Node *shard, const Window *w, At y, At x, const int64_t *const *at)
{
	int64_t pads[2 * SPATIAL_MAX];
	if (!is_cut(shard, w, x, y))
		return;
	for (int i = 0; i < w->nd; i++)
		pads_of(w, i, begin(shard, y, at)[i + 2], window_type(shard, y)->dim[i + 2],
			begin(shard, x, at)[i + 2], window_type(shard, x)->dim[i + 2], pads);
	set_pads(shard, pads, w->nd);
}

/* Windows that reach beyond the shard read padding: that does not change sums of products. */
void window_place_back(Node *shard, const Window *w, At dx, At g, const int64_t *const *at)
{
	int64_t pads[2 * SPATIAL_MAX], extra[SPATIAL_MAX];
	if (!is_cut(shard, w, dx, g))
		return;
	for (int i = 0; i < w->nd; i++) {
		int64_t len = window_type(shard, dx)->dim[i + 2],
			all = (window_type(shard, g)->dim[i + 2] - 1) * w->stride[i] + window_span(w, i);
		pads[i] = w->lo[i] + begin(shard, dx, at)[i + 2] - begin(shard, g, at)[i + 2] * w->stride[i];
		pads[w->nd + i] = all - len - pads[i] > 0 ? all - len - pads[i] : 0;
		extra[i] = len - all + pads[i] + pads[w->nd + i];
	}
	set_pads(shard, pads, w->nd);
	if (node_attr(shard, "output_padding"))
		set_ints(shard, "output_padding", extra, w->nd);
}

/* For pools padding would change the result: they work on all elements that the windows read, and give their stretch.
 * */
void window_place_within(Node *shard, const Window *w, At dx, At g, At x, const int64_t *const *at)
{
	int64_t pads[2 * SPATIAL_MAX], from[SPATIAL_MAX], size[SPATIAL_MAX], within[SPATIAL_MAX + 2];
	if (!is_cut(shard, w, dx, g))
		return;
	within[0] = window_type(shard, g)->dim[0];
	within[1] = window_type(shard, g)->dim[1];
	for (int i = 0; i < w->nd; i++) {
		int64_t first = begin(shard, g, at)[i + 2], n = window_type(shard, g)->dim[i + 2],
			start = first * w->stride[i] - w->lo[i];
		int64_t end = (first + n - 1) * w->stride[i] - w->lo[i] + window_span(w, i),
			lo = start < 0 ? 0 : start, hi = end < w->in[i] ? end : w->in[i];
		if (x.i >= 0)
			lo = begin(shard, x, at)[i + 2], hi = lo + window_type(shard, x)->dim[i + 2];
		pads_of(w, i, first, n, lo, hi - lo, pads);
		from[i] = begin(shard, dx, at)[i + 2] - lo;
		size[i] = window_type(shard, dx)->dim[i + 2];
		within[i + 2] = hi - lo;
	}
	set_pads(shard, pads, w->nd);
	if (x.i < 0) {
		Value *shape = arena_new(shard->graph->scratch, Value);
		*shape = *shard->in[1];
		shape->data = tensor_ints(shard->graph->scratch, within, w->nd + 2);
		shape->elem = NULL;
		shape->nelem = 0;
		shard->in[1] = shape;
	}
	shard->shard = true;
	set_ints(shard, "from", from, w->nd);
	set_ints(shard, "size", size, w->nd);
}

int window_crop(const Node *n, int nd, int64_t *from, int64_t *size)
{
	const Attr *a = node_attr(n, "from"), *b = node_attr(n, "size");
	if (!n->shard || !a || !b || a->n != nd || b->n != nd)
		return 0;
	memcpy(from, a->u.is, (size_t)nd * sizeof *from);
	memcpy(size, b->u.is, (size_t)nd * sizeof *size);
	return 1;
}
