/* The reference evaluator: runs any graph on the CPU by plain loops, from the operator table.  It is the oracle of the
 * tests and the constant folder.
 *
 * A node is evaluated by its row's expression, by its row's eval function, or by its definition, which is inlined for
 * the given operands and evaluated in turn; so shapes, guards and constants are always known.  Everything is computed
 * in double (integers in 64 bits) and rounded once to the declared type.  In wide mode float16, bfloat16 and float are
 * stored as double too: finite differences need the function without its rounding.  Each value has an arena of its own,
 * which is freed after its last use. */
#include "apply.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static Arena node_scratch;              /* of the node that is being evaluated */
static int depth;                       /* of nested definitions */
static bool all_wide; /* set during a wide evaluation, for constants that it folds */

/* Elements to and from vectors. */
#define CONVERT(T) \
	do { \
		const T *s_ = (const T *)t->data + from; \
		for (int64_t i = 0; i < n; i++) \
			v[i] = s_[i]; \
	} while (0)

static bool aligned(const Tensor *t)
{
	return (uintptr_t)t->data % (size_t)(dtype_bits(t->dtype) >= 8 ? dtype_bits(t->dtype) / 8 : 1) == 0;
}

static void load_doubles(const Tensor *t, int64_t from, int64_t n, double *v)
{
	DType type = aligned(t) ? t->dtype : DT_UNDEFINED;
	switch (type) {
	case DT_FLOAT: CONVERT(float); break;
	case DT_DOUBLE: memcpy(v, (const double *)t->data + from, (size_t)n * sizeof *v); break;
	case DT_BOOL: case DT_UINT8: CONVERT(uint8_t); break;
	case DT_INT32: CONVERT(int32_t); break;
	default:
		for (int64_t i = 0; i < n; i++)
			v[i] = tensor_get(t, from + i);
	}
}

static void load_ints(const Tensor *t, int64_t from, int64_t n, int64_t *v)
{
	DType type = aligned(t) ? t->dtype : DT_UNDEFINED;
	switch (type) {
	case DT_INT64:
	case DT_UINT64: memcpy(v, (const int64_t *)t->data + from, (size_t)n * sizeof *v); break;
	case DT_INT32: CONVERT(int32_t); break;
	case DT_BOOL: case DT_UINT8: CONVERT(uint8_t); break;
	default:
		for (int64_t i = 0; i < n; i++)
			v[i] = tensor_int(t, from + i);
	}
}

static void store_doubles(Tensor *t, int64_t from, int64_t n, const double *v)
{
	if (t->dtype == DT_FLOAT) {
		float *d = (float *)t->data + from;
		for (int64_t i = 0; i < n; i++)
			d[i] = (float)v[i];
	} else if (t->dtype == DT_DOUBLE) {
		memcpy((double *)t->data + from, v, (size_t)n * sizeof *v);
	} else {
		for (int64_t i = 0; i < n; i++)
			tensor_set(t, from + i, v[i]);
	}
}

