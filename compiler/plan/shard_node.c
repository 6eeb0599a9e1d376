/* The node that one rank runs: a copy whose operands and results have the types of what the rank holds, and whose attributes and
 * constants agree with them.  Six heads of twelve are six to Attention; a reshape makes what there is of its result.  Kernels are
 * called by it, and the tests of signatures evaluate it. */
#include "plan/plan.h"

#include <string.h>

static Value **with_types(Value *const *v, int n, Type *const *type, Arena *a)
{
	Value **list = arena_array(a, Value *, n + 1);
	for (int i = 0; i < n; i++) {
		if (!v[i])
			continue;
		list[i] = arena_new(a, Value);
		*list[i] = *v[i];
		if (type[i])
			list[i]->type = type[i];
	}
	return list;
}

/* Nothing is left of an operand that is cut: all results that are cut with it are empty, and the partial ones have no term here. */
static bool idle(const Node *n, Type *const *in, Type *const *out)
{
	int added = op_added(n);
	if (added >= 0 && in[added] && type_elements(in[added]) != 0 && n->out[0] && type_elements(out[0] ? out[0] : n->out[0]->type) != 0)
		return false;                   /* what is added may be all that there is */
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && in[i] && type_elements(in[i]) == 0 && type_elements(n->in[i]->type) != 0)
			return true;
	return false;
}

/* Where the part begins along the axes that the kernel counts along, and how long these are as a whole. */
static void tell_origin(Node *part, const Node *n, const int64_t *origin, Arena *a)
{
	bool out;
	int at, axis;
	if (!op_origin(n, &out, &at, &axis))
		return;
	const Type *whole = (out ? n->out : n->in)[at]->type, *mine = (out ? part->out : part->in)[at]->type;
	Attr from = { .name = name_of("origin"), .type = axis < 0 ? AT_INTS : AT_INT }, of = { .name = name_of("among"), .type = from.type };
	if (axis >= 0 && whole->dim[axis] == mine->dim[axis])
		return;
	if (axis >= 0) {
		from.u.i = origin[axis];
		of.u.i = whole->dim[axis];
	} else {
		from.n = of.n = whole->rank;
		from.u.is = arena_array(a, int64_t, whole->rank + 1);
		of.u.is = whole->dim;
		memcpy(from.u.is, origin, (size_t)whole->rank * sizeof *origin);
	}
	part->shard = true;
	part->attr[part->nattr++] = from;
	part->attr[part->nattr++] = of;
}

Node *shard_node_of(const Node *n, Type *const *in, Type *const *out, const int64_t *const *at, const int64_t *origin, Arena *a)
{
	if (idle(n, in, out))
		return NULL;
	Node *part = arena_new(a, Node);
	*part = *n;
	part->in = with_types(n->in, n->nin, in, a);
	part->out = with_types(n->out, n->nout, out, a);
	part->attr = arena_array(a, Attr, n->nattr + 8);
	if (n->nattr)
		memcpy(part->attr, n->attr, (size_t)n->nattr * sizeof *n->attr);
	if (n->row->fit)
		n->row->fit(part, n);
	if (n->row->place && at)
		n->row->place(part, n, at);
	if (origin)
		tell_origin(part, n, origin, a);
	return part;
}
