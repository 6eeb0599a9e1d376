/* Random numbers.  One core operator, RandomUniform01, gives numbers in [0, 1) that depend only on the seed, the step,
 * a key for the node and the index of the element in the logical tensor: never on ranks, splits or the order of
 * evaluation.  ONNX's random operators and Dropout are made of it.
 *
 * A micro-batch draws a slice of the logical tensor: one of `microbatches` equal slices along `axis`.  Operand `micro`
 * is the number of the slice.
 *
 * The generator is Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011):
 * counter (index / 4, step), key (seed, key of the node); element index % 4 of its four words. */
#include "ops.h"

#include <math.h>
#include <string.h>

uint64_t random_seed; /* of nodes that give none: --seed */

static void philox(uint32_t c[4], uint32_t k0, uint32_t k1)
{
	for (int round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xD2511F53 * c[0], b = (uint64_t)0xCD9E8D57 * c[2];

		c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
		c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
		c[1] = (uint32_t)b;
		c[3] = (uint32_t)a;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
}

/* Folds both halves of a 64-bit number into one word. */
static uint32_t mix(uint64_t v)
{
	v = (v ^ (v >> 33)) * 0xFF51AFD7ED558CCD;
	v = (v ^ (v >> 33)) * 0xC4CEB9FE1A85EC53;
	return (uint32_t)(v ^ (v >> 33));
}

double random_uniform(uint64_t seed, uint64_t step, uint64_t key, uint64_t index)
{
	uint64_t block = index / 4;
	uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)step, (uint32_t)(step >> 32) };

	philox(c, mix(seed), mix(key));
	return (c[index % 4] >> 8) * 0x1p-24;
}

uint64_t random_key(const char *name)
{
	uint64_t h = 0xCBF29CE484222325; /* FNV-1a */

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001B3;
	return h;
}

/* The key of a random node: the name of its first result, which no other node has; nodes of one function share the name
 * of the call. */
static uint64_t node_key(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			return random_key(n->out[i]->name);
	return random_key(n->op);
}

static int shape_uniform(Node *n)
{
	Dim dim[NDIM_MAX];
	int ndim = operand_dims(n, 0, dim, NDIM_MAX);
	const Type *t = operand_type(n, 0);

	if (ndim < 0 && t && t->ndim == 1 && dim_known(t->dim[0]) && t->dim[0] <= NDIM_MAX) {
		ndim = (int)t->dim[0];
		for (int i = 0; i < ndim; i++)
			dim[i] = DIM_UNKNOWN;
	}
	operand_set_result(n, 0, DT_FLOAT, ndim, dim);
	return 0;
}

static int eval_uniform(Node *n, Tensor **in, Tensor **out)
{
	uint64_t seed = attr_has(n, "seed") ? (uint64_t)attr_int(n, "seed") : random_seed;
	uint64_t key = attr_has(n, "key") ? (uint64_t)attr_int(n, "key") : node_key(n);
	uint64_t step = n->nin > 2 && in[2] ? (uint64_t)tensor_int(in[2], 0) : 0;
	int64_t micro = n->nin > 3 && in[3] ? tensor_int(in[3], 0) : 0, microbatches = attr_int(n, "microbatches"),
		axis = attr_int(n, "axis");
	int64_t count = tensor_elements(out[0]), inner = 1;
	const Attr *among = node_attr(n, "among"), *origin = node_attr(n, "origin");       /* of a shard, by axis */
	const int64_t *dim = among ? among->u.is : out[0]->dim;

	for (int a = out[0]->ndim; a-- > axis;)
		inner *= dim[a];
	for (int64_t k = 0; k < count; k++) {
		int64_t i = 0, rest = k, stride = 1;

		for (int a = out[0]->ndim; a-- > 0;) {
			i += (rest % out[0]->dim[a] + (origin ? origin->u.is[a] : 0)) * stride;
			rest /= out[0]->dim[a];
			stride *= dim[a];
		}
		int64_t at = inner ? (i / inner * microbatches + micro) * inner + i % inner : i;

		tensor_set(out[0], k, random_uniform(seed, step, key, (uint64_t)at));
	}
	return 0;
}

static int factor_uniform(Node *n, FactorRule *r)
{
	const Type *like = operand_type(n, 1), *u = n->out[0] ? n->out[0]->type : NULL;

	if (!u)
		return -1;
	for (int a = 0; a < u->ndim; a++) {
		r->out[0][a] = factor_run(r, u->dim[a]);
		if (like && like->ndim == u->ndim)
			r->in[1][a] = r->out[0][a];
	}
	return 0;
}

