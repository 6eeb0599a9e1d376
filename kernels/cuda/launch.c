/* Typed launchers: each kernel of kernels.h is a plain C function that launches the device code of the same name.  The
 * untyped argument list of CUDA is built here, once per kernel, next to the prototype that checks its callers. */
#include "kernels.h"
#include "slab_cuda.h"

#include <string.h>

int k_matmul_f32(Ctx *c, float *y, const float *a, const float *b, int64_t batch, int64_t m, int64_t n, int64_t k,
	KMat as, KMat bs, KCut cut, const KEpilogue *e)
{
	(void)cut;
	void *args[] = { &y, &a, &b, &m, &n, &k, &as, &bs };
	int64_t tiles = (m + 15) / 16 * ((n + 15) / 16);
	int code = rt_launch(c, "g_matmul_f32", tiles, batch, args);
	if (!code && e)
		e->run(e->arg, y, 0, batch * m, 0, n);
	return code;
}

int k_copy(Ctx *c, void *y, const void *x, int64_t offset, KLoops l, int64_t width)
{
	int64_t n = k_count(&l);
	void *args[] = { &y, &x, &offset, &l, &width, &n };
	return rt_launch(c, "g_copy", rt_blocks(n), 1, args);
}

int k_move(Ctx *c, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from, int64_t width)
{
	int64_t n = k_count(&to);
	void *args[] = { &y, &yoffset, &x, &xoffset, &to, &from, &width, &n };
	return rt_launch(c, "g_move", rt_blocks(n), 1, args);
}

int k_keep(Ctx *c, void *y, const void *x, int64_t bytes, bool mine)
{
	int own = mine;
	void *args[] = { &y, &x, &bytes, &own };
	return rt_launch(c, "g_keep", rt_blocks(bytes), 1, args);
}

int k_zero(Ctx *c, void *y, int64_t bytes)
{
	void *args[] = { &y, &bytes };
	return rt_launch(c, "g_zero", rt_blocks(bytes), 1, args);
}

static int reduce(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, KReduce op, int64_t all)
{
	int64_t rows = k_count(&keep), n = k_count(&over);
	int what = (int)op;
	void *args[] = { &y, &x, &keep, &over, &what, &rows, &n, &all };
	return rt_launch(c, "g_reduce_f32", rt_blocks(rows), 1, args);
}

int k_reduce_f32(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, KReduce op)
{
	return reduce(c, y, x, keep, over, op, k_count(&over));
}

int k_mean_shard_f32(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, int64_t all)
{
	return reduce(c, y, x, keep, over, K_MEAN, all);
}

int k_sum_squares_f32(Ctx *c, const KSums *s)
{
	int code = 0;
	for (int64_t i = 0, t = 0; i < s->count; i++)
		for (int64_t k = 0; k < s->terms[i] && !code;) {
			KTerms some = { 0 };
			float *y = s->y[i];
			int more = k > 0;
			for (; k < s->terms[i] && some.count < K_TERMS; k++, t++, some.count++) {
				some.x[some.count] = s->x[t];
				some.n[some.count] = s->n[t];
			}
			void *args[] = { &y, &some, &more };
			code = rt_launch(c, "g_sum_squares_f32", 1, 1, args);
		}
	return code;
}

static uint32_t mix(uint64_t v)
{
	v = (v ^ (v >> 33)) * 0xFF51AFD7ED558CCDu;
	v = (v ^ (v >> 33)) * 0xC4CEB9FE1A85EC53u;
	return (uint32_t)(v ^ (v >> 33));
}

int k_random_uniform_f32(Ctx *c, float *y, uint64_t seed, uint64_t step, uint64_t key, int64_t from, KLoops l)
{
	int64_t n = k_count(&l);
	uint32_t k0 = mix(seed), k1 = mix(key);
	void *args[] = { &y, &k0, &k1, &step, &from, &l, &n };
	return rt_launch(c, "g_random_uniform_f32", rt_blocks(n), 1, args);
}

