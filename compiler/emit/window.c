/* Calls of convolutions and pools: windows over one or two axes for the fast kernels, over any number for the
 * others. */
#include "calls.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <string.h>

/* ---- windows ---- */

/* One spatial axis is a plane of one row. */
static KWindow plane_of(const Window *w, const int64_t *x, const int64_t *y)
{
	KWindow v = { .k = { 1, 1 }, .stride = { 1, 1 }, .dil = { 1, 1 }, .in = { 1, 1 }, .out = { 1, 1 } };
	for (int a = 2 - w->nd, i = 0; a < 2; a++, i++) {
		v.k[a] = w->k[i], v.stride[a] = w->stride[i], v.dil[a] = w->dil[i];
		v.lo[a] = w->lo[i], v.in[a] = x[i], v.out[a] = y[i];
	}
	return v;
}

static void print_plane(const Print *p, const Window *w, const int64_t *x, const int64_t *y)
{
	KWindow v = plane_of(w, x, y);
	text_add(p->t, ", (KWindow){");
	args_field_dims(p, "k", v.k, 2);
	args_field_dims(p, "stride", v.stride, 2);
	args_field_dims(p, "dil", v.dil, 2);
	args_field_dims(p, "lo", v.lo, 2);
	args_field_dims(p, "in", v.in, 2);
	args_field_dims(p, "out", v.out, 2);
	text_add(p->t, " }");
}

static void print_nd(const Print *p, const Window *w, const int64_t *x, const int64_t *y)
{
	text_add(p->t, ", &(KWindows){");
	args_field_int(p, "n", w->nd);
	args_field_dims(p, "k", w->k, w->nd);
	args_field_dims(p, "stride", w->stride, w->nd);
	args_field_dims(p, "dil", w->dil, w->nd);
	args_field_dims(p, "lo", w->lo, w->nd);
	args_field_dims(p, "hi", w->hi, w->nd);
	args_field_dims(p, "in", x, w->nd);
	args_field_dims(p, "out", y, w->nd);
	text_add(p->t, " }");
}

static void print_window(const Print *p, bool nd, const Shape *x, const int64_t *kernel, const Shape *y)
{
	Window w;
	if (window_read(p->n, x->ndim - 2, kernel, &w) || window_fit(p->n, &w, x->d + 2))
		return;
	(nd ? print_nd : print_plane)(p, &w, x->d + 2, y->d + 2);
}

/* ---- convolutions ---- */

/* x, w and y of a convolution are other operands and results in its gradients. */
static void print_conv(const Print *p, bool nd)
{
	const char *k = p->n->row->kernel;
	bool gx = !strcmp(k, "conv_grad_x"), gw = !strcmp(k, "conv_grad_w");
	Shape x = gx ? args_out(p, 0) : args_in(p, 0), w = gw ? args_out(p, 0) : args_in(p, 1),
		y = gx ? args_in(p, 0) : gw ? args_in(p, 1) : args_out(p, 0);
	int64_t groups = attr_int(p->n, "group");
	int operand, axis;
	bool tree = gw && !nd && any_ranks_chunks(p->whole, p->e->tree.arena, &operand, &axis) > 1;
	int64_t chunks = tree ? args_chunks(p, "conv_fast") : 1;
	Window v;
	if (!nd && !window_read(p->n, x.ndim - 2, w.d + 2, &v) && !window_fit(p->n, &v, x.d + 2)) {
		KWindow plane = plane_of(&v, x.d + 2, y.d + 2);
		if (tree)
			args_need(p, k_work_conv_tree(&plane, x.d[0], groups, w.d[1], w.d[0] / groups, chunks));
		args_need(p, k_work_conv(gx ? K_CONV_GRAD_X : gw ? K_CONV_GRAD_W : K_CONV, &plane, x.d[0], groups,
			w.d[1], w.d[0] / groups));
	}
	args_call(p, arena_printf(p->e->tree.arena, "k_conv%s%s%s%s", nd ? "_nd" : "", k + strlen("conv"),
		tree ? "_tree" : "", nd ? "" : "_f32"), "0", gx || gw ? "01" : "012");
	args_sizes(p, x.d[0], groups, w.d[1], w.d[0] / groups);
	print_window(p, nd, &x, w.d + 2, &y);
	/* also for one chunk, which is summed in the same way as those of other ranks */
	if (tree)
		args_sizes(p, chunks);
	nd ? args_type(p, p->n->in[0]) : args_end(p);
}

