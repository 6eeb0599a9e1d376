/* Making and changing graphs.  Values are found by name, here or in the enclosing graphs; passes append nodes and
 * then sort, replace uses and then sweep, so that each of them stays linear. */
#include "graph.h"

#include <string.h>

Graph *graph_new(Model *m, Graph *outer, Name name)
{
	Graph *g = arena_new(&m->arena, Graph);

	g->arena = &m->arena;
	g->scratch = &m->scratch;
	g->model = m;
	g->outer = outer;
	g->name = name;
	map_init(&g->byname, g->arena);
	return g;
}

Value *graph_find(const Graph *g, Name name)
{
	for (; g; g = g->outer) {
		Value *v = map_get(&g->byname, name);

		if (v)
			return v;
	}
	return NULL;
}

Value *graph_value_here(Graph *g, Name name, Loc loc)
{
	Value *v = map_get(&g->byname, name);

	if (v)
		return v;
	v = arena_new(g->arena, Value);
	v->name = name;
	v->graph = g;
	v->id = g->nvalue;
	v->nelem = -1;
	v->loc = loc;
	arena_push(g->arena, g->value, g->nvalue, v);
	map_put(&g->byname, name, v);
	return v;
}

Value *graph_value(Graph *g, Name name, Loc loc)
{
	Value *v = graph_find(g, name);

	return v ? v : graph_value_here(g, name, loc);
}

/* The last number of a hint is stored under a key of its own, so that a thousand fresh values with one hint do not cost
 * a million look-ups. */
Value *graph_fresh(Graph *g, const char *hint)
{
	Name base = name_of(hint);

	if (!graph_find(g, base))
		return graph_value_here(g, base, (Loc){ 0 });
	Name key = name_fmt("%s\x01next", hint);
	uintptr_t i = (uintptr_t)map_get(&g->byname, key);
	Name name;
	do
		name = name_fmt("%s.%d", hint, (int)++i);
	while (graph_find(g, name));
	map_put(&g->byname, key, (void *)i);
	return graph_value_here(g, name, (Loc){ 0 });
}

void graph_rename(Graph *g, Value *v, Name name)
{
	if (graph_find(g, name))
		return;
	map_put(&g->byname, v->name, NULL);
	v->name = name;
	map_put(&g->byname, name, v);
}

Node *graph_node(Graph *g, Name domain, Name op, Loc loc)
{
	Node *n = arena_new(g->arena, Node);

	n->domain = domain ? domain : name_of("");
	n->op = op;
	n->name = name_of("");
	n->graph = g;
	n->loc = loc;
	n->stage = -1;
	arena_push(g->arena, g->node, g->nnode, n);
	return n;
}

Value *graph_const(Graph *g, Tensor *t, const char *hint)
{
	Value *v = graph_fresh(g, hint);
	Dim dim[32];

	if (t->ndim > 32)
		die("a constant with %d axes", t->ndim);
	for (int i = 0; i < t->ndim; i++)
		dim[i] = t->dim[i];
	v->data = t;
	v->type = type_tensor(g->arena, t->dtype, t->ndim, dim);
	v->init = true;
	arena_push(g->arena, g->init, g->ninit, v);
	return v;
}

/* Calls f on every value slot that a node of g, or of a graph inside it, reads. */
static void each_use(Graph *g, void (*f)(Value **, void *), void *arg)
{
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];

		graph_ahead(g->node, i, g->nnode);
		for (int j = 0; j < n->nin; j++)
			if (n->in[j])
				f(&n->in[j], arg);
		for (int j = 0; j < n->nattr; j++) {
			if (n->attr[j].type == AT_GRAPH && n->attr[j].u.g)
				each_use(n->attr[j].u.g, f, arg);
			for (int k = 0; n->attr[j].type == AT_GRAPHS && k < n->attr[j].n; k++)
				each_use(n->attr[j].u.gs[k], f, arg);
		}
	}
	for (int i = 0; i < g->nout; i++)
		f(&g->out[i], arg);
}

static void swap_use(Value **slot, void *arg)
{
	Value **pair = arg;

	if (*slot == pair[0])
		*slot = pair[1];
}

void graph_replace(Graph *g, Value *old, Value *by)
{
	Value *pair[2] = { old, by };

	each_use(g, swap_use, pair);
	if (old->output && old->graph == g) {
		old->output = false;
		by->output = true;
	}
}

struct Count { Graph *g; int *n; };

static void count_use(Value **slot, void *arg)
{
	struct Count *c = arg;

	if ((*slot)->graph == c->g)
		c->n[(*slot)->id]++;
}

int *graph_uses(Graph *g, Arena *a)
{
	struct Count c = { g, arena_array(a, int, g->nvalue + 1) };

	each_use(g, count_use, &c);
	return c.n;
}

static void drop_uses(Value **slot, void *arg)
{
	struct Count *c = arg;

	if ((*slot)->graph == c->g)
		c->n[(*slot)->id]--;
}

