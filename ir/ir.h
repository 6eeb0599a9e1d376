/* The data structures of the whole compiler, one section per file.
 *
 * A Model is what one file holds: header, a Graph, functions, annotations.  A Graph is an array of Nodes in
 * topological order over Values in static single assignment.  Nodes and values are made by the readers
 * (parse.c, onnx_read.c) and by passes through graph.c; nothing is ever freed alone: a model lives in one Arena.
 *
 * Names are interned: two names are equal when their pointers are.  Every node, value, tensor, attribute and
 * annotation keeps a Loc, so that a message can point at what the user wrote, to the very end.
 */
#ifndef SBPCC_IR_H
#define SBPCC_IR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* arena.c: memory by lifetime.  Zeroed, 16-byte aligned.  Sanitizer builds give each object its own malloc. */
typedef struct Arena {
	struct ArenaBlock *head;
	size_t bytes;                   /* all that was asked for, against the cap */
} Arena;

void *arena_alloc(Arena *, size_t bytes);
char *arena_printf(Arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void  arena_release(Arena *, void *, size_t bytes);    /* what nobody else holds, before its time */
void  arena_free(Arena *);
void *arena_grow(Arena *, void *list, int n, size_t itembytes);

#define arena_new(a, T)      ((T *)arena_alloc((a), sizeof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))
/* Append to a list that lives in an arena: capacity is the next power of two, so only list and count are stored. */
#define arena_push(a, list, n, item) \
	((list) = arena_grow((a), (list), (n), sizeof *(list)), (list)[(n)++] = (item))

/* While a model is read, what is held is bounded: arena_charge counts it and ends the program when it is too much. */
void arena_bound(int64_t bytes);    /* from now on; 0: no bound any more */
void arena_input(int64_t bytes);    /* so much is to be read: it may take more */
void arena_charge(int64_t bytes);   /* held now; negative: given back */

extern Arena process;               /* lives as long as the program: names, files, the operator table */

/* name.c: interned strings.  Equal text is equal pointer; NULL is "no name". */
typedef const char *Name;

Name   name_of(const char *text);
Name   name_n(const char *text, size_t len);
void   name_ahead(const char *text, size_t len);         /* it will be asked for soon */
Name   name_fmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int    name_distance(const char *a, const char *b, bool anycase);    /* edits between two words, for "did you mean" */
bool   name_match(const char *pattern, const char *s);   /* shell pattern: * ? and [..] */

/* A map from interned names (or any pointers) to pointers, in an arena. */
typedef struct Map { Arena *arena; struct MapSlot { const void *key; void *val; } *slot; int n, cap; } Map;

void  map_init(Map *, Arena *);
void *map_get(const Map *, const void *key);
void  map_put(Map *, const void *key, void *val);

/* diag.c: messages with source line and caret; exit codes; caps. */
typedef struct Loc {
	uint32_t file;                  /* index into the table of files; 0 is "nowhere" */
	uint32_t len;                   /* bytes to underline, at least 1 */
	uint64_t off : 40;              /* byte offset */
	uint64_t call : 24;             /* of what was copied from a function: 1 + the number of the call (loc_inside); 0: it stands where it is used */
} Loc;

typedef enum { EXIT_OK = 0, EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_NOPLAN = 3, EXIT_ENV = 4, EXIT_LIMIT = 5, EXIT_BUG = 70 } ExitCode;

typedef struct SrcFile {
	const char *path;               /* as given by the user */
	const uint8_t *data;            /* the mapped bytes */
	size_t bytes;
	bool binary;                    /* .onnx: messages give byte, node index, operator and name instead of line and caret */
	struct SrcNode { uint64_t off, end; int index; Name op, name; } *node;   /* binary: where each node stands, ascending */
	int nnode;
	size_t *mark; int nmark;        /* text: where some lines begin, for loc_linecol */
	Arena *arena;
} SrcFile;

uint32_t file_open(const char *path, ExitCode *why);     /* maps a file; 0 after explaining (EXIT_ENV, EXIT_LIMIT) */
uint32_t file_memory(const char *path, const void *data, size_t bytes);  /* text that is in memory: --train, definitions, fuzzers */
SrcFile *file_of(uint32_t file);
void     loc_linecol(Loc, int *line, int *col);          /* 1-based; columns count bytes after a BOM */
const char *loc_text(Loc);                               /* "mlp.ir:14:20" or "m.onnx: node 3 (Add \"x\"), byte 81"; escaped */
const char *loc_brief(const char *place);     /* of such a text: without the folder */
Loc      loc_inside(Loc inner, Loc call);                /* a place in a function that is called there: messages name both */

/* One message each; the whole text is escaped, so names of any bytes may be given to %s.  The first error decides
 * the exit code; after --max-errors the rest is counted only.  A note belongs to the message before it. */
void err_at(Loc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));                  /* EXIT_INPUT */
void fail_at(ExitCode, Loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void warn_at(Loc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void note_at(Loc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));                /* our mistake: EXIT_BUG */
int  diag_errors(void);             /* how many so far */
ExitCode diag_exit(void);           /* EXIT_OK, or the code of the first error */
void diag_hush(bool on);            /* while on, warnings are not shown: they were, or will be */
void diag_whole(bool on);           /* while on, errors are shown even beyond --max-errors: reports that promise to be complete */
void diag_finish(void);             /* prints what was only counted */
void diag_reset(void);              /* forget all: fuzzers, tests */
extern FILE *diag_out;              /* stderr; NULL is silent */
extern const char *diag_pass;       /* the running pass, for die() */
char *escape_text(Arena *, const char *text, size_t n);  /* printable ASCII and valid UTF-8 stay, the rest becomes \xNN */
int   utf8_printable(const uint8_t *s, size_t n);        /* bytes of the character at s; 0: malformed, or it acts on a terminal */
/* "did you mean X?" from a NULL-terminated list: NULL when nothing is near. */
const char *suggest(const char *word, const char *const *list);
void err_unknown(Loc, const char *what, const char *word, const char *const *list);  /* "what word; did you mean X?" */

/* Caps; all are flags (--max-...). */
typedef struct Limits {
	int64_t file_bytes;             /* text input, 256 MiB */
	int64_t onnx_bytes;             /* .onnx input without external data, 2 GiB - 1 */
	int64_t name_bytes;             /* one name or string, 64 KiB */
	int64_t nodes;                  /* 4 M, after inlining */
	int64_t depth;                  /* nesting of brackets, messages, functions: 100 */
	int64_t elements;               /* of one constant or evaluated tensor: 2^31 */
	int64_t const_bytes;            /* folded constants are at most this large each: 64 KiB (but never larger than their inputs need) */
	int64_t table;                  /* numbers in a constant that an operator's definition makes: 4 M */
	int64_t checksum_bytes;         /* larger files of external data are not compared with their checksum: 4 GiB */
	int64_t compared;               /* names held against patterns that begin and end with a wildcard: 20 M */
	int64_t memory;                 /* held while a model is read; 0: 64 MiB and eight times the input */
	int64_t unroll;                 /* nodes that one recurrent operator or Loop may become: 100,000 */
	int64_t errors;                 /* shown in one run, 20; more are counted */
} Limits;
extern Limits limits;

/* type.c: element types (numbers are ONNX's) and value types. */
typedef enum {
	DT_UNDEFINED, DT_FLOAT, DT_UINT8, DT_INT8, DT_UINT16, DT_INT16, DT_INT32, DT_INT64, DT_STRING, DT_BOOL, DT_FLOAT16, DT_DOUBLE,
	DT_UINT32, DT_UINT64, DT_COMPLEX64, DT_COMPLEX128, DT_BFLOAT16, DT_FLOAT8E4M3FN, DT_FLOAT8E4M3FNUZ, DT_FLOAT8E5M2,
	DT_FLOAT8E5M2FNUZ, DT_UINT4, DT_INT4, DT_FLOAT4E2M1, DT_FLOAT8E8M0, DT_UINT2, DT_INT2,
	DT_FLOAT6E2M3, DT_FLOAT6E3M2, DT_COUNT
} DType;

const char *dtype_name(DType);               /* "float", "int64", ... as in the text syntax */
DType dtype_of(const char *name, size_t len);/* DT_UNDEFINED when it is none */
bool  dtype_literal_is_byte(DType);          /* 2-bit and 4-bit types: a literal holds several elements */
int   dtype_bits(DType);                     /* 32 for float, 4 for int4; 0 for string */
bool  dtype_is_float(DType);                 /* float double float16 bfloat16 float8* float4* */
bool  dtype_is_int(DType);                   /* signed or unsigned integers, not bool */
bool  dtype_is_signed(DType);

/* dim.c: a dimension is a number, unknown, or a symbolic expression kept as its canonical text ("N", "2*N*T + 1").
 * Arithmetic keeps sums of products exact; what it cannot express is DIM_UNKNOWN; overflow is DIM_OVERFLOW. */
typedef int64_t Dim;
enum { RANK_MAX = 32 };                      /* dimensions of one tensor; readers refuse more */
#define DIM_UNKNOWN  ((Dim)-1)
#define DIM_OVERFLOW ((Dim)-2)
static inline bool dim_known(Dim d) { return d >= 0; }
static inline bool dim_symbolic(Dim d) { return d <= -16; }
Dim  dim_symbol(Name text);                  /* "N", or an expression in the notation that dim_text prints; any other text is one opaque symbol */
Name dim_text(Dim);                          /* "32", "N", "2*N", "?" */
Dim  dim_add(Dim, Dim), dim_sub(Dim, Dim), dim_mul(Dim, Dim);
Dim  dim_div(Dim, Dim);                      /* exact division; DIM_UNKNOWN when the remainder is not known to be 0 */
Dim  dim_floordiv(Dim, Dim), dim_ceildiv(Dim, Dim);
bool dim_same(Dim a, Dim b);                 /* known to be equal: equal numbers or equal expressions, never two unknowns */
bool dim_differ(Dim a, Dim b);               /* known to differ: two numbers that are not equal */
void dim_bind(Name symbol, int64_t value);   /* --set N=32 */
int  dim_check(void);                        /* -1 after an error for each symbol that was bound but stands in no text that was read */
Dim  dim_bound(Dim);                         /* with all bindings put in */

/* Protobuf fields that nobody here knows, tag included, of one message of an .onnx file: kept and written back. */
typedef struct Blob { const uint8_t *data; size_t bytes; uint32_t field; } Blob;
typedef struct Blobs { Blob *blob; int n; } Blobs;

typedef enum { TY_TENSOR, TY_SEQ, TY_OPTIONAL, TY_MAP, TY_SPARSE, TY_OPAQUE } TypeKind;
typedef struct Type {
	TypeKind kind;
	DType elem;                     /* tensor, sparse: element; map: key */
	int rank;                       /* -1: unknown */
	Dim *dim;
	Name *denote;                   /* per dimension, NULL when none */
	struct Type *sub;               /* seq, optional: element; map: value */
	Name domain, name;              /* opaque */
	Name denotation;
	struct TypeBlobs { Blobs type, kind, shape, *dim; } *unknown;   /* of TypeProto, of its case, of the shape, of each axis; or NULL */
} Type;

Type *type_tensor(Arena *, DType, int rank, const Dim *dim);         /* copies dim; rank -1 is unknown */
bool  type_equal(const Type *, const Type *);
const char *type_text(const Type *);         /* "float[32, N]": valid until the eighth call after it */
int64_t type_elements(const Type *);         /* number of elements; -1 when not all known, -2 on overflow */

/* tensor.c: constants.  data is little-endian, dense, row-major; sub-byte types packed as ONNX's raw_data. */

typedef struct Pair { Name key, value; Loc loc; Blobs unknown; bool plain; /* not of ours, whatever its key */ } Pair;

typedef struct Tensor {
	Name name;
	DType dtype;
	int rank;
	int64_t *dim;
	const void *data;               /* in the mapped file where possible: weights are never copied.  Any alignment: memcpy */
	size_t bytes;
	Name *str;                      /* DT_STRING only */
	Pair *ext; int next;           /* external data: location, offset, length, checksum; data is mapped by tensor_load */
	Pair *meta; int nmeta;
	Name doc;
	Blobs unknown;
	struct Sparse { struct Tensor *values, *indices; Blobs unknown; } *sparse;   /* it stood in the file like this; or NULL */
	Loc loc;
	uint32_t file;                  /* data points into this file (0: memory of ours): lets the printer refer to it */
	uint64_t file_off;
} Tensor;

Tensor *tensor_new(Arena *, DType, int rank, const int64_t *dim);    /* zeroed data of ours */
int64_t tensor_elements(const Tensor *);
/* Moves idx to the next element of a shape in row-major order; returns where it stands by strides, given where the last one did. */
static inline int64_t tensor_next(int rank, const int64_t *dim, const int64_t *stride, int64_t *idx, int64_t at)
{
	for (int a = rank; a-- > 0;) {
		at += stride[a];
		if (++idx[a] < dim[a])
			break;
		at -= stride[a] * dim[a];
		idx[a] = 0;
	}
	return at;
}
size_t  tensor_bytes(DType, int64_t elements);                       /* packed size; SIZE_MAX on overflow */
uint32_t tensor_packed(const Tensor *, int64_t i);                   /* bits of an element narrower than a byte */
void    tensor_pack(Tensor *, int64_t i, uint32_t bits);
double  tensor_get(const Tensor *, int64_t i);                       /* element as double */
int64_t tensor_int(const Tensor *, int64_t i);                       /* element as integer (floats are truncated) */
void    tensor_set(Tensor *, int64_t i, double v);                   /* rounds to nearest even; saturates 8-bit floats as ONNX Cast does */
void    tensor_set_int(Tensor *, int64_t i, int64_t v);
Tensor *tensor_ints(Arena *, const int64_t *v, int n);               /* int64[n] */
Tensor *tensor_scalar(Arena *, DType, double v);
bool    tensor_equal(const Tensor *, const Tensor *);
double  float_decode(DType, uint32_t bits);                          /* float16, bfloat16, float8*, float4 -> double */
uint32_t float_encode(DType, double v, bool saturate);

/* graph.c */
typedef struct Graph Graph;
typedef struct Node Node;
typedef struct Value Value;
typedef struct Model Model;
typedef struct Op Op;
typedef struct Function Function;
typedef struct Annot Annot;
typedef struct FactorRule FactorRule;

typedef enum {
	AT_UNDEFINED, AT_FLOAT, AT_INT, AT_STRING, AT_TENSOR, AT_GRAPH, AT_FLOATS, AT_INTS, AT_STRINGS, AT_TENSORS, AT_GRAPHS,
	AT_SPARSE, AT_SPARSES, AT_TYPE, AT_TYPES
} AttrType;

const char *attr_type_name(AttrType);        /* "ints", "type_proto", ... (type.c) */
AttrType attr_type_of(const char *name, size_t len);         /* AT_UNDEFINED when it is none */
const char *const *attr_type_names(void);    /* all, for "did you mean" */

typedef struct Attr {
	Name name;
	AttrType type;
	Name ref;                       /* "@outer": the value comes from the attribute of the function */
	bool absent;                    /* of a Function: declared (type AT_UNDEFINED when that is not said) but without a default */
	int n;                          /* length of a list */
	union {
		float f; int64_t i; Name s; Tensor *t; Graph *g; Type *tp;
		float *fs; int64_t *is; Name *ss; Tensor **ts; Graph **gs; Type **tps;
	} u;                            /* AT_SPARSE is read into a dense t */
	Name doc;
	Blobs unknown;
	Loc loc;
} Attr;

/* What most passes ask of a value or a node stands in its first 64 bytes: large models do not fit a processor's cache. */
struct Value {
	Name name;
	Graph *graph;
	int id;                         /* index in graph->value */
	int defidx; Node *def;          /* the node that makes it and which of its outputs; NULL for inputs, initialisers, parameters */
	Type *type;                     /* NULL: nothing known */
	Tensor *data;                   /* an initialiser, or what folding found; NULL when not constant */
	Annot *annot;
	bool input, output;             /* of the graph */
	bool init;                      /* stands in graph->init */
	bool declared;                  /* its type was written by the user (value_info): printed again */
	bool param;                     /* a parameter or state, never a constant: has @init, or params.c or train.c decided */
	bool frozen;                    /* of these: no gradient reaches it, and nothing updates it */
	bool wrong;                     /* what makes it is wrong, and that was reported: what follows from it is not */
	Dim *elem; int nelem;           /* known contents of a small integer vector or scalar, symbols included (nelem -1: not known) */
	int nitem; Value **item;        /* a sequence of known length: what it holds (sequence.c) */
	Value *into;                    /* lives in the storage of that older value (an update) */
	Loc loc;
	struct Factors *factors;        /* factors.c: each axis as a product of factors */
	struct Place *place;            /* plan.c: where; NULL is the whole default mesh */
	struct Sbp *sbp;                /* plan.c: one entry per mesh axis; values may share them */
	Pair *meta; int nmeta;
	Blobs unknown;
	Name doc;
};

/* factors.c: each axis of a value as a product of factors, major to minor; equal numbers travel together. */
typedef struct Factors { int rank; struct FactorAxis { int n, *factor; } *axis; } Factors;

struct Node {
	const Op *row;                  /* bound by op.c; NULL before */
	Graph *graph;
	Value **in, **out;              /* NULL entry: optional operand left out, output not wanted */
	int nin, nout, nattr;
	int mark;                       /* free for one pass */
	bool part;                      /* of one rank (compiler/plan/shard_node.c): attributes tell where what it holds begins */
	Attr *attr;
	Annot *annot;
	Name op, domain, overload;      /* as written; domain "" is ai.onnx */
	Name name;                      /* "" when none */
	Loc loc;                        /* of the operator's name in the text */
	Loc *inloc;                     /* of each operand, or NULL */
	int version;                    /* the opset version that the model imports for its domain; 0: newest */
	int stage;                      /* pipeline stage, -1 unknown */
	struct Place *place;            /* compiler/plan/places.c: who runs it */
	Name from;                      /* original place ("mlp.ir:14:7") when the file is a dump; else NULL */
	Pair *meta; int nmeta;
	Blobs unknown;
	Name doc;
};

struct Graph {
	Arena *arena;                   /* the model's */
	Arena *scratch;                 /* gone when the pass returns */
	Model *model;
	Graph *outer;                   /* of a subgraph: names are looked up there next */
	Name name, doc;
	Value **value; int nvalue;
	Value **in; int nin;
	Value **out; int nout;
	Value **init; int ninit;        /* initialisers (data set) and parameters with @init, in file order */
	Node **node; int nnode;
	Map byname;
	Pair *meta; int nmeta;
	Blobs unknown;
	Annot *annot;
	uint32_t facts;                 /* what passes have established (compiler.h) */
	Dim *factor; int nfactor;       /* factors.c: the length of each factor */
	Loc loc;
};

struct Function {
	Name domain, name, overload, doc;
	int since, until;               /* definitions of ours: which opset versions of the operator it defines (until 0: open) */
	Attr *attr; int nattr;          /* with their defaults, or absent */
	Graph *body;                    /* in and out are its operands and results */
	struct Opset *opset; int nopset;
	Annot *annot;
	Pair *meta; int nmeta;
	Blobs unknown;
	Loc loc;
};

typedef struct Opset { Name domain; int64_t version; Loc loc; Blobs unknown; } Opset;

struct Model {
	Arena arena, scratch;
	uint32_t file;
	int64_t ir_version, model_version;
	bool has_ir_version, has_model_version;
	Name producer_name, producer_version, domain, doc;
	Opset *opset; int nopset;
	Pair *meta; int nmeta;
	Graph *graph;
	Function **function; int nfunction;
	Annot *annot;                   /* @mesh, @train, @pin, @done ... in file order */
	Blobs unknown;                  /* of ModelProto */
	bool from_onnx;
	bool asked;                     /* objective.c has added what annotations ask for */
	struct Plan *plan;              /* compiler.h: meshes, then roles, actions, offsets */
	struct Params *params;          /* compiler.h: what of an .onnx file is trained */
	Name program;                   /* NULL, or the name of another program of `main`: eval, infer */
	Model *main;
	Model **others; int nothers;    /* of the main model */
	Model *whole, *of;              /* compiler/train/whole_batch.c: for all samples of a batch that comes in micro-batches; whose whole this is */
};

/* A loop over all nodes or values of a large graph waits for memory at each step.  These fetch what it will need some steps on:
 * the node, then its lists, then what stands in them. */
static inline void ahead_node(Node *const *node, int i, int n)
{
	if (i + 16 < n)
		__builtin_prefetch(node[i + 16]);
	if (i + 10 < n) {
		__builtin_prefetch(node[i + 10]->in);
		__builtin_prefetch(node[i + 10]->out);
	}
	if (i + 5 < n) {
		const Node *to = node[i + 5];

		for (int k = 0; k < to->nin && k < 3; k++)
			__builtin_prefetch(to->in[k]);
		if (to->nout)
			__builtin_prefetch(to->out[0]);
	}
}
static inline void ahead_value(Value *const *value, int i, int n)
{
	if (i + 16 < n)
		__builtin_prefetch(value[i + 16]);
}

Model *model_new(void);
void   model_free(Model *);
Graph *graph_new(Model *, Graph *outer, Name name);
Value *graph_find(const Graph *, Name);                      /* here or in an outer graph; NULL */
Value *graph_value(Graph *, Name, Loc);                      /* here or outer; made here when missing */
Value *graph_value_here(Graph *, Name, Loc);                 /* made here when missing here */
Value *graph_fresh(Graph *, const char *hint);               /* a new value: hint, or hint.1, hint.2 ... */
void   graph_rename(Graph *, Value *, Name);                 /* unless the name is taken */
Node  *graph_node(Graph *, Name domain, Name op, Loc);       /* appended to graph->node */
void   node_in(Node *, Value *);                             /* append operand / result */
void   node_out(Node *, Value *);
Attr  *node_attr(const Node *, const char *name);            /* as written; NULL */
Attr  *node_attr_add(Node *, Name name, AttrType);
Value *graph_const(Graph *, Tensor *, const char *hint);     /* a fresh value holding a constant (an initialiser) */
void   graph_replace(Graph *, Value *old, Value *by);        /* every use, outputs included, in this graph and its subgraphs */
void   graph_sweep(Graph *);                                 /* drop nodes and constants that nothing uses */
int    graph_sort(Graph *);                                  /* topological order, stable; -1 after naming the cycle */
Graph *graph_copy(Model *to, const Graph *);
Model *model_copy(const Model *);               /* its graph, with annotations of its own; neither functions nor annotations of the model */
void   node_inherit(Node *, const Node *from);  /* it stands where `from` does: all its annotations but those of one signature */
int   *graph_uses(Graph *, Arena *);                         /* by value id: how often used, outputs included */
void   graph_lives(const Graph *, int *last, int *until);      /* by value id: the last node that reads it, inner graphs of it included, -1, or the number
                                                              * of nodes for an output; which makes another in its memory (@into), or that number */

/* op.c: the operator table.  One row per core operator; see DESIGN in the file's head. */
typedef struct Cost { double flops, bytes, others; } Cost;     /* others: of operations that no product is made of, where they count: exp of scores */

struct Op {
	const char *name;
	const char *domain;             /* NULL is ai.onnx; ours is "sbpcc" */
	int since, until;               /* opset versions; until 0: still so */
	const char *sig;                /* "x:T w:T b:T? -> y:T": ? optional, * variadic (last), + variadic at least 1; types below */
	const char *attrs;              /* "axis:int=-1 perm:ints mode:string=\"nearest\" to:int!": ! required */
	int (*shape)(Node *);           /* sets out[i]->type from operands and constants; 0, or -1 after err_at */
	const char *expr;               /* pointwise: scalar expression over operand names ("x > 0 ? x : 0") */
	const char *kernel;             /* else the kernel's name */
	int (*eval)(Node *, Tensor **in, Tensor **out);   /* reference meaning; out has type and zeroed data. NULL with expr or body */
	const char *factors;            /* "... m k, ... k n -> ... m n"; NULL: every axis stays whole, or factor_fn */
	int (*factor_fn)(Node *, struct FactorRule *);    /* where the rule depends on attributes */
	const char *whole;              /* no axis of it is ever cut: why */
	void (*fit)(Node *part, const Node *whole);       /* part: the node of one rank, with the types that it holds; makes attributes and constants agree with them */
	void (*place)(Node *part, const Node *whole, const int64_t *const *at);  /* the same, where it matters at which index of each axis the parts of operands, then of results, begin */
	const char *added;              /* an operand that is added to a sum: where that is partial, so is the operand */
	const char *linear;             /* operands through which P passes, one at a time: "a b"; together: "a+b" */
	const char *grad;               /* "da = ...; db = ...": in the language; names: operands, results, d + name */
	int (*grad_fn)(Node *, Value **dout, Value **din);/* builds nodes at the end of n->graph; NULL entries: not wanted / none */
	bool nograd;                    /* the mathematics has no gradient (comparisons, indices): it is zero or stops here */
	Cost (*cost)(const Node *);     /* flops and bytes; NULL: pointwise by .flops */
	int flops;                      /* per output element, pointwise */
	int (*expand)(Node *);          /* a definition that text cannot say: replaces n by nodes appended to n->graph */
	const char *stash;              /* a composite: optional results that its gradient reads, made when it is differentiated */
	bool (*own)(const Node *, const bool *wants);     /* whether its gradient serves this node, whose operands wants[i] are differentiated; else its definition's */
	bool composite;                 /* stays a node through the passes; its meaning is the definition of the same name in ops/ *.ir */
	const char *test;               /* how the table walk makes operands: "x:[2,3] axes:{1}" (tests/ops) */
	bool random;                    /* gives other values each step: never folded */
	bool moves;                     /* a transfer: its result is held in another way, so even that of a constant is never folded */
	bool carries;                   /* each element of the result is one of the first operand, at another place or of another type */
	const char *index;              /* "indices axis", "target 1": an operand whose elements count along that axis of the first one */
	const char *origin;             /* "x axis", "scores 1", "u *": a kernel counts along that axis (all axes) of the operand or result, so of a part it is told where it begins */
	const char *as_int64, *as_first;        /* an operand that the kernel reads as int64, or in the type of the first one, whatever its own */
	int (*infer)(Node *);           /* only the first result is used: becomes what it means outside training */
	/* Filled in by op_init, never written in a row: */
	struct Function *def;           /* the text definition: of a composite, or of an operator that is nothing else */
	struct Function *gradient;      /* .grad, parsed when first asked for */
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

void op_init(void);                                          /* collects rows, parses definitions; once */
const Op *op_find(Name domain, Name op, int64_t version);    /* the row for that opset; NULL */
Function *op_gradient(const Op *);                           /* its gradient as a function; NULL when it has none in text */
int  op_bind(Graph *, bool report_all);                      /* gives every node its row; unsupported ones in one report; -1 */
int  op_count(void);
const Op *op_at(int i);
bool op_index(const Node *, int operand, int *axis);          /* the operand counts along that axis of the first one, by .index of its row */
int  op_added(const Node *);                                  /* the operand that .added of its row names; -1: none */
bool op_origin(const Node *, bool *out, int *at, int *axis);  /* by .origin of its row; axis -1: all */
int  op_list(FILE *);                                        /* --list-ops */
int64_t opset_version(const Model *, Name domain);           /* what the model imports; -1 none */
/* Opsets below 9 are read as far as an operator's form has not changed since; others are refused by name. */
enum { OPSET_MIN = 1, OPSET_MAX = 28, IR_MIN = 3, IR_MAX = 14 };

/* Attributes with the defaults of the row's .attrs. */
int64_t attr_int(const Node *, const char *name);
double  attr_float(const Node *, const char *name);
Name    attr_str(const Node *, const char *name);
const int64_t *attr_ints(const Node *, const char *name, int *n);   /* NULL, n 0 when absent */
bool    attr_has(const Node *, const char *name);
int64_t attr_origin(const Node *, int64_t len, int64_t *among);     /* of a part of that length: where it begins, and how long the whole is */

/* For shape rules (ops/shape.h has the shared rules). */
Type   *in_type(const Node *, int i);                        /* NULL when left out or unknown */
int     in_rank(const Node *, int i);                        /* -1 unknown */
DType   in_dtype(const Node *, int i);
const Tensor *in_const(const Node *, int i);                 /* constant contents, or NULL */
int     in_dims(const Node *, int i, Dim *dim, int max);     /* contents of a shape operand, symbols included; count or -1 */
void    out_set(Node *, int i, DType, int rank, const Dim *dim);
int     op_axis(Node *, int64_t axis, int rank, int *out);   /* normalises a negative axis; -1 after err_at */
Loc     in_loc(const Node *, int i);

/* factor.c: which axes of operands and results travel together, for one node.  From the row's .factors: operands, then
 * results, separated by commas and "->"; a letter names a factor, "..." stands for any axes in front, aligned at the
 * right ("... m k, ... k n -> ... m n"), "*" is one axis that stays whole.  A factor that a result lacks is summed over:
 * splitting it gives P.  An operand axis of size 1 where the factor is longer is broadcast: it stays whole. */
typedef enum { RED_SUM, RED_MAX, RED_MIN, RED_PROD } Reduce;
/* An axis that is a product, major first: channels are groups x those of each, the last axis of attention heads x width. */
typedef struct FactorPart { int factor; int64_t len; } FactorPart;      /* factor -1: stays whole */
typedef struct FactorProduct { bool out; int at, axis; int npart; FactorPart *part; } FactorProduct;
/* Of a cut of a factor an operand is needed as far as windows reach: elements a .. b - 1 of `of` ask for windows (a + lo) / div .. (b - 1 + hi) / div out
 * of mid, which see from mul x the first + from to mul x the last + to (FormReach in runtime/form.h). */
typedef struct FactorReach { int factor, at, axis; int64_t of, div, lo, hi, mid, mul, from, to; } FactorReach;

struct FactorRule {
	Arena *arena;
	int nfactor;
	int64_t *len;                   /* of each factor: the length of its axes */
	int **in, **out;                /* [operand][axis] -> factor, or -1: stays whole, or is a product.  NULL: left out */
	FactorProduct *product; int nproduct;
	Reduce red;                     /* how partial results combine over a factor that they lack */
	uint64_t runs;                  /* bit f: a rank holds one run of factor f, for its kernel counts from there */
	FactorReach *reach; int nreach;
	uint64_t counted;               /* bit f: a mean over factor f divides by its whole length, also on a rank that has a part */
	uint64_t defined;               /* bit f: where factor f is cut the node runs by its definition, whose nodes reduce over it; results that lack it are whole */
};
FactorRule *factor_rule(Node *, Arena *);                    /* NULL: every axis stays whole.  Calls the row's factor_fn where it has one */
FactorRule *factor_new(Node *, Arena *);                     /* all axes whole: what a factor_fn is given to fill in */
int  factor_text(Node *, FactorRule *, const char *text);    /* by a text, for a factor_fn that chooses between several; -1: it does not fit */
int  factor_add(FactorRule *, int64_t len);                  /* a new factor; set in[i][axis] and out[i][axis] to it */
int  factor_run(FactorRule *, int64_t len);                  /* the same, of which a rank always holds one run */
int  factor_counted(FactorRule *, int64_t len);              /* the same, by whose whole length the node divides */
int  factor_defined(FactorRule *, int64_t len);              /* the same, where cutting it takes the definition of the node */
void factor_reach(FactorRule *, int factor, int operand, int axis, FactorReach);     /* the axis of the operand as windows reach; their number and that of the factor's elements is the same where they see one each */
void factor_product(FactorRule *, bool out, int at, int axis, int n, const FactorPart *);        /* the axis is this product */
/* The operands through which P passes, as groups: group[i] is 0 for none; equal numbers are "together" ("a+b"). */
void factor_linear(const Node *, int *group);

/* inline.c: definitions and model functions into the graph; guards (@when) decided; gradients built from text. */
Function *model_function(const Model *, const Node *);       /* the one that the node calls, of the model itself; NULL */
int inline_run(Graph *);                                     /* every call of a function, every non-composite definition */
/* Appends the body of f with operands args (NULL: left out) and results outs (NULL: not wanted, a fresh value is used);
 * attributes and guards are those of call.  Types of all new values are inferred. */
int inline_body(Graph *, const Function *f, const Node *call, Value **args, int nargs, Value **outs, int nouts);
int inline_expand(Node *);                                   /* by the row's C expander; the node's own results are made by what it builds */
int inline_append(Graph *, Node *);                          /* a node made detached: bound, expanded as far as needed, inferred, appended */
int inline_lower(Graph *, bool (*wanted)(const Node *, void *), void *arg);     /* these composites by their definitions, until none is left */
int inline_composites(Graph *);                              /* lower composites to core operators too */
Value *build_list(Graph *, Loc, const char *op, const char *attrs, int nout, Value **outs, int nin, Value *const *in);
/* A node by name: build(g, loc, "ReduceSum", "keepdims=1", 1, NULL, 2, x, axes) returns out[0].  A macro, as others whose operands may be made
 * by calls: compilers make the arguments of a function in any order, and gcc and clang in different ones, but those of a list from the first on. */
#define build(g, loc, op, attrs, nout, outs, nin, ...) build_list((g), (loc), (op), (attrs), (nout), (outs), (nin), (Value *[]){ __VA_ARGS__ })

/* infer.c: shapes of one node or all, with contents of shape vectors. */
int infer_node(Node *);                                      /* type check by .sig, then .shape; 0 or -1 after explaining */
int infer_graph(Graph *);
Node *node_new(Graph *, Name domain, Name op, Loc);          /* detached: not in graph->node */
bool node_is(const Node *, const char *op);                  /* op as in "Conv" or "sbpcc.Boxing"; no node is nothing */

/* grad.c: the backward pass of a graph. */
/* Appends nodes that compute d loss / d v for each wanted value; grad[i] is NULL where the loss does not depend on it.  The loss
 * is taken as a function of all wanted values together: one that is computed from another is as independent as any. */
int grad_build(Graph *, Value *loss, Value **want, int nwant, Value **grad);

/* annot.c: @name(args).  One table says what each annotation takes and where it may stand. */
typedef enum { ARG_INT, ARG_FLOAT, ARG_STRING, ARG_WORD, ARG_CALL, ARG_LIST, ARG_RANGE, ARG_STAR, ARG_INDEX, ARG_FACTOR } ArgKind;
typedef struct Arg {
	ArgKind kind;
	Name key;                       /* "lr" of "lr: 0.1"; NULL when positional */
	Name param;                     /* which argument it is, with or without its key: set by annot_check */
	int64_t i, j;                   /* int; range i:j (inclusive); factor j of axis i: "1/2" */
	double f;
	Name s;                         /* string, word, or the callee of a call / the base of an index */
	struct Arg *arg; int narg;      /* of a call "adam(lr: 1)", a list "[1, 2]", an index "gpus[0:3, *]"; never pushed to */
	bool arrow;                     /* "->" stands before this argument */
	Loc loc;
} Arg;

struct Annot {
	Name name;
	Arg *arg; int narg;
	Loc loc;
	Annot *next;                    /* in source order */
};

typedef enum { ON_MODEL = 1, ON_NODE = 2, ON_VALUE = 4, ON_FUNCTION = 8, ON_GROUP = 16, ON_GRAPH = 32, ON_ATTR = 64 } AnnotPlace;
int    annot_check(Annot *, AnnotPlace);                     /* known name, legal place, argument kinds; -1 after err_at */
Annot *annot_find(const Annot *list, const char *name);
Arg   *arg_find(const Arg *arg, int n, const char *param);   /* the (first) argument of that name, given with or without its key; NULL */
bool   arg_same(const Arg *, const Arg *);                    /* they say the same */
bool   arg_flag(const Arg *arg, int n, const char *param);   /* "nesterov" or "nesterov: true" */
int    annot_resolve(Model *);                               /* meshes known, patterns of @pin applied, typed decode checked */
void   annot_add(Annot **list, Annot *);
void   annot_drop(Annot **list, const char *name);
Annot *annot_copy(Arena *, const Annot *list);  /* a list of its own, of the same arguments */
bool   annot_pins(Model *, const char *name);                /* before any pass: @pin may speak of this name */
bool   annot_names(const Annot *, const char *name);         /* @freeze("*.bias", ...): is this name among those it names? */
void   annot_list(FILE *);                                   /* the table of annotations */

/* objective.c: losses and metrics that annotations ask for by name, as nodes. */
enum { METRICS_MAX = 16 };
typedef enum { METRIC_MEAN, METRIC_EXP, METRIC_ROOT } MetricHow;       /* what is made of sum / count */
typedef struct Metric {
	Name name;
	MetricHow how;
	bool own;                       /* false: of the loss, sum and count too */
	Value *sum, *count;             /* outputs of this graph; NULL: it has none.  No count: sum has one element, and counts once */
	const Arg *call;
} Metric;
int     objective_add(Model *);                              /* before annot_resolve, and not again; -1 after explaining */
Metric *objective_metrics(const Model *, int *n);            /* of a model, or of another program of it, in order */

/* lex.c: text -> tokens.  Punctuation is its own character. */
typedef enum { TOK_EOF = 0, TOK_ID = 256, TOK_STRING, TOK_INT, TOK_FLOAT, TOK_GIVES /* => */, TOK_TO /* -> */, TOK_BAD } TokKind;
typedef struct Token {
	int kind;
	Name name;                      /* id, string */
	Loc loc;
	bool line;                      /* the first of its line */
} Token;
typedef struct Lex {
	const uint8_t *text, *at, *end;
	Loc longstring;                 /* the last string that went over the end of its line */
	uint32_t file;
	bool line;
} Lex;

int    lex_open(Lex *, uint32_t file);                       /* checks that the text is UTF-8 without NUL; -1 after explaining */
Token  lex_next(Lex *);                                      /* TOK_BAD after explaining */
int    lex_int(Token, int64_t *);                            /* of TOK_INT; -1 after explaining: it does not fit */
int    lex_float(Token, double *wide, float *narrow);        /* of TOK_INT and TOK_FLOAT, or inf and nan; either may be NULL */
bool   lex_is_float_word(Name);                              /* inf, infinity, nan in any case */
bool   lex_is_id(const char *);                              /* needs no quotes */

/* parse.c, parse_value.c, parse_annot.c: tokens -> Model. */
Model    *parse_text(uint32_t file);                         /* NULL after explaining */
int       parse_library(uint32_t file, Model *into);         /* functions only: definitions of operators; nested calls and literals allowed */
int       parse_place(uint32_t file, Model *);               /* a side file: annotations naming nodes and values */
int       parse_train(const char *text, Model *);            /* --train 'TEXT' */
Function *parse_grad(const Op *row, const char *text);       /* a gradient as a function: operands, results, dresults -> doperands */
int       parse_annots(uint32_t file, Model *, AnnotPlace, Annot **list);   /* annotations alone, appended: a metadata entry of an .onnx file */

/* print.c: the only dumper. */
enum { SMALL_DATA = 1024 };                                  /* larger constants that stand in a file are printed as a reference to it */
void print_model(FILE *, const Model *);
void print_io(FILE *, const Graph *);                        /* a line for each input and output */
void print_annots(FILE *, const Annot *);                    /* " @on(gpus[0:3]) @stage(1)" */
void print_name(FILE *, Name);                               /* id or "quoted" */

/* onnx_read.c, onnx_write.c */
Model *onnx_read(uint32_t file);
int    onnx_write(FILE *, const Model *);
Model *model_read(const char *path);                         /* text or binary, by content; NULL after explaining */

/* extdata.c: data outside of the model's file is mapped, never through a link or outside the folder of the model. */
int tensor_load(Tensor *);                                   /* 0, or -1 after explaining */
uint32_t extdata_file(Loc, Name location);                    /* maps a file beside the model that Loc is in; 0 after explaining */
int extdata_load(Model *);                                   /* tensor_load for every tensor of a model; model_read calls it */
int extdata_copy(const Model *, const char *path);           /* to the folder of path, a model that is written there; -1 after explaining */
extern const char *data_root;                                /* --data-root: a folder in which links may be followed */

/* sha1.c */
void sha1_text(const void *data, size_t bytes, char text[41]);       /* 40 hexadecimal digits */

/* verify.c: what passes have established as facts; those of the compiler's own passes begin at FACT_NEXT (compiler.h). */
enum { FACT_BOUND = 1 /* op_bind */, FACT_SHAPES = 2 /* infer_graph */, FACT_NEXT = 1 << 8 };
int verify_model(Model *);                                   /* after reading: operator sets, functions, every graph; -1 after err_at */
int verify_graph(Graph *, uint32_t facts);                   /* SSA, order, scopes, row bound, shapes: -1 after err_at */

/* expr.c: scalar expressions of pointwise rows. */
typedef struct Expr Expr;
Expr  *expr_parse(const char *text, const char *const *names, int nnames);   /* dies on our own mistake */
Expr  *expr_of(const Node *);                                                /* of the node's row: attributes and missing operands put in; args are n->in */
void   expr_print_c(FILE *, const Expr *, const char *const *args, DType);   /* C (and CUDA) for one element */
bool   expr_uses(const Expr *, int arg);                                     /* whether it names that operand */
extern const char expr_prelude[];                                            /* the functions e_* that printed expressions call */
/* Vectors of at most EXPR_BLOCK elements: args and out are double (EXPR_FLOAT), int64_t or uint64_t. */
typedef enum { EXPR_FLOAT, EXPR_INT, EXPR_UINT } ExprMode;
enum { EXPR_BLOCK = 256 };
void   expr_each(const Expr *, void (*visit)(void *, const char *op, int operands, int arg, double num), void *);    /* each operator, operands first */
void   expr_run(const Expr *, ExprMode, int n, const void *const *args, void *out);

/* eval.c: evaluates any Graph plainly. */
typedef struct EvalOpts { bool wide; /* float16..float computed and stored as double */ } EvalOpts;
int eval_graph(Graph *, Tensor **in, Tensor **out, Arena *, EvalOpts);       /* by position; 0 or -1 after explaining */
int eval_node(Node *, Tensor **in, Tensor **out, Arena *, bool wide);        /* one node on constants: the folder uses it */
int eval_into(Node *, Tensor **in, Tensor **out);            /* the row's own evaluator alone, into results whose shapes are settled */
int eval_files(Model *, const char *indir, const char *outdir);              /* --eval */

/* npy.c: reading and writing .npy; TensorProto files by onnx_read.c */
Tensor *npy_read(const char *path, Arena *);
Tensor *npy_decode(uint32_t file, Arena *);                  /* of a file that is mapped */
Tensor *safetensors_read(uint32_t file, const char *name, Arena *);   /* safetensors.c; NULL after explaining */
int     npy_write(const char *path, const Tensor *);
Tensor *onnx_tensor_file(const char *path, Arena *);         /* input_N.pb */

#endif
