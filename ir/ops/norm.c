/* Normalisations: composites whose meaning depends on the number of axes, built here, and Softmax,
 * LogSoftmax, Gelu and Dropout, whose meaning is text (nn.ir).
 *
 * Statistics are computed in stash_type (float) where the operand is narrower, and never in less than the
 * operand has. Variance is the mean of squared differences, not a difference of means: it cannot cancel to
 * something negative.
 */
#include <string.h>

#include "ops.h"

static Value *cast(Node *n, Value *to, Value *v, DType t)
{
	if (v && v->type && v->type->elem == t && !to)
		return v;
	if (v && v->type && v->type->elem == t)
		return make(n, to, "Identity", NULL, v, NULL, NULL);
	return make(n, to, "Cast", arena_printf(n->graph->arena, "to=%d", (int)t), v, NULL, NULL);
}

static Value *mean(Node *n, Value *to, Value *x, Value *axes)
{
	return make(n, to, "ReduceMean", "keepdims=1", x, axes, NULL);
}

/* 1 / sqrt(v + epsilon) */
static Value *inverse_root(Node *n, Value *v)
{
	if (!v)
		return NULL;
	Value *shifted = make2(n, "Add", v, make_num(n, v, attr_float(n, "epsilon")));
	return make1(n, "Reciprocal", make1(n, "Sqrt", shifted));
}

/* A vector over channels, in a shape that broadcasts to an operand of this number of axes: [C] -> [C, 1, 1]. */
static Value *per_channel(Node *n, Value *v, int ndim)
{
	return ndim > 2 ? make2(n, "Unsqueeze", v, make_axes(n, 1, ndim - 1)) : v;
}

static bool wanted(const Node *n, int i)
{
	return operand_result(n, i) != NULL;
}

/* ---- BatchNormalization ---- */

static int64_t micro_batches(const Node *n)
{
	int64_t m = n->graph->model ? n->graph->model->microbatches : 0;
	return m ? m : 1;
}

/* @local_stats: the number of parts of the batch that have statistics of their own; in micro-batches, of one
 * micro-batch. */
static int64_t stat_parts(const Node *n)
{
	const Annot *a = annot_find(n->annot, "local_stats");
	return a && a->narg ? a->arg[0].i / micro_batches(n) : 1;
}

/* Before opset 14, outputs for the statistics meant training. */
static bool batch_training(const Node *n)
{
	return n->row->since >= 14 ? attr_int(n, "training_mode") != 0
	                           : wanted(n, 1) || wanted(n, 2) || wanted(n, 3) || wanted(n, 4);
}

/* Stored statistics, as in eval, may be those of any batch. */
static int check_parts(const Node *n, const Type *x)
{
	const Annot *a = annot_find(n->annot, "local_stats");
	int64_t microbatches = micro_batches(n), parts = a && a->narg ? a->arg[0].i : 1;
	if (!a || !x || x->ndim < 1 || !batch_training(n))
		return 0;
	if (parts % microbatches) {
		err_at(a->loc, "%lld micro-batches do not divide the %lld parts of the batch", (long long)microbatches,
			(long long)parts);
		return -1;
	}
	if (dim_known(x->dim[0]) && x->dim[0] % (parts / microbatches)) {
		err_at(a->loc, "%lld parts do not divide a batch of %lld", (long long)parts,
			(long long)(x->dim[0] * microbatches));
		return -1;
	}
	return 0;
}

static int shape_batchnorm(Node *n)
{
	Type *x = operand_type(n, 0);
	if (x && x->ndim >= 0 && x->ndim < 2) {
		err_at(operand_loc(n, 0), "BatchNormalization needs batch and channels, the operand is %s",
			type_text(x));
		return -1;
	}
	for (int i = 1; i < 5; i++) {
		Type *v = operand_type(n, i);
		if (v && v->ndim >= 0 &&
			(v->ndim != 1 || (x && x->ndim > 1 && dim_differ(v->dim[0], x->dim[1])))) {
			err_at(operand_loc(n, i),
				"BatchNormalization: %s is %s, one number per channel of %s is needed",
				n->in[i]->name, type_text(v), x ? type_text(x) : "the operand");
			return -1;
		}
	}
	operand_set_result(n, 0, operand_dtype(n, 0), x ? x->ndim : -1, x ? x->dim : NULL);
	Type *m = operand_type(n, 3);
	for (int i = 1; i < n->nout; i++) /* running statistics, and those of the batch for the gradient */
		operand_set_result(n, i, operand_dtype(n, 3), m ? m->ndim : -1, m ? m->dim : NULL);
	return check_parts(n, x);
}

/* momentum * old + (1 - momentum) * batch */
static Value *running(Node *n, Value *to, Value *old, Value *batch, DType t)
{
	double keep = attr_float(n, "momentum");
	Value *fresh = cast(n, NULL, batch, t);
	if (!fresh)
		return NULL;
	return make(n, to, "Add", NULL, make2(n, "Mul", old, make_num(n, old, keep)),
		make2(n, "Mul", fresh, make_num(n, fresh, 1 - keep)), NULL);
}

/* [N, C, ...] as [parts, N / parts, C, ...], which is normalised over all but the parts and the channels; running
 * statistics are averages. */
static int expand_local(Node *n, int ndim, DType t, DType st)
{
	int64_t dim[NDIM_MAX] = { stat_parts(n), -1 }, axes[NDIM_MAX], gone[NDIM_MAX];
	int k = 0, g = 0;
	const Type *xt = operand_type(n, 0);
	for (int a = 1; a < ndim; a++)
		if (!dim_known(dim[a + 1] = xt->dim[a]) || ndim >= NDIM_MAX) {
			err_at(n->loc, "%s with @local_stats needs an operand of known channels and positions", n->op);
			return -1;
		}
	for (int a = 0; a <= ndim; a++) {
		if (a != 0 && a != 2)
			axes[k++] = a;
		if (a != 2)
			gone[g++] = a;
	}
	Value *x = make2(n, "Reshape", cast(n, NULL, n->in[0], t), expand_ints(n, dim, ndim + 1)),
	      *over = expand_ints(n, axes, k);
	Value *m = mean(n, NULL, x, over), *d = m ? make2(n, "Sub", x, m) : NULL,
	      *v = d ? mean(n, NULL, make2(n, "Mul", d, d), over) : NULL;
	Value *inv = inverse_root(n, v), *all = expand_ints(n, gone, g);
	if (!inv)
		return -1;
	for (int i = 1; i < 5; i++) {
		Value *of = i == 1 || i == 3 ? m : i == 2 || n->row->since < 14 ? v : inv;
		Value *s = wanted(n, i) ? make(n, NULL, "ReduceMean", "keepdims=0", of, all, NULL) : NULL;
		if (wanted(n, i) && !(i < 3 ? running(n, n->out[i], n->in[i + 2], s, st) : cast(n, n->out[i], s, st)))
			return -1;
	}
	Value *scale = per_channel(n, cast(n, NULL, n->in[1], t), ndim),
	      *b = per_channel(n, cast(n, NULL, n->in[2], t), ndim);
	Value *y = scale && b ? make2(n, "Add", make2(n, "Mul", d, make2(n, "Mul", inv, scale)), b) : NULL;
	y = make2(n, "Reshape", y, make1(n, "Shape", n->in[0]));
	return y && cast(n, operand_result(n, 0), y, xt->elem) ? 0 : -1;
}