static void store_ints(Tensor *t, int64_t from, int64_t n, const int64_t *v)
{
	if (t->dtype == DT_INT64 || t->dtype == DT_UINT64) {
		memcpy((int64_t *)t->data + from, v, (size_t)n * sizeof *v);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		tensor_set_int(t, from + i, v[i]);
}

void *eval_scratch(size_t bytes)
{
	return arena_alloc(&node_scratch, bytes ? bytes : 1);
}

double *eval_doubles(const Tensor *t)
{
	int64_t n = tensor_elements(t);
	double *v = eval_scratch((size_t)n * sizeof *v);
	load_doubles(t, 0, n, v);
	return v;
}

int64_t *eval_ints(const Tensor *t)
{
	int64_t n = tensor_elements(t);
	int64_t *v = eval_scratch((size_t)n * sizeof *v);
	load_ints(t, 0, n, v);
	return v;
}

void eval_store(Tensor *t, const double *v)
{
	store_doubles(t, 0, tensor_elements(t), v);
}

void eval_store_ints(Tensor *t, const int64_t *v)
{
	store_ints(t, 0, tensor_elements(t), v);
}

void eval_strides(const Tensor *t, int64_t *stride)
{
	int64_t s = 1;
	for (int i = t->ndim; i-- > 0;) {
		stride[i] = s;
		s *= t->dim[i];
	}
}

/* Copying. */
static void copy_bits(const Tensor *from, int64_t i, Tensor *to, int64_t j, int64_t count)
{
	int bits = dtype_bits(from->dtype), per = 8 / bits;
	unsigned mask = (1u << bits) - 1;
	for (int64_t k = 0; k < count; k++, i++, j++) {
		unsigned v = ((const uint8_t *)from->data)[i / per] >> (i % per * bits) & mask;
		uint8_t *p = (uint8_t *)to->data + j / per;
		int shift = (int)(j % per) * bits;
		*p = (uint8_t)((*p & ~(mask << shift)) | v << shift);
	}
}

void eval_copy(const Tensor *from, int64_t i, Tensor *to, int64_t j, int64_t count)
{
	size_t size = (size_t)dtype_bits(from->dtype) / 8;
	if (count <= 0)
		return;
	if (size == 0)
		copy_bits(from, i, to, j, count);
	else
		memcpy((char *)to->data + (size_t)j * size, (const char *)from->data + (size_t)i * size,
			(size_t)count * size);
}

/* to[i0, i1, ...] = from[base + i0 * stride0 + i1 * stride1 + ...], a row of the last axis at a time. */
void eval_strided(const Tensor *from, int64_t base, const int64_t *stride, Tensor *to)
{
	int64_t idx[NDIM_MAX] = { 0 }, total = tensor_elements(to), at = base;
	int last = to->ndim - 1;
	if (to->ndim == 0) {
		eval_copy(from, base, to, 0, 1);
		return;
	}
	int64_t row = to->dim[last], step = stride[last];
	for (int64_t j = 0; j < total; j += row) {
		if (step == 1)
			eval_copy(from, at, to, j, row);
		else if (dtype_bits(from->dtype) == 32)
			for (int64_t k = 0; k < row; k++)
				memcpy((char *)to->data + (j + k) * 4,
					(const char *)from->data + (at + k * step) * 4, 4);
		else
			for (int64_t k = 0; k < row; k++)
				eval_copy(from, at + k * step, to, j + k, 1);
		at = tensor_next(last, to->dim, stride, idx, at);
	}
}

/* Pointwise rows: the expression over vectors of EXPR_BLOCK elements, operands broadcast on the way in. */
typedef struct Feed {
	const Tensor *t;
	enum { SAME, ONE, WALK } how;
	int64_t at, *idx, *stride;      /* WALK: the element, and the position in the result that it belongs to */
	void *buf;
} Feed;

static void feed_init(Feed *f, const Tensor *t, const Tensor *out)
{
	int64_t n = tensor_elements(t);
	f->t = t;
	f->buf = eval_scratch(EXPR_BLOCK * 8);
	f->how = n == tensor_elements(out) ? SAME : n == 1 ? ONE : WALK;
	if (f->how != WALK)
		return;
	f->idx = eval_scratch((size_t)out->ndim * 8);
	f->stride = eval_scratch((size_t)out->ndim * 8);
	int64_t s = 1;
	for (int i = t->ndim; i-- > 0;) {
		f->stride[i + out->ndim - t->ndim] = t->dim[i] == 1 ? 0 : s;
		s *= t->dim[i];
	}
}

static int64_t feed_next(Feed *f, const Tensor *out)
{
	int64_t at = f->at;
	for (int i = out->ndim; i-- > 0;) {
		if (++f->idx[i] < out->dim[i]) {
			f->at += f->stride[i];
			return at;
		}
		f->at -= f->stride[i] * (out->dim[i] - 1);
		f->idx[i] = 0;
	}
	return at;
}

static void feed_load(Feed *f, const Tensor *out, ExprMode mode, int64_t from, int n)
{
	double *d = f->buf;
	int64_t *v = f->buf;
	if (f->how == SAME) {
		if (mode == EXPR_FLOAT)
			load_doubles(f->t, from, n, d);
		else
			load_ints(f->t, from, n, v);
	} else if (f->how == ONE) {
		for (int i = 0; i < n; i++)
			if (mode == EXPR_FLOAT)
				d[i] = tensor_get(f->t, 0);
			else
				v[i] = tensor_int(f->t, 0);
	} else {
		for (int i = 0; i < n; i++) {
			int64_t at = feed_next(f, out);
			if (mode == EXPR_FLOAT)
				d[i] = tensor_get(f->t, at);
			else
				v[i] = tensor_int(f->t, at);
		}
	}
}

static int run_expr(Node *n, Tensor **in, Tensor *out)
{
	const Expr *e = expr_of(n);
	Feed *feed = eval_scratch((size_t)n->nin * sizeof *feed);
	const void **arg = eval_scratch((size_t)n->nin * sizeof *arg);
	union { double d[EXPR_BLOCK]; int64_t i[EXPR_BLOCK]; } r;
	int64_t total = tensor_elements(out);
	ExprMode mode = EXPR_INT;
	for (int i = 0; i < n->nin; i++) {
		if (!in[i])
			continue;
		if (dtype_is_float(in[i]->dtype))
			mode = EXPR_FLOAT;
		else if (in[i]->dtype == DT_UINT64 && mode == EXPR_INT)
			mode = EXPR_UINT;
		feed_init(&feed[i], in[i], out);
		arg[i] = feed[i].buf;
	}
	for (int64_t from = 0; from < total; from += EXPR_BLOCK) {
		int k = total - from < EXPR_BLOCK ? (int)(total - from) : EXPR_BLOCK;
		for (int i = 0; i < n->nin; i++)
			if (in[i])
				feed_load(&feed[i], out, mode, from, k);
		expr_run(e, mode, k, arg, &r);
		if (mode == EXPR_FLOAT)
			store_doubles(out, from, k, r.d);
		else
			store_ints(out, from, k, r.i);
	}
	return 0;
}

/* One node. */
static DType widened(DType t, bool wide)
{
	return wide && (t == DT_FLOAT || t == DT_FLOAT16 || t == DT_BFLOAT16) ? DT_DOUBLE : t;
}

static Tensor *widen(Tensor *t, Arena *a, bool wide)
{
	if (!t || widened(t->dtype, wide) == t->dtype)
		return t;
	Tensor *w = tensor_new(a, DT_DOUBLE, t->ndim, t->dim);
	w->name = t->name;
	load_doubles(t, 0, tensor_elements(t), (double *)w->data);
	return w;
}

static Type *tensor_type(Arena *a, const Tensor *t, DType elem)
{
	return type_tensor(a, elem, t->ndim, t->dim);
}

/* The result i of a node whose shape is inferred: a zeroed tensor, or NULL after explaining. */
static Tensor *result(Node *n, int i, Arena *a, bool wide)
{
	const Type *t = n->out[i]->type;
	if (!t || t->kind != TY_TENSOR || t->ndim < 0 || type_elements(t) == -1) {
		err_at(n->loc, "%s: the shape of result %s is not known: %s", n->op, n->out[i]->name,
			t ? type_text(t) : "nothing is known");
		return NULL;
	}
	int64_t total = type_elements(t);
	if (total < 0 || total > limits.elements) {
		fail_at(EXIT_LIMIT, n->loc,
			"%s: result %s of type %s has more than %lld elements (--max-elements)", n->op,
			n->out[i]->name, type_text(t), (long long)limits.elements);
		return NULL;
	}
	return tensor_new(a, widened(t->elem, wide), t->ndim, t->dim);
}

typedef struct Saved { Type *type; Tensor *data; Dim *elem; int nelem; } Saved;

static Saved save(const Value *v)
{
	return v ? (Saved){ v->type, v->data, v->elem, v->nelem } : (Saved){ 0 };
}

static void restore(Value *v, const Saved *s)
{
	if (!v)
		return;
	v->type = s->type;
	v->data = s->data;
	v->elem = s->elem;
	v->nelem = s->nelem;
}

/* A node with operands, the declared element types (in wide mode the tensors are double) and room for results. */
typedef struct Job {
	Node *n;
	Tensor **in, **out;
	DType *tin, *tout;
	Arena **mem;                    /* the arena of each result */
	bool wide;
} Job;

static int run_core(Job *j)
{
	Node *n = j->n;
	for (int i = 0; i < n->nout; i++) {
		if (!n->out[i])
			continue;
		if (!(j->out[i] = result(n, i, j->mem[i], j->wide)))
			return -1;
		j->tout[i] = n->out[i]->type->elem;
	}
	if (n->row->eval)
		return n->row->eval(n, j->in, j->out);
	return n->nout > 0 && j->out[0] ? run_expr(n, j->in, j->out[0]) : 0;
}

static int infer_and_run(Job *j)
{
	Node *n = j->n;
	Arena tmp = { 0 }, outer = node_scratch;
	Saved *in = arena_array(&tmp, Saved, n->nin + 1), *out = arena_array(&tmp, Saved, n->nout + 1);
	node_scratch = (Arena){ 0 };
	for (int i = 0; i < n->nin; i++)
		in[i] = save(n->in[i]);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			restore(n->in[i],
				&(Saved){ tensor_type(&tmp, j->in[i], j->tin[i]), j->in[i], NULL, -1 });
	for (int i = 0; i < n->nout; i++) {
		out[i] = save(n->out[i]);
		if (n->out[i])
			restore(n->out[i], &(Saved){ NULL, NULL, NULL, -1 });
	}
	int bad = infer_node(n) != 0 ? -1 : run_core(j);
	for (int i = 0; i < n->nout; i++)
		restore(n->out[i], &out[i]);
	for (int i = n->nin; i-- > 0;)  /* backwards: an operand that occurs twice gets its first value back */
		restore(n->in[i], &in[i]);
	arena_free(&node_scratch);
	arena_free(&tmp);
	node_scratch = outer;
	return bad;
}

int eval_into(Node *n, Tensor **in, Tensor **out)
{
	Arena outer = node_scratch;
	node_scratch = (Arena){ 0 };
	int bad = n->row->eval(n, in, out);
	arena_free(&node_scratch);
	node_scratch = outer;
	return bad;
}

static int run_graph(
	Graph *g, Tensor **in, const DType *tin, Tensor **out, DType *tout, Arena **mem, bool wide);

/* A call: the node alone in a graph of its own, its operands constants, inlined and evaluated. */
static int run_call(Job *j)
{
	Node *n = j->n;
	if (depth >= limits.depth) {
		fail_at(EXIT_LIMIT, n->loc, "%s: definitions are nested more than %lld deep (--max-depth)",
			n->op, (long long)limits.depth);
		return -1;
	}
	Model *m = model_new();
	const Model *of = n->graph->model;
	if (of) {
		m->file = of->file;
		m->opset = of->opset, m->nopset = of->nopset;
		m->function = of->function, m->nfunction = of->nfunction;
		m->from_onnx = of->from_onnx;
	}
	Graph *g = m->graph = graph_new(m, NULL, name_of("call"));
	Node *c = graph_node(g, n->domain, n->op, n->loc);
	c->overload = n->overload;
	c->row = n->row;
	c->version = n->version;
	c->shard = n->shard;
	c->name = n->name;
	c->inloc = n->inloc;
	c->attr = n->attr, c->nattr = n->nattr;
	c->annot = n->annot;
	for (int i = 0; i < n->nin; i++) {
		Value *v = NULL;
		for (int k = 0; n->in[i] && k < i && !v; k++)
			if (n->in[k] == n->in[i])
				v = c->in[k];
		if (n->in[i] && !v) {
			v = graph_fresh(g, n->in[i]->name);
			v->loc = n->in[i]->loc;
			v->data = j->in[i];
			v->type = tensor_type(g->arena, j->in[i], j->tin[i]);
			v->init = true;
			arena_push(g->arena, g->init, g->ninit, v);
		}
		node_in(c, v);
	}
	for (int i = 0; i < n->nout; i++) {
		Value *v = n->out[i] ? graph_fresh(g, n->out[i]->name) : NULL;
		node_out(c, v);
		if (v) {
			v->output = true;
			v->loc = n->out[i]->loc;
			arena_push(g->arena, g->out, g->nout, v);
		}
	}
	bool composite = n->row && n->row->composite && !model_function(of, n), was_wide = all_wide;
	all_wide = j->wide;
	depth++;
	int bad = composite ? inline_composites(g) : inline_run(g);
	Tensor **out = arena_array(&m->scratch, Tensor *, n->nout + 1);
	DType *tout = arena_array(&m->scratch, DType, n->nout + 1);
	Arena **mem = arena_array(&m->scratch, Arena *, n->nout + 1);
	for (int i = 0, k = 0; i < n->nout; i++)
		if (n->out[i])
			mem[k++] = j->mem[i];
	if (!bad)
		bad = run_graph(g, NULL, NULL, out, tout, mem, j->wide);
	depth--;
	all_wide = was_wide;
	for (int i = 0, k = 0; i < n->nout && !bad; i++)
		if (n->out[i]) {
			j->out[i] = out[k];
			j->tout[i] = tout[k++];
		}
	model_free(m);
	return bad;
}

static bool is_core(const Node *n)
{
	return n->row && (n->row->expr || n->row->eval) && !n->row->expand;
}

static int run_node(Job *j)
{
	Node *n = j->n;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !j->in[i])
			die("eval: operand %d of %s has no value", i, n->op);
	if (is_core(n) && !model_function(n->graph->model, n))
		return infer_and_run(j);
	return run_call(j);
}

