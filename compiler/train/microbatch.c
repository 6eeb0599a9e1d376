/* Micro-batches: a step that takes its batch in M micro-batches and computes the same as with the whole batch at once.
 *
 * The micro-batches are treated as one more mesh axis, of size M.  The graph is that of one micro-batch: its inputs
 * hold batch / M samples.  Along that axis a value is S(axis), a slice of its value in the whole batch; P, a term of a
 * sum; or B, the same in every micro-batch.  Inputs with a batch axis are S(0), parameters are B, and the rest follows
 * from the factor rules that also give SBP signatures.  A node that no rule covers (statistics of the batch) needs the
 * whole batch at once and is refused.
 *
 * Nodes that read S, and sums of P, form the body, which runs M times.  Any other reader of a P needs the complete sum:
 * it runs once, after the body (@update), and reads an accumulator.  The accumulator x.sum is set to zero at the start
 * of a step (@begin), and each run of the body adds x.micro to it.  Nodes on B that the body needs run before it
 * (@begin) if they depend on parameters and constants alone (casts of weights), else in it; the others run after it.
 *
 * A weight that the model reads several times has an accumulator per use (w.grad.use0, in the order of the graph),
 * because each may be on another stage of a pipeline.  They are added after the body: nodes that grad_build_uses
 * marked @update.
 *
 * A loss is a sum divided by a count.  If the count is a constant, the loss is P, like the sum.  If it is not (ignored
 * labels), the loss f(s1, s2, ...) is known only after the body.  Then the backward pass of each sum s is built with
 * seed 1, and after accumulation its gradients are multiplied by df/ds. */
#include "microbatch.h"

#include <string.h>

/* ---- how many ---- */

int64_t microbatch_rows(const Graph *g)
{
	return g->nin && g->in[0]->type->ndim > 0 ? g->in[0]->type->dim[0] : 0;
}

static int64_t integer(const Annot *train, const char *key)
{
	const Arg *a = train ? arg_find(train->arg, train->narg, key) : NULL;
	return a && a->kind == ARG_INT ? a->i : 0;
}

int64_t microbatch_count(const Model *m)
{
	const Annot *a = annot_find(m->annot, "train");
	int64_t batch = integer(a, "batch"), size = integer(a, "microbatch"), microbatches = integer(a, "accumulate");
	if (microbatches)
		return microbatches;
	return size && batch > size && batch % size == 0 ? batch / size : 1;
}

bool microbatch_given(const Model *m)
{
	const Annot *a = annot_find(m->annot, "train");
	return opt.micro_batches || (a && (arg_find(a->arg, a->narg, "microbatch") ||
		arg_find(a->arg, a->narg, "accumulate")));
}

int64_t microbatch_batch(const Model *m)
{
	return integer(annot_find(m->annot, "train"), "batch");
}

/* The first input that has a batch axis; NULL: none has. */
static const Value *batched(const Graph *g)
{
	for (int i = 0; i < g->nin; i++) {
		const Type *t = g->in[i]->type;
		if (!g->in[i]->init && t && t->kind == TY_TENSOR && t->ndim > 0)
			return g->in[i];
	}
	return NULL;
}

/* Writes the number into the training section, so that a dump holds it. */
int microbatch_option(Model *m)
{
	Annot *a = annot_find(m->annot, "train");
	int64_t M = opt.micro_batches, batch = integer(a, "batch"), given = microbatch_count(m);
	if (!M || opt.infer)
		return 0;
	if (!a) {
		err_at((Loc){ 0 }, "--micro-batches=%lld: nothing is trained; write @train, or --train='loss: ...'",
			(long long)M);
		return -1;
	}
	const Arg *size = arg_find(a->arg, a->narg, "microbatch"), *count = arg_find(a->arg, a->narg, "accumulate");
	if (size || count) {
		if (M == given)
			return 0;
		err_at((count ? count : size)->loc,
			"--micro-batches=%lld, but this makes %lld micro-batches: leave one of the two out",
			(long long)M, (long long)given);
		return -1;
	}
	const Value *x = batched(m->graph);
	if (!batch && x && dim_known(x->type->dim[0])) {
		err_at(x->loc,
			"--micro-batches=%lld: the batch axis of %s is the number %lld; write a symbol there, and "
			"batch: %lld in @train", (long long)M, x->name, (long long)x->type->dim[0],
			(long long)x->type->dim[0]);
		return -1;
	}
	if (!batch) {
		err_at(a->loc, "--micro-batches=%lld needs the batch that it divides: write batch: N", (long long)M);
		return -1;
	}
	if (batch % M) {
		err_at(arg_find(a->arg, a->narg, "batch")->loc,
			"--micro-batches=%lld does not divide the batch of %lld", (long long)M, (long long)batch);
		return -1;
	}
	if (M > 1 && x && dim_known(x->type->dim[0]) && x->type->dim[0] != batch / M) {
		err_at(x->loc, "--micro-batches=%lld: the batch axis of %s is the number %lld; write a symbol, or the "
			"%lld samples of a micro-batch", (long long)M, x->name, (long long)x->type->dim[0],
			(long long)(batch / M));
		return -1;
	}
	Name key = name_of("accumulate");
	Arg *list = NULL, one = { .kind = ARG_INT, .i = M, .key = key, .param = key, .loc = a->loc };
	int n = 0;
	for (int i = 0; i < a->narg; i++)
		arena_push(&m->arena, list, n, a->arg[i]);
	if (M > 1)
		arena_push(&m->arena, list, n, one);
	a->arg = list;
	a->narg = n;
	return 0;
}