static int expand_batchnorm(Node *n)
{
	Type *xt = operand_type(n, 0);
	if (!xt || xt->ndim < 2) {
		err_at(n->loc, "BatchNormalization needs an operand with a known number of axes");
		return -1;
	}
	int ndim = xt->ndim;
	DType st = operand_dtype(n, 3), t = dtype_bits(st) > dtype_bits(xt->elem) ? st : xt->elem;
	const Annot *local = annot_find(n->annot, "local_stats");
	if (batch_training(n) && local && local->arg[0].i > 1)
		return expand_local(n, ndim, t, st);
	Value *x = cast(n, NULL, n->in[0], t), *m = n->in[3], *v = n->in[4];
	if (batch_training(n)) {
		int64_t axes[NDIM_MAX] = { 0 };
		for (int i = 2; i < ndim; i++)
			axes[i - 1] = i;
		Value *over = expand_ints(n, axes, ndim - 1);
		Value *bm = make(n, NULL, "ReduceMean", "keepdims=0", x, over, NULL);
		Value *d = make2(n, "Sub", x, per_channel(n, bm, ndim));
		Value *bv = make(
			n, NULL, "ReduceMean", "keepdims=0", d ? make2(n, "Mul", d, d) : NULL, over, NULL);
		if (!bm || !bv)
			return -1;
		if ((wanted(n, 1) && !running(n, n->out[1], m, bm, st)) ||
			(wanted(n, 2) && !running(n, n->out[2], v, bv, st)))
			return -1;
		if ((wanted(n, 3) && !cast(n, n->out[3], bm, st)) ||
			(wanted(n, 4) && n->row->since < 14 && !cast(n, n->out[4], bv, st)))
			return -1;
		m = bm, v = bv;
	} else if ((wanted(n, 1) && !make(n, n->out[1], "Identity", NULL, m, NULL, NULL)) ||
		   (wanted(n, 2) && !make(n, n->out[2], "Identity", NULL, v, NULL, NULL))) {
		return -1;
	}
	Value *inv = inverse_root(n, cast(n, NULL, v, t));
	if (wanted(n, 4) && n->row->since >= 14 && !cast(n, n->out[4], inv, st))
		return -1;
	Value *scale = make2(n, "Mul", cast(n, NULL, n->in[1], t), inv);
	Value *d = make2(n, "Sub", x, per_channel(n, cast(n, NULL, m, t), ndim));
	Value *y = operand_result(n, 0), *b = cast(n, NULL, n->in[2], t);
	bool back = t != xt->elem;
	if (!scale || !d || !b)
		return -1;
	Value *r = make(n, back ? NULL : y, "Add", NULL, make2(n, "Mul", d, per_channel(n, scale, ndim)),
		per_channel(n, b, ndim), NULL);
	if (back)
		r = cast(n, y, r, xt->elem);
	return r ? 0 : -1;
}

/* ---- LayerNormalization, RMSNormalization ---- */

static int shape_layernorm(Node *n)
{
	Type *x = operand_type(n, 0);
	bool rms = !strcmp(n->op, "RMSNormalization");
	DType stash;
	if (expand_float(n, "stash_type", &stash))
		return -1;
	if (!x || x->ndim < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		for (int i = 1; i < n->nout; i++)
			operand_set_result(n, i, stash, -1, NULL);
		return 0;
	}
	int axis, last = rms ? 1 : 2;
	Dim dim[NDIM_MAX];
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis))
		return -1;
	for (int i = 1; i <= last; i++) {
		Type *s = operand_type(n, i);
		for (int k = 0; s && k < s->ndim; k++) {
			int at = k + x->ndim - s->ndim;
			if (at < 0 || (dim_differ(s->dim[k], 1) && dim_differ(s->dim[k], x->dim[at]))) {
				err_at(operand_loc(n, i), "%s: %s does not fit the normalised axes of %s", n->op,
					type_text(s), type_text(x));
				return -1;
			}
		}
	}
	for (int i = 0; i < x->ndim; i++)
		dim[i] = i < axis ? x->dim[i] : 1;
	operand_set_result(n, 0, x->elem, x->ndim, x->dim);
	for (int i = 1; i < n->nout; i++)
		operand_set_result(n, i, stash, x->ndim, dim);
	return 0;
}

static int expand_layernorm(Node *n)
{
	Type *xt = operand_type(n, 0);
	bool rms = !strcmp(n->op, "RMSNormalization");
	int axis;
	if (!xt || xt->ndim < 0) {
		err_at(n->loc, "%s needs an operand with a known number of axes", n->op);
		return -1;
	}
	if (op_axis(n, attr_int(n, "axis"), xt->ndim, &axis))
		return -1;
	DType stash, t = xt->elem;
	if (expand_float(n, "stash_type", &stash))
		return -1;
	if (dtype_bits(stash) > dtype_bits(t))
		t = stash;
	Value *x = cast(n, NULL, n->in[0], t), *axes = make_axes(n, axis, xt->ndim), *d = x,
	      *y = operand_result(n, 0);
	if (!rms) {
		Value *m = mean(n, wanted(n, 1) && stash == t ? n->out[1] : NULL, x, axes);
		if (wanted(n, 1) && stash != t && !cast(n, n->out[1], m, stash))
			return -1;
		d = m ? make2(n, "Sub", x, m) : NULL;
	}
	Value *inv = d ? inverse_root(n, mean(n, NULL, make2(n, "Mul", d, d), axes)) : NULL;
	if (!inv || (wanted(n, rms ? 1 : 2) && !cast(n, n->out[rms ? 1 : 2], inv, stash)))
		return -1;
	Value *norm = cast(n, NULL, make2(n, "Mul", d, inv), xt->elem), *b = rms ? NULL : operand_value(n, 2);
	bool back = norm && operand_dtype(n, 1) != xt->elem; /* RMSNormalization may scale in another type: V */
	Value *r = make(n, b || back ? NULL : y, "Mul", NULL,
		back ? cast(n, NULL, norm, operand_dtype(n, 1)) : norm, n->in[1], NULL);
	if (b)
		r = make(n, back ? NULL : y, "Add", NULL, r, b, NULL);
	if (back)
		r = cast(n, y, r, y->type ? y->type->elem : xt->elem);
	return r ? 0 : -1;
}

/* ---- GroupNormalization, InstanceNormalization ---- */

