/* Identities: which value of one graph corresponds to which value of another, if the same passes made both graphs from
 * one model.
 *
 * compiler/train/whole_batch.c compiles a model twice, for one micro-batch and for the whole batch, and compares the
 * two graphs.  Names do not identify values: they are hints with numbers, and a user may have taken one.  Nor does the
 * order in which values are made, because a pass may do more in one graph than in the other.  Therefore each value has
 * an identity, which is derived from how it is made:
 *
 *   a value of the model              its position in the model (identity_start)
 *   a copy of a value of a body       the call, and that value of the body (identity_copy)
 *   a result of a new node            the node that is rewritten, and its number among the results that this rewrite
 *                                     makes (identity_node)
 *   a constant that a new node reads  the first result of that node, and which operand it is (identity_node)
 *   a value like another: the same    that value, and a word (identity_from)
 *   elements, or cast
 *
 * "The node that is rewritten" is set by identity_enter; its identity is that of its first result.
 *
 * A rewrite may take one way in one graph and another in the other: a guard holds, a loop runs longer.  Therefore each
 * list of values that only a number distinguishes also keeps a hash of the operators that make them.  If the lists of
 * two graphs differ, none of their values is found.  The branch that an If takes is kept, too (identity_control): the
 * result of the If has one identity, whichever branch computes it.
 *
 * An identity is a hash of 64 bits.  Two values of a graph with the same identity are a bug.  Models that are not
 * compared (Model.identity is NULL) have none. */
#include "identity.h"

/* Values that are distinguished by a number: how many, and a hash of what makes them. */
typedef struct Made { int n; uint64_t ops; } Made;
typedef struct Known { Value *v; const Made *among; const Value *like; } Known;

struct Identity {
	Arena *arena;
	uint64_t maker;                 /* the rewrite that is going on; 0: none */
	Map known;                      /* Known by identity */
	Map made;                       /* Made by what their values are made from */
	Map control;                    /* by rewrite: Control */
	Control *controls;
	bool closed;                    /* values that are made now have none */
};

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = ((h + 0x632be59bd9b4e019u) ^ x) * 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
	return h ^ h >> 32;
}

static uint64_t mix_name(uint64_t h, Name s)
{
	return mix(h, (uint64_t)(uintptr_t)s);
}

static const void *key(uint64_t h)
{
	return (const void *)(uintptr_t)h;
}

/* The identities of the model, if new values get one. */
static struct Identity *tracked(const Graph *g)
{
	struct Identity *t = g->model->identity;

	return t && !t->closed ? t : NULL;
}

/* op: a hash of the operator that makes v, among the values that are made from the same source. */
static Known *give(struct Identity *t, Value *v, uint64_t from, uint64_t op)
{
	Known *k = arena_new(t->arena, Known), *old;
	Made *among = map_get(&t->made, key(from));

	if (!among) {
		among = arena_new(t->arena, Made);
		map_put(&t->made, key(from), among);
	}
	*k = (Known){ .v = v, .among = among };
	v->identity = mix(from, (uint64_t)++among->n);
	among->ops = mix(among->ops, op);
	if ((old = map_get(&t->known, key(v->identity))) != NULL || !v->identity)
		die("%s and %s have the same identity", v->name, old ? old->v->name : "no value");
	map_put(&t->known, key(v->identity), k);
	return k;
}

static void start(struct Identity *t, const Graph *g, uint64_t *number)
{
	for (int i = 0; i < g->nvalue; i++)
		give(t, g->value[i], mix(1, ++*number), 0);
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nattr; k++) {
			const Attr *a = &g->node[i]->attr[k];

			if (a->type == AT_GRAPH && a->u.g)
				start(t, a->u.g, number);
			for (int j = 0; a->type == AT_GRAPHS && j < a->n; j++)
				start(t, a->u.gs[j], number);
		}
}

void identity_start(Model *m)
{
	uint64_t number = 0;

	m->identity = arena_new(&m->arena, struct Identity);
	m->identity->arena = &m->arena;
	map_init(&m->identity->known, &m->arena);
	map_init(&m->identity->made, &m->arena);
	map_init(&m->identity->control, &m->arena);
	start(m->identity, m->graph, &number);
}

void identity_close(Model *m)
{
	if (m->identity)
		m->identity->closed = true;
}

uint64_t identity_enter(const Node *n, const char *what)
{
	struct Identity *t = tracked(n->graph);
	uint64_t was = t ? t->maker : 0, of = 0;

	for (int i = 0; t && i < n->nout && !of; i++)
		of = n->out[i] ? n->out[i]->identity : 0;
	if (t)
		t->maker = mix_name(of ? of : was, name_of(what));
	return was;
}

uint64_t identity_enter_value(const Value *v, const char *what, int kind)
{
	struct Identity *t = tracked(v->graph);
	uint64_t was = t ? t->maker : 0;

	if (t)
		t->maker = mix(mix_name(v->identity, name_of(what)), (uint64_t)kind);
	return was;
}

void identity_leave(const Graph *g, uint64_t was)
{
	struct Identity *t = tracked(g);

	if (t)
		t->maker = was;
}

/* A body of the table or of a function of the model is the same object for every graph. */
void identity_copy(Value *made, const Value *of)
{
	struct Identity *t = tracked(made->graph);

	if (t)
		give(t, made, mix(t->maker, of->identity ? of->identity : (uint64_t)(uintptr_t)of), 0);
}

void identity_from(Value *made, const Value *like, const char *what)
{
	struct Identity *t = tracked(made->graph);

	if (t && !made->identity)
		give(t, made, mix_name(like->identity, name_of(what)), 0)->like = like;
}

void identity_node(const Node *n)
{
	struct Identity *t = tracked(n->graph);
	uint64_t op = mix_name((uint64_t)n->nin, n->op), first = 0;

	for (int i = 0; t && i < n->nout; i++) {
		if (n->out[i] && !n->out[i]->identity)
			give(t, n->out[i], t->maker, mix(op, (uint64_t)i));
		first = first || !n->out[i] ? first : n->out[i]->identity;
	}
	for (int i = 0; t && i < n->nin; i++)
		if (n->in[i] && n->in[i]->data && !n->in[i]->identity)
			give(t, n->in[i], mix(mix_name(first, n->op), (uint64_t)i), 0);
}

const Value *identity_find(const Model *there, const Value *v)
{
	const Known *here = map_get(&v->graph->model->identity->known, key(v->identity));
	const Known *k = map_get(&there->identity->known, key(v->identity));

	return k && k->among->n == here->among->n && k->among->ops == here->among->ops ? k->v : NULL;
}

const Value *identity_like(const Value *v)
{
	const Known *k = map_get(&v->graph->model->identity->known, key(v->identity));

	return k->like;
}

void identity_control(const Node *n, int64_t taken)
{
	struct Identity *t = tracked(n->graph);
	Control *w = t ? arena_new(t->arena, Control) : NULL;

	if (!t)
		return;
	*w = (Control){ .n = n, .taken = taken, .rewrite = t->maker, .next = t->controls };
	map_put(&t->control, key(w->rewrite), w);
	t->controls = w;
}

const Control *identity_controls(const Model *m)
{
	return m->identity ? m->identity->controls : NULL;
}

const Control *identity_find_control(const Model *there, const Control *w)
{
	return map_get(&there->identity->control, key(w->rewrite));
}