static void read_in(const Graph *g, const Graph *in, int at, int *last)
{
	for (int i = 0; i < in->nnode; i++) {
		const Node *n = in->node[i];
		int here = in == g ? i : at;

		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && n->in[k]->graph == g)
				last[n->in[k]->id] = here;
		for (int k = 0; k < n->nattr; k++) {
			if (n->attr[k].type == AT_GRAPH && n->attr[k].u.g)
				read_in(g, n->attr[k].u.g, here, last);
			for (int j = 0; n->attr[k].type == AT_GRAPHS && j < n->attr[k].n; j++)
				read_in(g, n->attr[k].u.gs[j], here, last);
		}
	}
	for (int i = 0; i < in->nout; i++)
		if (in->out[i]->graph == g)
			last[in->out[i]->id] = in == g ? g->nnode : at;
}

void graph_lives(const Graph *g, int *last, int *until)
{
	for (int i = 0; i < g->nvalue; i++)
		last[i] = -1;
	for (int i = 0; i < g->nvalue && until; i++)
		until[i] = g->nnode;
	for (int i = 0; i < g->nnode && until; i++)
		for (int k = 0; k < g->node[i]->nout; k++)
			if (g->node[i]->out[k] && g->node[i]->out[k]->into)
				until[g->node[i]->out[k]->into->id] = i;
	read_in(g, g, 0, last);
}

/* In reverse order: a node whose results are all unused is dropped, and its operands lose a use. */
void graph_sweep(Graph *g)
{
	struct Count c = { g, graph_uses(g, g->scratch) };
	int keep = 0;

	for (int i = g->nnode; i-- > 0;) {
		Node *n = g->node[i];
		bool used = false;

		for (int j = 0; j < n->nout; j++)
			used |= n->out[j] && (c.n[n->out[j]->id] > 0 || n->out[j]->into);
		n->mark = used;
		if (used)
			continue;
		for (int j = 0; j < n->nin; j++)
			if (n->in[j])
				drop_uses(&n->in[j], &c);
		for (int j = 0; j < n->nattr; j++) {
			if (n->attr[j].type == AT_GRAPH && n->attr[j].u.g)
				each_use(n->attr[j].u.g, drop_uses, &c);
			for (int k = 0; n->attr[j].type == AT_GRAPHS && k < n->attr[j].n; k++)
				each_use(n->attr[j].u.gs[k], drop_uses, &c);
		}
	}
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];

		if (n->mark) {
			g->node[keep++] = n;
			continue;
		}
		for (int j = 0; j < n->nout; j++)
			if (n->out[j] && n->out[j]->def == n)
				n->out[j]->def = NULL;
	}
	g->nnode = keep;
	keep = 0;
	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];

		if (c.n[v->id] > 0 || v->param || v->input) {
			g->init[keep++] = v;
		} else {
			v->init = v->declared = false;
			v->annot = NULL;        /* no node is left that it concerns */
		}
	}
	g->ninit = keep;
}

/* Finds a cycle among the nodes that could not be placed (mark > 0) and prints it as notes. */
static void name_cycle(Graph *g, Node *start)
{
	Node *n = start;

	for (int step = 0; step <= g->nnode && n->mark != -2; step++) {
		n->mark = -2;
		for (int j = 0; j < n->nin; j++)
			if (n->in[j] && n->in[j]->graph == g && n->in[j]->def && n->in[j]->def->mark != 0) {
				n = n->in[j]->def;
				break;
			}
	}
	err_at(n->loc, "the graph has a cycle through %s", n->nout && n->out[0] ? n->out[0]->name : n->op);
	Node *first = n;
	do {
		Node *next = first;

		for (int j = 0; j < n->nin; j++)
			if (n->in[j] && n->in[j]->graph == g && n->in[j]->def && n->in[j]->def->mark == -2) {
				note_at(n->loc, "%s needs %s", n->nout && n->out[0] ? n->out[0]->name : n->op,
					n->in[j]->name);
				next = n->in[j]->def;
				break;
			}
		n->mark = -3;
		n = next;
	} while (n != first && n->mark == -2);
}

struct Need { Graph *g; int *count; int **users; int *nusers; int node; Arena *a; };

static void count_need(Value **slot, void *arg)
{
	struct Need *d = arg;
	Value *v = *slot;

	if (v->graph != d->g || !v->def || v->def->graph != d->g)
		return;
	int by = v->def->mark - 1;
	d->count[d->node]++;
	arena_push(d->a, d->users[by], d->nusers[by], d->node);
}

