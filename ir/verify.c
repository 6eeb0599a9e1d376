/* Invariants of a graph, checked after reading and again after every pass.
 *
 * One walk in the order of the nodes, with one bit per value that says whether it is made by now; graphs in
 * attributes are walked with their node and see the bits of the graphs around them.  So the cost is linear, and
 * the same walk finds values made twice, used before they are made, or never made.  Cycles are searched for only
 * when something is used before it is made, because an ordered graph has none. */
#include "ir.h"

#include <string.h>

typedef struct Scope {
	Graph *g;
	bool *made;                     /* by value id */
	bool early;                     /* something was used before it was made */
	struct Scope *outer;
	uint32_t facts;
	Arena *tmp;
	int bad;
} Scope;

static bool *made(const Scope *s, const Value *v)
{
	for (; s; s = s->outer)
		if (s->g == v->graph)
			return &s->made[v->id];
	die("value %s belongs to a graph that does not enclose its use", v->name);
}

/* A value with a similar name that could have been meant. */
static const char *near(const Scope *s, Name word)
{
	enum { MANY = 2000 };
	const char **list;
	int n = 0, all = 1;

	for (const Scope *o = s; o; o = o->outer)
		all += o->g->nvalue;
	if (all > MANY || s->bad > 3)
		return NULL;
	list = arena_array(s->tmp, const char *, all + 1);
	for (const Scope *o = s; o; o = o->outer)
		for (int i = 0; i < o->g->nvalue; i++) {
			const Value *v = o->g->value[i];

			if (v->name != word && (v->def || v->input || v->init))
				list[n++] = v->name;
		}
	return diag_suggest(word, list);
}

static void use(Scope *s, const Node *n, int i)
{
	const Value *v = n->in[i];

	if (!v || *made(s, v))
		return;
	if (v->def && v->graph == s->g) {
		s->early = true;                /* reported later, when it is known whether there is a cycle */
		return;
	}
	bool bare = v->declared && !v->def && !s->g->outer;      /* <float[8] w> alone states a type */
	const char *meant = v->def || bare ? NULL : near(s, v->name);
	if (bare)
		err_at(operand_loc(n, i),
			"%s is declared, but nothing makes it: a parameter needs @init, a constant its data",
			v->name);
	else if (v->def)
		err_at(operand_loc(n, i), "%s is used in this inner graph before it is made", v->name);
	else if (s->g->outer)
		err_at(operand_loc(n, i), "%s is made neither in this graph nor in one around it%s%s%s", v->name,
			meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
	else
		err_at(operand_loc(n, i), "%s is used but nothing makes it%s%s%s", v->name,
			meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
	if (bare && v->type)
		note_at(v->loc, "for instance %s %s @init(normal(0, 0.02))", type_text(v->type), v->name);
	if (v->def)
		note_at(v->loc, "%s is made here", v->name);
	s->bad++;
}

static bool untyped(const Value *v)
{
	return !v->type || (v->type->kind == TY_TENSOR && v->type->elem == DT_UNDEFINED);
}

static void result(Scope *s, const Node *n, int i)
{
	Value *v = n->out[i];

	if (!v)
		return;
	if (v->graph != s->g)
		die("node %s makes %s, a value of another graph", n->op, v->name);
	if (v->input || v->init) {
		err_at(n->loc, "%s makes %s, which is %s already", n->op, v->name,
			v->input ? "an input" : "an initialiser");
		note_at(v->data && !v->input ? v->data->loc : v->loc, "%s stands here", v->name);
		s->bad++;
	} else if (v->def != n && v->def && annot_find(n->annot, "when") && annot_find(v->def->annot, "when")) {
		;                               /* one of them remains when the guards are decided */
	} else if (v->def != n || v->defidx != i) {
		const Node *other = v->def;

		err_at(other && other != n ? other->loc : n->loc, "%s is made twice", v->name);
		note_at(n->loc, "%s is made here first", v->name);
		s->bad++;
	} else if ((s->facts & FACT_SHAPES) && untyped(v)) {
		err_at(n->loc, "the type of %s is not known", v->name);
		s->bad++;
	}
	*made(s, v) = true;
}

/* Follows operands from node n; the first node met again is on a cycle.  mark: 0 new, 1 on the path, 2 done. */
static Node *on_cycle(const Scope *s, Node *start, Node **path, int *next)
{
	int top = 0;

	path[0] = start;
	next[0] = 0;
	start->mark = 1;
	while (top >= 0) {
		Node *n = path[top];

		if (next[top] == n->nin) {
			n->mark = 2;
			top--;
			continue;
		}
		const Value *v = n->in[next[top]++];
		Node *d = v && v->graph == s->g ? v->def : NULL;
		if (!d || d->graph != s->g || d->mark == 2)
			continue;
		if (d->mark == 1)
			return d;
		d->mark = 1;
		path[++top] = d;
		next[top] = 0;
	}
	return NULL;
}

static const char *first_name(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			return n->out[i]->name;
	return n->op;
}

/* The path holds ..., d, ..., top; each needs the next one, and the top needs d. */
static void print_cycle(Node **path, Node *d)
{
	int from = 0;

	while (path[from] != d)
		from++;
	err_at(d->loc, "the graph has a cycle through %s", first_name(d));
	for (int i = from;; i++) {
		bool last = true;

		for (int j = 0; j < path[i]->nin; j++)
			last &= path[i]->in[j] == NULL || path[i]->in[j]->def != d || i == from;
		const Node *to = last && path[i + 1] ? path[i + 1] : d;
		note_at(path[i]->loc, "%s needs %s", first_name(path[i]), first_name(to));
		if (to == d || i - from > 30)
			return;
	}
}

static void report_early(Scope *s)
{
	Graph *g = s->g;
	Node **path = arena_array(s->tmp, Node *, g->nnode + 2);
	int *next = arena_array(s->tmp, int, g->nnode + 2);

	for (int i = 0; i < g->nnode; i++)
		g->node[i]->mark = 0;
	for (int i = 0; i < g->nnode; i++) {
		Node *d = g->node[i]->mark ? NULL : on_cycle(s, g->node[i], path, next);

		if (d) {
			print_cycle(path, d);
			s->bad++;
			return;
		}
	}
	memset(s->made, 0, sizeof *s->made * (size_t)g->nvalue);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];

		for (int j = 0; j < n->nin; j++) {
			const Value *v = n->in[j];

			if (!v || v->graph != g || !v->def || s->made[v->id])
				continue;
			err_at(operand_loc(n, j), "%s is used before it is made", v->name);
			note_at(v->def->loc, "%s is made here", v->name);
			s->bad++;
		}
		for (int j = 0; j < n->nout; j++)
			if (n->out[j])
				s->made[n->out[j]->id] = true;
	}
}