static int shape_channels(Node *n)
{
	Type *x = operand_type(n, 0);
	if (x && x->ndim >= 0 && x->ndim < 3 && strcmp(n->op, "GroupNormalization")) {
		err_at(operand_loc(n, 0), "%s needs batch, channels and spatial axes, the operand is %s", n->op,
			type_text(x));
		return -1;
	}
	Dim want = x && x->ndim > 1 ? x->dim[1] : DIM_UNKNOWN;
	if (!strcmp(n->op, "GroupNormalization")) {
		int64_t groups = attr_int(n, "num_groups");
		if (groups < 1 || (dim_known(want) && want % groups)) {
			err_at(n->loc, "GroupNormalization: %lld groups do not divide %s channels",
				(long long)groups, dim_text(want));
			return -1;
		}
		if (n->row->since < 21)
			want = groups;
	}
	Dim each[2] = { x && x->ndim > 0 ? x->dim[0] : DIM_UNKNOWN,
		strcmp(n->op, "GroupNormalization") ? want : attr_int(n, "num_groups") };
	for (int i = 1; i < n->nout; i++) /* mean and reciprocal deviation of each group */
		operand_set_result(n, i, dtype_bits(operand_dtype(n, 0)) < 32 ? DT_FLOAT : operand_dtype(n, 0), 2,
			each);
	for (int i = 1; i < 3; i++) {
		Type *v = operand_type(n, i);
		if (v && v->ndim >= 0 && (v->ndim != 1 || dim_differ(v->dim[0], want))) {
			err_at(operand_loc(n, i), "%s: %s is %s, a vector of %s is needed", n->op, n->in[i]->name,
				type_text(v), dim_text(want));
			return -1;
		}
	}
	return shape_like_first(n);
}

/* One result of statistics, [N, G] from [N, G, 1...], if the node has it. */
static int stash(Node *n, int i, Value *v, Value *axes)
{
	if (!wanted(n, i))
		return 0;
	Value *flat = make2(n, "Squeeze", v, axes);
	return flat && cast(n, n->out[i], flat, n->out[i]->type->elem) ? 0 : -1;
}

/* (x - mean) / sqrt(var + epsilon) over the given axes; results 1 and 2 are the statistics. */
static Value *standard(Node *n, Value *x, Value *axes)
{
	Value *m = mean(n, NULL, x, axes), *d = m ? make2(n, "Sub", x, m) : NULL;
	Value *inv = d ? inverse_root(n, mean(n, NULL, make2(n, "Mul", d, d), axes)) : NULL;
	return inv && !stash(n, 1, m, axes) && !stash(n, 2, inv, axes) ? make2(n, "Mul", d, inv) : NULL;
}

static int expand_instancenorm(Node *n)
{
	Type *xt = operand_type(n, 0);
	if (!xt || xt->ndim < 3) {
		err_at(n->loc, "InstanceNormalization needs an operand with a known number of axes");
		return -1;
	}
	Value *norm = standard(n, n->in[0], make_axes(n, 2, xt->ndim));
	if (!norm)
		return -1;
	Value *scaled = make2(n, "Mul", norm, per_channel(n, n->in[1], xt->ndim));
	return make(n, operand_result(n, 0), "Add", NULL, scaled, per_channel(n, n->in[2], xt->ndim), NULL) ? 0
	                                                                                               : -1;
}

/* The number of axes of [N, groups, C / groups, ...].  The axes behind the channels stay axes of their own, so that
 * they can be split; if sizes are not known, they are one axis together with the channels of a group. */
static int grouped_ndim(const Type *t)
{
	for (int a = 1; a < t->ndim; a++)
		if (!dim_known(t->dim[a]) || t->dim[a] == 0 || t->ndim >= NDIM_MAX)
			return 3;
	return t->ndim + 1;
}

static Value *grouped(Node *n, Value *v, int64_t groups)
{
	int64_t dim[NDIM_MAX] = { 0, groups, -1 };
	int ndim = v ? grouped_ndim(v->type) : 3;
	if (ndim > 3 || (v && v->type->ndim == 2 && dim_known(v->type->dim[1])))
		dim[2] = groups ? v->type->dim[1] / groups : 1;
	for (int a = 3; a < ndim; a++)
		dim[a] = v->type->dim[a - 1];
	return make2(n, "Reshape", v, expand_ints(n, dim, ndim));
}

static int expand_groupnorm(Node *n)
{
	Type *xt = operand_type(n, 0);
	if (!xt || xt->ndim < 2) {
		err_at(n->loc, "GroupNormalization needs an operand with a known number of axes");
		return -1;
	}
	bool by_group = n->row->since < 21;
	DType t = xt->elem, stash = DT_FLOAT;
	if (!by_group && expand_float(n, "stash_type", &stash))
		return -1;
	if (dtype_bits(stash) > dtype_bits(t))
		t = stash;
	Value *x = n->in[0], *y = operand_result(n, 0), *shape = make1(n, "Shape", x);
	int ndim = grouped_ndim(xt);
	Value *axes = make_axes(n, 2, ndim),
	      *norm = standard(n, cast(n, NULL, grouped(n, x, attr_int(n, "num_groups")), t), axes);
	if (!shape || !norm)
		return -1;
	norm = cast(n, NULL, norm, xt->elem);
	if (by_group) {
		norm = make2(n, "Mul", norm, per_channel(n, n->in[1], ndim));
		norm = norm ? make2(n, "Add", norm, per_channel(n, n->in[2], ndim)) : NULL;
		return make(n, y, "Reshape", NULL, norm, shape, NULL) ? 0 : -1;
	}
	norm = make2(n, "Reshape", norm, shape);
	norm = norm ? make2(n, "Mul", norm, per_channel(n, n->in[1], xt->ndim)) : NULL;
	return make(n, y, "Add", NULL, norm, per_channel(n, n->in[2], xt->ndim), NULL) ? 0 : -1;
}

/* ---- gradients of the norms ---- */

/* Operands: dy, x, scale, mean, inv.  Layer norms have statistics over the last axes, group norms over [N, G, the
 * rest], batch norms over all but the channels.  With g = dy scale and h = (x - mean) inv, averages being over those
 * axes: dx = inv (g - average(g) - h average(g h)), without average(g) where there is no mean; dscale = sum(dy h), db =
 * sum(dy). */
enum { DY, X, SCALE, MEAN, INV };
typedef enum { BY_LAYER, BY_GROUP, BY_BATCH } NormKind;

static NormKind norm_kind(const Node *n)
{
	if (!strncmp(n->op, "Layer", 5))
		return BY_LAYER;
	return !strncmp(n->op, "Group", 5) ? BY_GROUP : BY_BATCH;
}

static int shape_norm_grad(Node *n)
{
	Type *dy = operand_type(n, DY), *x = operand_type(n, X), *s = operand_type(n, SCALE);
	bool clash = dy && x && dy->ndim >= 0 && x->ndim >= 0 && dy->ndim != x->ndim,
	     w = !strcmp(n->op + strlen(n->op) - 1, "W");
	for (int i = 0; !clash && dy && x && x->ndim >= 0 && i < dy->ndim; i++)
		clash = dim_differ(dy->dim[i], x->dim[i]);
	if (clash || (norm_kind(n) != BY_LAYER && x && x->ndim >= 0 && x->ndim < 2)) {
		err_at(operand_loc(n, DY), "%s: %s is no gradient of what was made from %s", n->op, type_text(dy),
			type_text(x));
		return -1;
	}
	const Type *like = w ? s : x;
	for (int i = 0; i < n->nout; i++)
		operand_set_result(n, i, operand_dtype(n, w ? SCALE : X), like ? like->ndim : -1,
			like ? like->dim : NULL);
	return 0;
}