int k_softmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	int64_t rows = outer * inner;
	void *args[] = { &y, &x, &rows, &n, &inner };
	return rt_launch(c, "g_softmax_f32", rt_blocks(rows), 1, args);
}

int k_logsoftmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	int64_t rows = outer * inner;
	void *args[] = { &y, &x, &rows, &n, &inner };
	return rt_launch(c, "g_logsoftmax_f32", rt_blocks(rows), 1, args);
}

int k_softmax_grad_f32(Ctx *c, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner)
{
	int64_t rows = outer * inner;
	void *args[] = { &dx, &dy, &y, &rows, &n, &inner };
	return rt_launch(c, "g_softmax_grad_f32", rt_blocks(rows), 1, args);
}

int k_logsoftmax_grad_f32(Ctx *c, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner)
{
	int64_t rows = outer * inner;
	void *args[] = { &dx, &dy, &y, &rows, &n, &inner };
	return rt_launch(c, "g_logsoftmax_grad_f32", rt_blocks(rows), 1, args);
}

int k_xent_f32(Ctx *c, float *y, float *logp, float *lse, const float *x, const int64_t *label, const float *weight,
	int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	int64_t rows = outer * inner;
	int what = (int)kind;
	void *args[] = { &y, &logp, &lse, &x, &label, &weight, &rows, &n, &inner, &ignore, &what };
	return rt_launch(c, "g_xent_f32", 1, 1, args);
}

int k_xent_grad_shard_f32(Ctx *c, float *dx, const float *x, const int64_t *label, const float *weight,
	const float *lse, const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind,
	int64_t first, int64_t all)
{
	int64_t rows = outer * inner;
	int what = (int)kind;
	void *args[] = { &dx, &x, &label, &weight, &lse, &dy, &rows, &n, &inner, &ignore, &what, &first, &all };
	return rt_launch(c, "g_xent_grad_f32", 1, 1, args);
}

int k_xent_grad_f32(Ctx *c, float *dx, const float *x, const int64_t *label, const float *weight, const float *lse,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	return k_xent_grad_shard_f32(c, dx, x, label, weight, lse, dy, outer, n, inner, ignore, kind, 0, n);
}

int k_xent_both_f32(Ctx *c, float *y, float *lse, float *dx, const float *x, const int64_t *label, const float *weight,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	int code = k_xent_f32(c, y, NULL, lse, x, label, weight, outer, n, inner, ignore, kind);
	return code ? code : k_xent_grad_f32(c, dx, x, label, weight, lse, dy, outer, n, inner, ignore, kind);
}

int k_nll_shard_f32(Ctx *c, float *y, const float *x, const int64_t *label, const float *weight, int64_t outer,
	int64_t n, int64_t inner, int64_t ignore, KLoss kind, int64_t first, int64_t all)
{
	int64_t rows = outer * inner;
	int what = (int)kind;
	void *args[] = { &y, &x, &label, &weight, &rows, &n, &inner, &ignore, &what, &first, &all };
	return rt_launch(c, "g_nll_f32", 1, 1, args);
}

int k_nll_f32(Ctx *c, float *y, const float *x, const int64_t *label, const float *weight, int64_t outer, int64_t n,
	int64_t inner, int64_t ignore, KLoss kind)
{
	return k_nll_shard_f32(c, y, x, label, weight, outer, n, inner, ignore, kind, 0, n);
}

int k_sum_exp_f32(Ctx *c, float *y, const float *x, const float *top, int64_t outer, int64_t n, int64_t inner)
{
	int64_t rows = outer * inner;
	void *args[] = { &y, &x, &top, &rows, &n, &inner };
	return rt_launch(c, "g_sum_exp_f32", rt_blocks(rows), 1, args);
}

