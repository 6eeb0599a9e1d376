/* Matrix products.  MatMul has numpy's meaning: leading axes broadcast, a vector on the left is a row, on the right a
 * column.  MatMulT reads either operand transposed, in place; MatMulOver sums over all axes but the last, so that the
 * gradient of a weight is one product for any number of batch axes.  Gemm is defined over MatMul.
 *
 * matmul_run below is the one inner loop of the evaluator: convolutions use it too.  It copies both operands into
 * panels and multiplies tiles of 4 x 12, always in double and always in the same order of k, so results do not depend
 * on the machine (multiply and add stay separate: no fused operation changes the bits). */
#include <stdlib.h>
#include <string.h>

#include "ops.h"

enum { MR = 4, NR = 12, KC = 256, MC = 64, NC = 480 };

typedef double Vec __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) void tile_body(
	int64_t k, const double *a, const double *b, double *t)
{
	Vec s00 = { 0 }, s01 = { 0 }, s02 = { 0 }, s10 = { 0 }, s11 = { 0 }, s12 = { 0 };
	Vec s20 = { 0 }, s21 = { 0 }, s22 = { 0 }, s30 = { 0 }, s31 = { 0 }, s32 = { 0 };
	for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
		Vec b0, b1, b2;
		memcpy(&b0, b, sizeof b0);
		memcpy(&b1, b + 4, sizeof b1);
		memcpy(&b2, b + 8, sizeof b2);
#define ROW(i)                                      \
	{                                           \
		Vec x = { a[i], a[i], a[i], a[i] }; \
		s##i##0 += x * b0;                  \
		s##i##1 += x * b1;                  \
		s##i##2 += x * b2;                  \
	}
		ROW(0) ROW(1) ROW(2) ROW(3)
#undef ROW
	}