static int bad_sizes(const Arg *at, const char *what, int64_t a, int64_t b)
{
	err_at(at->loc, "%s (%lld and %lld)", what, (long long)a, (long long)b);
	return -1;
}

int microbatch_check(const Model *m)
{
	const Annot *a = annot_find(m->annot, "train");
	int64_t batch = integer(a, "batch"), size = integer(a, "microbatch"), microbatches = integer(a, "accumulate");
	const Arg *p = a ? arg_find(a->arg, a->narg, "microbatch") : NULL, *t = a ? arg_find(a->arg, a->narg,
		"accumulate") : NULL;
	if (size && !batch && !microbatches)
		return bad_sizes(p, "a micro-batch needs a batch that it is a part of: write batch: N", size, batch);
	if (size && batch && batch % size)
		return bad_sizes(p, "micro-batches must divide the batch", size, batch);
	if (microbatches && batch && batch % microbatches)
		return bad_sizes(t, "micro-batches must divide the batch", microbatches, batch);
	if (microbatches && size && batch && microbatches * size != batch)
		return bad_sizes(t, "accumulate and microbatch contradict each other", microbatches, size);
	int64_t want = size, M = microbatch_count(m);
	if (!want && batch && microbatches)
		want = batch / microbatches;
	for (int i = 0; i < m->graph->nin && want && M > 1; i++) {
		const Type *ty = m->graph->in[i]->type;
		if (ty && ty->ndim > 0 && dim_known(ty->dim[0]) && ty->dim[0] == batch && batch != want) {
			err_at(m->graph->in[i]->loc,
				"%s holds the whole batch of %lld; a model for micro-batches has a symbol there, or "
				"%lld", m->graph->in[i]->name, (long long)batch, (long long)want);
			return -1;
		}
	}
	return 0;
}

/* ---- means over the batch ---- */

/* How many elements of the operand are averaged into one of the result; 0: not known. */
static int64_t averaged(const Node *n)
{
	int64_t x = type_elements(n->in[0]->type), y = type_elements(n->out[0]->type);
	return x > 0 && y > 0 ? x / y : 0;
}

/* Is this a mean over the axis along which its operand is split?  Then the factor of that axis is not in the result. */
static bool batch_mean(Micro *m, Node *n)
{
	if (!node_is(n, "ReduceMean") || microbatch_axis_of(m, n->in[0]).kind != ALONG_S || !averaged(n) ||
		!dtype_is_float(n->in[0]->type->elem))
		return false;
	bool quiet = m->quiet;
	m->quiet = true;
	bool kept = !microbatch_axis_along(m, n);
	m->quiet = quiet;
	return !kept;
}

/* mean -> sum / count, with the count of the whole batch. */
static int split_mean(Micro *m, Node *n)
{
	Graph *g = m->g;
	Value *y = n->out[0], *sum = graph_fresh(g, name_fmt("%s.sum", y->name));
	DType dt = y->type->elem;
	n->op = name_of("ReduceSum");
	n->row = op_find(name_of(""), n->op, 0);
	sum->type = y->type;
	sum->loc = y->loc;
	sum->def = n;
	n->out[0] = sum;
	y->def = NULL;
	Value *count = graph_const(g, tensor_scalar(g->arena, dt, (double)averaged(n) * (double)m->microbatches),
		name_fmt("%s.count", y->name));
	return build(g, n->loc, "Div", NULL, 1, &y, 2, sum, count) ? 0 : -1;
}