/* Channels as groups for group norms; 0 groups: one per channel. */
static Value *by_group(Node *n, Value *v)
{
	int64_t groups = norm_kind(n) == BY_GROUP ? attr_int(n, "num_groups") : 0;
	if (norm_kind(n) != BY_GROUP || !v)
		return v;
	return grouped(n, v, groups < 1 && grouped_ndim(v->type) > 3 ? v->type->dim[1] : groups);
}

static Value *statistic(Node *n, Value *v, DType t)
{
	NormKind kind = norm_kind(n);
	v = cast(n, NULL, v, t);
	return kind == BY_GROUP   ? make2(n, "Unsqueeze", v, make_axes(n, 2, grouped_ndim(operand_type(n, X))))
	       : kind == BY_BATCH ? per_channel(n, v, operand_ndim(n, X))
	                          : v;
}

/* The normalised operand, with its channels as groups for group norms. */
static Value *normalised(Node *n, DType t)
{
	Value *d = by_group(n, cast(n, NULL, n->in[X], t)), *m = operand_value(n, MEAN);
	if (m)
		d = make2(n, "Sub", d, statistic(n, m, t));
	return make2(n, "Mul", d, statistic(n, n->in[INV], t));
}

static Value *norm_axes(Node *n)
{
	int ndim = operand_ndim(n, X), axis = 0, k = 0;
	int64_t axes[NDIM_MAX];
	if (norm_kind(n) == BY_GROUP)
		return make_axes(n, 2, grouped_ndim(operand_type(n, X)));
	if (norm_kind(n) == BY_LAYER)
		return op_axis(n, attr_int(n, "axis"), ndim, &axis) ? NULL : make_axes(n, axis, ndim);
	for (int i = 0; i < ndim; i++)
		if (i != 1)
			axes[k++] = i;
	return expand_ints(n, axes, k);
}

static DType widest(const Node *n)
{
	DType x = operand_dtype(n, X), s = operand_dtype(n, INV);
	return dtype_bits(s) > dtype_bits(x) ? s : x;
}

static int expand_norm_grad(Node *n)
{
	if (operand_ndim(n, X) < 1 || operand_ndim(n, DY) < 1) {
		err_at(n->loc, "%s needs operands with a known number of axes", n->op);
		return -1;
	}
	DType t = widest(n);
	NormKind kind = norm_kind(n);
	Value *scale = cast(n, NULL, n->in[SCALE], t), *axes = norm_axes(n), *h = normalised(n, t);
	if (kind != BY_LAYER)
		scale = per_channel(n, scale, operand_ndim(n, X));
	Value *g = scale ? by_group(n, make2(n, "Mul", cast(n, NULL, n->in[DY], t), scale)) : NULL;
	if (!g || !h || !axes)
		return -1;
	Value *slope = mean(n, NULL, make2(n, "Mul", g, h), axes), *d = g;
	if (operand_value(n, MEAN))
		d = make2(n, "Sub", g, mean(n, NULL, g, axes));
	d = d ? make2(n, "Sub", d, make2(n, "Mul", h, slope)) : NULL;
	d = d ? make2(n, "Mul", d, statistic(n, n->in[INV], t)) : NULL;
	if (kind == BY_GROUP)
		d = make2(n, "Reshape", d, make1(n, "Shape", n->in[X]));
	return d && cast(n, operand_result(n, 0), d, operand_dtype(n, X)) ? 0 : -1;
}

/* Sums v to the shape of the scale. */
static int sum_to_scale(Node *n, int i, Value *v)
{
	if (!wanted(n, i))
		return 0;
	int ndim = operand_ndim(n, X), k = 0;
	int64_t axes[NDIM_MAX];
	for (int a = 0; a < ndim; a++)
		if (a != 1)
			axes[k++] = a;
	Value *sum = norm_kind(n) == BY_LAYER
	                     ? make2(n, "ReduceTo", v, n->in[SCALE])
	                     : make(n, NULL, "ReduceSum", "keepdims=0", v, expand_ints(n, axes, k), NULL);
	return sum && cast(n, n->out[i], sum, operand_dtype(n, SCALE)) ? 0 : -1;
}

static int expand_norm_grad_w(Node *n)
{
	if (operand_ndim(n, X) < 1 || operand_ndim(n, DY) < 1) {
		err_at(n->loc, "%s needs operands with a known number of axes", n->op);
		return -1;
	}
	DType t = widest(n);
	Value *h = normalised(n, t), *dy = cast(n, NULL, n->in[DY], t);
	if (norm_kind(n) == BY_GROUP && h)
		h = make2(n, "Reshape", h, make1(n, "Shape", n->in[X]));
	return h && dy && !sum_to_scale(n, 0, make2(n, "Mul", dy, h)) && !sum_to_scale(n, 1, dy) ? 0 : -1;
}

/* The axis of channels of a value: factors `group` x `each`. */
static void grouped_axis(FactorRule *r, bool out, int i, int axis, int group, int each)
{
	if (r->len[each] > 1)
		factor_product(r, out, i, axis, 2, (SubFactor[]){ { group, 0 }, { each, 0 } });
	else
		(out ? r->out : r->in)[i][axis] = group;
}

/* A factor for axis a of dy and x, and of dx if that is the result.  reduced: dx takes statistics over the axis. */
static int grad_axis(Node *n, FactorRule *r, int a, bool reduced)
{
	bool w = !strcmp(n->op + strlen(n->op) - 1, "W");
	int64_t len = operand_type(n, X)->dim[a];
	int f = reduced && !w ? factor_defined(r, len) : factor_add(r, len);
	r->in[DY][a] = r->in[X][a] = f;
	if (!w && r->out[0])
		r->out[0][a] = f;
	return f;
}

/* Layer norms: the axes before those of the statistics are factors, the others by the definition.  The gradient of the
 * scale is summed over factors that it lacks. */
static int factor_layer_grad(Node *n, FactorRule *r)
{
	bool w = !strcmp(n->op + strlen(n->op) - 1, "W");
	Type *x = operand_type(n, X), *s = operand_type(n, SCALE);
	int axis;
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) || !s || s->ndim < 0)
		return -1;
	for (int a = 0; a < x->ndim; a++) {
		int f = grad_axis(n, r, a, a >= axis), at = a - (x->ndim - s->ndim);
		for (int i = MEAN; i <= INV && a < axis; i++)
			if (i < n->nin && r->in[i] && operand_ndim(n, i) > a)
				r->in[i][a] = f;
		if (at < 0 || dim_same(s->dim[at], 1))
			continue;
		r->in[SCALE][at] = f;
		for (int i = 0; w && i < n->nout; i++)
			if (r->out[i])
				r->out[i][at] = f;
	}
	return 0;
}

