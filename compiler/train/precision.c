/* Mixed precision: which nodes compute in bfloat16 or float16, as Casts in the forward graph.
 *
 * The pass runs before train, so the backward pass follows through the gradient of Cast, and eval and infer are copies
 * of the same graph.  The operator table says in which type an operator computes (.precision): the low type if it
 * consists of products mostly, float if its result needs the range or the digits, else the widest type of its operands.
 * There parameters and constants do not count: they take the type of the other operands.  @precision(type) on a node
 * has precedence, then the type that @train(precision: bf16(Softmax: bf16)) gives for its operator.  A value is cast to
 * a type once, right before its first reader.
 *
 * Parameters stay float: the cast copy of w is w.low, and w.grad is float again.  Parameters and inputs that a model
 * declares in half precision become float as well.  Results of the graph keep their declared types. */
#include "train/train.h"

#include <ctype.h>
#include <string.h>

typedef struct Precise {
	Graph *g;
	DType low;                      /* of PRECISION_LOW operators; DT_UNDEFINED: the widest of their operands */
	const Arg *call;                /* bf16(Softmax: bf16); NULL: none */
	bool active;                    /* some node may get casts */
	Map cast;                       /* "id type" -> the value in that type */
} Precise;

static bool half(DType t)
{
	return t == DT_FLOAT16 || t == DT_BFLOAT16;
}

static bool real(const Value *v)
{
	return v && v->type && v->type->kind == TY_TENSOR && (half(v->type->elem) || v->type->elem == DT_FLOAT);
}

static DType type_of(const char *word)
{
	if (!word)
		return DT_UNDEFINED;
	if (!strcmp(word, "bf16"))
		return DT_BFLOAT16;
	return !strcmp(word, "fp16") ? DT_FLOAT16 : DT_FLOAT;
}

static const Arg *call_of(const Model *m)
{
	const Annot *a = annot_find(m->annot, "train");
	return a ? arg_find(a->arg, a->narg, "precision") : NULL;
}

/* The type that @train gives for an operator; NULL: none. */
static const Arg *given(const Arg *call, const char *op)
{
	for (int i = 0; call && i < call->narg; i++)
		if (call->arg[i].key && !strcmp(call->arg[i].key, op))
			return &call->arg[i];
	return NULL;
}

/* ---- operators that are about to be replaced by their definitions ---- */

static void mark_graph(Graph *g, const Arg *call)
{
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		const Arg *arg = given(call, n->op);
		if (!arg || annot_find(n->annot, "precision"))
			continue;
		Annot *a = arena_new(g->arena, Annot);
		Arg type = { .kind = ARG_WORD, .s = arg->s, .loc = arg->loc };
		a->name = name_of("precision");
		a->loc = n->loc;
		arena_push(g->arena, a->arg, a->narg, type);
		if (annot_check(a, ON_NODE))
			die("@precision(%s) is refused", arg->s);
		annot_add(&n->annot, a);
	}
}

/* The type that @train gives for an operator also holds for the nodes of its definition. */
void precision_mark(Model *m)
{
	const Arg *call = call_of(m);
	if (!call || !call->narg || options_done(m, "inline"))
		return;
	mark_graph(m->graph, call);
	for (int i = 0; i < m->nfunction; i++)
		mark_graph(m->function[i]->body, call);
}

/* ---- casts ---- */

static Tensor *converted(Arena *a, const Tensor *d, DType to)
{
	Tensor *t = tensor_new(a, to, d->ndim, d->dim);
	for (int64_t i = 0; i < tensor_elements(d); i++)
		tensor_set(t, i, tensor_get(d, i));
	return t;
}

/* A cast takes the placement, stage and segment of its first reader. */
static void stand_beside(Node *m, const Node *n)
{
	for (const Annot *a = n ? n->annot : NULL; a; a = a->next)
		if (!strcmp(a->name, "on") || !strcmp(a->name, "stage") || !strcmp(a->name, "recompute")) {
			Annot *copy = arena_new(m->graph->arena, Annot);
			*copy = *a;
			copy->next = NULL;
			annot_add(&m->annot, copy);
		}
}