int microbatch_means(Graph *g, int64_t microbatches)
{
	Micro m = { .g = g, .microbatches = microbatches, .quiet = true };
	Node **old = g->node;
	int n = g->nnode;
	microbatch_axis_room(&m);
	microbatch_axis_sources(&m);
	g->node = NULL;
	g->nnode = 0;
	for (int i = 0; i < n; i++) {
		int first = g->nnode;
		arena_push(g->arena, g->node, g->nnode, old[i]);
		if (batch_mean(&m, old[i]) && split_mean(&m, old[i]))
			return -1;
		microbatch_axis_room(&m);
		for (int k = first; k < g->nnode; k++)
			if (microbatch_axis_find(&m, g->node[k]))
				/* refused later, if it matters */
				microbatch_axis_results(&m, g->node[k], ALONG_AFTER);
	}
	return 0;
}

/* ---- gradients ---- */

/* The sums (P) that nodes after the body read on a path to the loss. */
static Value **terms(Micro *m, const Value *loss, int *n)
{
	Graph *g = m->g;
	bool *way = arena_array(g->scratch, bool, g->nvalue + 1), *listed = arena_array(g->scratch, bool,
		g->nvalue + 1);
	Value **list = NULL;
	*n = 0;
	way[loss->id] = true;
	for (int i = g->nnode; i-- > 0;) {
		Node *node = g->node[i];
		bool on = false;
		for (int k = 0; k < node->nout; k++)
			on |= node->out[k] && way[node->out[k]->id];
		for (int k = 0; on && k < node->nin; k++) {
			Value *v = node->in[k];
			if (!v || v->graph != g)
				continue;
			if (microbatch_axis_of(m, v).kind != ALONG_P) {
				way[v->id] = true;
			} else if (!listed[v->id]) {
				listed[v->id] = true;
				arena_push(g->scratch, list, *n, v);
			}
		}
	}
	return list;
}

static Value *plus(Graph *g, Loc loc, Value *a, Value *b)
{
	if (!a || !b)
		return a ? a : b;
	return build(g, loc, "Add", NULL, 1, NULL, 2, a, b);
}

/* d loss / d w = sum over terms s of df / ds * ds / dw, plus the derivative of f by w itself. */
int microbatch_grad(Graph *g, int64_t microbatches, Value *loss, Value **want, int nwant, Value **grad,
	LossScale *scale)
{
	Micro m = { .g = g, .microbatches = microbatches };
	microbatch_axis_room(&m);
	microbatch_axis_sources(&m);
	for (int i = 0; i < g->nnode; i++)
		if (microbatch_axis_find(&m, g->node[i]) || microbatch_axis_compare(&m, g->node[i]))
			return -1;
	if (m.along[loss->id].kind == ALONG_S) {
		err_at(loss->loc, "the loss %s is that of one micro-batch, not a sum over the batch", loss->name);
		return -1;
	}
	if (m.along[loss->id].kind != ALONG_AFTER)
		return grad_build_uses(g, loss, want, nwant, grad) || loss_scale_seed(scale, loss) ? -1 : 0;
	int n;
	Value **term = terms(&m, loss, &n), **all = arena_array(g->scratch, Value *, nwant + n + 1),
		**dall = arena_array(g->scratch, Value *, nwant + n + 1);
	Value **dterm = arena_array(g->scratch, Value *, nwant + 1);
	memcpy(all, want, sizeof *want * (size_t)nwant);
	for (int i = 0; i < n; i++)
		all[nwant + i] = term[i];
	if (grad_build_uses(g, loss, all, nwant + n, dall))
		return -1;
	for (int i = 0; i < nwant; i++)
		grad[i] = loss_scale_up(scale, dall[i]);
	for (int i = 0; i < n; i++) {
		Value *seed = dall[nwant + i];
		if (!seed)
			continue;
		if (grad_build_uses(g, term[i], want, nwant, dterm) || loss_scale_seed(scale, term[i]))
			return -1;
		for (int k = 0; k < nwant; k++) {
			if (!dterm[k])
				continue;
			if (type_elements(seed->type) != 1) {
				err_at(term[i]->loc,
					"the loss needs all of %s, %s, before its gradient is known: only sums of one "
					"element can be waited for in micro-batches",
				       term[i]->name, type_text(term[i]->type));
				return -1;
			}
			graph_rename(g, dterm[k], name_fmt("%s.grad.term", want[k]->name));
			Value *scaled = build(g, loss->loc, "Mul", NULL, 1, NULL, 2, dterm[k], seed);
			grad[k] = scaled ? plus(g, loss->loc, grad[k], scaled) : NULL;
			if (!grad[k])
				return -1;
		}
	}
	return 0;
}

