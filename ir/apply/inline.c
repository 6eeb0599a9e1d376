/* Calls become their bodies: functions of the model, definitions of the table, composites when they are lowered.
 *
 * One walk in order binds, expands and infers, so that a guard (@when) or a C expander can use the type, shape or
 * constant contents of its operands.  Core operators are left, and composites until they are lowered. */
#include "apply.h"

#include <stdlib.h>
#include <string.h>

static int depth;               /* of calls within calls */
static bool lowering;           /* composites too */

/* ---- copying a body ---- */

typedef struct Copy {
	Graph *to;
	const Graph *body;
	const Function *f;
	const Node *call;
	bool own;                       /* a function of the model: its nodes keep their own lines */
	Map map;
	const char *prefix;
	int64_t version;
} Copy;

/* The location of a copy: definitions of the table have no lines that a user could look up. */
static Loc loc_of(const Copy *c, Loc inner)
{
	return c->own && inner.file ? loc_inside(inner, c->call->loc) : c->call->loc;
}

/* Copies of the annotations in from, except those that to has already and those that are named. */
static void take_annots(Graph *g, Annot **to, const Annot *from, const char *except, const char *also)
{
	for (const Annot *a = from; a; a = a->next)
		if (strcmp(a->name, except) && strcmp(a->name, also) && !annot_find(*to, a->name)) {
			Annot *b = arena_new(g->arena, Annot);

			*b = *a;
			b->next = NULL;
			annot_add(to, b);
		}
}

static Value *mapped(Copy *c, const Value *v)
{
	Value *w;

	if (!v)
		return NULL;
	if (map_get(&c->map, v) == (void *)c)
		return NULL;                    /* an operand that the caller left out */
	if ((w = map_get(&c->map, v)) != NULL)
		return w;
	if (v->graph != c->body)
		return (Value *)v;              /* captured from outside */
	w = graph_fresh(c->to, name_fmt("%s.%s", c->prefix, v->name));
	w->loc = loc_of(c, v->loc);
	identity_copy(w, v);
	take_annots(c->to, &w->annot, v->annot, "init", "factors");
	if (v->data) {
		w->data = v->data;
		w->type = v->type;
		w->init = true;
		arena_push(c->to->arena, c->to->init, c->to->ninit, w);
	}
	map_put(&c->map, v, w);
	return w;
}

static const Attr *outer_attr(const Copy *c, Name name)
{
	const Attr *a = node_attr(c->call, name);
	const Schema *s = c->call->row ? c->call->row->schema : NULL;

	for (int i = 0; !a && i < c->f->nattr; i++)
		if (c->f->attr[i].name == name && !c->f->attr[i].absent)
			a = &c->f->attr[i];
	for (int i = 0; !a && s && i < s->nattr; i++)
		if (s->attr[i].name == name && s->hasdefault && s->hasdefault[i])
			a = &s->attr[i];
	return a;
}

static Graph *copy_graph(Copy *c, const Graph *g, Graph *outer);

/* false: the attribute refers to one that the caller did not give */
static bool copy_attr(Copy *c, const Attr *a, Graph *inside, Attr *out)
{
	*out = *a;
	if (a->ref) {
		const Attr *given = outer_attr(c, a->ref);

		if (!given)
			return false;
		*out = *given;
		out->name = a->name;
		return true;
	}
	if (a->type == AT_GRAPH)
		out->u.g = copy_graph(c, a->u.g, inside);
	return true;
}

static int copy_node(Copy *c, const Node *n, Node *m)
{
	m->overload = n->overload;
	m->version = n->version ? n->version : (int)c->version;
	m->name = c->call->name;
	m->stage = n->stage >= 0 ? n->stage : c->call->stage;
	m->from = c->call->from;
	for (int i = 0; i < n->nattr; i++) {
		Attr a;

		if (copy_attr(c, &n->attr[i], m->graph, &a))
			arena_push(m->graph->arena, m->attr, m->nattr, a);
	}
	take_annots(m->graph, &m->annot, n->annot, "when", "opset");      /* annotations of the node itself win */
	take_annots(m->graph, &m->annot, c->call->annot, "sbp", "opset");
	for (int i = 0; i < n->nin; i++)
		node_in(m, mapped(c, n->in[i]));
	for (int i = 0; i < n->nout; i++)
		node_out(m, mapped(c, n->out[i]));
	if (!c->own || !n->inloc)
		return 0;
	m->inloc = arena_array(m->graph->arena, Loc, n->nin + 1);
	for (int i = 0; i < n->nin; i++)
		m->inloc[i] = loc_of(c, n->inloc[i]);
	return 0;
}

