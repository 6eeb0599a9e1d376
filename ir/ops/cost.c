/* The cost of rows: flops and bytes. */
#include "ops.h"

static double elements(const Value *v)
{
	double n = 1;
	if (!v || !v->type || v->type->kind != TY_TENSOR || v->type->ndim < 0)
		return 0;
	for (int i = 0; i < v->type->ndim; i++)
		n *= dim_known(v->type->dim[i]) ? (double)v->type->dim[i] : 1;
	return n;
}

static double bytes(const Value *v)
{
	return v && v->type ? elements(v) * dtype_bits(v->type->elem) / 8 : 0;
}

Cost cost_bytes(const Node *n)
{
	Cost c = { 0 };
	for (int i = 0; i < n->nin; i++)
		c.bytes += bytes(n->in[i]);
	for (int i = 0; i < n->nout; i++)
		c.bytes += bytes(n->out[i]);
	return c;
}

/* Rows of 8 operations and more are functions such as exp: their flops count as `others`. */
Cost cost_pointwise(const Node *n)
{
	Cost c = cost_bytes(n);
	c.flops = n->nout ? elements(n->out[0]) * (n->row->flops ? n->row->flops : 1) : 0;
	c.others = n->row->expr && n->row->flops >= 8 ? c.flops : 0;
	return c;
}

Cost cost_reduce(const Node *n)
{
	Cost c = cost_bytes(n);
	c.flops = n->nin ? elements(n->in[0]) : 0;
	return c;
}