int eval_node(Node *n, Tensor **in, Tensor **out, Arena *a, bool wide)
{
	Arena tmp = { 0 };
	wide |= all_wide;
	Job j = { .n = n, .out = out, .wide = wide };
	j.in = arena_array(&tmp, Tensor *, n->nin + 1);
	j.tin = arena_array(&tmp, DType, n->nin + 1);
	j.tout = arena_array(&tmp, DType, n->nout + 1);
	j.mem = arena_array(&tmp, Arena *, n->nout + 1);
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i])
			continue;
		const Type *t = n->in[i]->type;
		j.in[i] = widen(in[i], &tmp, wide);
		j.tin[i] = t && t->kind == TY_TENSOR && widened(t->elem, wide) == j.in[i]->dtype
		                   ? t->elem
		                   : in[i]->dtype;
	}
	for (int i = 0; i < n->nout; i++) {
		out[i] = NULL;
		j.mem[i] = a;
	}
	int bad = run_node(&j);
	arena_free(&tmp);
	return bad;
}

/* Graphs. */
typedef struct Cell {
	Tensor *t;
	DType type;                     /* as declared; the tensor may be wider */
	Arena mem; /* the arena of t, unless t is an operand, a constant or a result of the graph */
	int uses;
	bool made;                      /* by a node of this evaluation */
} Cell;

