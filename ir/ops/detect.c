/* Operators of detectors: pooling of regions of interest, and the choice among overlapping boxes.
 *
 * Every element of a pooled region is the mean or the maximum over a list of pixels with weights: RoiAlign takes the
 * four neighbours of equally spaced points, MaxRoiPool the pixels of a bin.  Value and gradient walk the same lists. */
#include "ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Tap {
	int64_t pixel;
	double weight;
} Tap;

typedef struct Roi {
	int64_t h, w, ph, pw;   /* of the image, of the result */
	bool align, half, mean; /* RoiAlign, its half_pixel; mean instead of maximum */
	double scale;
	int64_t samples; /* per bin and axis; 0: as many as the bin has pixels */
	Tap *tap;
	int64_t ntap, cap;
	int64_t count; /* the divisor of the mean */
} Roi;

static void add_tap(Roi *r, int64_t pixel, double weight)
{
	if (r->ntap == r->cap) {
		Tap *more;

		r->cap = r->cap ? 2 * r->cap : 64;
		more = eval_scratch(sizeof *more * (size_t)r->cap);
		if (r->ntap)
			memcpy(more, r->tap, sizeof *more * (size_t)r->ntap);
		r->tap = more;
	}
	r->tap[r->ntap++] = (Tap){ pixel, weight };
}

/* The four neighbours of (y, x); a point further than one pixel outside counts as 0. */
static void add_point(Roi *r, double y, double x)
{
	if (!(y >= -1 && y <= (double)r->h && x >= -1 && x <= (double)r->w)) {
		add_tap(r, 0, 0);
		return;
	}
	y = fmin(fmax(y, 0), (double)(r->h - 1));
	x = fmin(fmax(x, 0), (double)(r->w - 1));
	int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + (y0 < r->h - 1), x1 = x0 + (x0 < r->w - 1);
	double ly = y - (double)y0, lx = x - (double)x0;
	add_tap(r, y0 * r->w + x0, (1 - ly) * (1 - lx));
	add_tap(r, y0 * r->w + x1, (1 - ly) * lx);
	add_tap(r, y1 * r->w + x0, ly * (1 - lx));
	add_tap(r, y1 * r->w + x1, ly * lx);
}

/* box is x1 y1 x2 y2; the taps of bin (i, j). */
static void align_bin(Roi *r, const double *box, int64_t i, int64_t j)
{
	double shift = r->half ? 0.5 : 0, x = box[0] * r->scale - shift, y = box[1] * r->scale - shift;
	double w = box[2] * r->scale - shift - x, h = box[3] * r->scale - shift - y;

	if (!r->half) {
		w = fmax(w, 1);
		h = fmax(h, 1);
	}
	double bh = h / (double)r->ph, bw = w / (double)r->pw;
	int64_t nh = r->samples, nw = r->samples;
	if (!nh) {
		nh = bh > 0 ? (int64_t)fmin(ceil(bh), 1 << 12) : 0;
		nw = bw > 0 ? (int64_t)fmin(ceil(bw), 1 << 12) : 0;
	}
	r->count = nh * nw > 0 ? nh * nw : 1;
	for (int64_t a = 0; a < nh; a++)
		for (int64_t b = 0; b < nw; b++)
			add_point(r, y + (double)i * bh + ((double)a + 0.5) * bh / (double)nh,
				x + (double)j * bw + ((double)b + 0.5) * bw / (double)nw);
}

static int64_t bound(double v, int64_t n)
{
	return !(v > 0) ? 0 : v > (double)n ? n : (int64_t)v;
}

/* Corners are rounded to pixels, which belong to the region; bins may share pixels. */
static void pool_bin(Roi *r, const double *box, int64_t i, int64_t j)
{
	double x = round(box[0] * r->scale), y = round(box[1] * r->scale);
	double h = fmax(round(box[3] * r->scale) - y + 1, 1), w = fmax(round(box[2] * r->scale) - x + 1, 1);
	double bh = h / (double)r->ph, bw = w / (double)r->pw;
	int64_t y0 = bound(floor((double)i * bh) + y, r->h), y1 = bound(ceil((double)(i + 1) * bh) + y, r->h);
	int64_t x0 = bound(floor((double)j * bw) + x, r->w), x1 = bound(ceil((double)(j + 1) * bw) + x, r->w);

	for (int64_t a = y0; a < y1; a++)
		for (int64_t b = x0; b < x1; b++)
			add_tap(r, a * r->w + b, 1);
}

