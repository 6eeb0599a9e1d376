/* Shared by the files of rows: the arrays that make up the table, and rules that several rows use.
 * Each array ends with an empty row. */
#ifndef SBPCC_OPS_H
#define SBPCC_OPS_H

#include "../apply/apply.h"

#include <string.h>

extern const Op ops_pointwise[], ops_movement[], ops_tile[], ops_cut[], ops_index[], ops_reduce[], ops_shape[],
	ops_matmul[], ops_conv[], ops_pool[], ops_norm[], ops_loss[], ops_attention[], ops_recurrent[], ops_steps[],
	ops_resize[], ops_sample[], ops_spectral[], ops_random[], ops_quant[], ops_einsum[], ops_state[],
	ops_detect[], ops_misc[], ops_optimizer[], ops_boxing[];

/* conv.c */
int conv_shape(Node *, bool conv);          /* of Conv and pools: auto_pad, pads, strides, dilations, ceil_mode */

/* cost.c */
Cost cost_bytes(const Node *);              /* no flops, all operands and results moved once */
Cost cost_pointwise(const Node *);
Cost cost_reduce(const Node *);             /* one flop per element of the first operand */

/* cut.c */
/* The padding of each axis, from constant operands; -1 when they are not constant. */
int cut_pads(Node *, int at, int axes_at, int ndim, int64_t *before, int64_t *after);

/* expand.c: for rows whose definition is a C function.  Each appends to n->graph; NULL after an error was reported, and
 * NULL as an operand (of expand_op, expand_result) gives NULL: an expander only needs to look at its last result. */