static Tensor *copied(const Tensor *t, Arena *a)
{
	Tensor *c = tensor_new(a, t->dtype, t->ndim, t->dim);
	if (t->dtype == DT_STRING)
		memcpy(c->str, t->str, (size_t)tensor_elements(t) * sizeof *t->str);
	else if (t->bytes)
		memcpy((void *)c->data, t->data, t->bytes);
	return c;
}

/* Whether v belongs to an enclosing graph and is used by a body that was inlined from there; lend_value() has put its
 * tensor into the value. */
static bool foreign(const Graph *g, const Value *v)
{
	return v->graph != g;
}

static DType declared(const Value *v, bool wide)
{
	const Type *t = v->type;
	return t && t->kind == TY_TENSOR && t->elem && widened(t->elem, wide) == v->data->dtype
	               ? t->elem
	               : v->data->dtype;
}

static int fetch(const Graph *g, Value *v, Cell *cell, bool wide)
{
	if (foreign(g, v)) {
		if (!v->data)
			err_at(v->loc, "%s has no value where a graph inside needs it", v->name);
		return v->data ? 0 : -1;
	}
	Cell *c = &cell[v->id];
	if (!c->t && v->data) {
		if (extdata_load(v->data) != 0)
			return -1;
		c->type = declared(v, wide);
		c->t = widen(v->data, &c->mem, wide);
	}
	if (!c->t) {
		err_at(v->loc, "%s has no value: %s", v->name,
			v->init ? "a parameter is initialised only when training starts"
				: "no node makes it");
		return -1;
	}
	return 0;
}

