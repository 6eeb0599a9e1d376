/* Shapes and loops: axes of length 1 vanish, neighbours that one stride walks are joined. */
#include "target/target.h"

int64_t loops_product(const Shape *s, int from, int to)
{
	int64_t n = 1;
	for (int a = from; a < to; a++)
		n *= s->d[a];
	return n;
}

int64_t loops_count(const Shape *s)
{
	return loops_product(s, 0, s->ndim);
}

void loops_strides(const Shape *s, int64_t *stride)
{
	int64_t n = 1;
	for (int a = s->ndim - 1; a >= 0; a--) {
		stride[a] = n;
		n *= s->d[a];
	}
}

void loops_add(Loops *l, int64_t len, int64_t stride)
{
	if (len == 1)
		return;
	if (l->n && l->stride[l->n - 1] == len * stride) {
		l->len[l->n - 1] *= len;
		l->stride[l->n - 1] = stride;
		return;
	}
	l->len[l->n] = len;
	l->stride[l->n++] = stride;
}

/* Each axis of the operand is preceded by an axis of its repeats, with stride 0. */
Loops loops_tile(const Node *n, const Shape *x)
{
	const Tensor *r = operand_const(n, 1);
	Loops l = { 0 };
	int64_t st[8];
	loops_strides(x, st);
	for (int a = 0; a < x->ndim; a++) {
		loops_add(&l, tensor_int(r, a), 0);
		loops_add(&l, x->d[a], st[a]);
	}
	return l;
}