int k_ahead_f32(Ctx *c, float *y, const float *x, const float *own, const int64_t *label, int64_t outer, int64_t n,
	int64_t inner, int64_t first)
{
	int64_t rows = outer * inner;
	void *args[] = { &y, &x, &own, &label, &rows, &n, &inner, &first };
	return rt_launch(c, "g_ahead_f32", rt_blocks(rows), 1, args);
}

int k_layernorm_f32(Ctx *c, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	int64_t rows, int64_t n, bool centre, float eps)
{
	int what = centre;
	void *args[] = { &y, &mean, &inv, &x, &scale, &b, &rows, &n, &what, &eps };
	return rt_launch(c, "g_layernorm_f32", rt_blocks(rows), 1, args);
}

int k_layernorm_grad_f32(Ctx *c, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t rows, int64_t n)
{
	void *args[] = { &dx, &dy, &x, &scale, &mean, &inv, &rows, &n };
	return rt_launch(c, "g_layernorm_grad_f32", rt_blocks(rows), 1, args);
}

int k_layernorm_grad_w_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t rows, int64_t n)
{
	void *args[] = { &dscale, &db, &dy, &x, &mean, &inv, &rows, &n };
	return rt_launch(c, "g_layernorm_grad_w_f32", rt_blocks(n), 1, args);
}

int k_groupnorm_f32(Ctx *c, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	int64_t batch, int64_t groups, int64_t each, int64_t inner, float eps)
{
	int64_t total = batch * groups;
	void *args[] = { &y, &mean, &inv, &x, &scale, &b, &total, &groups, &each, &inner, &eps };
	return rt_launch(c, "g_groupnorm_f32", rt_blocks(total), 1, args);
}

int k_groupnorm_grad_f32(Ctx *c, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner)
{
	int64_t total = batch * groups;
	void *args[] = { &dx, &dy, &x, &scale, &mean, &inv, &total, &groups, &each, &inner };
	return rt_launch(c, "g_groupnorm_grad_f32", rt_blocks(total), 1, args);
}

int k_groupnorm_grad_w_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner)
{
	int64_t channels = groups * each;
	void *args[] = { &dscale, &db, &dy, &x, &mean, &inv, &batch, &channels, &inner, &groups, &each };
	return rt_launch(c, "g_channels_grad_w_f32", rt_blocks(channels), 1, args);
}

int k_batchnorm_f32(Ctx *c, float *y, float *newmean, float *newvar, float *mean, float *inv, const float *x,
	const float *scale, const float *b, const float *oldmean, const float *oldvar, int64_t batch, int64_t channels,
	int64_t inner, float eps, float momentum)
{
	void *args[] = { &y, &newmean, &newvar, &mean, &inv, &x, &scale, &b, &oldmean, &oldvar, &batch, &channels,
		&inner, &eps, &momentum };
	return rt_launch(c, "g_batchnorm_f32", rt_blocks(channels), 1, args);
}

int k_batchnorm_grad_f32(Ctx *c, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t batch, int64_t channels, int64_t inner)
{
	void *args[] = { &dx, &dy, &x, &scale, &mean, &inv, &batch, &channels, &inner };
	return rt_launch(c, "g_batchnorm_grad_f32", rt_blocks(channels), 1, args);
}

int k_batchnorm_grad_w_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t channels, int64_t inner)
{
	int64_t step = 0, each = 1;
	void *args[] = { &dscale, &db, &dy, &x, &mean, &inv, &batch, &channels, &inner, &step, &each };
	return rt_launch(c, "g_channels_grad_w_f32", rt_blocks(channels), 1, args);
}

int k_attention_f32(Ctx *c, float *y, float *lse, const float *q, const float *k, const float *v, const void *mask,
	const KAttention *a)
{
	KAttention all = *a;
	void *args[] = { &y, &lse, &q, &k, &v, &mask, &all };
	return rt_launch(c, "g_attention_f32", rt_blocks(a->batch * a->heads * a->sq), 1, args);
}

