/* The table of operators: rows, and what a row says about one node. */
#ifndef SBPCC_TABLE_H
#define SBPCC_TABLE_H

#include "../files/files.h"

typedef struct FactorRule FactorRule;

/* op.c: the operator table, one row per core operator. */
typedef struct Cost { double flops, bytes, others; } Cost;     /* others: flops outside of products (exp of scores) */

/* The type in which an operator computes under mixed precision. */
typedef enum {
	PRECISION_WIDEST,               /* the widest of its operands, without parameters and constants */
	PRECISION_LOW,                  /* the low type: mostly products */
	PRECISION_FLOAT,                /* float: its result needs the range or the digits */
} Precision;

/* A row, its fields in the order in which rows are written. */
struct Op {
	const char *name;
	const char *domain;             /* NULL is ai.onnx; ours is "sbpcc" */
	int since, until;               /* opset versions; until 0: still so */
	Precision precision;
	bool random;                    /* has other values each step: never folded */
	bool moves;                     /* a transfer: never folded, not even of a constant */
	bool carries;                   /* each result element is one of the first operand, moved or cast */
	const char *index;              /* "indices axis", "target 1": an operand that indexes that axis of the first */
	const char *as_int64, *as_first;/* an operand that the kernel reads as int64, or in the type of the first */
	const char *sig;                /* "x:T w:T b:T? -> y:T": ? optional, * variadic, + at least one; types below */
	const char *attrs;              /* "axis:int=-1 perm:ints mode:string=\"nearest\" to:int!": ! required */
	int (*infer)(Node *);           /* turns n into its form outside training, if only the first result is used */

	int (*shape)(Node *);           /* sets out[i]->type from operands and constants; 0, or -1 after err_at */
	const char *expr;               /* pointwise: scalar expression over operand names ("x > 0 ? x : 0") */
	const char *kernel;             /* else the kernel's name */
	int (*eval)(Node *, Tensor **in, Tensor **out);         /* the reference, into zeroed data; NULL with expr */
	bool composite;                 /* stays a node through the passes; its definition is in ops/ *.ir */
	int (*expand)(Node *);          /* a definition in C: replaces n by nodes appended to n->graph */

	const char *factors;            /* "... m k, ... k n -> ... m n"; NULL: no axis is split, or factor_fn */
	int (*factor_fn)(Node *, struct FactorRule *);          /* where the rule depends on attributes */
	const char *unsplit;            /* why no axis of it is ever split */
	void (*fit)(Node *shard, const Node *logical);          /* makes attributes and constants fit the shards */
	/* The same, given where the shards of operands, then of results, begin on each axis. */
	void (*place)(Node *shard, const Node *logical, const int64_t *const *at);
	/* "x axis", "scores 1", "u *": the kernel counts along that axis (all axes) of the operand or result, so a
	 * shard node has its origin as an attribute. */
	const char *origin;
	const char *linear;             /* operands through which P passes, one at a time: "a b"; together: "a+b" */
	const char *added;              /* an operand that is added to a sum: it is partial where the sum is */

	bool (*own)(const Node *, const bool *wants);           /* whether .grad applies; else that of the definition */
	const char *stash;              /* a composite: optional results that its gradient reads */
	const char *grad;               /* "da = ...; db = ...": in the language; names: operands, results, d + name */
	int (*grad_fn)(Node *, Value **dout, Value **din);      /* appends nodes; NULL entries: not wanted, none */
	bool nograd;                    /* has no gradient (comparisons, indices): it is zero or stops here */

	Cost (*cost)(const Node *);     /* flops and bytes; NULL: pointwise by .flops */
	int flops;                      /* per output element, pointwise */
	const char *test;               /* how the table walk makes operands: "x:[2,3] axes:{1}" (tests/ops) */

	/* Set by language_init, never in a row: */
	struct Function *def;           /* the definition in text, of a composite or of an operator without a row */
	struct Function *gradient;      /* .grad, parsed when first needed */
	struct Schema *schema;          /* .sig and .attrs, parsed; of a definition: from its head */
};

typedef struct Operand { Name name, type; bool optional, variadic; } Operand;
typedef struct Schema {
	Operand *in;  int nin;
	Operand *out; int nout;
	Attr *attr;   int nattr;        /* with defaults */
	bool *hasdefault, *required;    /* per attribute */
} Schema;

/* Types in .sig, after the colon: a fixed name (int64, bool, float) or a variable: T any tensor type, N numeric,
 * F floating, I int32 or int64, B bool, followed by digits for a second variable of the class (F1).  Operands with
 * the same variable must have the same type; none given means T. */

void op_add(const Op *row);                                  /* a row of ops/ *.c */
void op_define(Function *);                                  /* of a composite; else it becomes a row of its own */
void op_gradients_by(Function *(*parse)(const Op *, const char *text)); /* parses .grad when first needed */
Function *op_gradient(const Op *);                           /* .grad as a function; NULL: none in text */
const Op *op_find(Name domain, Name op, int64_t version);    /* the row for that opset; NULL */
bool op_known(Name domain, Name op);                         /* in some version */
int  op_count(void);
const Op *op_at(int i);
bool op_index(const Node *, int operand, int *axis);         /* whether it indexes an axis of the first, by .index */
int  op_added(const Node *);                                 /* the operand that .added of its row names; -1: none */
bool op_origin(const Node *, bool *out, int *at, int *axis); /* by .origin of its row; axis -1: all */
int  op_axis(Node *, int64_t axis, int ndim, int *out);      /* normalises a negative axis; -1 after err_at */
int64_t op_version(const Model *, Name domain);              /* what the model imports; -1 none */
/* Opsets below 9 are read as far as the operator has not changed since; others are refused by name. */
enum { OPSET_MIN = 1, OPSET_MAX = 28, IR_MIN = 3, IR_MAX = 14 };