/* Kahn's algorithm with a heap on the old position: a graph that is in order keeps it. */
int graph_sort(Graph *g)
{
	int n = g->nnode, nheap = 0, placed = 0;
	Arena tmp = { 0 };
	struct Need d = { .g = g, .a = &tmp, .count = arena_array(&tmp, int, n + 1),
		.users = arena_array(&tmp, int *, n + 1), .nusers = arena_array(&tmp, int, n + 1) };
	int *heap = arena_array(&tmp, int, n + 1);
	Node **order = arena_array(&tmp, Node *, n + 1);

	for (int i = 0; i < n; i++)
		g->node[i]->mark = i + 1;
	for (int i = 0; i < n; i++) {
		Graph one = { .node = &g->node[i], .nnode = 1 };

		d.node = i;
		each_use(&one, count_need, &d);
	}
#define LESS(a, b) (heap[a] < heap[b])
#define EXCH(a, b) do { int t_ = heap[a]; heap[a] = heap[b]; heap[b] = t_; } while (0)
	for (int i = 0; i < n; i++)
		if (!d.count[i])
			heap[nheap++] = i;      /* ascending: a heap already */
	while (nheap) {
		int i = heap[0];

		heap[0] = heap[--nheap];
		for (int k = 0, c; (c = 2 * k + 1) < nheap; k = c) {
			if (c + 1 < nheap && LESS(c + 1, c))
				c++;
			if (!LESS(c, k))
				break;
			EXCH(c, k);
		}
		order[placed++] = g->node[i];
		g->node[i]->mark = 0;
		for (int u = 0; u < d.nusers[i]; u++)
			if (--d.count[d.users[i][u]] == 0) {
				int k = nheap++;

				heap[k] = d.users[i][u];
				for (; k && LESS(k, (k - 1) / 2); k = (k - 1) / 2)
					EXCH(k, (k - 1) / 2);
			}
	}
#undef LESS
#undef EXCH
	if (placed < n) {
		for (int i = 0; i < n; i++)
			if (g->node[i]->mark) {
				name_cycle(g, g->node[i]);
				break;
			}
		arena_free(&tmp);
		return -1;
	}
	if (n)
		memcpy(g->node, order, sizeof *order * (size_t)n);
	arena_free(&tmp);
	return 0;
}

static Attr copy_attr(Model *to, Graph *outer, const Attr *a);

static Graph *copy_into(Model *to, Graph *outer, const Graph *g)
{
	Graph *c = graph_new(to, outer, g->name);

	c->doc = g->doc;
	c->loc = g->loc;
	c->annot = g->annot;
	c->facts = g->facts;
	c->meta = g->meta;
	c->nmeta = g->nmeta;
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = graph_value_here(c, g->value[i]->name, g->value[i]->loc);
		int id = v->id;

		*v = *g->value[i];
		v->id = id;
		v->graph = c;
		v->def = NULL;
	}
#define THERE(v) \
	(!(v)                              ? NULL \
		: (v)->graph == g          ? c->value[(v)->id] \
		: graph_find(c, (v)->name) ? graph_find(c, (v)->name) \
					   : (v))
	for (int i = 0; i < g->nvalue; i++)
		c->value[i]->into = THERE(g->value[i]->into);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		Node *m = graph_node(c, n->domain, n->op, n->loc), fresh = *m;

		*m = *n;
		m->graph = c;
		m->in = fresh.in, m->nin = 0, m->out = fresh.out, m->nout = 0, m->attr = NULL, m->nattr = 0;
		for (int j = 0; j < n->nin; j++)
			node_in(m, THERE(n->in[j]));
		for (int j = 0; j < n->nout; j++)
			node_out(m, THERE(n->out[j]));
		for (int j = 0; j < n->nattr; j++)
			arena_push(c->arena, m->attr, m->nattr, copy_attr(to, c, &n->attr[j]));
	}
	for (int i = 0; i < g->nin; i++)
		arena_push(c->arena, c->in, c->nin, THERE(g->in[i]));
	for (int i = 0; i < g->nout; i++)
		arena_push(c->arena, c->out, c->nout, THERE(g->out[i]));
	for (int i = 0; i < g->ninit; i++)
		arena_push(c->arena, c->init, c->ninit, THERE(g->init[i]));
#undef THERE
	return c;
}

static Attr copy_attr(Model *to, Graph *outer, const Attr *a)
{
	Attr c = *a;

	if (a->type == AT_GRAPH && a->u.g)
		c.u.g = copy_into(to, outer, a->u.g);
	if (a->type == AT_GRAPHS && a->n) {
		c.u.gs = arena_array(&to->arena, Graph *, a->n);
		for (int i = 0; i < a->n; i++)
			c.u.gs[i] = copy_into(to, outer, a->u.gs[i]);
	}
	return c;
}

/* Types, tensors and annotations are shared with the original: they never change once made. */
Graph *graph_copy(Model *to, const Graph *g)
{
	return copy_into(to, NULL, g);
}

void graph_ahead(Node *const *node, int i, int n)
{
	if (i + 16 < n)
		__builtin_prefetch(node[i + 16]);
	if (i + 10 < n) {
		__builtin_prefetch(node[i + 10]->in);
		__builtin_prefetch(node[i + 10]->out);
	}
	if (i + 5 < n) {
		const Node *to = node[i + 5];

		for (int k = 0; k < to->nin && k < 3; k++)
			__builtin_prefetch(to->in[k]);
		if (to->nout)
			__builtin_prefetch(to->out[0]);
	}
}

void graph_ahead_value(Value *const *value, int i, int n)
{
	if (i + 16 < n)
		__builtin_prefetch(value[i + 16]);
}