/* ---- @into ---- */

/* Whether two types are the same.  Before shapes are inferred, unknown dimensions may still agree. */
static bool agree(const Type *a, const Type *b, bool inferred)
{
	if (!a || !b)
		return !inferred;
	if (a->kind != TY_TENSOR || b->kind != TY_TENSOR)
		return false;
	if (a->elem != b->elem && (inferred || (a->elem != DT_UNDEFINED && b->elem != DT_UNDEFINED)))
		return false;
	if (a->ndim != b->ndim || a->ndim < 0)
		return !inferred && (a->ndim < 0 || b->ndim < 0);
	for (int i = 0; i < a->ndim; i++)
		if (!dim_same(a->dim[i], b->dim[i]) && (inferred || (dim_known(a->dim[i]) && dim_known(b->dim[i]))))
			return false;
	return true;
}

/* Whether v cannot live in the memory of the value that it names; reported. */
static bool misplaced(const Scope *s, const Value *v, const int *pos, const int *last, Value *const *over)
{
	const Value *old = v->into, *other = old;
	const Graph *g = s->g;
	Loc at = v->def ? v->def->loc : v->loc;

	if (!v->def) {
		err_at(at, "@into(%s): %s is %s; only what a node makes can take the memory of another value",
			old->name, v->name,
			v->input  ? "an input"
			: v->init ? "an initialiser"
				  : "made by no node");
	} else if (old == v) {
		err_at(at, "@into(%s): a value cannot take its own memory", v->name);
		return true;
	} else if (!old->def && !old->input && !old->init) {
		err_at(at, "@into(%s): nothing makes %s, whose memory %s would take", old->name, old->name, v->name);
		return true;
	} else if (over[old->id] != v) {
		other = over[old->id];
		err_at(at, "@into(%s): %s takes the memory of %s already", old->name, other->name, old->name);
	} else if (old->def && pos[old->id] >= pos[v->id]) {
		err_at(at, "@into(%s): %s is not made before %s, which would take its memory", old->name, old->name,
			v->name);
	} else if (last[old->id] == g->nnode) {
		err_at(at, "@into(%s): %s is an output, so that %s cannot take its memory", old->name, old->name,
			v->name);
	} else if (last[old->id] > pos[v->id]) {
		other = v;
		err_at(g->node[last[old->id]]->loc, "%s is read here, but %s has taken its memory: @into(%s)",
			old->name, v->name, old->name);
	} else if (!agree(v->type, old->type, s->facts & FACT_SHAPES)) {
		err_at(at, "@into(%s): %s is %s, but %s is %s; they must agree", old->name, v->name,
			type_text(v->type), old->name, type_text(old->type));
	} else if ((s->facts & FACT_BOUND) && old->init && !old->param) {
		err_at(at, "@into(%s): %s is a constant, which is filled only once and must stay as it is", old->name,
			old->name);
	} else {
		return false;
	}
	note_at(other->def ? other->def->loc : other->loc, "%s stands here", other->name);
	return true;
}

