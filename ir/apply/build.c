/* Nodes from C: by the name of the operator, with attributes as text; inferred and appended. */
#include "apply.h"

#include <stdlib.h>
#include <string.h>

static void build_attrs(Node *n, const char *p)
{
	while (*p) {
		while (*p == ' ' || *p == ',')
			p++;
		const char *eq = strchr(p, '=');
		if (!eq)
			break;
		Name name = name_n(p, (size_t)(eq - p));
		char *end;
		p = eq + 1;
		if (*p == '"') {
			const char *q = strchr(p + 1, '"');

			node_attr_add(n, name, AT_STRING)->u.s = name_n(p + 1, (size_t)(q - p) - 1);
			p = q + 1;
		} else if (*p == '[') {
			Attr *a = node_attr_add(n, name, AT_INTS);

			for (p++; *p && *p != ']'; p += strspn(p, ", ")) {
				arena_push(n->graph->arena, a->u.is, a->n, strtoll(p, &end, 10));
				if (end == p)
					die("build: attributes \"%s\"", p);
				p = end;
			}
			p++;
		} else {
			int64_t i = strtoll(p, &end, 10);

			if (*end == '.' || *end == 'e')
				node_attr_add(n, name, AT_FLOAT)->u.f = strtof(p, &end);
			else
				node_attr_add(n, name, AT_INT)->u.i = i;
			if (end == p)
				die("build: attributes \"%s\"", p);
			p = end;
		}
	}
}

/* Makes, expands, infers and appends a node: operands are Value *, NULL for one left out.  outs may be NULL, or give
 * the values that the results shall be (NULL entries: fresh ones, stored back).  Returns the first result, or NULL
 * after an error was reported. */
Value *build_list(Graph *g, Loc loc, const char *op, const char *attrs, int nout, Value **outs, int nin,
	Value *const *in)
{
	Node *n = node_new(g, name_of(""), name_of(op), loc);
	Value *first = NULL;

	build_attrs(n, attrs ? attrs : "");
	for (int i = 0; i < nin; i++)
		node_in(n, in[i]);
	for (int i = 0; i < nout; i++) {
		Value *v = outs ? outs[i] : NULL;

		if (!v)
			v = graph_fresh(g, name_fmt("%s.%d", op, g->nvalue));
		v->loc = v->loc.file ? v->loc : loc;
		if (outs)
			outs[i] = v;
		first = i ? first : v;
		node_out(n, v);
	}
	return inline_append(g, n) < 0 ? NULL : first;
}