/* ---- begin, body, update ---- */

static void note(Node *n, const char *what)
{
	if (annot_find(n->annot, what))
		return;
	Annot *a = arena_new(n->graph->arena, Annot);
	a->name = name_of(what);
	if (annot_check(a, ON_NODE))
		die("@%s is refused", what);
	annot_add(&n->annot, a);
}

void microbatch_inherit(Node *n, const Node *by)
{
	if (annot_find(by->annot, "update"))
		note(n, "update");
	if (annot_find(by->annot, "begin"))
		note(n, "begin");
}

void microbatch_begin(Node *n)
{
	if (!microbatch_begins(n))
		note(n, "begin");
}

void microbatch_update(Node *n)
{
	if (!microbatch_updates(n))
		note(n, "update");
}

bool microbatch_begins(const Node *n) { return annot_find(n->annot, "begin") != NULL; }
bool microbatch_updates(const Node *n) { return annot_find(n->annot, "update") != NULL; }

static Value *zeros(Graph *g, const Value *like, Loc loc, Name name)
{
	Node *n = node_new(g, name_of("sbpcc"), name_of("Zeros"), loc);
	Value *v = graph_fresh(g, name);
	Attr *shape = node_attr_add(n, name_of("shape"), AT_INTS);
	shape->n = like->type->ndim;
	shape->u.is = arena_array(g->arena, int64_t, like->type->ndim + 1);
	for (int a = 0; a < like->type->ndim; a++)
		shape->u.is[a] = like->type->dim[a];
	node_attr_add(n, name_of("dtype"), AT_INT)->u.i = like->type->elem;
	node_out(n, v);
	note(n, "begin");
	return inline_append(g, n) ? NULL : v;
}

static bool half(const Value *v)
{
	return dtype_is_float(v->type->elem) && dtype_bits(v->type->elem) < 32;
}

/* Nodes that accumulation adds to the graph: those that each follow the node of their last operand, and nodes that
 * begin the update. */
typedef struct Sums { Node **add, **back; int nadd, nback; } Sums;

static Value *cast(Graph *g, Loc loc, Value *v, DType to, const char *name)
{
	Value *out = graph_fresh(g, name);
	char attr[32];
	snprintf(attr, sizeof attr, "to=%d", (int)to);
	return build(g, loc, "Cast", attr, 1, &out, 1, v);
}

/* Adds up a P over all micro-batches.  The sum takes name and pins of the value; the term becomes NAME.micro.  Half
 * precision is added up in float. */
static Value *accumulate(Graph *g, Value *v, Sums *s)
{
	Name name = v->name, from = v->def->from;
	Loc loc = v->def->loc;          /* gradients have no place in the source */
	bool output = v->output, narrow = half(v);
	graph_rename(g, v, name_fmt("%s.micro", name));
	Value *term = narrow ? cast(g, loc, v, DT_FLOAT, name_fmt("%s.wide", name)) : v;
	Value *old = term ? zeros(g, term, loc, name_fmt("%s.sum", name)) : NULL;
	Value *sum = graph_fresh(g, narrow ? name_fmt("%s.all", name) : name), *result = sum;
	if (!old || !build(g, loc, "Add", NULL, 1, &sum, 2, old, term))
		return NULL;
	sum->into = old;
	old->def->from = term->def->from = sum->def->from = from;
	old->def->stage = term->def->stage = sum->def->stage = v->def->stage;
	if (narrow) {
		arena_push(g->scratch, s->add, s->nadd, term->def);
		if (!(result = cast(g, loc, sum, v->type->elem, name)))
			return NULL;
		result->def->from = from;
		note(result->def, "update");
		arena_push(g->scratch, s->back, s->nback, result->def);
	}
	arena_push(g->scratch, s->add, s->nadd, sum->def);
	result->annot = v->annot;       /* a pin names the sum */
	v->annot = NULL;
	for (int i = 0; i < g->nout && output; i++)
		if (g->out[i] == v)
			g->out[i] = result;
	result->output = output;
	v->output = false;
	if (g->model->plan->train.loss == v)
		g->model->plan->train.loss = result;
	return result;
}