static void done_with(const Graph *g, Value *v, Cell *cell)
{
	if (foreign(g, v))
		return;
	Cell *c = &cell[v->id];
	if (--c->uses > 0)
		return;
	arena_free(&c->mem);
	c->t = NULL;
}

/* Whether inlining has evaluated the node already: its results are constants then. */
static bool known(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && (!n->out[i]->data || n->out[i]->param))
			return false;
	return true;
}

/* While a node with graphs inside (If, Loop, Scan) runs, the values of g that they use hold their tensors. */
typedef struct Loan { Value *v; Saved was; struct Loan *next; } Loan;

static int lend_value(Graph *g, Value *v, Cell *cell, bool wide, Loan **loans, Arena *a)
{
	if (!v || v->graph != g)
		return 0;
	for (Loan *l = *loans; l; l = l->next)
		if (l->v == v)
			return 0;
	if (fetch(g, v, cell, wide) != 0)
		return -1;
	Loan *l = arena_new(a, Loan);
	*l = (Loan){ v, save(v), *loans };
	*loans = l;
	restore(v, &(Saved){ tensor_type(a, cell[v->id].t, cell[v->id].type), cell[v->id].t, NULL, -1 });
	return 0;
}

static int lend(Graph *g, const Node *n, Cell *cell, bool wide, Loan **loans, Arena *a, int level)
{
	int bad = level > limits.depth ? -1 : 0;
	for (int i = 0; i < n->nattr && !bad; i++) {
		const Graph *sub = n->attr[i].type == AT_GRAPH ? n->attr[i].u.g : NULL;
		for (int k = 0; sub && k < sub->nnode && !bad; k++) {
			for (int j = 0; j < sub->node[k]->nin && !bad; j++)
				bad = lend_value(g, sub->node[k]->in[j], cell, wide, loans, a);
			bad = bad ? bad : lend(g, sub->node[k], cell, wide, loans, a, level + 1);
		}
		for (int k = 0; sub && k < sub->nout && !bad; k++)
			bad = lend_value(g, sub->out[k], cell, wide, loans, a);
	}
	return bad;
}

