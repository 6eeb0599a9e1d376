/* The shard node: what one rank runs of a logical node.  Its operands and results have the types of the rank's shards,
 * and its attributes and constants are adapted to them: Attention sees six heads of twelve, a reshape gives the shape
 * of its shard.  The emitter writes kernel calls from it, and the tests of signatures evaluate it. */
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

/* Whether the shard of an operand is empty.  Then the results that are split with it are empty, too, and this rank adds
 * nothing to partial ones. */
static bool idle(const Node *n, Type *const *in, Type *const *out)
{
	int added = op_added(n);
	if (added >= 0 && in[added] && type_elements(in[added]) != 0 && n->out[0] &&
		type_elements(out[0] ? out[0] : n->out[0]->type) != 0)
		return false;                   /* the added operand alone gives a result */
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && in[i] && type_elements(in[i]) == 0 && type_elements(n->in[i]->type) != 0)
			return true;
	return false;
}

/* Adds attributes: where the shard begins along the axes that the kernel counts along, and the logical lengths of these
 * axes. */
static void set_origin(Node *shard, const Node *n, const int64_t *origin, Arena *a)
{
	bool out;
	int at, axis;
	if (!op_origin(n, &out, &at, &axis))
		return;
	const Type *whole = (out ? n->out : n->in)[at]->type, *mine = (out ? shard->out : shard->in)[at]->type;
	Attr from = { .name = name_of("origin"), .type = axis < 0 ? AT_INTS : AT_INT };
	Attr of = { .name = name_of("among"), .type = from.type };
	if (axis >= 0 && whole->dim[axis] == mine->dim[axis])
		return;
	if (axis >= 0) {
		from.u.i = origin[axis];
		of.u.i = whole->dim[axis];
	} else {
		from.n = of.n = whole->ndim;
		from.u.is = arena_array(a, int64_t, whole->ndim + 1);
		of.u.is = whole->dim;
		memcpy(from.u.is, origin, (size_t)whole->ndim * sizeof *origin);
	}
	shard->shard = true;
	shard->attr[shard->nattr++] = from;
	shard->attr[shard->nattr++] = of;
}

Node *shard_node_of(const Node *n, Type *const *in, Type *const *out, const int64_t *const *at, const int64_t *origin,
	Arena *a)
{
	if (idle(n, in, out))
		return NULL;
	Node *shard = arena_new(a, Node);
	*shard = *n;
	shard->in = with_types(n->in, n->nin, in, a);
	shard->out = with_types(n->out, n->nout, out, a);
	shard->attr = arena_array(a, Attr, n->nattr + 8);
	if (n->nattr)
		memcpy(shard->attr, n->attr, (size_t)n->nattr * sizeof *n->attr);
	if (n->row->fit)
		n->row->fit(shard, n);
	if (n->row->place && at)
		n->row->place(shard, n, at);
	if (origin)
		set_origin(shard, n, origin, a);
	return shard;
}
