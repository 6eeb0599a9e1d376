/* One node: its operands, results, attributes and name. */
#include "graph.h"

#include <string.h>

Node *node_new(Graph *g, Name domain, Name op, Loc loc)
{
	Node *n = graph_node(g, domain, op, loc);

	g->nnode--;             /* created, but not placed */
	return n;
}

void node_in(Node *n, Value *v)
{
	arena_push(n->graph->arena, n->in, n->nin, v);
}

void node_out(Node *n, Value *v)
{
	if (v) {
		v->def = n;
		v->defidx = n->nout;
	}
	arena_push(n->graph->arena, n->out, n->nout, v);
}

Attr *node_attr(const Node *n, const char *name)
{
	for (int i = 0; i < n->nattr; i++)
		if (!strcmp(n->attr[i].name, name))
			return &n->attr[i];
	return NULL;
}

Attr *node_attr_add(Node *n, Name name, AttrType type)
{
	arena_push(n->graph->arena, n->attr, n->nattr, ((Attr){ .name = name, .type = type, .loc = n->loc }));
	return &n->attr[n->nattr - 1];
}

bool node_is(const Node *n, const char *op)
{
	if (n && !n->domain[0])
		return n->op[0] == op[0] && !strcmp(n->op, op);
	const char *dot = strchr(op, '.');
	size_t domain = dot ? (size_t)(dot - op) : 0;
	return n && !strcmp(n->op, dot ? dot + 1 : op) && strlen(n->domain) == domain && !memcmp(n->domain, op, domain);
}

void node_inherit(Node *m, const Node *from)
{
	m->from = from->from;
	m->stage = from->stage;
	for (const Annot *a = from->annot; a; a = a->next)
		if (strcmp(a->name, "sbp") && strcmp(a->name, "opset")) {
			Annot one = *a;
			one.next = NULL;
			annot_add(&m->annot, annot_copy(m->graph->arena, &one));
		}
}