/* By node: does it run in the body?  Decided from the last node to the first. */
static bool *bodies(const Micro *m)
{
	Graph *g = m->g;
	bool *body = arena_array(g->scratch, bool, g->nnode + 1), *needed = arena_array(g->scratch, bool,
		g->nvalue + 1);
	for (int i = g->nnode; i-- > 0;) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				body[i] |= needed[n->out[k]->id] || microbatch_axis_of(m, n->out[k]).kind == ALONG_S ||
					microbatch_axis_of(m, n->out[k]).kind == ALONG_P;
		for (int k = 0; k < n->nin && body[i]; k++)
			if (n->in[k] && n->in[k]->graph == g)
				needed[n->in[k]->id] = true;
	}
	return body;
}

static double bytes_of(const Value *v)
{
	int64_t n = type_elements(v->type);
	return n < 0 ? 0 : (double)n * dtype_bits(v->type->elem) / 8;
}

/* Is a node whose results are the same in every micro-batch worth running once per step?  Its results then live for the
 * whole step.  That costs nothing if the backward pass reads them, too, for they live until then in any case.
 * Otherwise a copy or an elementwise result may be no larger than what it is made from: an expanded value is cheaper to
 * make again. */
static bool worth(const Graph *g, const Node *n, const bool *back)
{
	double made = 0, from = 0;
	bool kept = true, cheap = n->row->expr || n->row->carries || n->nin == 0;
	for (int k = 0; k < n->nin; k++)
		from += n->in[k] && n->in[k]->graph == g ? bytes_of(n->in[k]) : 0;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k]) {
			made += bytes_of(n->out[k]);
			kept &= back[n->out[k]->id];
		}
	return kept || !cheap || made <= from;
}

/* Marks what the body computes from parameters and constants alone, such as casts of weights: it runs once, before the
 * body.  A node that is recomputed stays in the body: its value is not meant to be kept. */
static void begin_early(const Micro *m, const bool *body)
{
	Graph *g = m->g;
	bool *early = arena_array(g->scratch, bool, g->nvalue + 1), *back = arena_array(g->scratch, bool,
		g->nvalue + 1);
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin && annot_find(g->node[i]->annot, "backward"); k++) {
			const Value *v = g->node[i]->in[k];
			if (v && v->graph == g && !microbatch_axis_shape_only(g->node[i], k))
				back[v->id] = true;
		}
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool ok = body[i] && !n->row->random && !n->row->moves && !annot_find(n->annot, "recompute");
		for (int k = 0; k < n->nin && ok; k++) {
			const Value *v = n->in[k];
			ok = !v || (v->graph == g && !v->input && (!v->def || early[v->id]));
		}
		for (int k = 0; k < n->nout && ok; k++)
			ok = !n->out[k] || (!n->out[k]->into && !n->out[k]->output &&
				microbatch_axis_of(m, n->out[k]).kind == ALONG_B);
		if (!ok || !worth(g, n, back))
			continue;
		note(n, "begin");
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				early[n->out[k]->id] = true;
	}
}

/* When a node runs: 0 once before the body, 1 in it, 2 once after it. */
static int phase_of(const Node *n)
{
	if (microbatch_begins(n))
		return 0;
	return microbatch_updates(n) ? 2 : 1;
}

enum { ADDED = 1, AN_ADD = 2 };

static Node *last_operand(const Node *n)
{
	return n->in[n->nin - 1]->def;
}

/* Appends a node, and the sums that it is a term of. */
static void put(Graph *g, Node *at, const Sums *s)
{
	arena_push(g->arena, g->node, g->nnode, at);
	for (int k = 0; k < s->nadd && at->mark & ADDED; k++)
		if (last_operand(s->add[k]) == at)
			put(g, s->add[k], s);
}

/* Orders the nodes: begin, body, update, each in the order of the graph.  A term is added to its sum as soon as it is
 * computed. */