/* A subgraph inside a body: its own values are new, what it captures is mapped. */
static Graph *copy_graph(Copy *c, const Graph *g, Graph *outer)
{
	Graph *r = graph_new(outer->model, outer, g->name), *saved = c->to;

	r->loc = g->loc;
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = graph_value_here(r, g->value[i]->name, g->value[i]->loc);
		int id = v->id;

		*v = *g->value[i];
		v->id = id;
		v->graph = r;
		v->def = NULL;
		identity_copy(v, g->value[i]);
		map_put(&c->map, g->value[i], v);
	}
	c->to = r;
	for (int i = 0; i < g->nnode; i++)
		copy_node(c, g->node[i],
			graph_node(r, g->node[i]->domain, g->node[i]->op,
				c->own ? loc_of(c, g->node[i]->loc) : g->node[i]->loc));
	for (int i = 0; i < g->nin; i++)
		arena_push(r->arena, r->in, r->nin, mapped(c, g->in[i]));
	for (int i = 0; i < g->nout; i++)
		arena_push(r->arena, r->out, r->nout, mapped(c, g->out[i]));
	for (int i = 0; i < g->ninit; i++)
		arena_push(r->arena, r->init, r->ninit, mapped(c, g->init[i]));
	c->to = saved;
	return r;
}

static int64_t body_version(const Function *f, const Node *n)
{
	for (int i = 0; i < f->nopset; i++)
		if (f->opset[i].domain == n->domain)
			return f->opset[i].version;
	return 0;
}

/* A node of a function of the model has its own line, and that of the call around it. */
static Name from_inside(const Node *n, const Node *call)
{
	return name_fmt("%s in %s", loc_brief(n->from ? n->from : loc_text(n->loc)),
		loc_brief(call->from ? call->from : loc_text(call->loc)));
}

int inline_body(Graph *g, const Function *f, const Node *call, Value **args, int nargs, Value **outs, int nouts)
{
	Copy c = { .to = g, .body = f->body, .f = f, .call = call, .own = f == model_function(g->model, call) };
	const Graph *b = f->body;

	map_init(&c.map, g->scratch);
	c.prefix = nouts && outs[0] ? outs[0]->name : call->nout && call->out[0] ? call->out[0]->name : f->name;
	for (int i = 0; i < b->nin; i++)
		map_put(&c.map, b->in[i], i < nargs && args[i] ? (void *)args[i] : (void *)&c);
	for (int i = 0; i < b->nout && i < nouts; i++)
		if (outs[i] && !map_get(&c.map, b->out[i])) {
			map_put(&c.map, b->out[i], outs[i]);
			take_annots(g, &outs[i]->annot, b->out[i]->annot, "init", "factors");
		}
	for (int i = 0; i < b->nnode; i++) {
		const Node *n = b->node[i];
		const Annot *when = annot_find(n->annot, "when");

		if (when && !guard_holds(when->arg[0].s, f, call, args, nargs))
			continue;
		c.version = body_version(f, n);
		Node *m = node_new(g, n->domain, n->op, loc_of(&c, n->loc));
		copy_node(&c, n, m);
		if (c.own && (n->from || n->loc.file))
			m->from = from_inside(n, call);
		if (inline_append(g, m) < 0)
			return -1;
	}
	/* A result that is an operand itself, or the same as another result. */
	for (int i = 0; i < b->nout && i < nouts; i++) {
		Value *got = outs[i] ? map_get(&c.map, b->out[i]) : NULL;

		if (!got || got == outs[i])
			continue;
		if (got == (void *)&c) {
			err_at(call->loc, "%s passes on its operand %s, which is not given", call->op, b->out[i]->name);
			return -1;
		}
		Node *id = node_new(g, name_of(""), name_of("Identity"), call->loc);
		node_in(id, got);
		node_out(id, outs[i]);
		if (inline_append(g, id) < 0)
			return -1;
	}
	return 0;
}

/* A subgraph of n in place of n: args are the values of its inputs, outs of its results (a NULL entry is set to the
 * value of that result). */