static Value *cast(Precise *p, Value *v, DType to, const Node *reader)
{
	Graph *g = p->g;
	Name key = name_fmt("%d %d", v->id, (int)to), name = name_fmt(half(to) ? "%s.low" : "%s.float", v->name);
	Value *r = map_get(&p->cast, key);
	if (r || v->type->elem == to)
		return r ? r : v;
	if (v->data && !v->param && v->data->bytes <= (size_t)limits.const_bytes) {
		if (extdata_load(v->data))
			return NULL;
		r = graph_const(g, converted(g->arena, v->data, to), name);
	} else {
		char attr[32];
		Value *out = graph_fresh(g, name);
		snprintf(attr, sizeof attr, "to=%d", (int)to);
		identity_from(out, v, dtype_name(to));
		r = build(g, reader ? reader->loc : v->loc, "Cast", attr, 1, &out, 1, v);
		if (r)
			stand_beside(r->def, reader);
	}
	if (r)
		identity_from(r, v, dtype_name(to));
	map_put(&p->cast, key, r);
	return r;
}

/* ---- nodes ---- */

/* The type variable of an operand ("T", "F1"); NULL: its type is fixed. */
static Name variable(const Node *n, int i)
{
	const Schema *s = n->row->schema;
	const Operand *o = s->nin ? &s->in[i < s->nin ? i : s->nin - 1] : NULL;
	return o && o->type && isupper((unsigned char)o->type[0]) ? o->type : NULL;
}

static bool follows(const Value *v)
{
	return v->param || v->data;
}

/* The widest type of the computed operands with this type variable, else of all of them.  float16 and bfloat16 together
 * give float. */
static DType widest(const Node *n, Name var)
{
	for (int all = 0; all < 2; all++) {
		DType t = DT_UNDEFINED;
		for (int i = 0; i < n->nin; i++)
			if (real(n->in[i]) && variable(n, i) == var && (all || !follows(n->in[i])))
				t = !t || t == n->in[i]->type->elem ? n->in[i]->type->elem : DT_FLOAT;
		if (t)
			return t;
	}
	return DT_FLOAT;
}

/* The type in which a node computes; DT_UNDEFINED: the widest of its operands. */
static DType rule(const Precise *p, const Node *n)
{
	const Annot *a = annot_find(n->annot, "precision");
	const Arg *arg = a && a->narg ? &a->arg[0] : given(p->call, n->op);
	DType t = arg ? type_of(arg->s) : DT_UNDEFINED;
	if (t)
		return t;
	switch (n->row->precision) {
	case PRECISION_LOW: return p->low;
	case PRECISION_FLOAT: return DT_FLOAT;
	default: return DT_UNDEFINED;
	}
}

/* Infers the element types of results again; known shapes stay. */
static int infer_again(Node *n)
{
	Type *was[64] = { 0 };
	if (n->nout > 64)
		return 0;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			was[i] = n->out[i]->type;
			n->out[i]->type = NULL;
			n->out[i]->declared = false;
		}
	if (infer_node(n))
		return -1;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && was[i] && was[i]->kind == TY_TENSOR) {
			DType elem = n->out[i]->type ? n->out[i]->type->elem : was[i]->elem;
			n->out[i]->type = type_tensor(n->graph->arena, elem, was[i]->ndim, was[i]->dim);
		}
	return 0;
}

/* The softmax inside of attention is computed in float. */
static void soften(Node *n)
{
	if (strcmp(n->op, "Attention") || attr_has(n, "softmax_precision"))
		return;
	node_attr_add(n, name_of("softmax_precision"), AT_INT)->u.i = DT_FLOAT;
}

static int place_casts(Precise *p, Node *n)
{
	bool changed = false;
	if (!n->row || !n->row->schema || !strcmp(n->op, "Cast") || !strcmp(n->op, "CastLike"))
		return 0;
	DType fixed = rule(p, n);
	for (int i = 0; i < n->nin; i++) {
		if (!real(n->in[i]))
			continue;
		Name var = variable(n, i);
		DType to = DT_FLOAT;
		if (var)
			to = fixed ? fixed : widest(n, var);
		Value *v = cast(p, n->in[i], to, n);
		if (!v)
			return -1;
		changed |= v != n->in[i];
		n->in[i] = v;
		if (half(to) && !i)
			soften(n);
	}
	for (int i = 0; i < n->nin && !changed; i++)
		changed = real(n->in[i]) && half(n->in[i]->type->elem);
	return changed ? infer_again(n) : 0;
}

