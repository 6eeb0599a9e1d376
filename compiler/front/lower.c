/* Lowering: afterwards every node has a kernel or an expression.
 *
 * A composite without a kernel (for its types, attributes or shapes) is replaced by its definition.  Kernels take
 * indices in int64 and regions in the type of the image: operands of other types that are read at run time are cast. */
#include "front/front.h"

#include <string.h>

/* Kernels of composites cannot take operands without elements, such as attention to no keys. */
static bool no_kernel(const Node *n, void *arg)
{
	bool empty = false;
	(void)arg;
	for (int i = 0; i < n->nin; i++)
		empty |= n->in[i] && n->in[i]->type && type_elements(n->in[i]->type) == 0;
	return empty || !kernel_has(n);
}

/* The type in which the kernel of n reads operand i; DT_UNDEFINED: as it is. */
static DType read_as(const Node *n, int i)
{
	const Schema *s = n->row->kernel ? n->row->schema : NULL;
	const Operand *o = s && s->nin ? &s->in[i < s->nin ? i : s->nin - 1] : NULL;
	if (!o || !n->in[i] || !kernel_reads(n, i))
		return DT_UNDEFINED;
	if (*o->type == 'I' || (n->row->as_int64 && !strcmp(o->name, n->row->as_int64)))
		return DT_INT64;
	return n->row->as_first && !strcmp(o->name, n->row->as_first) ? n->in[0]->type->elem : DT_UNDEFINED;
}

static int cast_operands(Graph *g)
{
	int count = g->nnode;
	for (int i = 0; i < count; i++) {
		Node *n = g->node[i];
		for (int k = 0; k < n->nin; k++) {
			DType to = read_as(n, k);
			if (!to || to == n->in[k]->type->elem)
				continue;
			Value *v = build(g, n->loc, "Cast", arena_printf(g->scratch, "to=%d", (int)to), 1, NULL, 1,
				n->in[k]);
			if (!v)
				return -1;
			node_inherit(v->def, n);
			n->in[k] = v;
		}
	}
	return count == g->nnode ? 0 : graph_sort(g);
}

int lower_run(Graph *g)
{
	return cast_operands(g) || inline_lower(g, no_kernel, NULL) || cast_operands(g) ? -1 : fold_run(g);
}
