/* Calls that read or write where an index operand says: gathers, scatters, their gradients, one-hot, compress. */
#include "calls.h"

#include <inttypes.h>
#include <string.h>

/* ---- along one axis ---- */

static void call_gather(const Print *p)
{
	Shape x = args_in(p, 0), i = args_in(p, 1);
	int axis = kernel_axis(p->n, x.ndim);
	const char *first = calls_origin(p, p->take[0], axis);
	bool shard = strcmp(first, "0") != 0;
	args_call(p, shard ? "k_gather_shard" : "k_gather", "0", "01");
	args_around(p, &x, axis);
	args_sizes(p, loops_count(&i));
	if (!shard) {
		args_width(p, p->n->in[0]);
		return;
	}
	args_sizes(p, kernel_bits(p->n->in[0]) / 8);
	text_add(p->t, ", %s", first);
	args_sizes(p, p->take[0]->v->type->dim[axis]);
	args_end(p);
}

static void call_gather_grad(const Print *p)
{
	Shape y = args_out(p, 0), i = args_in(p, 2);
	int axis = kernel_axis(p->n, y.ndim);
	const char *first = calls_origin(p, p->make[0], axis);
	bool single = kernel_float(p->n->in[0]), tree = single && opt.chunks, shard = single &&
		(tree || strcmp(first, "0") != 0);
	int64_t chunks = tree ? args_chunks(p, "index_tree") : 1;
	if (tree) {
		statement_file(p->e, "index_tree");
		args_need(p, k_work_lists(y.d[axis], loops_count(&i)));
	}
	args_call(p, tree ? "k_gather_grad_tree_f32" : shard ? "k_gather_grad_shard_f32" : single ? "k_gather_grad_f32"
		: "k_gather_grad", "0", "02");
	args_around(p, &y, axis);
	args_sizes(p, loops_count(&i));
	if (shard) {
		text_add(p->t, ", %s", first);
		args_sizes(p, p->make[0]->v->type->dim[axis]);
	}
	if (tree)
		args_sizes(p, chunks);
	single ? args_end(p) : args_type(p, p->n->in[0]);
}

/* Loops over the index that move in x, but not along the axis that is indexed, then that axis. */
static void print_elements(const Print *p)
{
	Shape x = args_in(p, 0), i = args_in(p, 1);
	int axis = kernel_axis(p->n, x.ndim);
	int64_t st[8];
	Loops l = { 0 };
	loops_strides(&x, st);
	for (int a = 0; a < i.ndim; a++)
		loops_add(&l, i.d[a], a == axis ? 0 : st[a]);
	args_loops(p, &l);
	args_sizes(p, x.d[axis], st[axis]);
}

static void call_gather_elements(const Print *p)
{
	args_call(p, "k_gather_elements", "0", "01");
	print_elements(p);
	args_width(p, p->n->in[0]);
}

/* ---- scatters ---- */

static const char *scatter_how(const Node *n)
{
	const char *r = attr_has(n, "reduction") ? attr_str(n, "reduction") : "none";
	return !strcmp(r, "add") ? "K_ADD" : !strcmp(r, "mul") ? "K_MUL" : !strcmp(r, "max") ? "K_LARGEST" : !strcmp(r,
		"min") ? "K_SMALLEST" : "K_PUT";
}

static void print_scatter(const Print *p, const char *name)
{
	Shape x = args_in(p, 0);
	args_call(p, name, "0", "012");
	args_sizes(p, loops_count(&x));
}

static void print_how(const Print *p)
{
	text_add(p->t, ", %s", scatter_how(p->n));
	args_type(p, p->n->in[0]);
}

static void call_scatter(const Print *p)
{
	print_scatter(p, "k_scatter_elements");
	print_elements(p);
	print_how(p);
}

/* ---- by tuples ---- */

static void print_nd(const Print *p, const Shape *x, const Shape *index, int batch)
{
	int depth = (int)index->d[index->ndim - 1];
	int64_t st[8];
	loops_strides(x, st);
	text_add(p->t, ", &(KNd){");
	args_field_int(p, "batch", loops_product(index, 0, batch));
	args_field_int(p, "many", loops_product(index, batch, index->ndim - 1));
	args_field_int(p, "xbatch", loops_product(x, batch, x->ndim));
	args_field_int(p, "run", loops_product(x, batch + depth, x->ndim));
	text_add(p->t, ", .axes = { %d", depth);
	args_dims(p, x->d + batch, depth);
	args_dims(p, st + batch, depth);
	text_add(p->t, " } }");
}

static void call_gather_nd(const Print *p)
{
	Shape x = args_in(p, 0), i = args_in(p, 1);
	args_call(p, "k_gather_nd", "0", "01");
	print_nd(p, &x, &i, (int)attr_int(p->n, "batch_dims"));
	args_width(p, p->n->in[0]);
}

/* dy added to zeros. */
static void call_gather_nd_grad(const Print *p)
{
	Shape x = args_out(p, 0), i = args_in(p, 2);
	args_call(p, "k_scatter_nd", "0", "");
	text_add(p->t, ", NULL, %s, %s", args_operand(p, 2), args_operand(p, 0));
	args_sizes(p, loops_count(&x));
	print_nd(p, &x, &i, (int)attr_int(p->n, "batch_dims"));
	text_add(p->t, ", K_ADD");
	args_type(p, p->n->in[0]);
}

static void call_scatter_nd(const Print *p)
{
	Shape x = args_in(p, 0), i = args_in(p, 1);
	print_scatter(p, "k_scatter_nd");
	print_nd(p, &x, &i, 0);
	print_how(p);
}

/* ---- others ---- */

static void call_one_hot(const Print *p)
{
	Shape y = args_out(p, 0);
	int axis = kernel_axis(p->n, y.ndim);
	const char *first = calls_origin(p, p->make[0], axis);
	bool shard = strcmp(first, "0") != 0;
	args_call(p, shard ? "k_one_hot_shard" : "k_one_hot", "0", "02");
	args_around(p, &y, axis);
	if (!shard) {
		args_width(p, p->n->in[2]);
		return;
	}
	args_sizes(p, kernel_bits(p->n->in[2]) / 8);
	text_add(p->t, ", %s", first);
	args_sizes(p, p->make[0]->v->type->dim[axis]);
	args_end(p);
}

static void call_compress(const Print *p)
{
	Shape x = args_in(p, 0), k = args_in(p, 1);
	args_call(p, "k_compress", "0", "01");
	args_sizes(p, k.d[0]);
	if (attr_has(p->n, "axis"))
		args_around(p, &x, kernel_axis(p->n, x.ndim));
	else
		args_sizes(p, 1, loops_count(&x), 1);
	args_width(p, p->n->in[0]);
}

const Call index_calls[] = {
	{ "gather", "index", call_gather, false },
	{ "gather_grad", "index", call_gather_grad, false },
	{ "gather_grad", "typed", call_gather_grad, false },
	{ "gather_elements", "index", call_gather_elements, false },
	{ "scatter_elements", "typed", call_scatter, false },
	{ "gather_nd", "any", call_gather_nd, false },
	{ "gather_nd_grad", "typed", call_gather_nd_grad, false },
	{ "scatter_nd", "typed", call_scatter_nd, false },
	{ "one_hot", "any", call_one_hot, false },
	{ "compress", "any", call_compress, false },
	{ 0 },
};