/* A value that lives in the memory of an older one: both have one type, nothing reads the older one any more, and
 * no other value takes its memory.  Each is made after the one whose memory it takes, so that there is no circle. */
static void storage(Scope *s)
{
	const Graph *g = s->g;
	Value **over = NULL;
	int *pos = NULL, *last = NULL;

	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];

		if (!v->into)
			continue;
		if (s->outer) {
			err_at(v->loc, "@into(%s) cannot stand in an inner graph", v->into->name);
			s->bad++;
			continue;
		}
		if (v->into->graph != g)
			die("%s lives in a value of another graph", v->name);
		if (!over) {
			over = arena_array(s->tmp, Value *, g->nvalue + 1);
			pos = arena_array(s->tmp, int, g->nvalue + 1);
			last = arena_array(s->tmp, int, g->nvalue + 1);
			graph_lives(g, last, NULL);
			for (int k = 0; k < g->nnode; k++)
				for (int j = 0; j < g->node[k]->nout; j++)
					if (g->node[k]->out[j])
						pos[g->node[k]->out[j]->id] = k;
		}
		over[v->into->id] = over[v->into->id] ? over[v->into->id] : v;
		s->bad += misplaced(s, v, pos, last, over);
	}
}

static int verify_scope(Graph *g, uint32_t facts, Scope *outer, Arena *tmp);

static void inner_graphs(Scope *s, const Node *n)
{
	for (int i = 0; i < n->nattr; i++) {
		const Attr *a = &n->attr[i];

		if (a->ref)
			continue;
		if (a->type == AT_GRAPH && a->u.g)
			s->bad += verify_scope(a->u.g, s->facts, s, s->tmp);
		for (int k = 0; a->type == AT_GRAPHS && k < a->n; k++)
			s->bad += verify_scope(a->u.gs[k], s->facts, s, s->tmp);
	}
}

/* The number of mistakes.  The readers limit the nesting of subgraphs to limits.depth. */
static int verify_scope(Graph *g, uint32_t facts, Scope *outer, Arena *tmp)
{
	Scope s = { .g = g, .made = arena_array(tmp, bool, g->nvalue + 1), .outer = outer, .facts = facts, .tmp = tmp };

	for (int i = 0; i < g->nvalue; i++) {
		graph_ahead_value(g->value, i, g->nvalue);
		if (g->value[i]->id != i || g->value[i]->graph != g)
			die("value %s is not where it should be", g->value[i]->name);
		s.made[i] = g->value[i]->input || g->value[i]->init || (g->value[i]->data && !g->value[i]->def);
		if ((facts & FACT_SHAPES) && (g->value[i]->input || g->value[i]->init) && untyped(g->value[i])) {
			err_at(g->value[i]->loc, "%s is %s, but its type is not given", g->value[i]->name,
				g->value[i]->input ? "an input" : "an initialiser");
			s.bad++;
		}
	}
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];

		graph_ahead(g->node, i, g->nnode);
		if (n->graph != g)
			die("node %s stands in two graphs", n->op);
		for (int j = 0; j < n->nin; j++)
			use(&s, n, j);
		inner_graphs(&s, n);
		for (int j = 0; j < n->nout; j++)
			result(&s, n, j);
		if ((facts & FACT_BOUND) && !n->row) {
			err_at(n->loc, "operator %s is not known", n->op);
			s.bad++;
		}
	}
	for (int i = 0; i < g->nout; i++)
		if (!*made(&s, g->out[i]) && !g->out[i]->def) {
			const char *meant = near(&s, g->out[i]->name);

			err_at(g->out[i]->loc, "%s is an output but nothing makes it%s%s%s", g->out[i]->name,
				meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
			s.bad++;
		}
	if (s.early)
		report_early(&s);
	if (!s.bad)
		storage(&s);
	return s.bad;
}