static void call_conv(const Print *p)
{
	print_conv(p, false);
}

static void call_conv_nd(const Print *p)
{
	print_conv(p, true);
}

/* ---- pools ---- */

static void print_pool(const Print *p, bool nd, const Shape *x, const Shape *y)
{
	int len;
	const int64_t *k = attr_ints(p->n, "kernel_shape", &len);
	args_sizes(p, x->d[0] * x->d[1]);
	print_window(p, nd, x, k, y);
}

static void call_maxpool(const Print *p)
{
	Shape x = args_in(p, 0), y = args_out(p, 0);
	args_call(p, "k_maxpool_f32", "0", "0");
	print_pool(p, false, &x, &y);
	args_end(p);
}

static void call_maxpool_nd(const Print *p)
{
	Shape x = args_in(p, 0), y = args_out(p, p->make[0] ? 0 : 1);
	args_call(p, "k_maxpool_nd", "01", "0");
	print_pool(p, true, &x, &y);
	args_word(p, attr_int(p->n, "storage_order"));
	args_type(p, p->n->in[0]);
}

/* Whether a gradient gives a stretch of what its windows see. */
static bool is_stretch(const Print *p, const Shape *x)
{
	int64_t from[SPATIAL_MAX], size[SPATIAL_MAX];
	bool other = false;
	if (!window_crop(p->n, x->ndim - 2, from, size))
		return false;
	for (int i = 0; i < x->ndim - 2; i++)
		other |= from[i] || size[i] != x->d[i + 2];
	return other;
}

static void print_stretch(const Print *p, bool nd, const Shape *x)
{
	int64_t from[SPATIAL_MAX], size[SPATIAL_MAX] = { 0 }, f[2] = { 0, 0 }, s[2] = { 1, 1 };
	int n = x->ndim - 2;
	window_crop(p->n, n, from, size);
	for (int a = 2 - n, i = 0; !nd && a < 2; a++, i++)
		f[a] = from[i], s[a] = size[i];
	text_add(p->t, ", (KStretch){");
	for (int i = 0; i < 2; i++) {
		const int64_t *v = nd ? i ? size : from : i ? s : f;
		for (int a = 0; a < (nd ? n : 2); a++)
			text_add(p->t, "%s%" PRId64, a ? ", " : i ? ", { " : " { ", v[a]);
		text_add(p->t, " }");
	}
	text_add(p->t, " }");
}

static void print_maxpool_grad(const Print *p, bool nd)
{
	Shape g = args_in(p, 0), x = args_in(p, 1);
	const char *stretch = is_stretch(p, &x) ? "_shard" : "";
	args_call(p, arena_printf(p->e->tree.arena, nd ? "k_maxpool_nd_grad%s" : "k_maxpool_grad%s_f32", stretch), "0",
		"01");
	print_pool(p, nd, &x, &g);
	if (*stretch)
		print_stretch(p, nd, &x);
	nd ? args_type(p, p->n->in[0]) : args_end(p);
}

static void call_maxpool_grad(const Print *p)
{
	print_maxpool_grad(p, false);
}

static void call_maxpool_nd_grad(const Print *p)
{
	print_maxpool_grad(p, true);
}

/* Sum and average pooling and their gradients.  x is the larger shape, y that of the windows: the gradient goes from y
 * to x. */