#define ROW(i)                                \
	memcpy(t + i * NR, &s##i##0, 32);     \
	memcpy(t + i * NR + 4, &s##i##1, 32); \
	memcpy(t + i * NR + 8, &s##i##2, 32);
	ROW(0) ROW(1) ROW(2) ROW(3)
#undef ROW
}

static void tile_plain(int64_t k, const double *a, const double *b, double *t)
{
	tile_body(k, a, b, t);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void tile_avx2(int64_t k, const double *a, const double *b, double *t)
{
	tile_body(k, a, b, t);
}
#endif

typedef void (*Tile)(int64_t k, const double *a, const double *b, double *t);

static Tile tile_best(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return tile_avx2;
#endif
	return tile_plain;
}

static void pack_strided(const Mat *m, int64_t o0, int64_t no, int64_t k0, int64_t nk, int width, double *to)
{
	int64_t fold = m->fold ? m->fold : INT64_MAX;
	for (int64_t o = 0; o < no; o += width, to += nk * width) {
		int64_t have = no - o < width ? no - o : width;
		int64_t q = k0 / fold, r = k0 % fold;
		for (int64_t k = 0; k < nk; k++) {
			double *row = to + k * width;
			int64_t at = (o0 + o) * m->outer + q * m->far + r * m->inner;
			for (int64_t j = 0; j < have; j++)
				row[j] = matmul_get(m, at + j * m->outer);
			for (int64_t j = have; j < width; j++)
				row[j] = 0;
			if (++r == fold)
				r = 0, q++;
		}
	}
}

static void pack(const Mat *m, int64_t o0, int64_t no, int64_t k0, int64_t nk, int width, double *to)
{
	(m->pack ? m->pack : pack_strided)(m, o0, no, k0, nk, width, to);
}

/* One block of c: mc rows by nc columns from packed panels. */
static void block(Tile tile, int64_t mc, int64_t nc, int64_t kc, const double *pa, const double *pb,
	double *c, int64_t crow)
{
	double t[MR * NR];
	for (int64_t j = 0; j < nc; j += NR) {
		int64_t w = nc - j < NR ? nc - j : NR;
		for (int64_t i = 0; i < mc; i += MR) {
			int64_t h = mc - i < MR ? mc - i : MR;
			tile(kc, pa + i * kc, pb + j * kc, t);
			for (int64_t y = 0; y < h; y++)
				for (int64_t x = 0; x < w; x++)
					c[(i + y) * crow + j + x] += t[y * NR + x];
		}
	}
}

void matmul_run(int64_t m, int64_t n, int64_t k, const Mat *a, const Mat *b, double *c, int64_t crow)
{
	if (m <= 0 || n <= 0 || k <= 0)
		return;
	Tile tile = tile_best();
	int64_t kmax = k < KC ? k : KC;
	double *pa = malloc(sizeof(double) * (size_t)(MC * kmax));
	double *pb = malloc(sizeof(double) * (size_t)(NC * kmax));
	if (!pa || !pb)
		die("out of memory");
	for (int64_t j = 0; j < n; j += NC) {
		int64_t nc = n - j < NC ? n - j : NC;
		for (int64_t p = 0; p < k; p += KC) {
			int64_t kc = k - p < KC ? k - p : KC;
			pack(b, j, nc, p, kc, NR, pb);
			for (int64_t i = 0; i < m; i += MC) {
				int64_t mc = m - i < MC ? m - i : MC;
				pack(a, i, mc, p, kc, MR, pa);
				block(tile, mc, nc, kc, pa, pb, c + i * crow + j, crow);
			}
		}
	}
	free(pa);
	free(pb);
}

Mat matmul_of(const Tensor *t)
{
	Mat m = { .data = t->data, .single = t->dtype == DT_FLOAT };
	if (t->dtype != DT_FLOAT && t->dtype != DT_DOUBLE)
		m.data = eval_doubles(t);
	return m;
}

Mat matmul_at(Mat m, int64_t elements)
{
	m.data = (const char *)m.data + elements * (int64_t)(m.single ? sizeof(float) : sizeof(double));
	return m;
}

/* Whether operand i is read transposed: transA and transB of MatMulT. */
static bool transposed(const Node *n, int i)
{
	return !strcmp(n->op, "MatMulT") && attr_int(n, i ? "transB" : "transA") != 0;
}

static int shape_matmul(Node *n)
{
	Type *a = operand_type(n, 0), *b = operand_type(n, 1);
	int ra = operand_ndim(n, 0), rb = operand_ndim(n, 1);
	if (ra == 0 || rb == 0) {
		err_at(operand_loc(n, ra == 0 ? 0 : 1), "%s needs matrices or vectors, this operand is a scalar",
			n->op);
		return -1;
	}
	if (ra < 0 || rb < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	bool ta = transposed(n, 0), tb = transposed(n, 1);
	if ((ta && ra < 2) || (tb && rb < 2)) {
		err_at(operand_loc(n, ta && ra < 2 ? 0 : 1), "%s cannot transpose a vector", n->op);
		return -1;
	}
	Dim ka = a->dim[ra - (ta ? 2 : 1)], kb = b->dim[rb == 1 ? 0 : rb - (tb ? 1 : 2)];
	if (dim_differ(ka, kb)) {
		err_at(operand_loc(n, 1), "%s cannot contract %s with %s: the operands are %s and %s", n->op,
			dim_text(ka), dim_text(kb), type_text(a), type_text(b));
		return -1;
	}
	int la = ra > 2 ? ra - 2 : 0, lb = rb > 2 ? rb - 2 : 0, most = la > lb ? la : lb;
	Dim *dim = arena_array(n->graph->arena, Dim, most + 2);
	memcpy(dim, a->dim, sizeof *dim * (size_t)la);
	int ndim = shape_broadcast_dims(n, la, dim, lb, b->dim);
	if (ndim < 0)
		return -1;
	if (ra > 1)
		dim[ndim++] = a->dim[ra - (ta ? 1 : 2)];
	if (rb > 1)
		dim[ndim++] = b->dim[rb - (tb ? 2 : 1)];
	operand_set_result(n, 0, operand_dtype(n, 0), ndim, dim);
	return 0;
}

/* The steps through the leading axes of one operand: 0 where it is broadcast. */
static void batch_steps(const Tensor *t, int lead, const Tensor *out, int64_t *step)
{
	int mine = t->ndim > 2 ? t->ndim - 2 : 0;
	int64_t s = t->ndim >= 2 ? t->dim[t->ndim - 2] * t->dim[t->ndim - 1] : 0;
	for (int i = lead - 1, j = mine - 1; i >= 0; i--, j--) {
		step[i] = j < 0 || (t->dim[j] == 1 && out->dim[i] != 1) ? 0 : s;
		if (j >= 0)
			s *= t->dim[j];
	}
}

static void product_ints(int64_t m, int64_t n, int64_t k, const Mat *a, const int64_t *ia, const Mat *b,
	const int64_t *ib, int64_t *c)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t p = 0; p < k; p++)
			for (int64_t j = 0; j < n; j++)
				c[i * n + j] = (int64_t)((uint64_t)c[i * n + j] +
							 (uint64_t)ia[i * a->outer + p * a->inner] *
								 (uint64_t)ib[j * b->outer + p * b->inner]);
}

static int eval_matmul(Node *node, Tensor **in, Tensor **out)
{
	Tensor *a = in[0], *b = in[1], *c = out[0];
	bool ta = transposed(node, 0), tb = transposed(node, 1);
	int64_t m = a->ndim > 1 ? a->dim[a->ndim - (ta ? 1 : 2)] : 1, k = a->dim[a->ndim - (ta ? 2 : 1)],
		n = b->ndim > 1 ? b->dim[b->ndim - (tb ? 2 : 1)] : 1;
	int lead = c->ndim - (a->ndim > 1) - (b->ndim > 1);
	int64_t *sa = eval_scratch(sizeof(int64_t) * (size_t)(lead + 1)),
		*sb = eval_scratch(sizeof(int64_t) * (size_t)(lead + 1));
	int64_t *at = eval_scratch(sizeof(int64_t) * (size_t)(lead + 1));
	batch_steps(a, lead, c, sa);
	batch_steps(b, lead, c, sb);
	int64_t batches = 1, oa = 0, ob = 0, total = tensor_elements(c);
	for (int i = 0; i < lead; i++)
		batches *= c->dim[i];
	bool ints = !dtype_is_float(c->dtype);
	int64_t *ia = NULL, *ib = NULL, *ic = NULL;
	double *dc = NULL;
	Mat ma = { 0 }, mb = { 0 };
	if (ints) {
		ia = eval_ints(a);
		ib = eval_ints(b);
		ic = eval_scratch(sizeof(int64_t) * (size_t)(total + 1));
	} else {
		ma = matmul_of(a);
		mb = matmul_of(b);
		dc = eval_scratch(sizeof(double) * (size_t)(total + 1));
	}
	ma.outer = ta ? 1 : k, ma.inner = ta ? m : 1;
	mb.outer = tb ? k : 1, mb.inner = tb ? 1 : n;
	for (int64_t q = 0; q < batches && total > 0; q++) {
		if (ints) {
			product_ints(m, n, k, &ma, ia + oa, &mb, ib + ob, ic + q * m * n);
		} else {
			Mat x = matmul_at(ma, oa), y = matmul_at(mb, ob);
			matmul_run(m, n, k, &x, &y, dc + q * m * n, n);
		}
		for (int i = lead - 1; i >= 0; i--) {
			oa += sa[i], ob += sb[i];
			if (++at[i] < c->dim[i])
				break;
			oa -= sa[i] * at[i], ob -= sb[i] * at[i];
			at[i] = 0;
		}
	}
	if (ints)
		eval_store_ints(c, ic);
	else
		eval_store(c, dc);
	return 0;
}

static Cost cost_matmul(const Node *n)
{
	Cost c = cost_bytes(n);
	Type *a = operand_type(n, 0), *y = n->out[0]->type;
	int64_t out = y ? type_elements(y) : -1;
	int k = a ? a->ndim - (transposed(n, 0) ? 2 : 1) : -1;
	if (k >= 0 && out >= 0 && dim_known(a->dim[k]))
		c.flops = 2.0 * (double)out * (double)a->dim[k];
	return c;
}

static int factor_matmul_t(Node *n, FactorRule *r)
{
	static const char *const text[] = { "... m k, ... k n -> ... m n", "... m k, ... n k -> ... m n",
		"... k m, ... k n -> ... m n", "... k m, ... n k -> ... m n" };
	return factor_text(n, r, text[transposed(n, 0) * 2 + transposed(n, 1)]);
}

/* ---- MatMulOver ---- */

static int shape_over(Node *n)
{
	Type *a = operand_type(n, 0), *b = operand_type(n, 1);
	int ra = operand_ndim(n, 0), rb = operand_ndim(n, 1);
	Dim dim[2] = { ra > 0 ? a->dim[ra - 1] : DIM_UNKNOWN, rb > 0 ? b->dim[rb - 1] : DIM_UNKNOWN };
	bool bad = ra == 0 || rb == 0 || (ra > 0 && rb > 0 && ra != rb);
	for (int i = 0; !bad && ra > 0 && rb > 0 && i < ra - 1; i++)
		bad = dim_differ(a->dim[i], b->dim[i]);
	if (bad) {
		err_at(operand_loc(n, 1), "MatMulOver sums over all axes but the last: %s and %s differ in one",
			type_text(a), type_text(b));
		return -1;
	}
	operand_set_result(n, 0, operand_dtype(n, 0), 2, dim);
	return 0;
}

static int eval_over(Node *node, Tensor **in, Tensor **out)
{
	Tensor *a = in[0], *b = in[1], *c = out[0];
	(void)node;
	int64_t m = c->dim[0], n = c->dim[1], k = 1;
	for (int i = 0; i < a->ndim - 1; i++)
		k *= a->dim[i];
	Mat ma = matmul_of(a), mb = matmul_of(b);
	double *dc = eval_scratch(sizeof(double) * (size_t)(m * n + 1));
	ma.outer = mb.outer = 1;
	ma.inner = m, mb.inner = n;
	matmul_run(m, n, k, &ma, &mb, dc, n);
	eval_store(c, dc);
	return 0;
}

static Cost cost_over(const Node *n)
{
	Cost c = cost_bytes(n);
	Type *a = operand_type(n, 0), *b = operand_type(n, 1);
	int64_t e = a ? type_elements(a) : -1;
	if (e >= 0 && b && b->ndim > 0 && dim_known(b->dim[b->ndim - 1]))
		c.flops = 2.0 * (double)e * (double)b->dim[b->ndim - 1];
	return c;
}

static int shape_gemm(Node *n)
{
	Type *a = operand_type(n, 0), *b = operand_type(n, 1), *c = operand_type(n, 2);
	bool ta = attr_int(n, "transA") != 0, tb = attr_int(n, "transB") != 0;
	for (int i = 0; i < 2; i++)
		if (operand_ndim(n, i) >= 0 && operand_ndim(n, i) != 2) {
			err_at(operand_loc(n, i), "Gemm multiplies matrices, this operand is %s",
				type_text(operand_type(n, i)));
			return -1;
		}
	bool known_a = a && a->ndim == 2, known_b = b && b->ndim == 2;
	Dim dim[2] = { known_a ? a->dim[ta] : DIM_UNKNOWN, known_b ? b->dim[!tb] : DIM_UNKNOWN };
	if (known_a && known_b && dim_differ(a->dim[!ta], b->dim[tb])) {
		err_at(operand_loc(n, 1), "Gemm cannot contract %s with %s: the operands are %s%s and %s%s",
			dim_text(a->dim[!ta]), dim_text(b->dim[tb]), type_text(a), ta ? " transposed" : "",
			type_text(b), tb ? " transposed" : "");
		return -1;
	}
	for (int i = 0; c && i < c->ndim; i++) {
		int axis = i + 2 - c->ndim;
		if (axis < 0 || (dim_differ(c->dim[i], 1) && dim_differ(c->dim[i], dim[axis]))) {
			err_at(operand_loc(n, 2), "Gemm cannot add %s to a product of [%s, %s]", type_text(c),
				dim_text(dim[0]), dim_text(dim[1]));
			return -1;
		}
	}
	operand_set_result(n, 0, operand_dtype(n, 0), 2, dim);
	return 0;
}

/* alpha * a b + beta * c.  Factors of 1 and a scaled zero are not written. */
static int expand_gemm(Node *n)
{
	Value *a = n->in[0], *b = n->in[1], *c = operand_value(n, 2), *y = operand_result(n, 0);
	double alpha = attr_float(n, "alpha"), beta = attr_float(n, "beta");
	if (attr_int(n, "transA"))
		a = make(n, NULL, "Transpose", "perm=[1, 0]", a, NULL, NULL);
	if (attr_int(n, "transB"))
		b = make(n, NULL, "Transpose", "perm=[1, 0]", b, NULL, NULL);
	if (!b)
		return -1;
	if (beta == 0)
		c = NULL;
	Value *p = make(n, alpha == 1 && !c ? y : NULL, "MatMul", NULL, a, b, NULL);
	if (alpha != 1)
		p = make(n, c ? NULL : y, "Mul", NULL, p, make_num(n, n->in[0], alpha), NULL);
	if (c && beta != 1)
		c = make2(n, "Mul", c, make_num(n, n->in[0], beta));
	if (c)
		p = make(n, y, "Add", NULL, p, c, NULL);
	return p ? 0 : -1;
}

/* clang-format off */
const Op ops_matmul[] = {
	/* S0 B -> S0, B S1 -> S1, S1 S0 -> P, P B -> P, B P -> P; leading axes split with both or one
	 * operand. */
	{ .name = "MatMul", .since = 1, .precision = PRECISION_LOW, .sig = "a:N b:N -> c:N",
	  .shape = shape_matmul, .kernel = "matmul", .eval = eval_matmul,
	  .factors = "... m k, ... k n -> ... m n", .linear = "a b",
	  .grad = "da = ReduceTo(MatMulT<transB=1>(dc, b), a) @when(\"ndim(a) > 1 && ndim(b) > 1\");"
	          "db = MatMulOver(a, dc) @when(\"ndim(a) > 1 && ndim(b) == 2\");"
	          "db = ReduceTo(MatMulT<transA=1>(a, dc), b) @when(\"ndim(a) > 1 && ndim(b) > 2\");"
	          "da = Mul(dc, b) @when(\"ndim(a) == 1 && ndim(b) == 1\");"
	          "db = Mul(dc, a) @when(\"ndim(a) == 1 && ndim(b) == 1\");"
	          "row = Unsqueeze(dc, [-2]) @when(\"ndim(a) == 1 && ndim(b) > 1\");"
	          "da = ReduceTo(Squeeze(MatMul(row, Swap(b)), [-2]), a) @when(\"ndim(a) == 1 && ndim(b) > 1\");"
	          "db = ReduceTo(MatMul(Unsqueeze(a, [1]), row), b) @when(\"ndim(a) == 1 && ndim(b) > 1\");"
	          "col = Unsqueeze(dc, [-1]) @when(\"ndim(a) > 1 && ndim(b) == 1\");"
	          "da = ReduceTo(MatMul(col, Unsqueeze(b, [0])), a) @when(\"ndim(a) > 1 && ndim(b) == 1\");"
	          "db = ReduceTo(Squeeze(MatMul(Swap(a), col), [-1]), b) @when(\"ndim(a) > 1 && ndim(b) == 1\")",
	  .cost = cost_matmul,
	  .test = "a:[2,3] b:[3,4] | a:[2,1,3,4] b:[5,4,2] | a:[4] b:[4] | a:[4] b:[2,4,3] | a:[2,3,4] b:[4] | "
	          "a:[3,0] b:[0,2]" },
	{ .name = "MatMulT", .domain = "sbpcc", .since = 1, .precision = PRECISION_LOW, .sig = "a:N b:N -> c:N",
	  .attrs = "transA:int=0 transB:int=0", .shape = shape_matmul, .kernel = "matmul", .eval = eval_matmul,
	  .factor_fn = factor_matmul_t, .linear = "a b",
	  .grad = "da = ReduceTo(MatMulT<transB=1>(dc, b), a) @when(\"transA == 0 && transB == 0\");"
	          "da = ReduceTo(MatMul(dc, b), a) @when(\"transA == 0 && transB != 0\");"
	          "da = ReduceTo(MatMulT<transB=1>(b, dc), a) @when(\"transA != 0 && transB == 0\");"
	          "da = ReduceTo(MatMulT<transA=1, transB=1>(b, dc), a) @when(\"transA != 0 && transB != 0\");"
	          "db = MatMulOver(a, dc) @when(\"transA == 0 && transB == 0 && ndim(b) == 2\");"
	          "db = ReduceTo(MatMulT<transA=1>(a, dc), b) @when(\"transA == 0 && transB == 0 && ndim(b) > 2\");"
	          "db = MatMulOver(dc, a) @when(\"transA == 0 && transB != 0 && ndim(b) == 2\");"
	          "db = ReduceTo(MatMulT<transA=1>(dc, a), b) @when(\"transA == 0 && transB != 0 && ndim(b) > 2\");"
	          "db = ReduceTo(MatMul(a, dc), b) @when(\"transA != 0 && transB == 0\");"
	          "db = ReduceTo(MatMulT<transA=1, transB=1>(dc, a), b) @when(\"transA != 0 && transB != 0\")",
	  .cost = cost_matmul,
	  .test = "a:[2,3] b:[3,4] | a:[2,3,4] b:[5,4] =transB:1 | a:[2,1,4,3] b:[5,4,2] =transA:1 | "
	          "a:[3,4] b:[2,5,3] =transA:1 =transB:1 | a:[2,3,4] b:[2,5,4] =transB:1 | a:[2,3,4] b:[4,5] | "
	          "a:[2,3,4] b:[2,4,5]" },
	/* The sum over every leading axis of the outer products of rows. */
	{ .name = "MatMulOver", .domain = "sbpcc", .since = 1, .precision = PRECISION_LOW, .sig = "a:F b:F -> c:F",
	  .shape = shape_over, .kernel = "matmul_over", .eval = eval_over,
	  .factors = "... m, ... n -> m n", .linear = "a b",
	  .grad = "da = MatMulT<transB=1>(b, dc); db = MatMul(a, dc)", .cost = cost_over,
	  .test = "a:[5,3] b:[5,4] | a:[2,3,4] b:[2,3,2]" },
	{ .name = "Gemm", .since = 7, .sig = "a:N b:N c:N? -> y:N",
	  .attrs = "alpha:float=1.0 beta:float=1.0 transA:int=0 transB:int=0",
	  .shape = shape_gemm, .expand = expand_gemm,
	  .test = "a:[2,3] b:[3,4] c:[4] | a:[3,2] b:[4,3] c:[2,1] =transA:1 =transB:1 =alpha:0.5 =beta:2.0" },
	{ 0 },
};
/* clang-format on */