/* ---- ONNX's operators ---- */

/* Uniform numbers of a shape, which is that of `like` if there is one, in steps of 2^-24 for any type; stream
 * distinguishes several draws of one node. */
static Value *draw(Node *n, Value *shape, Value *like, DType type, int stream)
{
	const Attr *a = node_attr(n, "seed");
	uint64_t key = node_key(n) + (uint64_t)stream;
	char *attrs = expand_attr(n, "key=%lld", (long long)key);

	if (a && a->type == AT_FLOAT) {
		uint32_t bits;

		memcpy(&bits, &a->u.f, sizeof bits);
		attrs = arena_printf(n->graph->arena, "%s, seed=%u", attrs, bits);
	}
	if (a && a->type == AT_INT)
		attrs = arena_printf(n->graph->arena, "%s, seed=%lld", attrs, (long long)a->u.i);
	Value *u = like ? expand_op(n, "RandomUniform01", attrs, shape, like)
	                : expand_op(n, "RandomUniform01", attrs, shape);
	return u && type != DT_FLOAT ? expand_cast(n, u, type) : u;
}

Value *random_like(Node *n, Value *x)
{
	return draw(n, expand_op(n, "Shape", NULL, x), x, x->type->elem == DT_DOUBLE ? DT_DOUBLE : DT_FLOAT, 0);
}

static Value *k(Node *n, const char *op, Value *v, DType type, double c)
{
	return expand_op(n, op, NULL, v, expand_num(n, type, c));
}

/* Half precision is drawn in float and rounded at the end. */
static DType wide(DType type)
{
	return type == DT_DOUBLE ? DT_DOUBLE : DT_FLOAT;
}

static Value *uniform(Node *n, Value *shape, Value *like, DType type)
{
	DType w = wide(type);
	double low = attr_float(n, "low"), high = attr_float(n, "high");
	Value *v = k(n, "Add", k(n, "Mul", draw(n, shape, like, w, 0), w, high - low), w, low);

	return w == type ? v : expand_cast(n, v, type);
}

/* Box and Muller: sqrt(-2 ln(1 - u)) cos(2 pi v). */
static Value *normal(Node *n, Value *shape, Value *like, DType type)
{
	DType w = wide(type);
	Value *u = draw(n, shape, like, w, 0), *v = draw(n, shape, like, w, 1);
	Value *one = k(n, "Add", expand_op(n, "Neg", NULL, u), w, 1);
	Value *r = expand_op(n, "Sqrt", NULL, k(n, "Mul", expand_op(n, "Log", NULL, one), w, -2));
	Value *z =
		expand_op(n, "Mul", NULL, r, expand_op(n, "Cos", NULL, k(n, "Mul", v, w, 6.283185307179586)));

	z = k(n, "Add", k(n, "Mul", z, w, attr_float(n, "scale")), w, attr_float(n, "mean"));
	return w == type ? z : expand_cast(n, z, type);
}

/* The type of the result: the attribute, or that of the operand. */
static DType result_type(Node *n)
{
	DType type = attr_has(n, "dtype") ? (DType)attr_int(n, "dtype") : n->nin ? operand_dtype(n, 0) : DT_FLOAT;

	if (type <= DT_UNDEFINED || type >= DT_COUNT || type == DT_STRING) {
		err_at(n->loc, "%s cannot make this element type", n->op);
		return DT_UNDEFINED;
	}
	return type;
}

static int expand_random(Node *n)
{
	DType type = result_type(n);
	bool gauss = strstr(n->op, "Normal") != NULL;
	Value *shape, *like = n->nin ? n->in[0] : NULL;
	int ndim;

	if (!type)
		return -1;
	if (!dtype_is_float(type)) {
		err_at(n->loc, "%s makes floating numbers, not %s", n->op, dtype_name(type));
		return -1;
	}
	if (n->nin) {
		shape = expand_op(n, "Shape", NULL, n->in[0]);
	} else {
		const int64_t *dim = attr_ints(n, "shape", &ndim);

		for (int i = 0; i < ndim; i++)
			if (dim[i] < 0) {
				err_at(n->loc, "%s: the shape has a negative size, %lld", n->op, (long long)dim[i]);
				return -1;
			}
		shape = expand_ints(n, dim, ndim);
	}
	return expand_result(n, 0, gauss ? normal(n, shape, like, type) : uniform(n, shape, like, type));
}

