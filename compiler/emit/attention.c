/* Calls of attention and of rotary embedding: where heads lie, masks and windows. */
#include "calls.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Sizes and strides of an operand: [B, S, H * D] or [B, H, S, D]. */
typedef struct HeadShape { int64_t batch, heads, seq, width, sbatch, shead, srow; } HeadShape;

static HeadShape head_shape(const Shape *s, int64_t heads)
{
	if (s->ndim == 3)
		return (HeadShape){ .batch = s->d[0], .heads = heads, .seq = s->d[1], .width = s->d[2] / heads,
		                    .sbatch = s->d[1] * s->d[2], .shead = s->d[2] / heads, .srow = s->d[2] };
	return (HeadShape){ .batch = s->d[0], .heads = s->d[1], .seq = s->d[2], .width = s->d[3],
	                    .sbatch = s->d[1] * s->d[2] * s->d[3], .shead = s->d[2] * s->d[3], .srow = s->d[3] };
}

static void print_heads(const Print *p, const char *field, const HeadShape *h)
{
	args_field_dims(p, field, (int64_t[]){ h->sbatch, h->shead, h->srow }, 3);
}

static int64_t heads_of(const Node *n, const char *attr)
{
	return n->in[0]->type->ndim == 3 ? attr_int(n, attr) : 0;
}

/* How far a query sees on one side; all: everything. */
static int64_t window_of(const Node *n, const char *name, int64_t all)
{
	int64_t w = attr_has(n, name) ? attr_int(n, name) : -1;
	return w < 0 ? all : w;
}

static void print_attention(const Print *p)
{
	const Node *n = p->n;
	Shape qs = args_in(p, 0), ks = args_in(p, 1), vs = args_in(p, 2);
	HeadShape q = head_shape(&qs, heads_of(n, "q_num_heads")), k = head_shape(&ks, heads_of(n, "kv_num_heads")),
		v = head_shape(&vs, heads_of(n, "kv_num_heads"));
	HeadShape y = q, m = { 0 };
	y.width = v.width;
	y.shead = qs.ndim == 3 ? v.width : q.seq * v.width;
	y.srow = qs.ndim == 3 ? q.heads * v.width : v.width;
	y.sbatch = q.heads * q.seq * v.width;
	int axis = qs.ndim - 2;
	int64_t mcol = 0, all = p->take[0]->v->type->dim[axis] + k.seq, left = window_of(n, "left_window_size", all),
		right = window_of(n, "right_window_size", all);
	/* queries of a shard that begins at `first` see so many more keys */
	const char *first = calls_origin(p, p->take[0], axis);
	const char *mask = "K_MASK_NONE";
	if (n->nin > 3 && n->in[3]) {
		Shape s = args_in(p, 3);
		int64_t st[8], *to[4] = { &m.sbatch, &m.shead, &m.srow, &mcol };
		loops_strides(&s, st);
		for (int a = 0; a < s.ndim; a++)
			*to[a + 4 - s.ndim] = s.d[a] == 1 ? 0 : st[a];
		mask = n->in[3]->type->elem == DT_BOOL ? "K_MASK_BOOL" : "K_MASK_ADD";
	}
	if (attr_int(n, "is_causal"))
		right = 0;
	double scale = attr_has(n, "scale") ? attr_float(n, "scale") : 1 / sqrt((double)q.width);
	args_need(p, k_work_attention(q.seq, q.width, v.width, !strcmp(n->row->kernel, "attention_grad")));
	const struct { const char *field; int64_t value; } size[] = {
		{ "batch", q.batch }, { "heads", q.heads }, { "kvheads", k.heads }, { "sq", q.seq }, { "sk", k.seq },
		{ "d", q.width }, { "dv", v.width },
	};
	const struct { const char *field; const HeadShape *shape; } stride[] = {
		{ "q", &q }, { "k", &k }, { "v", &v }, { "y", &y }, { "m", &m },
	};
	text_add(p->t, ", &(KAttention){");
	for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
		args_field_int(p, size[i].field, size[i].value);
	for (size_t i = 0; i < sizeof stride / sizeof stride[0]; i++)
		print_heads(p, stride[i].field, stride[i].shape);
	args_field_int(p, "mcol", mcol);
	if (strcmp(first, "0")) {
		args_field(p, "left", arena_printf(p->e->tree.arena, "%" PRId64 " - %s", left, first));
		args_field(p, "right", arena_printf(p->e->tree.arena, "%" PRId64 " + %s", right, first));
	} else {
		args_field_int(p, "left", left);
		args_field_int(p, "right", right);
	}
	args_field(p, "scale", args_real(p, scale));
	args_field(p, "softcap", args_real(p, attr_float(n, "softcap")));
	args_field(p, "mask", mask);
	text_add(p->t, " })");
}

static void call_attention(const Print *p)
{
	args_call(p, "k_attention_f32", "04", "0123");
	print_attention(p);
}

static void call_attention_grad(const Print *p)
{
	args_call(p, "k_attention_grad_f32", "012", "0123456");
	print_attention(p);
}

static void call_rotary(const Print *p)
{
	const Node *n = p->n;
	Shape xs = args_in(p, 0), cs = args_in(p, 1);
	HeadShape x = head_shape(&xs, heads_of(n, "num_heads"));
	int64_t rot = attr_int(n, "rotary_embedding_dim");
	args_call(p, "k_rotary_f32", "0", "0123");
	text_add(p->t, ", &(KRotary){");
	args_field_int(p, "batch", x.batch);
	args_field_int(p, "heads", x.heads);
	args_field_int(p, "seq", x.seq);
	args_field_int(p, "width", x.width);
	args_field_int(p, "rot", rot ? rot : x.width);
	args_field_int(p, "positions", cs.d[0]);
	print_heads(p, "x", &x);
	args_field_int(p, "interleaved", attr_int(n, "interleaved") != 0);
	text_add(p->t, " })");
}

const Call attention_calls[] = {
	{ "attention", "attention", call_attention, false },
	{ "attention_grad", "attention", call_attention_grad, false },
	{ "rotary", "attention", call_rotary, false },
	{ 0 },
};