int k_attention_grad_f32(Ctx *c, float *dq, float *dk, float *dv, const float *q, const float *k, const float *v,
	const void *mask, const float *y, const float *lse, const float *dy, const KAttention *a)
{
	KAttention all = *a;
	void *args[] = { &dq, &q, &k, &v, &mask, &y, &lse, &dy, &all };
	void *kvargs[] = { &dk, &dv, &q, &k, &v, &mask, &y, &lse, &dy, &all };
	int code = rt_launch(c, "g_attention_grad_q_f32", rt_blocks(a->batch * a->heads * a->sq), 1, args);
	return code ? code
		: rt_launch(c, "g_attention_grad_kv_f32", rt_blocks(a->batch * a->kvheads * a->sk), 1, kvargs);
}

int k_rotary_f32(Ctx *c, float *y, const float *x, const float *cosine, const float *sine, const int64_t *position,
	const KRotary *r)
{
	KRotary all = *r;
	void *args[] = { &y, &x, &cosine, &sine, &position, &all };
	return rt_launch(c, "g_rotary_f32", rt_blocks(r->batch * r->heads * r->seq), 1, args);
}

int k_gather_grad_shard_f32(Ctx *c, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n,
	int64_t inner, int64_t many, int64_t first, int64_t all)
{
	int64_t total = outer * inner;
	void *args[] = { &y, &dy, &index, &n, &inner, &many, &first, &all, &total };
	return rt_launch(c, "g_gather_grad_f32", rt_blocks(total), 1, args);
}

int k_gather_grad_f32(Ctx *c, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n,
	int64_t inner, int64_t many)
{
	return k_gather_grad_shard_f32(c, y, dy, index, outer, n, inner, many, 0, n);
}

int k_conv_f32(Ctx *c, float *y, const float *x, const float *w, const float *b, int64_t batch, int64_t groups,
	int64_t cin, int64_t cout, KWindow v)
{
	int64_t total = batch * groups * cout * v.out[0] * v.out[1];
	void *args[] = { &y, &x, &w, &b, &groups, &cin, &cout, &v, &total };
	return rt_launch(c, "g_conv_f32", rt_blocks(total), 1, args);
}

int k_conv_grad_x_f32(Ctx *c, float *x, const float *g, const float *w, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, KWindow v)
{
	int64_t total = batch * groups * cin * v.in[0] * v.in[1];
	void *args[] = { &x, &g, &w, &groups, &cin, &cout, &v, &total };
	return rt_launch(c, "g_conv_grad_x_f32", rt_blocks(total), 1, args);
}

int k_conv_grad_w_f32(Ctx *c, float *w, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, KWindow v)
{
	int64_t total = groups * cout * cin * v.k[0] * v.k[1];
	void *args[] = { &w, &x, &g, &batch, &groups, &cin, &cout, &v, &total };
	return rt_launch(c, "g_conv_grad_w_f32", rt_blocks(total), 1, args);
}

int k_maxpool_f32(Ctx *c, float *y, const float *x, int64_t planes, KWindow w)
{
	int64_t total = planes * w.out[0] * w.out[1];
	void *args[] = { &y, &x, &w, &total };
	return rt_launch(c, "g_maxpool_f32", rt_blocks(total), 1, args);
}

int k_maxpool_grad_f32(Ctx *c, float *dx, const float *g, const float *x, int64_t planes, KWindow w)
{
	KStretch all = { { 0 }, { w.in[0], w.in[1] } };
	return k_maxpool_grad_shard_f32(c, dx, g, x, planes, w, all);
}

int k_maxpool_grad_shard_f32(Ctx *c, float *dx, const float *g, const float *x, int64_t planes, KWindow w, KStretch s)
{
	void *args[] = { &dx, &g, &x, &w, &s, &planes };
	return rt_launch(c, "g_maxpool_grad_f32", rt_blocks(planes), 1, args);
}

/* ---- window.cu ---- */