/* The value of the current bin on one plane of the image; *best is the tap of the maximum, -1 for a mean. */
static double reduce(const Roi *r, const double *plane, int64_t *best)
{
	double v = 0;

	*best = -1;
	for (int64_t k = 0; k < r->ntap; k++) {
		double t = r->tap[k].weight * plane[r->tap[k].pixel];

		if (r->mean) {
			v += t;
		} else if (*best < 0 || t > v) {
			v = t;
			*best = k;
		}
	}
	return r->mean ? v / (double)r->count : v;
}

static void spread(const Roi *r, const double *plane, double dy, double *dx)
{
	int64_t best;

	reduce(r, plane, &best);
	for (int64_t k = 0; r->mean && k < r->ntap; k++)
		dx[r->tap[k].pixel] += dy * r->tap[k].weight / (double)r->count;
	if (best >= 0)
		dx[r->tap[best].pixel] += dy * r->tap[best].weight;
}

/* x and rois are operands `first` and the next, in RoiAlign followed by the batch indices; without dy the value is
 * computed, with it the gradient for x. */
static int run_roi(Node *n, Tensor **in, int first, const double *dy, Tensor *out)
{
	const Tensor *image = in[first], *rois = in[first + 1];
	bool align = !strncmp(n->op, "RoiAlign", 8);
	Roi r = { .h = image->dim[2],
		.w = image->dim[3],
		.align = align,
		.scale = attr_float(n, "spatial_scale") };
	int64_t channels = image->dim[1], boxes = rois->dim[0], cols = rois->dim[1], plane = r.h * r.w;
	double *x = eval_doubles(image), *box = eval_doubles(rois),
	       *res = eval_scratch(sizeof *res * (size_t)(tensor_elements(out) + 1));

	if (align) {
		r.ph = attr_int(n, "output_height");
		r.pw = attr_int(n, "output_width");
		r.samples = attr_int(n, "sampling_ratio");
		r.half = !strcmp(attr_str(n, "coordinate_transformation_mode"), "half_pixel");
		r.mean = !strcmp(attr_str(n, "mode"), "avg");
	} else {
		int k;
		const int64_t *p = attr_ints(n, "pooled_shape", &k);

		r.ph = p[0];
		r.pw = p[1];
	}
	memset(res, 0, sizeof *res * (size_t)(tensor_elements(out) + 1));
	for (int64_t b = 0; b < boxes; b++) {
		int64_t batch = align ? tensor_int(in[first + 2], b) : (int64_t)box[b * cols];

		if (batch < 0 || batch >= image->dim[0]) {
			err_at(n->loc, "%s: region %lld is in image %lld of %lld", n->op, (long long)b,
				(long long)batch, (long long)image->dim[0]);
			return -1;
		}
		for (int64_t i = 0; i < r.ph; i++)
			for (int64_t j = 0; j < r.pw; j++) {
				r.ntap = 0;
				if (align)
					align_bin(&r, box + b * cols, i, j);
				else
					pool_bin(&r, box + b * cols + 1, i, j);
				for (int64_t c = 0; c < channels; c++) {
					int64_t at = (batch * channels + c) * plane,
						y = ((b * channels + c) * r.ph + i) * r.pw + j, best;

					if (dy)
						spread(&r, x + at, dy[y], res + at);
					else
						res[y] = reduce(&r, x + at, &best);
				}
			}
	}
	eval_store(out, res);
	return 0;
}

static int eval_roi(Node *n, Tensor **in, Tensor **out)
{
	return run_roi(n, in, 0, NULL, out[0]);
}

static int eval_roi_grad(Node *n, Tensor **in, Tensor **out)
{
	return run_roi(n, in, 1, eval_doubles(in[0]), out[0]);
}