/* Group norms: batch and groups; batch norms: channels; the rest by the definition. */
static int factor_norm_grad(Node *n, FactorRule *r)
{
	int ndim = operand_ndim(n, X);
	Type *x = operand_type(n, X);
	NormKind kind = norm_kind(n);
	bool w = !strcmp(n->op + strlen(n->op) - 1, "W");
	if (ndim < 1 || operand_ndim(n, DY) != ndim)
		return -1;
	if (kind == BY_LAYER)
		return factor_layer_grad(n, r);
	if (ndim < 2 || operand_ndim(n, SCALE) != 1 || !dim_known(x->dim[1]))
		return -1;
	for (int a = 0; a < ndim; a++) {
		int f = a == 1 ? -1 : grad_axis(n, r, a, kind == BY_BATCH || a > 1);
		for (int i = MEAN; i <= INV && kind == BY_GROUP && a == 0; i++)
			if (i < n->nin && r->in[i])
				r->in[i][0] = f;
	}
	int64_t groups = kind == BY_GROUP ? attr_int(n, "num_groups") : 0;
	groups = groups < 1 ? x->dim[1] : groups;
	int group = factor_add(r, groups),
	    each = w ? factor_add(r, x->dim[1] / groups) : factor_defined(r, x->dim[1] / groups);
	for (int i = DY; i <= X; i++)
		grouped_axis(r, false, i, 1, group, each);
	grouped_axis(r, false, SCALE, 0, group, each);
	for (int i = 0; i < n->nout; i++)
		if (r->out[i])
			grouped_axis(r, true, i, w ? 0 : 1, group, each);
	for (int i = MEAN; i <= INV; i++)
		if (i < n->nin && r->in[i])
			r->in[i][kind == BY_BATCH ? 0 : 1] = group;
	return 0;
}

/* As many groups as the shard of the channels has. */
static void fit_groups(Node *shard, const Node *logical)
{
	Attr *a = node_attr(shard, "num_groups");
	int64_t mine = shard->in[0]->type->dim[1], all = logical->in[0]->type->dim[1];
	if (a && a->u.i > 0 && logical->nin > INV)        /* a gradient: as many as it has statistics of */
		a->u.i = shard->in[INV]->type->dim[1];
	else if (a && a->u.i > 0 && mine != all && all > 0)
		a->u.i = mine / (all / a->u.i);
}

static bool only_first(const Node *n)
{
	for (int i = 1; i < n->nout; i++)
		if (n->out[i])
			return false;
	return true;
}

static bool own_norm(const Node *n, const bool *wants)
{
	(void)wants;
	return only_first(n);
}

/* Outside of training: running statistics instead of those of the batch.  Training updates statistics that are
 * initialisers, whether or not the node names its results for that; others are updated by the nodes that read those
 * results. */
static int infer_batchnorm(Node *n)
{
	Attr *mode = node_attr(n, "training_mode");
	if (!batch_training(n))
		return 0;
	for (int k = 3; k < 5 && n->nout < 2; k++)
		if (!n->in[k]->init) {
			warn_at(operand_loc(n, k),
				"BatchNormalization: outside of training too the statistics are those of the batch, "
				"because %s is no initialiser that keeps running ones",
				n->in[k]->name);
			return 0;
		}
	for (int k = 1; k < n->nout; k++)
		if (n->out[k])
			n->out[k]->def = NULL;
	n->nout = 1;
	if (mode)
		mode->u.i = 0;
	return 0;
}

/* In training mode y does not depend on the stored statistics: they get no gradient. */
static bool own_batchnorm(const Node *n, const bool *wants)
{
	(void)wants;
	return batch_training(n) && stat_parts(n) == 1;
}

/* One scale per channel. */
static bool own_groupnorm(const Node *n, const bool *wants)
{
	(void)wants;
	return only_first(n) && (n->row->since >= 21 || operand_type(n, 1)->dim[0] == operand_type(n, 0)->dim[1]);
}

/* ---- LRN ---- */

/* x / (bias + alpha / size * sum of squares of `size` neighbouring channels) ^ beta.  Channels become a
 * spatial axis. */
static int expand_lrn(Node *n)
{
	Type *xt = operand_type(n, 0);
	int64_t size = attr_int(n, "size");
	if (!xt || xt->ndim < 2 || xt->ndim > SPATIAL_MAX + 1 || size < 1) {
		err_at(n->loc, "LRN needs a size of at least 1 and an operand with 2 to %d axes",
			SPATIAL_MAX + 1);
		return -1;
	}
	Arena *a = n->graph->arena;
	int nd = xt->ndim - 1;
	const char *kernel = arena_printf(a, "kernel_shape=[%lld", (long long)size),
		   *pads = arena_printf(a, "pads=[%lld", (long long)((size - 1) / 2));
	for (int i = 1; i < nd; i++)
		kernel = arena_printf(a, "%s, 1", kernel), pads = arena_printf(a, "%s, 0", pads);
	pads = arena_printf(a, "%s, %lld", pads, (long long)(size / 2));
	for (int i = 1; i < nd; i++)
		pads = arena_printf(a, "%s, 0", pads);
	Value *x = n->in[0], *one = expand_ints(n, (int64_t[]){ 1 }, 1);
	Value *sum = make(n, NULL, "WindowSum", arena_printf(a, "%s], %s]", kernel, pads),
		make2(n, "Unsqueeze", make2(n, "Mul", x, x), one), NULL, NULL);
	sum = make2(n, "Squeeze", sum, one);
	sum = make2(n, "Mul", sum, make_num(n, x, attr_float(n, "alpha") / (double)size));
	sum = make2(n, "Add", sum, make_num(n, x, attr_float(n, "bias")));
	Value *power = make2(n, "Pow", sum, make_num(n, x, attr_float(n, "beta")));
	return power && make(n, operand_result(n, 0), "Div", NULL, x, power, NULL) ? 0 : -1;
}

/* ---- Softmax and friends: meaning in nn.ir ---- */

static int shape_axis(Node *n)
{
	int axis, ndim = operand_ndim(n, 0);
	if (ndim > 0 && op_axis(n, attr_int(n, "axis"), ndim, &axis))
		return -1;
	return shape_like_first(n);
}

/* Two operands of one shape. */
static int shape_pair(Node *n)
{
	Type *a = operand_type(n, 0), *b = operand_type(n, 1);
	bool clash = a && b && a->ndim >= 0 && b->ndim >= 0 && a->ndim != b->ndim;
	for (int i = 0; !clash && a && b && b->ndim >= 0 && i < a->ndim; i++)
		clash = dim_differ(a->dim[i], b->dim[i]);
	if (clash) {
		err_at(operand_loc(n, 1), "%s needs operands of one shape, they are %s and %s", n->op, type_text(a),
			type_text(b));
		return -1;
	}
	return shape_like_first(n);
}

static int shape_dropout(Node *n)
{
	Type *x = operand_type(n, 0);
	for (int i = 1; i < 3; i++)
		if (operand_ndim(n, i) > 0 && type_elements(operand_type(n, i)) != 1) {
			err_at(operand_loc(n, i), "Dropout: %s must be a scalar, it is %s",
				i == 1 ? "ratio" : "training_mode", type_text(operand_type(n, i)));
			return -1;
		}
	operand_set_result(n, 1, DT_BOOL, x ? x->ndim : -1, x ? x->dim : NULL);
	return shape_like_first(n);
}