/* attr.c: attributes with the defaults of the row's .attrs. */
int64_t attr_int(const Node *, const char *name);
double  attr_float(const Node *, const char *name);
Name    attr_str(const Node *, const char *name);
const int64_t *attr_ints(const Node *, const char *name, int *n); /* NULL, n 0 when absent */
bool    attr_has(const Node *, const char *name);
int64_t attr_origin(const Node *, int64_t len, int64_t *among); /* where a shard begins; length of the whole axis */

/* operand.c: operands and results, for shape rules. */
static inline Value *operand_value(const Node *n, int i) { return i < n->nin ? n->in[i] : NULL; }
static inline Value *operand_result(const Node *n, int i) { return i < n->nout ? n->out[i] : NULL; }
Type   *operand_type(const Node *, int i);                   /* NULL when left out or unknown */
int     operand_ndim(const Node *, int i);                   /* -1 unknown */
DType   operand_dtype(const Node *, int i);
const Tensor *operand_const(const Node *, int i);            /* constant contents, or NULL */
int     operand_dims(const Node *, int i, Dim *dim, int max); /* contents of a shape operand; count or -1 */
void    operand_set_result(Node *, int i, DType, int ndim, const Dim *dim);
Loc     operand_loc(const Node *, int i);
int64_t operand_length(const Node *, int i);                 /* the length of a vector operand, or -1 */

/* factor.c: which axes of operands and results are split together, for one node.  The row's .factors lists operands,
 * then results, separated by commas and "->"; a letter names a factor, "..." is any number of leading axes, aligned at
 * the right ("... m k, ... k n -> ... m n"), "*" is one axis that is never split.  A factor that a result lacks is
 * summed over: splitting it gives P.  An operand axis of size 1 where the factor is longer is broadcast, not split. */
typedef enum { RED_SUM, RED_MAX, RED_MIN, RED_PROD } Reduce;
/* An axis that is a product, major first: channels = groups x channels per group; the last axis of attention = heads x
 * width. */
typedef struct SubFactor { int factor; int64_t len; } SubFactor;      /* factor -1: never split */
typedef struct FactorProduct { bool out; int at, axis; int nsub; SubFactor *sub; } FactorProduct;
/* If a factor is split, a rank needs an operand as far as its windows reach: elements a .. b - 1 of `of` need windows
 * (a + lo) / div .. (b - 1 + hi) / div out of mid, which read from mul x the first + from to mul x the last + to. */
typedef struct FactorReach { int factor, at, axis; int64_t of, div, lo, hi, mid, mul, from, to; } FactorReach;

struct FactorRule {
	Arena *arena;
	int nfactor;
	int64_t *len;                   /* of each factor: the length of its axes */
	int **in, **out;                /* [operand][axis] -> factor; -1: never split, or a product; NULL: left out */
	FactorProduct *product; int nproduct;
	Reduce red;                     /* how partial results combine over a factor that they lack */
	uint64_t runs;                  /* bit f: a rank holds one contiguous run of factor f, for kernels that count */
	FactorReach *reach; int nreach;
	uint64_t counted;               /* bit f: a mean divides by the full length of factor f, on shards too */
	uint64_t defined;               /* bit f: splitting f replaces the node by its definition: nothing is partial */
};
FactorRule *factor_rule(Node *, Arena *);                    /* by .factor_fn or .factors; NULL: no axis is split */
FactorRule *factor_new(Node *, Arena *);                     /* no axis split: what a factor_fn fills in */
int  factor_text(Node *, FactorRule *, const char *text);    /* by a text that a factor_fn chose; -1: does not fit */
int  factor_add(FactorRule *, int64_t len);                  /* a new factor; set in[i][axis] and out[i][axis] to it */
int  factor_run(FactorRule *, int64_t len);                  /* the same; a rank holds one contiguous run of it */
int  factor_counted(FactorRule *, int64_t len);              /* the same, by whose full length the node divides */
int  factor_defined(FactorRule *, int64_t len);              /* the same; splitting it replaces the node */
void factor_reach(FactorRule *, int factor, int operand, int axis, FactorReach);  /* read through windows */
void factor_product(FactorRule *, bool out, int at, int axis, int n, const SubFactor *); /* the axis is this product */
int  factor_keep(Node *, FactorRule *, const bool *unsplit); /* a factor for each other axis */
int  factor_keep_equal(Node *, FactorRule *);                /* a factor for each axis whose length does not change */
/* The operands through which P passes, as groups: group[i] is 0 for none; equal numbers are "together" ("a+b"). */
void factor_linear(const Node *, int *group);

/* expr.c: scalar expressions of pointwise rows. */
typedef struct Expr Expr;
Expr  *expr_of(const Node *);                                /* of the node's row, with attributes; args are n->in */
void   expr_print_c(FILE *, const Expr *, const char *const *args, DType); /* C (and CUDA) for one element */
bool   expr_uses(const Expr *, int arg);                     /* whether it names that operand */
extern const char expr_prelude[];                            /* the functions e_* that printed expressions call */
/* Vectors of at most EXPR_BLOCK elements: args and out are double (EXPR_FLOAT), int64_t or uint64_t. */
typedef enum { EXPR_FLOAT, EXPR_INT, EXPR_UINT } ExprMode;
enum { EXPR_BLOCK = 256 };
/* Visits each operator, operands first: tests evaluate it in another arithmetic. */
void   expr_each(const Expr *, void (*visit)(void *, const char *op, int operands, int arg, double num), void *);
void   expr_run(const Expr *, ExprMode, int n, const void *const *args, void *out);

/* list.c */
int list_ops(FILE *);                                        /* --list-ops */

#endif