/* The result of pooling operand `first` in regions; also checks attributes. */
static int roi_shape(Node *n, int first, Dim *dim)
{
	bool align = !strncmp(n->op, "RoiAlign", 8);
	Type *x = operand_type(n, first), *rois = operand_type(n, first + 1),
	     *batch = align ? operand_type(n, first + 2) : NULL;
	int64_t cols = align ? 4 : 5, out[2] = { attr_int(n, "output_height"), attr_int(n, "output_width") };
	int k;

	if (!align) {
		const int64_t *p = attr_ints(n, "pooled_shape", &k);

		out[0] = k == 2 ? p[0] : 0;
		out[1] = k == 2 ? p[1] : 0;
	}
	if (out[0] < 1 || out[1] < 1 || (align && attr_int(n, "sampling_ratio") < 0)) {
		err_at(n->loc, "%s: the size of the result must be at least 1 by 1", n->op);
		return -1;
	}
	bool bad = (x && x->ndim >= 0 && (x->ndim != 4 || x->dim[2] == 0 || x->dim[3] == 0)) ||
	           (rois && rois->ndim >= 0 && (rois->ndim != 2 || dim_differ(rois->dim[1], cols))) ||
	           (batch && batch->ndim >= 0 &&
			   (batch->ndim != 1 ||
				   (rois && rois->ndim == 2 && dim_differ(batch->dim[0], rois->dim[0]))));
	if (bad) {
		err_at(n->loc, "%s needs an image [N, C, H, W] and regions [R, %lld], not %s and %s", n->op,
			(long long)cols, type_text(x), type_text(rois));
		return -1;
	}
	dim[0] = rois && rois->ndim == 2 ? rois->dim[0] : DIM_UNKNOWN;
	dim[1] = x && x->ndim == 4 ? x->dim[1] : DIM_UNKNOWN;
	dim[2] = out[0];
	dim[3] = out[1];
	return 0;
}

static int shape_roi(Node *n)
{
	Dim dim[4];

	if (roi_shape(n, 0, dim))
		return -1;
	operand_set_result(n, 0, operand_dtype(n, 0), 4, dim);
	return 0;
}

static int shape_roi_grad(Node *n)
{
	Dim dim[4];
	Type *x = operand_type(n, 1), *dy = operand_type(n, 0);

	if (roi_shape(n, 1, dim))
		return -1;
	for (int i = 0; dy && dy->ndim >= 0 && i < 4; i++)
		if (dy->ndim != 4 || dim_differ(dy->dim[i], dim[i])) {
			err_at(operand_loc(n, 0), "%s: the gradient is %s, which is no result of these operands",
				n->op, type_text(dy));
			return -1;
		}
	operand_set_result(n, 0, operand_dtype(n, 1), x ? x->ndim : -1, x ? x->dim : NULL);
	return 0;
}

/* ---- NonMaxSuppression ---- */

typedef struct Boxes {
	int64_t batches, classes, n, most;
	double overlap, least;
	bool centre, cut; /* cut: scores must be above least */
	const double *box, *score;
} Boxes;

typedef struct Side {
	double lo, hi;
} Side;

static Side side(const Boxes *s, const double *b, int axis)
{
	if (s->centre)
		return (Side){ b[axis] - b[axis + 2] / 2, b[axis] + b[axis + 2] / 2 };
	return (Side){ fmin(b[axis], b[axis + 2]), fmax(b[axis], b[axis + 2]) };
}

/* Intersection over union of two boxes. */
static double overlap(const Boxes *s, const double *a, const double *b)
{
	double both = 1, one = 1, two = 1;

	for (int axis = 0; axis < 2; axis++) {
		Side p = side(s, a, axis), q = side(s, b, axis);

		both *= fmax(fmin(p.hi, q.hi) - fmax(p.lo, q.lo), 0);
		one *= p.hi - p.lo;
		two *= q.hi - q.lo;
	}
	return both > 0 && one > 0 && two > 0 ? both / (one + two - both) : 0;
}

static int by_score(const void *a, const void *b, void *arg)
{
	const double *score = arg;
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return score[x] != score[y] ? (score[x] < score[y]) - (score[x] > score[y]) : (x > y) - (x < y);
}