int inline_graph(Graph *g, Node *n, const Graph *sub, Value **args, Value **outs)
{
	Function f = { .name = n->op, .body = (Graph *)sub };
	Copy c = { .to = g, .body = sub, .f = &f, .call = n };

	c.prefix = n->nout && n->out[0] ? n->out[0]->name : n->op;
	map_init(&c.map, g->scratch);
	for (int i = 0; i < sub->nin; i++)
		map_put(&c.map, sub->in[i], args[i]);
	for (int i = 0; i < sub->nout; i++)
		if (outs[i] && sub->out[i]->def && !map_get(&c.map, sub->out[i])) {
			map_put(&c.map, sub->out[i], outs[i]);
			take_annots(g, &outs[i]->annot, sub->out[i]->annot, "init", "factors");
		}
	for (int i = 0; i < sub->nnode; i++) {
		Node *m = node_new(g, sub->node[i]->domain, sub->node[i]->op, sub->node[i]->loc);

		copy_node(&c, sub->node[i], m);
		m->version = sub->node[i]->version ? sub->node[i]->version : n->version;
		if (inline_append(g, m) < 0)
			return -1;
	}
	for (int i = 0; i < sub->nout; i++) {
		Value *got = mapped(&c, sub->out[i]);

		if (!outs[i])
			outs[i] = got;
		if (got == outs[i])
			continue;
		Node *id = node_new(g, name_of(""), name_of("Identity"), n->loc);
		node_in(id, got);
		node_out(id, outs[i]);
		if (inline_append(g, id) < 0)
			return -1;
	}
	return 0;
}

/* The nodes of a C expander inherit name, stage and annotations of the node that they replace, as those of a body
 * do. */
static int by_expander(Node *n)
{
	Graph *g = n->graph;
	int first = g->nnode;

	if (infer_node(n) < 0 || n->row->expand(n) < 0)
		return -1;
	for (int i = first; i < g->nnode; i++) {
		Node *m = g->node[i];

		if (m->annot || (m->name && *m->name))
			continue;
		m->name = n->name;
		m->stage = n->stage;
		m->from = n->from;
		take_annots(g, &m->annot, n->annot, "sbp", "opset");
	}
	return 0;
}

static int append(Graph *g, Node *n)
{
	Function *f = model_function(g->model, n);

	if (g->nnode >= limits.nodes) {
		fail_at(EXIT_LIMIT, n->loc, "the graph has more than --max-nodes=%lld nodes", (long long)limits.nodes);
		return -1;
	}
	if (!f && control_is(n))
		return control_resolve(g, n);
	if (!f && sequence_is(n))
		return sequence_resolve(g, n);
	if (!f && !n->row) {
		n->row = op_find(n->domain, n->op, n->version);
		if (!n->row && !*n->domain)
			n->row = op_find(name_of("sbpcc"), n->op, 0);
		if (n->row && n->row->domain)
			n->domain = name_of(n->row->domain);    /* so that a dump has it */
		if (!n->row) {
			err_at(n->loc, "operator %s%s%s is not supported", n->domain, *n->domain ? "." : "", n->op);
			return -1;
		}
	}
	bool expand = f || (n->row->composite ? lowering && (n->row->def || n->row->expand)
					      : n->row->def || n->row->expand);
	if (!expand) {
		arena_push(g->arena, g->node, g->nnode, n);
		for (int i = 0; i < n->nout; i++)
			if (n->out[i]) {
				n->out[i]->def = n;
				n->out[i]->defidx = i;
			}
		return infer_step(n);
	}
	if (f || n->row->def) {
		const Function *body = f ? f : n->row->def;

		if (n->nin > body->body->nin) {
			err_at(n->loc, "%s takes at most %d operands, not %d", n->op, body->body->nin, n->nin);
			return -1;
		}
		return inline_body(g, body, n, n->in, n->nin, n->out, n->nout);
	}
	return by_expander(n);
}

int inline_append(Graph *g, Node *n)
{
	if (depth >= limits.depth) {
		Function *f = model_function(g->model, n);

		fail_at(f ? EXIT_INPUT : EXIT_LIMIT, n->loc,
			f ? "function %s calls itself, directly or through others (%lld calls deep)"
			  : "%s: definitions nest more than %lld deep (--max-depth)",
			n->op, (long long)limits.depth);
		return -1;
	}
	bool wrong = false;
	for (int i = 0; i < n->nin; i++)
		wrong |= n->in[i] && n->in[i]->wrong;
	identity_node(n);
	uint64_t maker = identity_enter(n, "inline");
	depth++;
	int bad = wrong ? -1 : append(g, n);
	depth--;
	identity_leave(g, maker);
	for (int i = 0; i < n->nout && bad; i++)
		if (n->out[i])
			n->out[i]->wrong = true;
	return bad;
}

