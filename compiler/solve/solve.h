/* The solver behind the choice of signatures.  A problem has nodes, each with a number of choices, and edges between
 * two nodes.  Each choice and each pair of choices at the ends of an edge has a cost; the solver minimises the sum.  It
 * knows no graph, operator or machine.
 *
 * The sections below stand in the order in which the data passes through the files:
 *
 *   solve.c   the interface; reads a problem, handles limits (memory), reports the result
 *   fold.c    identical layers: motifs of which one copy is read and pruned for all
 *   table.c   tables of costs, each stored once; memoised results computed from them
 *   prune.c   removes dominated choices, edges without influence, and nodes that follow from their neighbours
 *   exact.c   variable elimination, for networks of small width
 *   wide.c    message passing with a lower bound, for networks of large width
 *   chain.c   another problem: which blocks of a chain are computed again
 *
 * All costs are rounded to a multiple of one power of two, chosen so that every sum is exact in a double.  A sum then
 * does not depend on its order, results are the same on every machine, and equal tables are equal bit by bit. */
#ifndef SBPCC_SOLVE_H
#define SBPCC_SOLVE_H

#include "ir.h"

typedef struct SolveNode {
	int n;                          /* number of choices */
	const double *cost;             /* seconds, by choice; INFINITY: forbidden.  NULL: all zero */
	const double *use;              /* [limit][choice]: of each limited resource, not negative.  NULL: all zero */
} SolveNode;
typedef struct SolveEdge {
	int a, b;
	const double *cost;             /* [choice of a][choice of b]; equal pointers mean equal tables */
} SolveEdge;
typedef struct SolveProblem {
	SolveNode *node; int nnode;
	SolveEdge *edge; int nedge;
	const double *limit; int nlimit;        /* upper bounds of the sums of use */
	size_t cap;                     /* most entries of a table during elimination; 0: SOLVE_CAP */
	double work;                    /* table entries to visit before the best known solution is taken; 0: all */
	bool forget;                    /* for tests: no memoisation; slower, the same result */
	bool flat;                      /* for tests: no search for identical layers; slower, the same cost */
} SolveProblem;
enum { SOLVE_CAP = 1 << 21 };

typedef struct SolveResult {
	bool possible;                  /* a solution of finite cost exists; if not, the other fields are not set */
	bool fits;                      /* `choice` keeps the limits; if not, it has least use of the first exceeded */
	int *choice;                    /* by node */
	double cost, bound;             /* of `choice`; a lower bound of every solution that keeps the limits */
	double *used;                   /* by limit */
	double *least;                  /* by limit, where fits is false: the smallest use found, for it alone */
	bool exact;                     /* solved by elimination alone; false: by message passing */
	bool stopped;                   /* by the limit of work */
	int left, passes;               /* nodes left after pruning; passes of message passing */
	int folded;                     /* nodes in further copies of a motif, solved together with the first */
	size_t table;                   /* entries of the largest table */
} SolveResult;

/* solve.c */
void solve_run(const SolveProblem *, Arena *, SolveResult *);
extern void (*solve_seen)(const SolveProblem *, const SolveResult *);    /* for tests: called with every result */

/* chain.c: which blocks of a chain are computed again, in the least seconds that fit a limit of bytes. */
typedef enum { CHAIN_FREE, CHAIN_AGAIN, CHAIN_KEEP } ChainPin;
typedef struct ChainBlock {
	double seconds;                 /* to compute it again */
	double kept, out;               /* bytes that stay for the backward pass; out: what later blocks read */
	double again;                   /* bytes of both while its backward pass runs, if it is computed again */
	double work;                    /* further bytes while its backward pass runs */
	ChainPin pin;
	bool first;                     /* it does not join the segment of the block before it */
} ChainBlock;
typedef struct ChainResult {
	int *segment;                   /* by block: equal numbers are computed again together; 0: kept */
	double seconds, bytes;          /* added; kept behind the last block */
} ChainResult;
bool chain_solve(const ChainBlock *, int n, double limit, Arena *, ChainResult *);      /* false: nothing fits */
double chain_peak(const ChainBlock *, int n, const int *segment);        /* the most bytes of a choice */

/* ---- internal ---- */

/* fold.c: identical layers of a problem. */
typedef struct Motif {              /* a subgraph that recurs; copies: the same tables between the same positions */
	int ncopy;
	int nin, nport;                 /* nodes of a copy; ports: nodes outside of all copies next to it */
	int *node;                      /* [copy][nin + nport] */
	int *edge, nedge;               /* [copy][nedge]: all edges of the nodes of a copy */
} Motif;
typedef struct Fold {
	Motif *motif; int nmotif;
	int *node, nnode, *edge, nedge; /* nodes and edges outside of all copies */
} Fold;

void fold_find(const SolveProblem *, Arena *, Fold *);