static int64_t product(int n, const int64_t *d)
{
	int64_t p = 1;
	for (int a = 0; a < n; a++)
		p *= d[a];
	return p;
}

static KStretch all_of(const KWindows *w)
{
	KStretch s = { { 0 }, { 0 } };
	for (int a = 0; a < w->n; a++)
		s.size[a] = w->in[a];
	return s;
}

int k_conv_nd(Ctx *c, void *y, const void *x, const void *f, const void *b, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, const KWindows *w, KType type)
{
	KWindows all = *w;
	int64_t total = batch * groups * cout * product(w->n, w->out);
	void *args[] = { &y, &x, &f, &b, &groups, &cin, &cout, &all, &total, &type };
	return rt_launch(c, "g_conv_nd", rt_blocks(total), 1, args);
}

int k_conv_nd_grad_x(Ctx *c, void *x, const void *g, const void *f, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, const KWindows *w, KType type)
{
	KWindows all = *w;
	int64_t total = batch * groups * cin;
	void *args[] = { &x, &g, &f, &groups, &cin, &cout, &all, &total, &type };
	return rt_launch(c, "g_conv_nd_grad_x", rt_blocks(total), 1, args);
}

int k_conv_nd_grad_w(Ctx *c, void *f, const void *x, const void *g, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, const KWindows *w, KType type)
{
	KWindows all = *w;
	int64_t total = groups * cout * cin * product(w->n, w->k);
	void *args[] = { &f, &x, &g, &batch, &groups, &cin, &cout, &all, &total, &type };
	return rt_launch(c, "g_conv_nd_grad_w", rt_blocks(total), 1, args);
}

int k_maxpool_nd(Ctx *c, void *y, int64_t *index, const void *x, int64_t planes, const KWindows *w,
	bool columns, KType type)
{
	KWindows all = *w;
	int order = columns;
	int64_t total = planes * product(w->n, w->out);
	void *args[] = { &y, &index, &x, &all, &order, &total, &type };
	return rt_launch(c, "g_maxpool_nd", rt_blocks(total), 1, args);
}

int k_maxpool_nd_grad(Ctx *c, void *dx, const void *g, const void *x, int64_t planes, const KWindows *w, KType type)
{
	return k_maxpool_nd_grad_shard(c, dx, g, x, planes, w, all_of(w), type);
}

int k_maxpool_nd_grad_shard(Ctx *c, void *dx, const void *g, const void *x, int64_t planes, const KWindows *w,
	KStretch s, KType type)
{
	KWindows all = *w;
	void *args[] = { &dx, &g, &x, &all, &s, &planes, &type };
	return rt_launch(c, "g_maxpool_nd_grad", rt_blocks(planes), 1, args);
}

int k_sumpool(Ctx *c, void *y, const void *x, int64_t planes, const KWindows *w, KPool kind, KType type)
{
	KWindows all = *w;
	int64_t total = planes * product(w->n, w->out);
	int what = (int)kind;
	void *args[] = { &y, &x, &all, &what, &total, &type };
	return rt_launch(c, "g_sumpool", rt_blocks(total), 1, args);
}

int k_sumpool_grad(Ctx *c, void *dx, const void *g, int64_t planes, const KWindows *w, KPool kind, KType type)
{
	return k_sumpool_grad_shard(c, dx, g, planes, w, all_of(w), kind, type);
}

int k_sumpool_grad_shard(Ctx *c, void *dx, const void *g, int64_t planes, const KWindows *w, KStretch s,
	KPool kind, KType type)
{
	KWindows all = *w;
	int what = (int)kind;
	void *args[] = { &dx, &g, &all, &s, &what, &planes, &type };
	return rt_launch(c, "g_sumpool_grad", rt_blocks(planes), 1, args);
}

/* ---- any.cu ---- */