Value *expand_ints(Node *, const int64_t *v, int n);           /* int64 vector */
Value *expand_num(Node *, DType, double v);                    /* scalar */
Value *expand_table(Node *, DType, const double *v, int ndim, const int64_t *dim);
char  *expand_attr(Node *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char  *expand_list(Node *, const char *name, const int64_t *v, int n);   /* "name=[1, 2]" */
Value *expand_cast(Node *, Value *, DType);
int    expand_result(Node *, int i, Value *);                  /* becomes result i of n; -1 for NULL */
int    expand_shape(Node *, int i, int64_t *dim);              /* sizes of operand i, all known; its ndim, or -1 */
const Tensor *expand_const(Node *, int i, const char *what);   /* operand i, a constant; NULL after err_at */
int    expand_float(Node *, const char *attr, DType *);        /* an attribute that names a float type; -1 */
bool   expand_room(Node *, int64_t a, int64_t b);              /* a table of a * b elements may be made; else fail_at */
bool   expand_oneof(Node *, const char *attr, const char *const *list);  /* the attribute is in the list; else err_at */
/* One node with one result, whose operands are the last arguments. */
Value *expand_node(Node *, const char *op, const char *attrs, int nin, Value *const *in);
#define EXPAND_COUNT(...) ((int)(sizeof((Value *[]){ __VA_ARGS__ }) / sizeof(Value *)))
#define expand_op(n, op, attrs, ...) \
	expand_node((n), (op), (attrs), EXPAND_COUNT(__VA_ARGS__), (Value *[]){ __VA_ARGS__ })

/* make.c: make builds one node and gives the value `to` when that is not NULL (one of n->out); without its first
 * operand it does nothing, so that the first failure ends a chain.  Numbers have the type of `like`. */
Value *make_list(Node *n, Value *to, const char *op, const char *attrs, Value *const in[3]);
#define make(n, to, op, attrs, ...) make_list((n), (to), (op), (attrs), (Value *[3]){ __VA_ARGS__ })
Value *make_int(Node *n, int64_t v);        /* an int64 scalar */
Value *make_axes(Node *n, int first, int end);      /* [first, first + 1, ... end - 1] */
Value *make_num(Node *n, const Value *like, double v);
static inline Value *make1(Node *n, const char *op, Value *a) { return make(n, NULL, op, NULL, a, NULL, NULL); }
static inline Value *make_both(Node *n, const char *op, Value *const in[2])
{
	return in[1] ? make(n, NULL, op, NULL, in[0], in[1], NULL) : NULL;
}
#define make2(n, op, ...) make_both((n), (op), (Value *[2]){ __VA_ARGS__ })

/* matmul.c: c[m][n] += sum over k of a * b, in double.  An operand is read through Mat, outer index (m of a, n of b)
 * by inner index (k), and copied into panels before use: a convolution gives its own pack and never stores patches. */
typedef struct Mat {
	const void *data;               /* of any alignment: constants are in mapped files */
	bool single;                    /* float, else double */
	int64_t outer;                  /* elements from one outer index to the next */
	int64_t inner, fold, far;       /* index k is at k / fold * far + k % fold * inner; fold 0: at k * inner */
	/* Writes outer indices o0 .. o0+no-1, inner k0 .. k0+nk-1 as panels: to[(o / width * nk + k) * width + o %
	 * width], the last panel filled up with zeros.  NULL: by the strides above. */
	void (*pack)(const struct Mat *, int64_t o0, int64_t no, int64_t k0, int64_t nk, int width, double *to);
	const void *ctx;
} Mat;
Mat  matmul_of(const Tensor *);        /* data and single; other types are converted */
Mat  matmul_at(Mat, int64_t elements); /* the same, beginning further on */
static inline double matmul_get(const Mat *m, int64_t i)         /* the element at that position */
{
	if (m->single) {
		float f;
		memcpy(&f, (const char *)m->data + i * (int64_t)sizeof f, sizeof f);
		return f;
	}
	double d;
	memcpy(&d, (const char *)m->data + i * (int64_t)sizeof d, sizeof d);
	return d;
}
void matmul_run(int64_t m, int64_t n, int64_t k, const Mat *a, const Mat *b, double *c, int64_t crow);

/* movement.c */
int movement_like_second(Node *);           /* out[0] has the dtype of in[0] and the shape of in[1] */

/* random.c */
double random_uniform(uint64_t seed, uint64_t step, uint64_t key, uint64_t index);
uint64_t random_key(const char *name);
extern uint64_t random_seed;                /* of random nodes that have none of their own */
Value *random_like(Node *n, Value *x);      /* numbers in [0, 1), of the shape of x, by the key of n */

/* shape.c: shape rules. */
int shape_like_first(Node *);               /* out[0] is as in[0] */
int shape_broadcast(Node *);                /* out[0] has the dtype of in[0] and the broadcast shape of all operands */
int shape_compare(Node *);                  /* as shape_broadcast, but bool */
int shape_broadcast_as(Node *, DType);      /* as shape_broadcast, of that element type */
/* Broadcast of two shapes into dim (room for the larger ndim); its ndim, or -1 after err_at naming both shapes. */
int shape_broadcast_dims(Node *, int ndim, Dim *dim, int bndim, const Dim *bdim);
int shape_any(Node *, int i, DType, int ndim);      /* out[i] with ndim axes of unknown length; 0 */
int shape_ndim_check(Node *, int64_t ndim); /* -1 after err_at where no tensor has so many axes */
void shape_fit(Node *shard, const Node *logical);   /* the operand called shape becomes the shape of the first result */

/* steps.c */
typedef struct Act { const char *name; double alpha, beta; } Act;   /* the activation of a gate */
bool steps_plain(const Node *);             /* an RNN, GRU or LSTM of the usual kind */
int steps_operand(Node *, int i, int ndim, const Dim *);    /* checks the shape of an operand, if present; -1 */

/* window.c: the windows of a convolution or pool. */
enum { SPATIAL_MAX = 8 };
enum { PAD_NOTSET, PAD_UPPER, PAD_LOWER, PAD_VALID };           /* auto_pad */
typedef struct Window {
	int nd;                         /* spatial axes */
	int64_t in[SPATIAL_MAX], out[SPATIAL_MAX], k[SPATIAL_MAX], stride[SPATIAL_MAX], dil[SPATIAL_MAX];
	int64_t lo[SPATIAL_MAX], hi[SPATIAL_MAX];       /* padding before and after */
	int64_t nin, nout, nk;          /* products of in, out, k */
} Window;
int window_mode(Node *, int *mode);                                 /* -1 after err_at */
/* A list attribute of `want` entries, each at least `least`; all are `init` without it.  -1 after err_at. */
int window_list(Node *, const char *name, int want, int64_t least, int64_t init, int64_t *to);
int64_t window_span(const Window *, int i);                         /* from the first element to the last */
int window_read(Node *, int nd, const int64_t *kernel, Window *);  /* k, stride, dil, lo, hi from attributes; -1 */
/* The number of windows along each spatial axis. */
int window_dims(Node *, const Type *x, const int64_t *kernel, Dim *out);
int window_sizes(Node *, int operand, int ndim, Dim *dim);           /* contents of a shape operand, or DIM_UNKNOWN */
int window_fit(Node *, Window *, const int64_t *in);               /* in, out, and the padding by auto_pad */

/* An operand or result of a node, by its index. */
typedef struct At { bool out; int i; } At;
static inline int *window_row(const FactorRule *r, At a) { return (a.out ? r->out : r->in)[a.i]; }
static inline Type *window_type(const Node *n, At a) { return a.out ? n->out[a.i]->type : operand_type(n, a.i); }
/* The spatial axes of windows as factors: y, the windows, is split, and x is what they read; or dx is split, with the
 * operands g (windows) and x (what they read; i < 0: only its size matters). */
void window_factors(FactorRule *, const Window *, At y, At x);
void window_factors_back(FactorRule *, const Window *, At dx, At g, At x);
/* Padding and the like of a shard node, whose shards of operands, then of results, begin at these indices. */
void window_place(Node *shard, const Window *logical, At y, At x, const int64_t *const *at);
void window_place_back(Node *shard, const Window *logical, At dx, At g, const int64_t *const *at);
void window_place_within(Node *shard, const Window *logical, At dx, At g, At x, const int64_t *const *at);
int  window_crop(const Node *, int nd, int64_t *from, int64_t *size);     /* whether it gives only a part, and which */

#endif