/* Outside of training the result is the operand. */
static int infer_dropout(Node *n)
{
	if (operand_value(n, 2))
		graph_replace(n->graph, n->out[0], n->in[0]);
	return 0;
}

/* ratio and training_mode are operands, but must be constants. */
static int expand_dropout(Node *n)
{
	const Tensor *ratio = operand_const(n, 1), *mode = operand_const(n, 2);
	Value *x = n->in[0], *mask = operand_result(n, 1), *y = operand_result(n, 0);
	if (operand_value(n, 2) && !mode) {
		err_at(operand_loc(n, 2), "Dropout: training_mode must be a constant");
		return -1;
	}
	if (operand_value(n, 1) && !ratio && mode && tensor_int(mode, 0)) {
		err_at(operand_loc(n, 1), "Dropout: ratio must be a constant");
		return -1;
	}
	double drop = ratio ? tensor_get(ratio, 0) : 0.5;
	if (!(drop >= 0 && drop < 1) && mode && tensor_int(mode, 0)) {
		err_at(operand_loc(n, 1), "Dropout: ratio %g is not in [0, 1)", drop);
		return -1;
	}
	if (!mode || !tensor_int(mode, 0) || drop == 0) {
		if (mask && !make(n, mask, "Cast", "to=9", make1(n, "OnesLike", x), NULL, NULL))
			return -1;
		return !y || make(n, y, "Identity", NULL, x, NULL, NULL) ? 0 : -1;
	}
	Value *u = random_like(n, x);
	Value *keep = u ? make(n, mask, "GreaterOrEqual", NULL, u, make_num(n, u, drop), NULL) : NULL;
	Value *scaled = make2(n, "Mul", x, make_num(n, x, 1 / (1 - drop)));
	return keep && make(n, y, "Where", NULL, keep, scaled, make_num(n, x, 0)) ? 0 : -1;
}

/* ---- factors ---- */

/* A factor for each axis of x that is not `whole`, shared with the first result, and with the statistics where these
 * have the axis. */
static int factors_but(Node *n, FactorRule *r, const bool *whole)
{
	Type *x = operand_type(n, 0);
	if (!x || x->ndim < 0)
		return -1;
	for (int a = 0; a < x->ndim; a++) {
		if (whole[a])
			continue;
		int f = factor_add(r, x->dim[a]);
		r->in[0][a] = f;
		if (n->nin == 2 && r->in[1] && operand_ndim(n, 1) == x->ndim && *n->domain) /* a gradient: dy and y */
			r->in[1][a] = f;
		for (int i = 0; i < n->nout; i++)
			if (r->out[i] && n->out[i]->type->ndim == x->ndim)
				r->out[i][a] = f;
	}
	return 0;
}

/* A factor for an axis over which the node reduces: of the operands that have it, and of the first result. */
static void reduced_axis(Node *n, FactorRule *r, int axis)
{
	Type *x = operand_type(n, 0);
	int f = factor_defined(r, x->dim[axis]);
	for (int i = 0; i < n->nin; i++) {
		Type *t = operand_type(n, i);
		int at = t ? axis - (x->ndim - t->ndim) : -1;
		if (r->in[i] && at >= 0 && dim_same(t->dim[at], x->dim[axis]))
			r->in[i][at] = f;
	}
	if (r->out[0])
		r->out[0][axis] = f;
}

static int factor_softmax(Node *n, FactorRule *r)
{
	bool whole[NDIM_MAX] = { false };
	int axis, ndim = operand_ndim(n, 0);
	if (ndim < 1 || op_axis(n, attr_int(n, "axis"), ndim, &axis))
		return -1;
	whole[axis] = true;
	if (factors_but(n, r, whole))
		return -1;
	reduced_axis(n, r, axis);
	return 0;
}

static int factor_layernorm(Node *n, FactorRule *r)
{
	bool whole[NDIM_MAX] = { false };
	int axis, ndim = operand_ndim(n, 0);
	if (ndim < 1 || op_axis(n, attr_int(n, "axis"), ndim, &axis))
		return -1;
	for (int i = axis; i < ndim; i++)
		whole[i] = true;
	if (factors_but(n, r, whole))
		return -1;
	for (int i = axis; i < ndim; i++)
		reduced_axis(n, r, i);
	return 0;
}

/* Factors: channels, with their vectors (in a group norm, groups); the batch and the other axes, by the definition if
 * statistics are taken over them. */
static int factor_channels(Node *n, FactorRule *r)
{
	Type *x = operand_type(n, 0);
	bool batch = !strcmp(n->op, "BatchNormalization"), group = !strcmp(n->op, "GroupNormalization");
	if (!x || x->ndim < 2 || !dim_known(x->dim[1]))
		return -1;
	int64_t groups = group ? attr_int(n, "num_groups") : x->dim[1];
	bool stored = batch && !batch_training(n);
	int first = -1;
	for (int a = 0; a < x->ndim; a++) {
		if (a == 1)
			continue;
		bool reduced = !stored && (batch || a > 1);
		int f = reduced ? factor_defined(r, x->dim[a]) : factor_add(r, x->dim[a]);
		r->in[0][a] = f;
		if (r->out[0])
			r->out[0][a] = f;
		first = a ? first : f;
	}
	int g = factor_add(r, groups), each = factor_defined(r, x->dim[1] / groups);
	grouped_axis(r, false, 0, 1, g, each);
	if (r->out[0])
		grouped_axis(r, true, 0, 1, g, each);
	for (int i = 1; i < n->nin; i++)
		if (r->in[i] && dim_same(operand_type(n, i)->dim[0], x->dim[1]))
			grouped_axis(r, false, i, 0, g, each);
		else if (r->in[i])
			r->in[i][0] = g;
	for (int i = 1; i < n->nout; i++) {
		if (!r->out[i])
			continue;
		if (!batch)
			r->out[i][0] = first;
		r->out[i][batch ? 0 : 1] = g;
	}
	return 0;
}

static int factor_lrn(Node *n, FactorRule *r)
{
	bool whole[NDIM_MAX] = { false, true };
	return factors_but(n, r, whole);
}

/* clang-format off */
#define NORM_GRAD(op, kern, attributes) \
	.name = op, .domain = "sbpcc", .since = 1, .sig = "dy:F x:F scale:F1 mean:F2? inv:F2 -> dx:F", \
	.attrs = attributes, .shape = shape_norm_grad, .kernel = kern, .composite = true, \
	.expand = expand_norm_grad, .factor_fn = factor_norm_grad, .fit = fit_groups, .linear = "dy", \
	.cost = cost_pointwise, .flops = 12
#define NORM_GRAD_W(op, kern, attributes) \
	.name = op, .domain = "sbpcc", .since = 1, .sig = "dy:F x:F scale:F1 mean:F2? inv:F2 -> dscale:F1 db:F1?", \
	.attrs = attributes, .shape = shape_norm_grad, .kernel = kern, .composite = true, \
	.expand = expand_norm_grad_w, .factor_fn = factor_norm_grad, .fit = fit_groups, .linear = "dy", \
	.cost = cost_reduce