static int step(Graph *g, Node *n, Cell *cell, Arena **mem, bool wide)
{
	if (depth > 0 && known(n))
		return 0;
	Arena tmp = { 0 };
	Job j = { .n = n, .wide = wide };
	Loan *loans = NULL;
	int bad = lend(g, n, cell, wide, &loans, &tmp, 0);
	j.in = arena_array(&tmp, Tensor *, n->nin + 1);
	j.out = arena_array(&tmp, Tensor *, n->nout + 1);
	j.tin = arena_array(&tmp, DType, n->nin + 1);
	j.tout = arena_array(&tmp, DType, n->nout + 1);
	j.mem = arena_array(&tmp, Arena *, n->nout + 1);
	for (int i = 0; i < n->nin && !bad; i++) {
		if (!n->in[i] || (bad = fetch(g, n->in[i], cell, wide)))
			continue;
		bool far = foreign(g, n->in[i]);
		j.in[i] = far ? widen(n->in[i]->data, &tmp, wide) : cell[n->in[i]->id].t;
		j.tin[i] = far ? declared(n->in[i], wide) : cell[n->in[i]->id].type;
	}
	for (int i = 0; i < n->nout; i++) {
		if (!n->out[i])
			continue;
		j.mem[i] = &cell[n->out[i]->id].mem;
		for (int k = 0; k < g->nout; k++)
			if (g->out[k] == n->out[i])
				j.mem[i] = mem[k];
	}
	bad = bad ? bad : run_node(&j);
	for (; loans; loans = loans->next)
		restore(loans->v, &loans->was);
	for (int i = 0; i < n->nout && !bad; i++)
		if (n->out[i]) {
			cell[n->out[i]->id].t = j.out[i];
			cell[n->out[i]->id].type = j.tout[i];
			cell[n->out[i]->id].made = true;
			if (cell[n->out[i]->id].uses == 0)
				done_with(g, n->out[i], cell);
		}
	for (int i = 0; i < n->nin && !bad; i++)
		if (n->in[i])
			done_with(g, n->in[i], cell);
	arena_free(&tmp);
	return bad;
}

