/* Sequences whose length and positions are known at compile time are lists of values; none of them is left in the
 * graph. Exporters write split and chunk in this way: SplitToSequence, then SequenceAt with a constant position,
 * which is Split.
 *
 * Each operator is resolved while it is inlined: it reads the lists of its operands (Value.item) and gives a list,
 * or the nodes that make a tensor from one.  Where length or position is not known the operator is refused,
 * because a statically scheduled program cannot run it. */
#include "apply.h"

#include <string.h>

static const char *const names[] = { "SplitToSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
	"SequenceInsert", "SequenceErase", "SequenceLength", "ConcatFromSequence", NULL };

/* Identity of a sequence, too: a Loop copies the sequences that it carries. */
bool sequence_is(const Node *n)
{
	if (!*n->domain && !strcmp(n->op, "Identity") && n->nin == 1 && n->in[0] && n->in[0]->item)
		return true;
	for (int i = 0; (!*n->domain || !strcmp(n->domain, "ai.onnx")) && names[i]; i++)
		if (!strcmp(n->op, names[i]))
			return true;
	return false;
}

bool sequence_any(const Graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if (sequence_is(g->node[i]))
			return true;
	return false;
}

static int refuse(Node *n, const char *what)
{
	err_at(n->loc, "%s is supported only where %s known at compile time", n->op, what);
	return -1;
}

static int64_t number(const Node *n, const char *name, int64_t otherwise)
{
	const Attr *a = node_attr(n, name);

	return a && a->type == AT_INT ? a->u.i : otherwise;
}

static Value *operand(const Node *n, int i)
{
	return i < n->nin ? n->in[i] : NULL;
}

static int give(Node *n, Value **item, int count)
{
	Value *v = n->nout ? n->out[0] : NULL;

	if (!v)
		return 0;
	if (v->output) {
		err_at(n->loc,
			"%s gives a sequence, which cannot be an output; give its tensors one by one, or joined by "
			"ConcatFromSequence",
			n->op);
		return -1;
	}
	v->item = item ? item : arena_array(n->graph->arena, Value *, 1);
	v->nitem = count;
	v->def = NULL;
	return 0;
}

/* The list of operand 0, and a constant position in it that is at most its length. */
static int position(Node *n, int operand_at, int count, int otherwise, int *at)
{
	const Tensor *t = operand_const(n, operand_at);

	*at = otherwise;
	if (!operand(n, operand_at))
		return 0;
	if (!t || tensor_elements(t) != 1)
		return refuse(n, "its position is");
	int64_t i = tensor_int(t, 0);
	i += i < 0 ? count : 0;
	if (i < 0 || i > otherwise) {
		err_at(operand_loc(n, operand_at), "%s: position %lld is outside of a sequence of %d", n->op,
			(long long)tensor_int(t, 0), count);
		return -1;
	}
	*at = (int)i;
	identity_control(n, i);
	return 0;
}

/* The sizes of the parts: as listed, or one size that repeats (the last part is the remainder), or ones. */
static int sizes_of(Node *n, Dim length, int64_t **size, int *count)
{
	const Tensor *t = operand_const(n, 1);

	if (operand(n, 1) && !t)
		return refuse(n, "its sizes are");
	*count = 0;
	*size = NULL;
	if (t && t->ndim == 1) {
		for (int64_t i = 0; i < tensor_elements(t); i++)
			arena_push(n->graph->arena, *size, *count, tensor_int(t, i));
		return 0;
	}
	int64_t each = t ? tensor_int(t, 0) : 1;
	if (!dim_known(length))
		return refuse(n, "the length of the axis is");
	if (each < 1 || length / each >= limits.unroll) {
		err_at(n->loc, "%s cannot cut a length of %lld into parts of %lld", n->op, (long long)length,
			(long long)each);
		return -1;
	}
	for (int64_t left = length; left > 0; left -= left < each ? left : each)
		arena_push(n->graph->arena, *size, *count, left < each ? left : each);
	return 0;
}