int k_fill(Ctx *c, void *y, int64_t offset, KLoops l, const void *value, int64_t width)
{
	int64_t n = k_count(&l);
	uint64_t bits = 0;
	memcpy(&bits, value, (size_t)width);
	void *args[] = { &y, &offset, &l, &bits, &width, &n };
	return rt_launch(c, "g_fill", rt_blocks(n), 1, args);
}

int k_pad(Ctx *c, void *y, const void *x, const void *value, const KPad *p, int64_t width)
{
	KPad all = *p;
	int64_t n = product(p->n, p->out);
	void *args[] = { &y, &x, &value, &all, &width, &n };
	return rt_launch(c, "g_pad", rt_blocks(n), 1, args);
}

int k_trilu(Ctx *c, void *y, const void *x, int64_t batch, int64_t rows, int64_t cols, int64_t k, bool upper,
	int64_t width)
{
	int64_t n = batch * rows * cols;
	int what = upper;
	void *args[] = { &y, &x, &rows, &cols, &k, &what, &width, &n };
	return rt_launch(c, "g_trilu", rt_blocks(n), 1, args);
}

int k_reverse_sequence(Ctx *c, void *y, const void *x, const int64_t *len, int64_t batch, int64_t time,
	int64_t bstride, int64_t tstride, int64_t width)
{
	int64_t n = batch * time;
	void *args[] = { &y, &x, &len, &time, &bstride, &tstride, &width, &n };
	return rt_launch(c, "g_reverse_sequence", rt_blocks(n), 1, args);
}

int k_gather(Ctx *c, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t many, int64_t width)
{
	return k_gather_shard(c, y, x, index, outer, n, inner, many, width, 0, n);
}

int k_gather_shard(Ctx *c, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t many, int64_t width, int64_t first, int64_t all)
{
	int64_t total = outer * many * inner;
	void *args[] = { &y, &x, &index, &n, &inner, &many, &width, &first, &all, &total };
	return rt_launch(c, "g_gather", rt_blocks(total), 1, args);
}

int k_gather_elements(Ctx *c, void *y, const void *x, const int64_t *index, KLoops l, int64_t n, int64_t stride,
	int64_t width)
{
	int64_t total = k_count(&l);
	void *args[] = { &y, &x, &index, &l, &n, &stride, &width, &total };
	return rt_launch(c, "g_gather_elements", rt_blocks(total), 1, args);
}

int k_gather_nd(Ctx *c, void *y, const void *x, const int64_t *index, const KNd *d, int64_t width)
{
	KNd all = *d;
	int64_t n = d->batch * d->many * d->run;
	void *args[] = { &y, &x, &index, &all, &width, &n };
	return rt_launch(c, "g_gather_nd", rt_blocks(n), 1, args);
}

int k_one_hot_shard(Ctx *c, void *y, const int64_t *index, const void *values, int64_t outer, int64_t depth,
	int64_t inner, int64_t width, int64_t first, int64_t all)
{
	int64_t n = outer * depth * inner;
	void *args[] = { &y, &index, &values, &depth, &inner, &width, &first, &all, &n };
	return rt_launch(c, "g_one_hot", rt_blocks(n), 1, args);
}

int k_one_hot(Ctx *c, void *y, const int64_t *index, const void *values, int64_t outer, int64_t depth, int64_t inner,
	int64_t width)
{
	return k_one_hot_shard(c, y, index, values, outer, depth, inner, width, 0, depth);
}

int k_compress(Ctx *c, void *y, const void *x, const uint8_t *keep, int64_t nkeep, int64_t outer, int64_t n,
	int64_t inner, int64_t width)
{
	void *args[] = { &y, &x, &keep, &nkeep, &outer, &n, &inner, &width };
	return rt_launch(c, "g_compress", 1, 1, args);
}

/* ---- typed.cu ---- */

int k_reduce(Ctx *c, void *y, const void *x, KLoops keep, KLoops over, KReduce op, KType type)
{
	int64_t rows = k_count(&keep), n = k_count(&over);
	int what = (int)op;
	void *args[] = { &y, &x, &keep, &over, &what, &rows, &n, &type };
	return rt_launch(c, "g_reduce", rt_blocks(rows), 1, args);
}

