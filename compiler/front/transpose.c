/* Transposes into matrix products: a product that reads a transposed matrix reads the matrix itself, with other
 * strides.
 *
 * MatMul(a, Transpose(b)) becomes MatMulT(a, b), where the permutation swaps the last two axes.  Swap is treated alike.
 * The pass runs before train, so that the gradients of such a product have no transposes either.  A transpose without
 * other readers is removed. */
#include "front/front.h"

#include <string.h>

/* The value that v is with the last two axes exchanged; NULL: v is no such transpose. */
static Value *untransposed(const Value *v)
{
	const Node *n = v->def;
	if (!n || v->graph != n->graph || !v->type || v->type->ndim < 2)
		return NULL;
	if (node_is(n, "sbpcc.Swap"))
		return n->in[0];
	if (*n->domain || strcmp(n->op, "Transpose"))
		return NULL;
	int ndim = v->type->ndim, np;
	const int64_t *perm = attr_ints(n, "perm", &np);
	if (!np)                        /* all axes reversed */
		return ndim == 2 ? n->in[0] : NULL;
	for (int i = 0; i < ndim - 2; i++)
		if (perm[i] != i)
			return NULL;
	return perm[ndim - 2] == ndim - 1 ? n->in[0] : NULL;
}

static void set_flag(Node *n, const char *name, bool v)
{
	Attr *a = node_attr(n, name);
	if (!a)
		a = node_attr_add(n, name_of(name), AT_INT);
	a->u.i = v;
}

int transpose_run(Graph *g)
{
	bool any = false;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool plain = node_is(n, "MatMul"), ours = node_is(n, "sbpcc.MatMulT");
		if ((!plain && !ours) || n->in[0]->type->ndim < 2 || n->in[1]->type->ndim < 2)
			continue;
		Value *of[2] = { untransposed(n->in[0]), untransposed(n->in[1]) };
		if (!of[0] && !of[1])
			continue;
		for (int k = 0; k < 2; k++) {
			const char *flag = k ? "transB" : "transA";
			bool was = ours && attr_int(n, flag);
			if (of[k])
				n->in[k] = of[k];
			if (of[k] || was)
				set_flag(n, flag, was != (of[k] != NULL));
		}
		n->domain = name_of("sbpcc");
		n->op = name_of("MatMulT");
		n->version = 0;
		n->row = op_find(n->domain, n->op, 1);
		any = true;
	}
	if (any)
		graph_sweep(g);
	return 0;
}