int verify_graph(Graph *g, uint32_t facts)
{
	Arena tmp = { 0 };
	int bad = verify_scope(g, facts, NULL, &tmp);

	arena_free(&tmp);
	return bad ? -1 : 0;
}

/* Operator sets. */

static bool is_onnx(Name domain)
{
	return !*domain || !strcmp(domain, "ai.onnx");
}

static int verify_opsets(const Opset *list, int n)
{
	int bad = 0;

	for (int i = 0; i < n; i++) {
		const Opset *o = &list[i];

		if (is_onnx(o->domain) && (o->version < OPSET_MIN || o->version > OPSET_MAX)) {
			err_at(o->loc, "operator set %lld of ONNX is not supported; %d to %d are",
				(long long)o->version, OPSET_MIN, OPSET_MAX);
			bad++;
		} else if (o->version < 1) {
			err_at(o->loc, "operator set %lld of %s does not exist; they are counted from 1",
				(long long)o->version, o->domain);
			bad++;
		}
		for (int j = 0; j < i && i < 100; j++)
			if ((list[j].domain == o->domain || (is_onnx(list[j].domain) && is_onnx(o->domain))) &&
				list[j].version != o->version) {
				err_at(o->loc, "the operators of \"%s\" are imported in two versions, %lld and %lld",
					o->domain, (long long)list[j].version, (long long)o->version);
				note_at(list[j].loc, "the other import");
				bad++;
			}
	}
	return bad;
}

/* Functions: the graph of calls. */

typedef struct Calls {
	Model *m;
	Map byname;                     /* operator name -> 1 + index of the last function of that name */
	int *same;                      /* the previous function of the same name, or -1 */
	struct Call { int to; Loc loc; } **call;
	int *ncall;
	Arena *tmp;
} Calls;

static bool same_text(Name a, Name b)
{
	return (a ? a : name_of("")) == (b ? b : name_of(""));
}

static int find_function(const Calls *c, Name domain, Name name, Name overload)
{
	int i = (int)(intptr_t)map_get(&c->byname, name) - 1;

	for (; i >= 0; i = c->same[i]) {
		const Function *f = c->m->function[i];

		if (same_text(f->domain, domain) && same_text(f->overload, overload))
			return i;
	}
	return -1;
}

static void collect(Calls *c, int from, const Graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		int to = find_function(c, n->domain, n->op, n->overload);

		if (to >= 0)
			arena_push(c->tmp, c->call[from], c->ncall[from], ((struct Call){ to, n->loc }));
		for (int j = 0; j < n->nattr; j++) {
			const Attr *a = &n->attr[j];

			if (a->type == AT_GRAPH && a->u.g && !a->ref)
				collect(c, from, a->u.g);
			for (int k = 0; a->type == AT_GRAPHS && !a->ref && k < a->n; k++)
				collect(c, from, a->u.gs[k]);
		}
	}
}