static int split(Graph *g, Node *n)
{
	const Type *x = operand_type(n, 0);
	int64_t *size;
	int axis, count;

	if (!x || x->ndim < 0)
		return refuse(n, "the number of axes of its operand is");
	if (op_axis(n, number(n, "axis", 0), x->ndim, &axis) < 0 ||
		sizes_of(n, x->dim[axis], &size, &count) < 0)
		return -1;
	Value **part = arena_array(g->arena, Value *, count + 1);
	Node *s = node_new(g, name_of(""), name_of("Split"), n->loc);
	s->name = n->name;
	s->annot = n->annot;
	s->stage = n->stage;
	node_attr_add(s, name_of("axis"), AT_INT)->u.i = axis;
	node_in(s, n->in[0]);
	node_in(s, graph_const(g, tensor_ints(g->arena, size, count), "sizes"));
	for (int i = 0; i < count; i++)
		node_out(s, part[i] = graph_fresh(g,
				    name_fmt("%s.%d", n->nout && n->out[0] ? n->out[0]->name : "part", i)));
	if (inline_append(g, s) < 0)
		return -1;
	bool squeeze = !operand(n, 1) && !number(n, "keepdims", 1);
	for (int i = 0; squeeze && i < count; i++)
		if (!(part[i] = build(g, n->loc, "Squeeze", NULL, 1, NULL, 2, part[i],
			      graph_const(g, tensor_ints(g->arena, (int64_t[]){ axis }, 1), "axis"))))
			return -1;
	return give(n, part, count);
}

static int insert(Graph *g, Node *n, const Value *s)
{
	int at;

	if (!operand(n, 1) || position(n, 2, s->nitem, s->nitem, &at) < 0)
		return -1;
	Value **item = arena_array(g->arena, Value *, s->nitem + 1);
	for (int i = 0; i <= s->nitem; i++)
		item[i] = i < at ? s->item[i] : i == at ? n->in[1] : s->item[i - 1];
	return give(n, item, s->nitem + 1);
}

static int erase(Graph *g, Node *n, const Value *s)
{
	int at;

	if (!s->nitem || position(n, 1, s->nitem, s->nitem - 1, &at) < 0)
		return -1;
	Value **item = arena_array(g->arena, Value *, s->nitem);
	for (int i = 0; i + 1 < s->nitem; i++)
		item[i] = s->item[i < at ? i : i + 1];
	return give(n, item, s->nitem - 1);
}

static int join(Graph *g, Node *n, const Value *s)
{
	int64_t axis = number(n, "axis", 0);
	bool fresh = number(n, "new_axis", 0) != 0;
	Node *cat = node_new(g, name_of(""), name_of("Concat"), n->loc);

	node_attr_add(cat, name_of("axis"), AT_INT)->u.i = axis;
	for (int i = 0; i < s->nitem; i++) {
		Value *v = s->item[i];

		if (fresh)
			v = build(g, n->loc, "Unsqueeze", NULL, 1, NULL, 2, v,
				graph_const(g, tensor_ints(g->arena, &axis, 1), "axis"));
		if (!v)
			return -1;
		node_in(cat, v);
	}
	node_out(cat, n->out[0]);
	return inline_append(g, cat);
}

int sequence_resolve(Graph *g, Node *n)
{
	Value *s = operand(n, 0);
	int at;

	if (!strcmp(n->op, "SequenceEmpty"))
		return give(n, NULL, 0);
	if (!strcmp(n->op, "SequenceConstruct"))
		return give(n, n->in, n->nin);
	if (!s || !n->nout) {
		err_at(n->loc, "%s needs an operand and a result", n->op);
		return -1;
	}
	if (!strcmp(n->op, "SplitToSequence"))
		return split(g, n);
	if (!s->item)
		return refuse(n, "the length of its sequence is");
	if (!strcmp(n->op, "Identity"))
		return give(n, s->item, s->nitem);
	if (!strcmp(n->op, "SequenceInsert"))
		return insert(g, n, s);
	if (!strcmp(n->op, "SequenceErase"))
		return erase(g, n, s);
	if (!strcmp(n->op, "ConcatFromSequence"))
		return join(g, n, s);
	Value *v;
	if (!strcmp(n->op, "SequenceLength")) {
		Tensor *t = tensor_new(g->arena, DT_INT64, 0, NULL);

		tensor_set_int(t, 0, s->nitem);
		v = graph_const(g, t, "length");
	} else if (!s->nitem || !operand(n, 1) || position(n, 1, s->nitem, s->nitem - 1, &at) < 0) {
		return diag_errors() ? -1 : refuse(n, "its position is");
	} else {
		v = s->item[at];
	}
	return build(g, n->loc, "Identity", NULL, 1, n->out, 1, v) ? 0 : -1;
}
