/* Models, graphs, nodes and values: the data structures of the whole compiler.
 *
 * A Model is what one file holds: header, a Graph, functions, annotations.  A Graph is an array of Nodes in
 * topological order over Values in static single assignment.  Nodes and values are made by the readers
 * (parse.c, onnx_read.c) and by passes through graph.c; nothing is freed alone: a model lives in one Arena.
 *
 * Names are interned: two names are equal when their pointers are.  Every node, value, tensor, attribute and
 * annotation keeps a Loc, so that messages of all passes can point at what the user wrote.
 */
#ifndef SBPCC_GRAPH_H
#define SBPCC_GRAPH_H

#include "../annot/annot.h"

typedef struct Graph Graph;
typedef struct Node Node;
typedef struct Value Value;
typedef struct Model Model;
typedef struct Op Op;               /* a row of the operator table (table.h) */
typedef struct Function Function;

typedef struct Attr {
	Name name;
	AttrType type;
	Name ref;                       /* "@outer": the value comes from the attribute of the function */
	bool absent;                    /* in a Function: declared without default; AT_UNDEFINED: without type */
	int n;                          /* length of a list */
	union {
		float f; int64_t i; Name s; Tensor *t; Graph *g; Type *tp;
		float *fs; int64_t *is; Name *ss; Tensor **ts; Graph **gs; Type **tps;
	} u;                            /* AT_SPARSE is read into a dense t */
	Name doc;
	Blobs unknown;
	Loc loc;
} Attr;

/* The fields that most passes read come first, within 64 bytes: large models do not fit into a processor's cache. */
struct Value {
	Name name;
	Graph *graph;
	int id;                         /* index in graph->value */
	int defidx; Node *def;          /* the node that makes it, and which of its outputs; NULL: input, initialiser */
	Type *type;                     /* NULL: nothing known */
	Tensor *data;                   /* an initialiser, or the result of folding; NULL: not constant */
	Annot *annot;
	bool input, output;             /* of the graph */
	bool init;                      /* an entry of graph->init */
	bool declared;                  /* its type was written by the user (value_info): printed again */
	bool param;                     /* a parameter or state, never a constant: by @init, params.c or train.c */
	bool frozen;                    /* of these: no gradient reaches it, and nothing updates it */
	bool wrong;                     /* its node had an error that was reported: later ones are not */
	Dim *elem; int nelem;           /* contents of a small integer tensor, symbols included; nelem -1: not known */
	int nitem; Value **item;        /* a sequence of known length: what it holds (sequence.c) */
	Value *into;                    /* lives in the storage of that older value (an update) */
	Loc loc;
	struct Factors *factors;        /* factors.c: each axis as a product of factors */
	struct Placement *place;            /* plan/placement.c; NULL: the default mesh */
	struct Sbp *sbp;                /* plan.c: one entry per mesh axis; values may share them */
	Pair *meta; int nmeta;
	Blobs unknown;
	Name doc;
	uint64_t identity;              /* identity.c; 0: none */
};

/* Each axis of a value as a product of factors, major to minor; equal numbers are split together
 * (compiler/front/factors.c). */
typedef struct Factors { int ndim; struct FactorAxis { int n, *factor; } *axis; } Factors;

struct Node {
	const Op *row;                  /* bound by bind.c; NULL before */
	Graph *graph;
	Value **in, **out;              /* NULL entry: optional operand left out, output not used */
	int nin, nout, nattr;
	int mark;                       /* free for one pass */
	bool shard;                     /* the node of one rank: its attributes say where its shards begin */
	uint8_t block;                  /* compiler/schedule/kinds.c: the kind of its block */
	Attr *attr;
	Annot *annot;
	Name op, domain, overload;      /* as written; domain "" is ai.onnx */
	Name name;                      /* "" when none */
	Loc loc;                        /* of the operator's name in the text */
	Loc *inloc;                     /* of each operand, or NULL */
	int version;                    /* the opset version that the model imports for its domain; 0: newest */
	int stage;                      /* pipeline stage, -1 unknown */
	struct Placement *place;            /* compiler/plan/placement.c: the ranks that run it */
	Name from;                      /* of a node of a dump: its original location ("mlp.ir:14:7"); else NULL */
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
	int since, until;               /* a definition of ours: the opset versions that it defines; until 0: open */
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
	bool asked;                     /* objective.c has added losses and metrics */
	struct Plan *plan;              /* compiler/train/train.h: meshes, then roles, actions, offsets */
	struct Params *params;          /* compiler/train/train.h: the parameters of an .onnx file */
	Name program;                   /* NULL, or the name of another program of `main`: eval, infer */
	Model *main;
	Model **others; int nothers;    /* of the main model */
	Model *whole, *of;              /* compiler/train/whole_batch.c: for all micro-batches at once; back */
	Name batch; int64_t rows;       /* if it has `whole`: symbol of the batch axis, samples of a micro-batch */
	int64_t microbatches;           /* the graph is one of this many micro-batches; 0: the whole batch */
	struct Identity *identity;      /* identity.c; NULL: its values have none */
};

/* model.c */
Model *model_new(void);
void   model_free(Model *);
Model *model_copy(const Model *);                            /* the graph and its annotations, not functions */
Function *model_function(const Model *, const Node *);       /* the one that the node calls; NULL */

/* graph.c */
Graph *graph_new(Model *, Graph *outer, Name name);
Value *graph_find(const Graph *, Name);                      /* here or in an outer graph; NULL */
Value *graph_value_here(Graph *, Name, Loc);                 /* made here when missing here */
Value *graph_value(Graph *, Name, Loc);                      /* here or outer; made here when missing */
Value *graph_fresh(Graph *, const char *hint);               /* a new value: hint, or hint.1, hint.2 ... */
void   graph_rename(Graph *, Value *, Name);                 /* unless the name is taken */
Node  *graph_node(Graph *, Name domain, Name op, Loc);       /* appended to graph->node */
Value *graph_const(Graph *, Tensor *, const char *hint);     /* a fresh value holding a constant (an initialiser) */
void   graph_replace(Graph *, Value *old, Value *by);        /* every use, also outputs and uses in subgraphs */
int   *graph_uses(Graph *, Arena *);                         /* by value id: how often used, outputs included */
/* Live ranges, by value id.  last: the last node that reads it, subgraphs included; -1: none; the number of nodes: an
 * output. until: the node that overwrites its memory (@into), or the number of nodes. */
void   graph_lives(const Graph *, int *last, int *until);
void   graph_sweep(Graph *);                                 /* drop nodes and constants that nothing uses */
int    graph_sort(Graph *);                                  /* topological order, stable; -1 after naming the cycle */
Graph *graph_copy(Model *to, const Graph *);
/* Prefetch what a loop over all nodes or values of a large graph needs some steps later. */
void   graph_ahead(Node *const *node, int i, int n);         /* the node, then its lists, then the values in them */
void   graph_ahead_value(Value *const *value, int i, int n);

/* node.c */
Node  *node_new(Graph *, Name domain, Name op, Loc);         /* detached: not in graph->node */
void   node_in(Node *, Value *);                             /* append an operand */
void   node_out(Node *, Value *);                            /* append a result */
Attr  *node_attr(const Node *, const char *name);            /* as written; NULL */
Attr  *node_attr_add(Node *, Name name, AttrType);
bool   node_is(const Node *, const char *op);                /* op as in "Conv" or "sbpcc.Boxing"; false for no node */
void   node_inherit(Node *, const Node *from);               /* origin, stage and annotations, not @sbp and @opset */

#endif
