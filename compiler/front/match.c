/* Matching of patterns that are written as functions in the language (patterns.ir, which says what they mean).
 *
 * A backtracking unifier: a goal says that a value of the model is what a value of a pattern describes.  A call of
 * another pattern opens a frame, whose operands are looked up in the caller's.  When no goal is left, the caller's
 * function accepts or refuses the match; if it refuses, the search goes on.  Depth and work are bounded by the
 * patterns, never by the model. */
#include "front/front.h"

#include <math.h>
#include <string.h>

/* One use of a pattern: the bindings of its names.  Operands that the caller gives are looked up in the caller's
 * frame. */
typedef struct Frame {
	const Function *f;
	const Node *call;
	struct Frame *outer;
	Value **is;
} Frame;
typedef struct Goal {
	const Value *p;
	Frame *f;
	Value *v;
	const struct Goal *next;
} Goal;

static Model *patterns;

static int input_index(const Function *f, const Value *p)
{
	for (int i = 0; i < f->body->nin; i++)
		if (f->body->in[i] == p)
			return i;
	return -1;
}

/* The binding of a name of a pattern; an operand is resolved in the frame of the caller. */
static void resolve(const Value **p, Frame **f)
{
	int i;

	while ((*f)->call && (i = input_index((*f)->f, *p)) >= 0 && i < (*f)->call->nin && (*f)->call->in[i]) {
		*p = (*f)->call->in[i];
		*f = (*f)->outer;
	}
}

static const Node *literal(const Value *p)
{
	const Node *n = p->def;

	if (n && node_is(n, "CastLike") && n->in[0]->def && node_is(n->in[0]->def, "Constant"))
		n = n->in[0]->def;
	return n && node_is(n, "Constant") ? n : NULL;
}

/* Whether they are equal up to 1e-6: exporters round numbers to float. */
bool match_near(double a, double b)
{
	return a == b || fabs(a - b) <= 1e-6 * fabs(b);
}

static bool literal_equals(const Node *n, const Value *v)
{
	const Tensor *t = lift_constant(v);
	const Attr *a = &n->attr[0];
	double want;
	int64_t count = t ? tensor_elements(t) : 0;

	switch (a->type) {
	case AT_INT: want = (double)a->u.i; break;
	case AT_FLOAT: want = (double)a->u.f; break;
	default: want = tensor_get(a->u.t, 0); break;
	}

	for (int64_t i = 0; i < count; i++)
		if (!match_near(tensor_get(t, i), want))
			return false;
	return count > 0;
}

static bool attr_equal(const Node *d, const Attr *want)
{
	int n;

	if (want->type == AT_INT && !strcmp(want->name, "axis")) {
		int ndim = d->out[0] && d->out[0]->type ? d->out[0]->type->ndim : -1;
		int64_t have = attr_int(d, "axis");

		return have == want->u.i || (ndim > 0 && (have + ndim) % ndim == (want->u.i + ndim) % ndim);
	}
	if (want->type == AT_INT)
		return attr_int(d, want->name) == want->u.i;
	if (want->type == AT_FLOAT)
		return isnan(want->u.f) || match_near(attr_float(d, want->name), want->u.f);
	const int64_t *have = attr_ints(d, want->name, &n);
	return n == want->n && (!n || !memcmp(have, want->u.is, sizeof *have * (size_t)n));
}

/* An attribute that the pattern does not mention must have its default. */
static bool attr_default(const Node *n, const Attr *a)
{
	const Schema *s = n->row->schema;

	if (!strcmp(a->name, "allowzero") || !strcmp(a->name, "to"))
		return true;                    /* the types decide */
	for (int i = 0; i < s->nattr; i++) {
		const Attr *d = &s->attr[i];

		if (d->name != a->name)
			continue;
		if (!s->hasdefault || !s->hasdefault[i] || d->type != a->type)
			return false;
		switch (a->type) {
		case AT_INT: return d->u.i == a->u.i;
		case AT_FLOAT: return d->u.f == a->u.f;
		default: return a->type == AT_STRING && d->u.s == a->u.s;
		}
	}
	return false;
}

static bool same_attrs(const Node *p, const Node *d)
{
	for (int i = 0; i < p->nattr; i++)
		if (!attr_equal(d, &p->attr[i]))
			return false;
	for (int i = 0; i < d->nattr; i++)
		if (!node_attr(p, d->attr[i].name) && !attr_default(d, &d->attr[i]))
			return false;
	return true;
}

static int operands(const Node *n)
{
	int count = n->nin;

	while (count && !n->in[count - 1])
		count--;
	return count;
}

static bool commutes(const Node *n)
{
	return node_is(n, "Add") || node_is(n, "Mul");
}