/* table.c: tables of costs. */
typedef struct Table {
	int id, ndim, *dim;
	size_t n;
	double *v;                      /* row-major */
	uint64_t hash;
	struct Table *next, *turned;    /* turned: the transpose; NULL: not computed yet */
	int separable;                  /* 1: the sum of a column and a row; 0: not; -1: not computed yet */
	const struct Known *keep[2];    /* by axis: the last argument of table_keep, often asked for again */
	struct Table *kept[2];          /* and its result */
} Table;
typedef struct Known {              /* a memoised result */
	int id;
	uint64_t hash;
	int n; const int *key;
	Table *t;
	double least;                   /* subtracted from the entries of t */
	int *list, nlist;
	struct Known *kept;             /* list as an entry of table_keep_of */
	int from; struct Known *chosen; /* the last choices that list was applied to, and the result (prune.c) */
	struct Known *next;
} Known;
typedef struct Tables {
	Arena *arena;
	Table **table; Known **known;
	int ntable, nknown, serial;
	int *key, nkey, room;           /* the key being written */
	bool forget;
} Tables;

void   table_init(Tables *, Arena *, bool forget);
Table *table_of(Tables *, int ndim, const int *dim, double *v);  /* with these entries; takes ownership of v */
Table *table_sum(Tables *, Table *, Table *);                    /* of equal shape; either may be NULL */
Table *table_turn(Tables *, Table *);                            /* the transpose */
Known *table_keep_of(Tables *, const int *keep, int n);          /* positions to keep; equal lists are one entry */
Table *table_keep(Tables *, Table *, int axis, const Known *keep);       /* only these positions along an axis */
bool   table_separable(Tables *, Table *);                       /* t(i, j) = a(i) + b(j), all finite */
Table *table_row(Tables *, Table *, int axis);                   /* drops an axis of length 1 */
void   table_key_begin(Tables *, int what);
void   table_key_room(Tables *);
Known *table_key_find(Tables *, bool *found);                    /* the entry of the key; not found: a new one */

static inline void key_add(Tables *s, int x)
{
	if (s->nkey == s->room)
		table_key_room(s);
	s->key[s->nkey++] = x;
}

/* prune.c: the network of the nodes and edges that are left of a problem. */
typedef struct Var {
	int n; const int *choice;       /* remaining choices, as numbers of the problem; shared, so never written */
	int chosen;                     /* identifies the list of choices */
	Table *own; int *edge, nedge;   /* costs by choice; links, some may be gone */
	bool fixed;                     /* a port: it may have more links outside, so only its costs change */
	bool quiet;                     /* nothing next to it changed since its last visit */
} Var;
typedef struct Link { int a, b; Table *t; bool gone; } Link;     /* a < b; rows are choices of a */
/* A removed variable: its best choice is a function of those of at most two others. */
typedef struct Follow {
	int v, n; const int *choice;
	Table *own;
	int nto, to[2];
	Table *t[2];                    /* rows are choices of v */
	const int *seen[2]; int nseen[2];       /* the choices of the others, as numbers of the problem */
} Follow;
/* What is left of the copies of a motif, identical when they were read; pruning may have changed some. */
typedef struct Like { int ncopy, n, *var; } Like;                /* var: [copy][n] */
typedef struct Net {
	Arena *arena;
	Tables *tab;
	Table *nothing;                 /* the costs of a variable with one choice of cost 0 */
	Var *var; int nvar;
	const int *number;              /* by variable: the node of the problem */
	Like *like; int nlike;
	Link *link; int nlink;          /* room for as many more as there are variables */
	Follow *follow; int nfollow;    /* in the order of removal */
	double sum;                     /* cost of every solution, whatever is still chosen */
	double unit;                    /* costs are multiples of it */
	double work, most;              /* table entries visited so far, and the limit */
	bool impossible;
} Net;

int    prune_other(const Link *, int v);                         /* the other end */
void   prune_keep(Net *, int v, Known *keep);                    /* leaves v these of its choices */
void   prune_follow(const Net *, int *choice);                   /* sets those of removed variables, given all others */
void   prune_run(Net *);
double prune_cost(const Net *, const int *at);                   /* at: by variable, a position in var->choice */

/* exact.c: an elimination order, and the tables of one run. */
typedef struct Sweep {
	Net *net;
	int *order, n;                  /* variables in the order of elimination */
	struct Factor ***had;           /* by variable: the factors it was eliminated from, NULL at the end */
	size_t table;
	bool stopped;                   /* by the limit of work: there is no result */
} Sweep;
bool exact_plan(Net *, size_t cap, Sweep *);                     /* false: some table would be larger than cap */
bool exact_hopeless(Net *, size_t cap);                          /* it would be with a few copies of each motif */
bool exact_run(Sweep *, double *least);                          /* false: nothing has finite cost, or it was stopped */
void exact_decode(const Sweep *, const int *given, int ngiven, int *at);        /* given: of the first variables */

/* wide.c: message passing. */
typedef struct Wide { double bound, cost; int *at; int passes, classes; } Wide;
/* Nodes with equal neighbourhoods of radius `depth` share messages.  Also removes choices of no better solution. */
void wide_run(Net *, int depth, int passes, Wide *);

#endif