static int run_graph(
	Graph *g, Tensor **in, const DType *tin, Tensor **out, DType *tout, Arena **mem, bool wide)
{
	Arena tmp = { 0 };
	Cell *cell = arena_array(&tmp, Cell, g->nvalue + 1);
	int *uses = graph_uses(g, &tmp), bad = 0;
	for (int i = 0; i < g->nvalue; i++)
		cell[i].uses = uses[i];
	for (int i = 0; in && i < g->nin; i++)
		if (in[i]) {
			Cell *c = &cell[g->in[i]->id];
			c->t = widen(in[i], &c->mem, wide);
			c->type = tin[i];
		}
	for (int i = 0; i < g->nnode && !bad; i++)
		bad = step(g, g->node[i], cell, mem, wide);
	for (int i = 0; i < g->nout && !bad; i++) {
		Value *v = g->out[i];
		if ((bad = fetch(g, v, cell, wide)))
			break;
		if (foreign(g, v)) {
			tout[i] = declared(v, wide);
			out[i] = copied(widen(v->data, &tmp, wide), mem[i]);
			continue;
		}
		tout[i] = cell[v->id].type;
		out[i] = cell[v->id].made ? cell[v->id].t : copied(cell[v->id].t, mem[i]);
		for (int k = 0; k < i; k++)
			if (g->out[k] == v)
				out[i] = copied(cell[v->id].t, mem[i]);
	}
	for (int i = 0; i < g->nvalue; i++)
		arena_free(&cell[i].mem);
	arena_free(&tmp);
	return bad;
}

int eval_graph(Graph *g, Tensor **in, Tensor **out, Arena *a, EvalOpts opts)
{
	Arena tmp = { 0 };
	DType *tin = arena_array(&tmp, DType, g->nin + 1), *tout = arena_array(&tmp, DType, g->nout + 1);
	Arena **mem = arena_array(&tmp, Arena *, g->nout + 1);
	for (int i = 0; i < g->nout; i++)
		mem[i] = a;
	for (int i = 0; i < g->nin; i++) {
		const Type *t = g->in[i]->type;
		if (!in[i])
			continue;
		tin[i] = t && t->kind == TY_TENSOR && t->elem &&
		                         widened(t->elem, opts.wide) == widened(in[i]->dtype, opts.wide)
		                 ? t->elem
		                 : in[i]->dtype;
	}
	int bad = run_graph(g, in, tin, out, tout, mem, opts.wide);
	arena_free(&tmp);
	return bad;
}