static bool is_pattern(const Node *n)
{
	for (int i = 0; i < patterns->nfunction; i++)
		if (patterns->function[i]->name == n->op)
			return true;
	return false;
}

static bool solve(Match *, const Goal *);

static Frame *frame_new(Match *m, const Function *f, const Node *call, Frame *outer)
{
	Frame *frame = arena_new(m->arena, Frame);

	*frame = (Frame){ f, call, outer, arena_array(m->arena, Value *, f->body->nvalue + 1) };
	return frame;
}

/* Whether one of the patterns that n calls describes the value of the goal. */
static bool solve_call(Match *m, const Node *n, Frame *outer, const Goal *g)
{
	for (int i = 0; i < patterns->nfunction; i++) {
		const Function *f = patterns->function[i];

		if (f->name != n->op || f->body->nin < 1)
			continue;
		if (solve(m, &(Goal){ f->body->out[0], frame_new(m, f, n, outer), g->v, g->next }))
			return true;
	}
	return false;
}

static bool solve_node(Match *m, const Node *n, Frame *f, const Goal *g)
{
	Node *d = g->v->def;
	int count = operands(n);
	Goal sub[8];

	if (!d || d->graph != m->root->graph || d->op != n->op || (*d->domain && strcmp(d->domain, "sbpcc")))
		return false;
	if (g->v->defidx != 0 || operands(d) != count || count > 8 || m->n == MATCHED_MAX || !same_attrs(n, d))
		return false;
	m->node[m->n++] = d;
	for (int order = 0; order < (commutes(n) && count == 2 ? 2 : 1); order++) {
		for (int i = 0; i < count; i++)
			sub[i] = (Goal){ n->in[i], f, d->in[order ? count - 1 - i : i],
				i + 1 < count ? &sub[i + 1] : g->next };
		bool given = true;
		for (int i = 0; i < count; i++)
			given &= sub[i].v != NULL;
		if (given && solve(m, count ? sub : g->next))
			return true;
	}
	m->n--;
	return false;
}

/* Whether all goals hold and the function of the rule accepts the match. */
static bool solve(Match *m, const Goal *g)
{
	if (!g)
		return m->accept(m->arg, m);
	const Value *p = g->p;
	Frame *f = g->f;
	int covered = m->n;
	bool good;

	resolve(&p, &f);
	if (f->is[p->id])
		return f->is[p->id] == g->v && solve(m, g->next);
	const Node *number = literal(p);
	if (number)
		return literal_equals(number, g->v) && solve(m, g->next);
	f->is[p->id] = g->v;
	if (!p->def)
		good = solve(m, g->next);
	else if (is_pattern(p->def))
		good = solve_call(m, p->def, f, g);
	else
		good = solve_node(m, p->def, f, g);
	if (!good) {
		f->is[p->id] = NULL;
		m->n = covered;
	}
	return good;
}

Value *match_hole(const Match *m, const char *name)
{
	const Graph *b = m->top->f->body;

	for (int i = 0; i < b->nin; i++)
		if (!strcmp(b->in[i]->name, name))
			return m->top->is[b->in[i]->id];
	return NULL;
}

/* Adds the bit of a rule to the operators that may be the last node of its pattern. */
static void note_roots(Map *roots, const Function *f, int rule, int depth)
{
	const Node *n = f->body->out[0]->def;

	if (!n || depth > 8)
		return;
	if (!is_pattern(n)) {
		map_put(roots, n->op, (void *)((uintptr_t)map_get(roots, n->op) | (uintptr_t)1 << rule));
		return;
	}
	for (int i = 0; i < patterns->nfunction; i++)
		if (patterns->function[i]->name == n->op)
			note_roots(roots, patterns->function[i], rule, depth + 1);
}

void match_read(const char *text, const char *const *names, Map *roots)
{
	patterns = model_new();
	map_init(roots, &arena_process);
	if (parse_library(file_memory("patterns.ir", text, strlen(text)), patterns))
		die("the patterns do not parse");
	for (int r = 0; names[r]; r++)
		for (int i = 0; i < patterns->nfunction; i++)
			if (!strcmp(patterns->function[i]->name, names[r]))
				note_roots(roots, patterns->function[i], r, 0);
}

bool match_try(Node *root, const char *name, bool (*accept)(void *, Match *), void *arg)
{
	bool done = false;
	Arena tmp = { 0 };

	for (int i = 0; i < patterns->nfunction && !done; i++) {
		const Function *f = patterns->function[i];

		if (strcmp(f->name, name))
			continue;
		Match m = { .root = root, .name = name, .arena = &tmp, .accept = accept, .arg = arg };
		m.top = frame_new(&m, f, NULL, NULL);
		done = solve(&m, &(Goal){ f->body->out[0], m.top, root->out[0], NULL });
	}
	arena_free(&tmp);
	return done;
}