static int expand_bernoulli(Node *n)
{
	DType type = result_type(n), p = operand_dtype(n, 0);

	if (!type || !p)
		return -1;
	Value *u = draw(n, expand_op(n, "Shape", NULL, n->in[0]), n->in[0], wide(p), 0);
	Value *x = wide(p) == p ? n->in[0] : expand_cast(n, n->in[0], wide(p));
	return expand_result(n, 0, expand_cast(n, expand_op(n, "Less", NULL, u, x), type));
}

/* The number of classes whose cumulative probability is below a uniform number. */
static int expand_multinomial(Node *n)
{
	int64_t samples = attr_int(n, "sample_size"), two = 2, one = 1;
	DType type = attr_has(n, "dtype") ? (DType)attr_int(n, "dtype") : DT_INT32;

	if (operand_ndim(n, 0) != 2 || samples < 0 || (type != DT_INT32 && type != DT_INT64)) {
		err_at(n->loc, "Multinomial takes [batch, classes] and gives int32 or int64");
		return -1;
	}
	Value *x = operand_dtype(n, 0) == DT_DOUBLE ? n->in[0] : expand_cast(n, n->in[0], DT_DOUBLE);
	Value *p = expand_op(n, "Softmax", "axis=1", x);
	Value *cdf = expand_op(n, "CumSum", NULL, p, expand_num(n, DT_INT64, 1));
	/* without the last class, whose bound is 1 but for rounding */
	int64_t zero = 0, minus = -1;
	cdf = expand_op(n, "Slice", NULL, cdf, expand_ints(n, &zero, 1), expand_ints(n, &minus, 1),
		expand_ints(n, &one, 1));
	Value *shape = expand_op(n, "Concat", "axis=0", expand_op(n, "Shape", "start=0, end=1", n->in[0]),
		expand_ints(n, &samples, 1));
	Value *u = expand_op(n, "Unsqueeze", NULL, draw(n, shape, NULL, DT_DOUBLE, 0), expand_ints(n, &two, 1));
	Value *below = expand_op(
		n, "LessOrEqual", NULL, expand_op(n, "Unsqueeze", NULL, cdf, expand_ints(n, &one, 1)), u);
	Value *count =
		expand_op(n, "ReduceSum", "keepdims=0", expand_cast(n, below, type), expand_ints(n, &two, 1));
	return expand_result(n, 0, count);
}

/* clang-format off */
#define UNIFORM "high:float=1 low:float=0 seed:float dtype:int"
#define NORMAL  "mean:float=0 scale:float=1 seed:float dtype:int"

const Op ops_random[] = {
	/* like has the shape of the result, and is split as the result is.  step is the training step.  key is the hash
	 * of the name of the original node's result; without key, the name of this node's result is hashed. */
	{ .name = "RandomUniform01", .domain = "sbpcc", .since = 1, .random = true,
	  .sig = "shape:int64 like:T? step:int64? micro:int64? -> u:float",
	  .attrs = "seed:int key:int axis:int=0 microbatches:int=1",
	  .shape = shape_uniform, .kernel = "random_uniform", .eval = eval_uniform,
	  .factor_fn = factor_uniform, .fit = shape_fit, .origin = "u *", .nograd = true, .cost = cost_bytes,
	  .test = "shape:{4,3} | shape:{4,3} like:[4,3]" },
	{ .name = "RandomUniform", .since = 1, .sig = "-> y:F", .attrs = "shape:ints! " UNIFORM,
	  .expand = expand_random, .test = "=shape:[2,3]" },
	{ .name = "RandomUniformLike", .since = 1, .sig = "x:T -> y:F", .attrs = UNIFORM, .expand = expand_random,
	  .test = "x:[2,3]" },
	{ .name = "RandomNormal", .since = 1, .sig = "-> y:F", .attrs = "shape:ints! " NORMAL,
	  .expand = expand_random, .test = "=shape:[2,3] =mean:1.5" },
	{ .name = "RandomNormalLike", .since = 1, .sig = "x:T -> y:F", .attrs = NORMAL, .expand = expand_random,
	  .test = "x:[2,3]" },
	{ .name = "Bernoulli", .since = 15, .sig = "x:F -> y:T", .attrs = "dtype:int seed:float",
	  .expand = expand_bernoulli, .test = "x:(0.1,0.9)[2,3]" },
	{ .name = "Multinomial", .since = 7, .sig = "x:F -> y:I", .attrs = "dtype:int sample_size:int=1 seed:float",
	  .expand = expand_multinomial, .test = "x:[2,3] =sample_size:4" },
	{ 0 },
};
/* clang-format on */
