/* Operands of a node, for shape rules and passes. */
#include "table.h"

Type *operand_type(const Node *n, int i)
{
	return i < n->nin && n->in[i] ? n->in[i]->type : NULL;
}

int operand_ndim(const Node *n, int i)
{
	const Type *t = operand_type(n, i);

	return t && t->kind == TY_TENSOR ? t->ndim : -1;
}

DType operand_dtype(const Node *n, int i)
{
	const Type *t = operand_type(n, i);

	return t && t->kind == TY_TENSOR ? t->elem : DT_UNDEFINED;
}

const Tensor *operand_const(const Node *n, int i)
{
	if (i >= n->nin || !n->in[i] || n->in[i]->param || !n->in[i]->data)
		return NULL;
	return extdata_load(n->in[i]->data) < 0 ? NULL : n->in[i]->data;
}

int operand_dims(const Node *n, int i, Dim *dim, int max)
{
	const Tensor *t = operand_const(n, i);

	if (t) {
		int64_t count = tensor_elements(t);

		if (count > max)
			return -1;
		for (int k = 0; k < count; k++) {
			int64_t v = tensor_int(t, k);

			dim[k] = v < 0 ? DIM_UNKNOWN : v;       /* never a number that looks like a symbol */
		}
		return (int)count;
	}
	if (i >= n->nin || !n->in[i] || n->in[i]->nelem < 0 || n->in[i]->nelem > max)
		return -1;
	for (int k = 0; k < n->in[i]->nelem; k++)
		dim[k] = n->in[i]->elem[k];
	return n->in[i]->nelem;
}

void operand_set_result(Node *n, int i, DType elem, int ndim, const Dim *dim)
{
	if (i < n->nout && n->out[i])
		n->out[i]->type = type_tensor(n->graph->arena, elem, ndim, dim);
}

Loc operand_loc(const Node *n, int i)
{
	return n->inloc && i < n->nin && n->inloc[i].file ? n->inloc[i] : n->loc;
}

/* The length of a vector operand, or -1. */
int64_t operand_length(const Node *n, int i)
{
	const Type *t = operand_type(n, i);
	return t && t->ndim == 1 && dim_known(t->dim[0]) ? t->dim[0] : -1;
}