static void order(Graph *g, const Sums *s)
{
	Node **all = g->node;
	int n = g->nnode;
	for (int i = 0; i < g->nnode; i++)
		g->node[i]->mark = 0;
	for (int i = 0; i < s->nback; i++)
		s->back[i]->mark |= AN_ADD;
	for (int i = 0; i < s->nadd; i++) {
		s->add[i]->mark |= AN_ADD;
		last_operand(s->add[i])->mark |= ADDED;
	}
	g->node = NULL;
	g->nnode = 0;
	for (int phase = 0; phase < 3; phase++) {
		for (int i = 0; i < s->nback && phase == 2; i++)
			arena_push(g->arena, g->node, g->nnode, s->back[i]);
		for (int i = 0; i < n; i++)
			if (!(all[i]->mark & AN_ADD) && phase == phase_of(all[i]))
				put(g, all[i], s);
	}
}

/* A random node draws its slice of the numbers of the whole batch. */
static void draw_slices(Micro *m, Node *n)
{
	Graph *g = m->g;
	Along t = microbatch_axis_of(m, n->out[0]);
	if (!node_is(n, "sbpcc.RandomUniform01") || t.kind != ALONG_S)
		return;
	Name name = name_of("train.micro");
	Value *v = graph_find(g, name);
	if (!v) {
		v = graph_value_here(g, name, n->loc);
		v->type = type_tensor(g->arena, DT_INT64, 0, NULL);
		v->input = v->declared = true;
		arena_push(g->arena, g->in, g->nin, v);
	}
	while (n->nin < 4)
		node_in(n, NULL);
	n->in[3] = v;
	node_attr_add(n, name_of("axis"), AT_INT)->u.i = t.axis;
	node_attr_add(n, name_of("microbatches"), AT_INT)->u.i = m->microbatches;
}

/* A ReduceTo that sums nothing and is not a term of a sum is a copy. */
static void drop_copies(Micro *m)
{
	Graph *g = m->g;
	int keep = 0;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool copy = node_is(n, "sbpcc.ReduceTo") && type_equal(n->in[0]->type, n->out[0]->type) &&
			microbatch_axis_of(m, n->out[0]).kind != ALONG_P && !n->out[0]->output && !n->out[0]->into;
		if (!copy) {
			g->node[keep++] = n;
			continue;
		}
		Value *x = n->in[0], *y = n->out[0];
		Name name = y->name;
		graph_replace(g, y, x);
		y->def = NULL;
		if (x->def && !text_ends(x->name, ".grad") && text_ends(name, ".grad")) {
			graph_rename(g, y, name_fmt("%s.same", name));
			graph_rename(g, x, name);
		}
	}
	g->nnode = keep;
}

int microbatch_run(Graph *g)
{
	int64_t microbatches = g->model->plan->train.microbatches;
	if (microbatches < 2 || !g->model->plan->training || g->model->main)
		return 0;
	Micro m = { .g = g, .microbatches = microbatches };
	microbatch_axis_room(&m);
	microbatch_axis_sources(&m);
	for (int i = 0; i < g->nnode; i++)
		if (microbatch_axis_find(&m, g->node[i]))
			return -1;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		if (microbatch_updates(n) && microbatch_axis_of(&m, n->out[0]).kind == ALONG_S)
			annot_drop(&n->annot, "update");        /* of a value that was expanded to the batch */
		draw_slices(&m, n);
	}
	drop_copies(&m);
	for (int i = 1; i < g->nout; i++)
		if (microbatch_axis_of(&m, g->out[i]).kind == ALONG_S) {
			err_at(g->out[i]->loc,
				"%s is that of one micro-batch: a metric must be a mean over "
				"the batch", g->out[i]->name);
			return -1;
		}
	bool *body = bodies(&m);
	begin_early(&m, body);
	Value **sum = arena_array(g->scratch, Value *, g->nvalue + 1);
	Sums sums = { 0 };
	int nnode = g->nnode;
	for (int i = 0; i < nnode; i++) {
		Node *n = g->node[i];
		if (body[i])
			continue;
		note(n, "update");
		for (int k = 0; k < n->nin; k++) {
			Value *v = n->in[k];
			if (!v || microbatch_axis_of(&m, v).kind != ALONG_P || microbatch_axis_shape_only(n, k))
				continue;
			if (!sum[v->id] && !(sum[v->id] = accumulate(g, v, &sums)))
				return -1;
			n->in[k] = sum[v->id];
		}
	}
	for (int i = 0; i < g->nout; i++)
		if (microbatch_axis_of(&m, g->out[i]).kind == ALONG_P && !accumulate(g, g->out[i], &sums))
			return -1;
	order(g, &sums);
	return 0;
}