static void print_sumpool(const Print *p, bool grad, bool mean)
{
	Shape x = grad ? args_out(p, 0) : args_in(p, 0), y = grad ? args_in(p, 0) : args_out(p, 0);
	for (int i = 0; grad && i < x.ndim && node_attr(p->n, "from"); i++)
		x.d[i] = tensor_int(p->n->in[1]->data, i);      /* what the windows see */
	bool stretch = grad && is_stretch(p, &x);
	args_call(p, stretch ? "k_sumpool_grad_shard" : grad ? "k_sumpool_grad" : "k_sumpool", "0", "0");
	print_pool(p, true, &x, &y);
	if (stretch)
		print_stretch(p, true, &x);
	const char *how = "K_POOL_SUM";
	if (mean)
		how = attr_int(p->n, "count_include_pad") ? "K_POOL_PADDED" : "K_POOL_MEAN";
	text_add(p->t, ", %s", how);
	args_type(p, p->n->in[0]);
}

static void call_sumpool(const Print *p)
{
	print_sumpool(p, false, false);
}

static void call_sumpool_grad(const Print *p)
{
	print_sumpool(p, true, false);
}

static void call_avgpool(const Print *p)
{
	print_sumpool(p, false, true);
}

static void call_avgpool_grad(const Print *p)
{
	print_sumpool(p, true, true);
}

/* ---- regions ---- */

/* x and regions are operands `first` and the next; aligned regions are followed by the image of each. */
static void print_roi(const Print *p, int first, bool align)
{
	Shape x = args_in(p, first), r = args_in(p, first + 1);
	int len;
	const int64_t *size = align ? (int64_t[]){ attr_int(p->n, "output_height"), attr_int(p->n, "output_width") }
		: attr_ints(p->n, "pooled_shape", &len);
	bool half = align && !strcmp(attr_str(p->n, "coordinate_transformation_mode"), "half_pixel"), mean = align &&
		!strcmp(attr_str(p->n, "mode"), "avg");
	args_call(p, first ? "k_roi_grad" : "k_roi", "0", first ? align ? "0123" : "012" : align ? "012" : "01");
	text_add(p->t, "%s, &(KRoi){", align ? "" : ", NULL");
	args_field_int(p, "images", x.d[0]);
	args_field_int(p, "channels", x.d[1]);
	args_field_int(p, "h", x.d[2]);
	args_field_int(p, "w", x.d[3]);
	args_field_int(p, "regions", r.d[0]);
	args_field_int(p, "ph", size[0]);
	args_field_int(p, "pw", size[1]);
	args_field_int(p, "samples", align ? attr_int(p->n, "sampling_ratio") : 0);
	args_field(p, "align", align ? "true" : "false");
	args_field(p, "half", half ? "true" : "false");
	args_field(p, "mean", mean ? "true" : "false");
	args_field(p, "scale", arena_printf(p->e->tree.arena, "%.17g", attr_float(p->n, "spatial_scale")));
	text_add(p->t, " }");
	args_type(p, p->n->in[0]);
}

static void call_roi_align(const Print *p)
{
	print_roi(p, 0, true);
}

static void call_roi_align_grad(const Print *p)
{
	print_roi(p, 1, true);
}

static void call_roi_pool(const Print *p)
{
	print_roi(p, 0, false);
}

static void call_roi_pool_grad(const Print *p)
{
	print_roi(p, 1, false);
}

const Call window_calls[] = {
	{ "avgpool", "window", call_avgpool, false },
	{ "avgpool_grad", "window", call_avgpool_grad, false },
	{ "sumpool", "window", call_sumpool, false },
	{ "sumpool_grad", "window", call_sumpool_grad, false },
	{ "conv", "conv", call_conv, false },
	{ "conv", "window", call_conv_nd, false },
	{ "conv_grad_x", "conv", call_conv, false },
	{ "conv_grad_x", "window", call_conv_nd, false },
	{ "conv_grad_w", "conv", call_conv, false },
	{ "conv_grad_w", "window", call_conv_nd, false },
	{ "maxpool", "pool", call_maxpool, false },
	{ "maxpool", "window", call_maxpool_nd, false },
	{ "maxpool_grad", "pool", call_maxpool_grad, false },
	{ "maxpool_grad", "window", call_maxpool_nd_grad, false },
	{ "roi_align", "roi", call_roi_align, false },
	{ "roi_align_grad", "roi", call_roi_align_grad, false },
	{ "max_roi_pool", "roi", call_roi_pool, false },
	{ "max_roi_pool_grad", "roi", call_roi_pool_grad, false },
	{ 0 },
};