/* Finds functions that call themselves before anything is expanded; each function is walked once. */
static int check_calls(const Model *m, Function *f, Map *state, int level)
{
	if (map_get(state, f) == (void *)2)
		return 0;
	if (map_get(state, f) == (void *)1 || level > limits.depth) {
		fail_at(level > limits.depth ? EXIT_LIMIT : EXIT_INPUT, f->loc,
			level > limits.depth ? "at %s functions call each other more than %lld deep (--max-depth)"
					     : "function %s calls itself",
			f->name, (long long)limits.depth);
		return -1;
	}
	map_put(state, f, (void *)1);
	for (int i = 0; i < f->body->nnode; i++) {
		Function *callee = model_function(f->body->model, f->body->node[i]);

		if (callee && check_calls(m, callee, state, level + 1) < 0)
			return -1;
	}
	map_put(state, f, (void *)2);
	return 0;
}

static int walk(Graph *g)
{
	Node **old = g->node;
	int n = g->nnode, bad = 0;

	g->node = NULL;
	g->nnode = 0;
	infer_values(g);
	for (int i = 0; i < n; i++) {
		graph_ahead(old, i, n);
		if (diag_errors() >= limits.errors || inline_append(g, old[i]) < 0)
			bad = -1;
	}
	return bad;
}

/* The nodes that are left have the newest version of their operator, which the model imports; a node of an older
 * version has @opset. */
static void settle_versions(Graph *g)
{
	Model *m = g->model;
	Opset *list = arena_array(g->arena, Opset, m->nopset + 1);

	for (int i = 0; i < m->nopset; i++) {
		list[i] = m->opset[i];
		if (!*list[i].domain)
			list[i].version = OPSET_MAX;
	}
	m->opset = list;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];

		if (*n->domain || !n->row || !n->row->until || annot_find(n->annot, "opset"))
			continue;
		Annot *a = arena_new(g->arena, Annot);
		a->name = name_of("opset");
		arena_push(g->arena, a->arg, a->narg,
			((Arg){ .kind = ARG_INT, .param = name_of("version"),
				.i = n->version ? n->version : n->row->until }));
		annot_add(&n->annot, a);
	}
}

int inline_run(Graph *g)
{
	Map state;

	map_init(&state, g->scratch);
	for (int i = 0; i < g->model->nfunction; i++)
		if (check_calls(g->model, g->model->function[i], &state, 0) < 0)
			return -1;
	if (bind_graph(g, true) < 0)
		return -1;
	lowering = false;
	if (walk(g) < 0)
		return -1;
	g->model->nfunction = 0;        /* nothing calls them any more */
	if (g == g->model->graph)
		settle_versions(g);
	return 0;
}

int inline_composites(Graph *g)
{
	bool was = lowering;

	lowering = true;
	int bad = walk(g);
	lowering = was;
	return bad;
}

/* One round: a definition may use other composites. */
static int lower(Graph *g, bool (*which)(const Node *, void *), void *arg, bool *any)
{
	Node **old = g->node;
	int n = g->nnode;
	const Op *row;

	*any = false;
	for (int i = 0; i < n && !*any; i++)
		*any = old[i]->row->composite && which(old[i], arg);
	if (!*any)
		return 0;
	g->node = NULL;
	g->nnode = 0;
	for (int i = 0; i < n; i++) {
		row = old[i]->row;
		if (!row->composite || !which(old[i], arg))
			arena_push(g->arena, g->node, g->nnode, old[i]);
		else if (!row->def && !row->expand)
			die("%s is a composite without a definition", row->name);
		else if (row->def ? inline_body(g, row->def, old[i], old[i]->in, old[i]->nin, old[i]->out,
					    old[i]->nout)
				  : by_expander(old[i]))
			return -1;
	}
	return 0;
}

int inline_lower(Graph *g, bool (*which)(const Node *, void *), void *arg)
{
	bool any = true;

	while (any)
		if (lower(g, which, arg, &any))
			return -1;
	return 0;
}