int k_matmul(Ctx *c, void *y, const void *a, const void *b, int64_t batch, int64_t m, int64_t n, int64_t k, KMat as,
	KMat bs, KType type)
{
	int64_t total = batch * m * n;
	void *args[] = { &y, &a, &b, &m, &n, &k, &as, &bs, &total, &type };
	return rt_launch(c, "g_matmul", rt_blocks(total), 1, args);
}

int k_scatter_elements(Ctx *c, void *y, const void *x, const int64_t *index, const void *updates, int64_t total,
	KLoops l, int64_t n, int64_t stride, KScatter how, KType type)
{
	int64_t many = k_count(&l);
	int what = (int)how;
	void *args[] = { &y, &x, &index, &updates, &total, &l, &n, &stride, &what, &many, &type };
	return rt_launch(c, "g_scatter_elements", 1, 1, args);
}

int k_scatter_nd(Ctx *c, void *y, const void *x, const int64_t *index, const void *updates, int64_t total,
	const KNd *d, KScatter how, KType type)
{
	KNd all = *d;
	int what = (int)how;
	void *args[] = { &y, &x, &index, &updates, &total, &all, &what, &type };
	return rt_launch(c, "g_scatter_nd", 1, 1, args);
}

int k_gather_grad(Ctx *c, void *y, const void *dy, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t many, KType type)
{
	int64_t total = outer * inner;
	void *args[] = { &y, &dy, &index, &n, &inner, &many, &total, &type };
	return rt_launch(c, "g_gather_grad", rt_blocks(total), 1, args);
}

int k_pad_grad(Ctx *c, void *dx, const void *dy, const KPad *p, KType type)
{
	KPad all = *p;
	int64_t nin = product(p->n, p->in), nout = product(p->n, p->out);
	void *args[] = { &dx, &dy, &all, &nin, &nout, &type };
	return rt_launch(c, "g_pad_grad", 1, 1, args);
}

int k_cumsum(Ctx *c, void *y, const void *x, int64_t outer, int64_t n, int64_t inner, bool exclusive,
	bool reverse, KType type)
{
	int64_t rows = outer * inner;
	int without = exclusive, back = reverse;
	void *args[] = { &y, &x, &rows, &n, &inner, &without, &back, &type };
	return rt_launch(c, "g_cumsum", rt_blocks(rows), 1, args);
}

int k_topk(Ctx *c, void *y, int64_t *index, const void *x, int64_t outer, int64_t n, int64_t inner, int64_t k,
	bool largest, KType type)
{
	int64_t rows = outer * inner;
	int what = largest;
	void *args[] = { &y, &index, &x, &rows, &n, &inner, &k, &what, &type };
	return rt_launch(c, "g_topk", rt_blocks(rows), 1, args);
}

int k_argmax(Ctx *c, int64_t *y, const void *x, int64_t outer, int64_t n, int64_t inner, bool largest,
	bool last, KType type)
{
	int64_t rows = outer * inner;
	int what = largest, which = last;
	void *args[] = { &y, &x, &rows, &n, &inner, &what, &which, &type };
	return rt_launch(c, "g_argmax", rt_blocks(rows), 1, args);
}

/* ---- det.cu, roi.cu ---- */

int k_det(Ctx *c, void *y, const void *x, int64_t count, int64_t m, KType type)
{
	void *args[] = { &y, &x, &m, &type };
	return rt_launch(c, "g_det", count, 1, args);
}

int k_cofactor(Ctx *c, void *y, const void *x, int64_t count, int64_t m, KType type)
{
	void *args[] = { &y, &x, &m, &type };
	return rt_launch(c, "g_cofactor", count, 1, args);
}