/* Selects the boxes of one batch and class, best first; returns their number. */
static int64_t keep(const Boxes *s, int64_t batch, int64_t class, int64_t *order, int64_t *kept)
{
	const double *score = s->score + (batch * s->classes + class) * s->n,
		     *box = s->box + batch * s->n * 4;
	int64_t n = 0, count = 0;

	for (int64_t i = 0; i < s->n; i++)
		if (!s->cut || score[i] > s->least)
			order[n++] = i;
	qsort_r(order, (size_t)n, sizeof *order, by_score, (void *)score);
	for (int64_t i = 0; i < n && count < s->most; i++) {
		bool free = true;

		for (int64_t k = 0; k < count && free; k++)
			free = overlap(s, box + order[i] * 4, box + kept[k] * 4) <= s->overlap;
		if (free)
			kept[count++] = order[i];
	}
	return count;
}

static double *doubles(const Tensor *t, Arena *a)
{
	double *v = arena_array(a, double, tensor_elements(t) + 1);

	for (int64_t i = 0; i < tensor_elements(t); i++)
		v[i] = tensor_get(t, i);
	return v;
}

/* Fills out (NULL: only counts); returns the number of rows. */
static int64_t suppress(Node *n, const Tensor *const *in, Tensor *out)
{
	Arena a = { 0 };
	Boxes s = { .batches = in[0]->dim[0],
		.n = in[0]->dim[1],
		.classes = in[1]->dim[1],
		.centre = attr_int(n, "center_point_box") != 0 };
	int64_t rows = 0;

	s.box = doubles(in[0], &a);
	s.score = doubles(in[1], &a);
	s.most = in[2] && tensor_elements(in[2]) ? tensor_int(in[2], 0) : 0;
	s.overlap = in[3] && tensor_elements(in[3]) ? tensor_get(in[3], 0) : 0;
	s.cut = in[4] && tensor_elements(in[4]);
	s.least = s.cut ? tensor_get(in[4], 0) : 0;
	int64_t *order = arena_array(&a, int64_t, s.n + 1), *kept = arena_array(&a, int64_t, s.n + 1);
	for (int64_t b = 0; b < s.batches; b++)
		for (int64_t c = 0; c < s.classes; c++) {
			int64_t count = keep(&s, b, c, order, kept);

			for (int64_t i = 0; i < count && out; i++) {
				tensor_set_int(out, (rows + i) * 3, b);
				tensor_set_int(out, (rows + i) * 3 + 1, c);
				tensor_set_int(out, (rows + i) * 3 + 2, kept[i]);
			}
			rows += count;
		}
	arena_free(&a);
	return rows;
}

static int shape_suppress(Node *n)
{
	Type *box = operand_type(n, 0), *score = operand_type(n, 1);
	const Tensor *in[5] = { 0 };
	Dim dim[2] = { DIM_UNKNOWN, 3 };
	bool known = true;

	if (box && score && box->ndim >= 0 && score->ndim >= 0 &&
		(box->ndim != 3 || score->ndim != 3 || dim_differ(box->dim[2], 4) ||
			dim_differ(box->dim[1], score->dim[2]) || dim_differ(box->dim[0], score->dim[0]))) {
		err_at(n->loc, "NonMaxSuppression needs boxes [N, B, 4] and scores [N, C, B], not %s and %s",
			type_text(box), type_text(score));
		return -1;
	}
	for (int i = 0; i < n->nin && i < 5; i++)
		if (n->in[i]) {
			in[i] = operand_const(n, i);
			known = known && in[i];
		}
	if (known)
		dim[0] = suppress(n, in, NULL);
	operand_set_result(n, 0, DT_INT64, 2, dim);
	return 0;
}

static int eval_suppress(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *all[5] = { 0 };

	for (int i = 0; i < n->nin && i < 5; i++)
		all[i] = in[i];
	suppress(n, all, out[0]);
	return 0;
}

static Cost cost_roi(const Node *n)
{
	Cost c = cost_bytes(n);
	int64_t e = n->out[0] && n->out[0]->type ? type_elements(n->out[0]->type) : 0;

	c.flops = e > 0 ? 32.0 * (double)e : 0;
	return c;
}

/* clang-format off */
/* Regions are chosen elsewhere: they have no gradient. */
#define ALIGN(MODE) \
	"coordinate_transformation_mode:string=\"" MODE "\" mode:string=\"avg\" output_height:int=1 " \
	"output_width:int=1 sampling_ratio:int=0 spatial_scale:float=1"