const Op ops_norm[] = {
	{ .name = "BatchNormalization", .since = 14, .precision = PRECISION_FLOAT,
	  .sig = "x:F scale:F1 b:F1 mean:F2 var:F2 -> y:F running_mean:F2? running_var:F2? saved_mean:F2? "
	         "saved_inv:F2?",
	  .attrs = "epsilon:float=1e-5 momentum:float=0.9 training_mode:int=0", .infer = infer_batchnorm,
	  .shape = shape_batchnorm, .kernel = "batchnorm", .composite = true, .expand = expand_batchnorm,
	  .factor_fn = factor_channels, .own = own_batchnorm, .stash = "saved_mean saved_inv",
	  .grad = "dx = BatchNormGrad(dy, x, scale, saved_mean, saved_inv);"
	          "dscale, db = BatchNormGradW(dy, x, scale, saved_mean, saved_inv)",
	  .cost = cost_pointwise, .flops = 8,
	  .test = "x:[2,3,4] scale:[3] b:[3] mean:[3] var:(0.1,2)[3] | "
	          "x:(0.1,2)[3,2,2,2] scale:[2] b:[2] mean:[2] var:(0.1,2)[2] =training_mode:1 | "
	          "x:[3,2,2,2] scale:[2] b:[2] mean:[2] var:(0.1,2)[2] =training_mode:1" },
	{ .name = "BatchNormalization", .since = 9, .until = 13, .precision = PRECISION_FLOAT,
	  .sig = "x:F scale:F b:F mean:F var:F -> y:F mean_out:F? var_out:F? saved_mean:F? saved_var:F?",
	  .attrs = "epsilon:float=1e-5 momentum:float=0.9", .infer = infer_batchnorm,
	  .shape = shape_batchnorm, .kernel = "batchnorm", .composite = true, .expand = expand_batchnorm,
	  .factor_fn = factor_channels, .cost = cost_pointwise, .flops = 8,
	  .test = "x:[2,3,4] scale:[3] b:[3] mean:[3] var:(0.1,2)[3]" },
	{ .name = "LayerNormalization", .since = 17, .precision = PRECISION_FLOAT,
	  .sig = "x:F scale:F b:F? -> y:F mean:F1? inv_std_dev:F1?",
	  .attrs = "axis:int=-1 epsilon:float=1e-5 stash_type:int=1",
	  .shape = shape_layernorm, .kernel = "layernorm", .composite = true, .expand = expand_layernorm,
	  .factor_fn = factor_layernorm, .own = own_norm, .stash = "mean inv_std_dev",
	  .grad = "dx = LayerNormGrad<axis=@axis>(dy, x, scale, mean, inv_std_dev);"
	          "dscale, db = LayerNormGradW<axis=@axis>(dy, x, scale, mean, inv_std_dev) @when(\"has(b)\");"
	          "dscale = LayerNormGradW<axis=@axis>(dy, x, scale, mean, inv_std_dev) @when(\"!has(b)\")",
	  .cost = cost_pointwise, .flops = 10,
	  .test = "x:(0.1,2)[2,3,4] scale:[4] b:[4] | x:[2,3,4] scale:[3,4] =axis:1" },
	{ .name = "RMSNormalization", .since = 23, .precision = PRECISION_FLOAT,
	  .sig = "x:F scale:F1 -> y:F1 inv_rms:F2?", .attrs = "axis:int=-1 epsilon:float=1e-5 stash_type:int=1",
	  .shape = shape_layernorm, .kernel = "rmsnorm", .composite = true, .expand = expand_layernorm,
	  .factor_fn = factor_layernorm, .own = own_norm, .stash = "inv_rms",
	  .grad = "dx = LayerNormGrad<axis=@axis>(dy, x, scale, , inv_rms);"
	          "dscale = LayerNormGradW<axis=@axis>(dy, x, scale, , inv_rms)",
	  .cost = cost_pointwise, .flops = 6, .test = "x:[2,3,4] scale:[4] | x:[2,3,4] scale:[3,4] =axis:1" },
	{ .name = "GroupNormalization", .since = 21, .precision = PRECISION_FLOAT,
	  .sig = "x:F scale:F bias:F -> y:F mean:F1? inv:F1?",
	  .attrs = "epsilon:float=1e-5 num_groups:int! stash_type:int=1",
	  .shape = shape_channels, .kernel = "groupnorm", .composite = true, .expand = expand_groupnorm,
	  .factor_fn = factor_channels, .fit = fit_groups, .own = own_groupnorm, .stash = "mean inv",
	  .grad = "dx = GroupNormGrad<num_groups=@num_groups>(dy, x, scale, mean, inv);"
	          "dscale, dbias = GroupNormGradW<num_groups=@num_groups>(dy, x, scale, mean, inv)",
	  .cost = cost_pointwise, .flops = 10,
	  .test = "x:(0.1,2)[2,4,3] scale:[4] bias:[4] =num_groups:2 | "
	          "x:[2,6,3,2] scale:[6] bias:[6] =num_groups:3" },
	{ .name = "GroupNormalization", .since = 18, .until = 20, .precision = PRECISION_FLOAT,
	  .sig = "x:F scale:F bias:F -> y:F mean:F1? inv:F1?", .attrs = "epsilon:float=1e-5 num_groups:int!",
	  .shape = shape_channels, .kernel = "groupnorm", .composite = true, .expand = expand_groupnorm,
	  .factor_fn = factor_channels, .fit = fit_groups, .own = own_groupnorm, .stash = "mean inv",
	  .grad = "dx = GroupNormGrad<num_groups=@num_groups>(dy, x, scale, mean, inv);"
	          "dscale, dbias = GroupNormGradW<num_groups=@num_groups>(dy, x, scale, mean, inv)",
	  .cost = cost_pointwise, .flops = 10,
	  .test = "x:(0.1,2)[2,4,3] scale:[2] bias:[2] =num_groups:2 | x:[2,4,3] scale:[2] bias:[2] =num_groups:2" },
	{ .name = "InstanceNormalization", .since = 1, .precision = PRECISION_FLOAT,
	  .sig = "x:F scale:F b:F -> y:F mean:F1? inv:F1?", .attrs = "epsilon:float=1e-5",
	  .shape = shape_channels, .kernel = "instancenorm", .composite = true, .expand = expand_instancenorm,
	  .factor_fn = factor_channels, .own = own_norm, .stash = "mean inv",
	  .grad = "dx = GroupNormGrad(dy, x, scale, mean, inv); dscale, db = GroupNormGradW(dy, x, scale, mean, inv)",
	  .cost = cost_pointwise, .flops = 10,
	  .test = "x:(0.1,2)[2,3,4,2] scale:[3] b:[3] | x:[2,3,4,2] scale:[3] b:[3]" },
	{ NORM_GRAD("LayerNormGrad", "layernorm_grad", "axis:int=-1"),
	  .test = "dy:[2,3,4] x:[2,3,4] scale:[4] mean:[2,3,1] inv:(0.1,2)[2,3,1] | "
	          "dy:[2,3,4] x:[2,3,4] scale:[3,4] inv:(0.1,2)[2,1,1] =axis:1" },
	{ NORM_GRAD_W("LayerNormGradW", "layernorm_grad_w", "axis:int=-1"),
	  .test = "dy:[2,3,4] x:[2,3,4] scale:[4] mean:[2,3,1] inv:(0.1,2)[2,3,1] | "
	          "dy:[2,3,4] x:[2,3,4] scale:[3,4] inv:(0.1,2)[2,1,1] =axis:1" },
	{ NORM_GRAD("GroupNormGrad", "groupnorm_grad", "num_groups:int=0"),
	  .test = "dy:[2,4,3] x:[2,4,3] scale:[4] mean:[2,2] inv:(0.1,2)[2,2] =num_groups:2 | "
	          "dy:[2,3,2,2] x:[2,3,2,2] scale:[3] mean:[2,3] inv:(0.1,2)[2,3] | "
	          "dy:[2,6,3] x:[2,6,3] scale:[6] mean:[2,3] inv:(0.1,2)[2,3] =num_groups:3" },
	{ NORM_GRAD_W("GroupNormGradW", "groupnorm_grad_w", "num_groups:int=0"),
	  .test = "dy:[2,4,3] x:[2,4,3] scale:[4] mean:[2,2] inv:(0.1,2)[2,2] =num_groups:2 | "
	          "dy:[2,3,2,2] x:[2,3,2,2] scale:[3] mean:[2,3] inv:(0.1,2)[2,3] | "
	          "dy:[2,6,3] x:[2,6,3] scale:[6] mean:[2,3] inv:(0.1,2)[2,3] =num_groups:3" },
	{ NORM_GRAD("BatchNormGrad", "batchnorm_grad", NULL),
	  .test = "dy:[3,2,4] x:[3,2,4] scale:[2] mean:[2] inv:(0.1,2)[2] | "
	          "dy:[5,3,2,2] x:[5,3,2,2] scale:[3] mean:[3] inv:(0.1,2)[3]" },
	{ NORM_GRAD_W("BatchNormGradW", "batchnorm_grad_w", NULL),
	  .test = "dy:[3,2,4] x:[3,2,4] scale:[2] mean:[2] inv:(0.1,2)[2] | "
	          "dy:[5,3,2,2] x:[5,3,2,2] scale:[3] mean:[3] inv:(0.1,2)[3]" },
	{ .name = "LRN", .since = 1, .precision = PRECISION_FLOAT, .sig = "x:F -> y:F",
	  .attrs = "alpha:float=1e-4 beta:float=0.75 bias:float=1.0 size:int!",
	  .shape = shape_like_first, .kernel = "lrn", .composite = true, .expand = expand_lrn,
	  .factor_fn = factor_lrn, .cost = cost_pointwise, .flops = 20,
	  .test = "x:[2,5,3] =size:3 =alpha:0.5 | x:[1,4,2,2] =size:2 =alpha:0.5 =bias:2.0" },
	{ .name = "Softmax", .since = 13, .precision = PRECISION_FLOAT, .sig = "x:F -> y:F", .attrs = "axis:int=-1",
	  .shape = shape_axis, .kernel = "softmax", .composite = true, .factor_fn = factor_softmax,
	  .grad = "dx = SoftmaxGrad<axis=@axis>(dy, y)", .cost = cost_pointwise, .flops = 6,
	  .test = "x:[2,3,4] | x:[2,3,4] =axis:1" },
	{ .name = "LogSoftmax", .since = 13, .precision = PRECISION_FLOAT, .sig = "x:F -> y:F",
	  .attrs = "axis:int=-1", .shape = shape_axis, .kernel = "logsoftmax", .composite = true,
	  .factor_fn = factor_softmax, .grad = "dx = LogSoftmaxGrad<axis=@axis>(dy, y)",
	  .cost = cost_pointwise, .flops = 6, .test = "x:[2,3,4] | x:[2,3,4] =axis:1" },
	{ .name = "SoftmaxGrad", .domain = "sbpcc", .since = 1, .sig = "dy:F y:F -> dx:F", .attrs = "axis:int=-1",
	  .shape = shape_pair, .kernel = "softmax_grad", .composite = true,
	  .factor_fn = factor_softmax, .linear = "dy", .cost = cost_pointwise, .flops = 4,
	  .test = "dy:[2,3,4] y:(0.1,2)[2,3,4] | dy:[2,3,4] y:(0.1,2)[2,3,4] =axis:1" },
	{ .name = "LogSoftmaxGrad", .domain = "sbpcc", .since = 1, .sig = "dy:F y:F -> dx:F", .attrs = "axis:int=-1",
	  .shape = shape_pair, .kernel = "logsoftmax_grad", .composite = true,
	  .factor_fn = factor_softmax, .linear = "dy", .cost = cost_pointwise, .flops = 4,
	  .test = "dy:[2,3,4] y:(0.1,2)[2,3,4] | dy:[2,3,4] y:(0.1,2)[2,3,4] =axis:1" },
	{ .name = "Gelu", .since = 20, .sig = "x:F -> y:F", .attrs = "approximate:string=\"none\"",
	  .shape = shape_like_first,
	  .expr = "is(approximate, tanh) ? 0.5 * x * (1 + tanh(0.7978845608028654 * x * (1 + 0.044715 * x * x))) : "
	          "0.5 * x * (1 + erf(0.7071067811865476 * x))",
	  .composite = true, .factors = "... -> ...", .grad = "dx = GeluGrad<approximate=@approximate>(dy, x)",
	  .cost = cost_pointwise, .flops = 12, .test = "x:[3,4] | x:[3,4] =approximate:\"tanh\"" },
	{ .name = "GeluGrad", .domain = "sbpcc", .since = 1, .sig = "dy:F x:F -> dx:F",
	  .attrs = "approximate:string=\"none\"", .shape = shape_pair,
	  .expr = "is(approximate, tanh) ? "
	          "dy * (0.5 * (1 + tanh(0.7978845608028654 * x * (1 + 0.044715 * x * x))) + 0.5 * x * "
	          "(1 - tanh(0.7978845608028654 * x * (1 + 0.044715 * x * x)) * "
	          "tanh(0.7978845608028654 * x * (1 + 0.044715 * x * x))) * "
	          "(0.7978845608028654 + 0.1070322243 * x * x)) : "
	          "dy * (0.5 * (1 + erf(0.7071067811865476 * x)) + 0.3989422804014327 * x * exp(0 - 0.5 * x * x))",
	  .composite = true, .factors = "..., ... -> ...", .linear = "dy", .cost = cost_pointwise, .flops = 20,
	  .test = "dy:[3,4] x:[3,4] | dy:[3,4] x:[3,4] =approximate:\"tanh\"" },
	{ .name = "Dropout", .since = 12, .random = true,
	  .sig = "x:F ratio:F1? training_mode:bool? -> y:F mask:bool?", .attrs = "seed:int", .infer = infer_dropout,
	  .shape = shape_dropout, .kernel = "dropout", .composite = true, .expand = expand_dropout,
	  .factors = "..., , -> ..., ...", .cost = cost_pointwise, .flops = 2, .test = "x:[3,4]" },
	{ 0 },
};
/* clang-format on */