int k_roi(Ctx *c, void *y, const void *x, const void *region, const int64_t *image, const KRoi *r, KType type)
{
	KRoi all = *r;
	int64_t total = r->regions * r->channels * r->ph * r->pw;
	void *args[] = { &y, &x, &region, &image, &all, &total, &type };
	return rt_launch(c, "g_roi", rt_blocks(total), 1, args);
}

int k_roi_grad(Ctx *c, void *dx, const void *dy, const void *x, const void *region, const int64_t *image,
	const KRoi *r, KType type)
{
	KRoi all = *r;
	int64_t total = r->regions * r->channels * r->ph * r->pw;
	void *args[] = { &dx, &dy, &x, &region, &image, &all, &total, &type };
	return rt_launch(c, "g_roi_grad", 1, 1, args);
}

/* ---- recurrent.cu ---- */

int k_lstm(Ctx *c, void *y, void *yh, void *before, void *gates, void *yc, void *cells, const void *xw, const void *r,
	const void *h0, const int32_t *lens, const void *c0, const KCells *k, KType type)
{
	KCells all = *k;
	void *args[] = { &y, &yh, &before, &gates, &yc, &cells, &xw, &r, &h0, &lens, &c0, &all, &type };
	return rt_launch(c, "g_lstm", k->batch, 1, args);
}

int k_lstm_grad(Ctx *c, void *dxw, void *dh0, void *dc0, const void *dy, const void *dyh,
	const void *gates, const void *r, const void *dyc, const void *cells, const void *c0, const int32_t *lens,
	const KCells *k, KType type)
{
	KCells all = *k;
	void *args[] = { &dxw, &dh0, &dc0, &dy, &dyh, &gates, &r, &dyc, &cells, &c0, &lens, &all, &type };
	return rt_launch(c, "g_lstm_grad", k->batch, 1, args);
}

int k_gru(Ctx *c, void *y, void *yh, void *before, void *gates, void *inner, const void *xw, const void *r,
	const void *h0, const int32_t *lens, const void *rb, const KCells *k, KType type)
{
	KCells all = *k;
	void *args[] = { &y, &yh, &before, &gates, &inner, &xw, &r, &h0, &lens, &rb, &all, &type };
	return rt_launch(c, "g_gru", k->batch, 1, args);
}

int k_gru_grad(Ctx *c, void *dxw, void *dh0, void *side, const void *dy, const void *dyh, const void *gates,
	const void *r, const void *before, const void *inner, const int32_t *lens, const KCells *k, KType type)
{
	KCells all = *k;
	void *args[] = { &dxw, &dh0, &side, &dy, &dyh, &gates, &r, &before, &inner, &lens, &all, &type };
	return rt_launch(c, "g_gru_grad", k->batch, 1, args);
}

int k_rnn(Ctx *c, void *y, void *yh, void *before, const void *xw, const void *r, const void *h0, const int32_t *lens,
	const KCells *k, KType type)
{
	KCells all = *k;
	void *args[] = { &y, &yh, &before, &xw, &r, &h0, &lens, &all, &type };
	return rt_launch(c, "g_rnn", k->batch, 1, args);
}

int k_rnn_grad(Ctx *c, void *dxw, void *dh0, const void *dy, const void *dyh, const void *y, const void *r,
	const int32_t *lens, const KCells *k, KType type)
{
	KCells all = *k;
	void *args[] = { &dxw, &dh0, &dy, &dyh, &y, &r, &lens, &all, &type };
	return rt_launch(c, "g_rnn_grad", k->batch, 1, args);
}

/* ---- round.cu ---- */

int k_round_bf16(Ctx *c, float *y, int64_t n)
{
	void *args[] = { &y, &n };
	return rt_launch(c, "g_round_bf16", rt_blocks(n), 1, args);
}

int k_round_f16(Ctx *c, float *y, int64_t n)
{
	void *args[] = { &y, &n };
	return rt_launch(c, "g_round_f16", rt_blocks(n), 1, args);
}