#define POOL "pooled_shape:ints! spatial_scale:float=1"
#define ALIGN_GRAD \
	"dx = RoiAlignGrad<coordinate_transformation_mode=@coordinate_transformation_mode, mode=@mode, " \
	"output_height=@output_height, output_width=@output_width, sampling_ratio=@sampling_ratio, " \
	"spatial_scale=@spatial_scale>(dy, x, rois, batch)"

const Op ops_detect[] = {
	{ .name = "RoiAlign", .since = 16, .as_first = "rois", .sig = "x:F rois:N1 batch:int64 -> y:F",
	  .attrs = ALIGN("half_pixel"), .shape = shape_roi, .kernel = "roi_align", .eval = eval_roi,
	  .factors = "* c * *, n *, n -> n c * *", .grad = ALIGN_GRAD, .cost = cost_roi,
	  .test = "x:[2,3,5,5] rois:int64(0,4)[2,4] batch:int64[2] =output_height:2 =output_width:2 | "
	          "x:[1,2,4,4] rois:int64(0,4)[1,4] batch:int64(0,1)[1] =mode:\"max\" =sampling_ratio:2" },
	{ .name = "RoiAlign", .since = 10, .until = 15, .as_first = "rois", .sig = "x:F rois:N1 batch:int64 -> y:F",
	  .attrs = ALIGN("output_half_pixel"), .shape = shape_roi, .kernel = "roi_align", .eval = eval_roi,
	  .factors = "* c * *, n *, n -> n c * *", .grad = ALIGN_GRAD, .cost = cost_roi,
	  .test = "x:[2,3,5,5] rois:int64(0,4)[2,4] batch:int64[2] =output_height:2" },
	{ .name = "RoiAlignGrad", .domain = "sbpcc", .since = 1, .as_first = "rois",
	  .sig = "dy:F x:F rois:N1 batch:int64 -> dx:F", .attrs = ALIGN("half_pixel"),
	  .shape = shape_roi_grad, .kernel = "roi_align_grad", .eval = eval_roi_grad,
	  .factors = "n c * *, * c * *, n *, n -> * c * *", .nograd = true, .cost = cost_roi,
	  .test = "dy:[2,3,1,1] x:[2,3,5,5] rois:int64(0,4)[2,4] batch:int64[2]" },
	{ .name = "MaxRoiPool", .since = 1, .as_first = "rois", .sig = "x:F rois:N1 -> y:F", .attrs = POOL,
	  .shape = shape_roi, .kernel = "max_roi_pool", .eval = eval_roi, .factors = "* c * *, n * -> n c * *",
	  .grad = "dx = MaxRoiPoolGrad<pooled_shape=@pooled_shape, spatial_scale=@spatial_scale>(dy, x, rois)",
	  .cost = cost_roi, .test = "x:[2,3,5,5] rois:int64(0,2)[2,5] =pooled_shape:[2,2]" },
	{ .name = "MaxRoiPoolGrad", .domain = "sbpcc", .since = 1, .as_first = "rois",
	  .sig = "dy:F x:F rois:N1 -> dx:F", .attrs = POOL,
	  .shape = shape_roi_grad, .kernel = "max_roi_pool_grad", .eval = eval_roi_grad,
	  .factors = "n c * *, * c * *, n * -> * c * *", .nograd = true, .cost = cost_roi,
	  .test = "dy:[2,3,2,2] x:[2,3,5,5] rois:int64(0,2)[2,5] =pooled_shape:[2,2]" },
	{ .name = "NonMaxSuppression", .since = 10,
	  .sig = "boxes:F scores:F most:int64? overlap:F? least:F? -> y:int64", .attrs = "center_point_box:int=0",
	  .shape = shape_suppress, .kernel = "non_max_suppression", .eval = eval_suppress,
	  .unsplit = "as many as are found", .nograd = true, .cost = cost_bytes,
	  .test = "boxes:(0,1)[1,4,4] scores:(0,1)[1,2,4] most:{3} overlap:(0.4,0.6)[]" },
	{ 0 },
};
/* clang-format on */
