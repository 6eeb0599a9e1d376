/* Facts about kernels, for passes and the emitter.  The facts are rows of a table (kernel_rows.c); this file looks them
 * up. */
#include "target/target.h"

#include <string.h>

/* ---- element types ---- */

DType kernel_stored(DType t)
{
	return t == DT_FLOAT16 || t == DT_BFLOAT16 ? DT_FLOAT : t;
}

const char *kernel_ctype(DType t)
{
	switch (kernel_stored(t)) {
	case DT_FLOAT: return "float";
	case DT_DOUBLE: return "double";
	case DT_INT64: return "int64_t";
	case DT_INT32: return "int32_t";
	case DT_BOOL: case DT_UINT8: return "uint8_t";
	default: return NULL;
	}
}

int kernel_bits(const Value *v)
{
	return dtype_bits(kernel_stored(v->type->elem));
}

int64_t kernel_bytes(const Value *v)
{
	return kernel_bits(v) / 8;
}

bool kernel_float(const Value *v)
{
	return kernel_stored(v->type->elem) == DT_FLOAT;
}

bool kernel_int64(const Value *v)
{
	return v->type->elem == DT_INT64;
}

bool kernel_floating(const Value *v)
{
	return kernel_float(v) || v->type->elem == DT_DOUBLE;
}

bool kernel_first_float(const Node *n)
{
	return kernel_float(n->in[0]);
}

bool kernel_all_float(const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !kernel_float(n->in[i]))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !kernel_float(n->out[i]))
			return false;
	return true;
}

bool kernel_any(const Node *n)
{
	return kernel_ctype(n->in[0]->type->elem) && n->in[0]->type->ndim <= 8 && n->out[0] &&
		type_elements(n->out[0]->type) > 0;
}

bool kernel_indexed(const Node *n)
{
	return kernel_any(n) && kernel_int64(n->in[1]);
}

bool kernel_consts(const Node *n, int from)
{
	for (int i = from; i < n->nin; i++)
		if (n->in[i] && !operand_const(n, i))
			return false;
	return true;
}

int64_t kernel_const(const Node *n, int i, int64_t otherwise)
{
	const Tensor *t = i < n->nin && n->in[i] ? operand_const(n, i) : NULL;
	return t ? tensor_int(t, 0) : otherwise;
}

int kernel_axis(const Node *n, int ndim)
{
	int64_t a = attr_int(n, "axis");
	return (int)(a < 0 ? a + ndim : a);
}

/* ---- the row of a node ---- */

static bool settled(const Value *v)
{
	const Type *t = v ? v->type : NULL;
	bool ok = !v || (t && t->kind == TY_TENSOR && t->ndim >= 0);
	for (int a = 0; v && ok && a < t->ndim; a++)
		ok = dim_known(t->dim[a]);
	return ok;
}

/* Whether all shapes are numbers.  Passes ask before shapes are known, and Kernel.can expects numbers. */
static bool all_settled(const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (!settled(n->in[i]))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (!settled(n->out[i]))
			return false;
	return true;
}

const Kernel *kernel_of(const Node *n)
{
	const Kernel *first = NULL;
	bool known = n->row->kernel && all_settled(n);
	for (const Kernel *k = kernel_rows(); n->row->kernel && k->name; k++) {
		if (*n->row->kernel != *k->name || strcmp(n->row->kernel, k->name))
			continue;
		if (known && k->can(n))
			return k;
		first = first ? first : k;
	}
	return first;
}

static unsigned kernel_facts(const Kernel *k, Target t)
{
	return t == TARGET_CUDA ? k->cuda : k->c;
}

bool kernel_any_has(Target t, unsigned facts)
{
	for (const Kernel *k = kernel_rows(); k->name; k++)
		if ((kernel_facts(k, t) & facts) == facts)
			return true;
	return false;
}

const KernelPair *kernel_pair(const Node *a, const Node *b)
{
	if (!a->row->kernel || !b->row->kernel)
		return NULL;
	for (const KernelPair *k = kernel_rows_of_two(); k->first; k++)
		if (!strcmp(a->row->kernel, k->first) && !strcmp(b->row->kernel, k->second) && k->can(a, b))
			return k;
	return NULL;
}

bool kernel_transfer(const Node *n)
{
	return node_is(n, "sbpcc.Boxing");
}

bool kernel_literal(const Value *v)
{
	if (!v || !v->data || v->param || type_elements(v->type) != 1)
		return false;
	return dtype_is_float(v->type->elem) || dtype_is_int(v->type->elem) || v->type->elem == DT_BOOL;
}

/* The kernel of a node that is not a generated loop; NULL: none. */
static const Kernel *called(const Node *n)
{
	return n->row->expr ? NULL : kernel_of(n);
}

bool kernel_reads(const Node *n, int i)
{
	if (kernel_transfer(n))
		return true;
	const Kernel *k = called(n);
	if (k)
		return k->reads >> (i < 31 ? i : 31) & 1;
	return !n->row->expr || (!kernel_literal(n->in[i]) && expr_uses(expr_of(n), i));
}

static bool typed(const Node *n, const Value *v)
{
	if (kernel_ctype(v->type->elem))
		return true;
	err_at(n->loc,
		"%s is %s: programs hold float, double, float16, bfloat16, int64, int32, uint8 and bool; Cast it",
		v->name, type_text(v->type));
	return false;
}

bool kernel_counts(const Node *n)
{
	const Kernel *k = called(n);
	return k && k->c & KERNEL_COUNTS;
}

bool kernel_has(const Node *n)
{
	const Kernel *k = called(n);
	return n->row->expr || kernel_transfer(n) || (k && k->can(n));
}

bool kernel_on(const Node *n, Target t)
{
	const Kernel *k = called(n);
	return kernel_has(n) && (!k || kernel_facts(k, t) & KERNEL_HERE);
}

static const Value *operand_or_result(const Node *n, int i)
{
	return i < n->nin ? n->in[i] : n->out[i - n->nin];
}

/* Reports why no kernel can do the node: the first reason that applies. */
static void explain(const Node *n)
{
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Value *v = operand_or_result(n, i);
		if (!v || !v->type || type_elements(v->type) != 0)
			continue;
		err_at(n->loc, "%s %s of this %s is empty: %s; no kernel takes tensors without elements",
			i < n->nin ? "operand" : "the result", v->name, n->op, type_text(v->type));
		return;
	}
	for (int i = 0; i < n->nin + n->nout; i++)
		if (operand_or_result(n, i) && !typed(n, operand_or_result(n, i)))
			return;
	Text types = { 0 };
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			text_add(&types, "%s%s", types.n ? ", " : "", type_text(n->in[i]->type));
	err_at(n->loc, "no kernel computes %s of %s; operands that say how (axes, shapes, counts) must be constants",
		n->op, types.n ? types.s : "nothing");
}

bool kernel_can(Node *n, Target t)
{
	if (!kernel_has(n)) {
		explain(n);
		return false;
	}
	if (!kernel_on(n, t)) {
		err_at(n->loc, "%s has a kernel in C, but none for CUDA yet", n->op);
		return false;
	}
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && kernel_reads(n, i) && !typed(n, n->in[i]))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !typed(n, n->out[i]))
			return false;
	return true;
}