/* Depth first without recursion: a call to a function on the path closes a cycle. */
static int verify_calls(Calls *c, int start, char *state, int *path, int *next)
{
	int top = 0;

	path[0] = start;
	next[0] = 0;
	state[start] = 1;
	while (top >= 0) {
		int f = path[top];

		if (next[top] == c->ncall[f]) {
			state[f] = 2;
			top--;
			continue;
		}
		struct Call call = c->call[f][next[top]++];
		const Function *to = c->m->function[call.to];
		if (state[call.to] == 1) {
			err_at(call.loc, "function %s calls itself%s%s", to->name, call.to == f ? "" : ", here in ",
				call.to == f ? "" : c->m->function[f]->name);
			note_at(to->loc, "function %s stands here", to->name);
			return 1;
		}
		if (state[call.to] == 2)
			continue;
		if (top + 1 >= limits.depth) {
			fail_at(EXIT_LIMIT, call.loc, "functions call each other more than %lld deep (--max-depth)",
				(long long)limits.depth);
			return 1;
		}
		state[call.to] = 1;
		path[++top] = call.to;
		next[top] = 0;
	}
	return 0;
}

static int verify_functions(Model *m)
{
	Arena tmp = { 0 };
	int n = m->nfunction, bad = 0;
	Calls c = { .m = m, .tmp = &tmp };
	char *state = arena_array(&tmp, char, n + 1);
	int *path = arena_array(&tmp, int, n + 1), *next = arena_array(&tmp, int, n + 1);

	map_init(&c.byname, &tmp);
	c.same = arena_array(&tmp, int, n + 1);
	c.call = arena_array(&tmp, struct Call *, n + 1);
	c.ncall = arena_array(&tmp, int, n + 1);
	for (int i = 0; i < n; i++) {
		const Function *f = m->function[i];
		int old = find_function(&c, f->domain, f->name, f->overload);

		if (old >= 0) {
			err_at(f->loc, "function %s is defined twice", f->name);
			note_at(m->function[old]->loc, "%s is defined here first", f->name);
			bad++;
		}
		c.same[i] = (int)(intptr_t)map_get(&c.byname, f->name) - 1;
		map_put(&c.byname, f->name, (void *)(intptr_t)(i + 1));
	}
	for (int i = 0; i < n; i++)
		collect(&c, i, m->function[i]->body);
	for (int i = 0; i < n && !bad; i++)
		if (!state[i])
			bad += verify_calls(&c, i, state, path, next);
	arena_free(&tmp);
	return bad;
}

/* Attributes that refer to those of the function around them; f NULL: there is none. */
static int verify_refs(const Function *f, const Graph *g)
{
	int bad = 0;

	for (int i = 0; g && i < g->nnode; i++)
		for (int j = 0; j < g->node[i]->nattr; j++) {
			const Attr *a = &g->node[i]->attr[j];
			bool known = !a->ref;

			for (int k = 0; f && k < f->nattr; k++)
				known |= f->attr[k].name == a->ref;
			if (!known && f)
				err_at(g->node[i]->loc, "%s refers to the attribute %s, which function %s has not",
					a->name, a->ref, f->name);
			else if (!known)
				err_at(g->node[i]->loc,
					"%s refers to the attribute %s of a function, but stands in none", a->name,
					a->ref);
			bad += !known;
			if (!a->ref && a->type == AT_GRAPH)
				bad += verify_refs(f, a->u.g);
			for (int k = 0; !a->ref && a->type == AT_GRAPHS && k < a->n; k++)
				bad += verify_refs(f, a->u.gs[k]);
		}
	return bad;
}

/* A call has no memory of its own: its results are values of the caller. */
static bool into_in_function(const Function *f)
{
	for (int i = 0; i < f->body->nvalue; i++) {
		const Value *v = f->body->value[i];

		if (!v->into)
			continue;
		err_at(v->loc, "@into(%s) cannot stand in a function; it may where %s is called", v->into->name,
			f->name);
		return true;
	}
	return false;
}

int verify_model(Model *m)
{
	int bad = verify_opsets(m->opset, m->nopset);

	for (int i = 0; i < m->nfunction; i++)
		bad += verify_opsets(m->function[i]->opset, m->function[i]->nopset);
	if (m->nfunction)
		bad += verify_functions(m);
	for (int i = 0; i < m->nfunction; i++)
		bad += verify_graph(m->function[i]->body, 0) != 0 ||
		       verify_refs(m->function[i], m->function[i]->body) || into_in_function(m->function[i]);
	bad += verify_refs(NULL, m->graph);
	if (m->graph)
		bad += verify_graph(m->graph, 0) != 0;
	return bad ? -1 : 0;
}