/* ---- inputs, parameters, outputs ---- */

/* Replaces a parameter or input of half precision by a float one, which readers read through a cast. */
static int widen(Precise *p, Value *v)
{
	Graph *g = p->g;
	DType to = v->type->elem;
	v->type = type_tensor(g->arena, DT_FLOAT, v->type->ndim, v->type->dim);
	if (v->data && extdata_load(v->data))
		return -1;
	if (v->data)
		v->data = converted(g->arena, v->data, DT_FLOAT);
	Value *small = cast(p, v, to, NULL);
	if (!small)
		return -1;
	graph_replace(g, v, small);
	small->def->in[0] = v;
	return 0;
}

static bool any_param(const Graph *g)
{
	for (int i = 0; i < g->ninit; i++)
		if (g->init[i]->param)
			return true;
	return false;
}

static int widen_all(Precise *p)
{
	Graph *g = p->g;
	bool named = any_param(g);
	for (int i = 0; i < g->nin; i++)
		if (real(g->in[i]) && half(g->in[i]->type->elem) && widen(p, g->in[i]))
			return -1;
	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];
		if (real(v) && half(v->type->elem) && (v->param || (!named && v->type->ndim > 0))) {
			v->param = true;
			if (widen(p, v))
				return -1;
		}
	}
	return 0;
}

/* Outputs keep their declared types and names. */
static int restore_outputs(Precise *p, const DType *was)
{
	Graph *g = p->g;
	for (int i = 0; i < g->nout; i++) {
		Value *v = g->out[i];
		Name name = v->name;
		if (!real(v) || !was[i] || v->type->elem == was[i])
			continue;
		Name other = name_fmt(half(v->type->elem) ? "%s.low" : "%s.float", name);
		while (graph_find(g, other))
			other = name_fmt("%s.result", other);
		graph_rename(g, v, other);
		Value *out = cast(p, v, was[i], v->def);
		if (!out)
			return -1;
		graph_rename(g, out, name);
		v->output = false;
		out->output = out->declared = true;
		g->out[i] = out;
	}
	return 0;
}

static bool any_half(const Graph *g)
{
	for (int i = 0; i < g->nvalue; i++)
		if (real(g->value[i]) && half(g->value[i]->type->elem))
			return true;
	return false;
}

static bool any_marked(const Graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if (annot_find(g->node[i]->annot, "precision"))
			return true;
	return false;
}

int precision_run(Graph *g)
{
	Precise p = { .g = g, .call = call_of(g->model) };
	DType low = p.call ? type_of(p.call->s) : DT_UNDEFINED;
	p.low = half(low) ? low : DT_UNDEFINED;
	p.active = p.low || (p.call && p.call->narg) || any_marked(g);
	if (!p.active && !any_half(g))
		return 0;
	map_init(&p.cast, g->scratch);
	Node **old = g->node;
	int n = g->nnode;
	DType *was = arena_array(g->scratch, DType, g->nout + 1);
	for (int i = 0; i < g->nout; i++)
		was[i] = real(g->out[i]) ? g->out[i]->type->elem : DT_UNDEFINED;
	g->node = NULL;
	g->nnode = 0;
	for (int i = 0; i < n; i++)             /* so that graph_replace sees them */
		arena_push(g->arena, g->node, g->nnode, old[i]);
	if (widen_all(&p) || graph_sort(g))
		return -1;
	old = g->node;
	n = g->nnode;
	g->node = NULL;
	g->nnode = 0;
	for (int i = 0; i < n; i++) {
		if (p.active && place_casts(&p, old[i]))
			return -1;
		arena_push(g->arena, g->node, g->nnode, old[i]);
	}
	if (restore_outputs(&p, was))
		return -1;
	graph_sweep(g);
	return 0;
}
