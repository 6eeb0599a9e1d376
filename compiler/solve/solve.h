/* The abstract problem behind the choice of signatures: one choice for each node, a cost for each choice and for each pair
 * of choices at the two ends of an edge, the smallest sum.  Nothing here knows graphs, operators or machines.
 *
 *   solve.c         reading, limits (memory), what is told
 *   fold.c    like layers: blocks of which one copy is read and pruned for all
 *   table.c   tables of costs, kept once each; what was computed from them, remembered
 *   prune.c   choices that are never needed, edges that say nothing, followers
 *   exact.c   elimination along narrow cuts
 *   wide.c    message passing with a lower bound, where the cut is wide
 *
 * All costs are rounded to a multiple of one power of two, so small that sums stay exact in a double.  So a sum does not
 * depend on its order, results are the same on every machine, and two tables that are equal are equal in every bit. */
#ifndef SBPCC_SOLVE_H
#define SBPCC_SOLVE_H

#include "ir.h"

typedef struct SolveNode {
	int n;                          /* choices */
	const double *cost;             /* seconds, by choice; INFINITY: forbidden.  NULL: nothing */
	const double *use;              /* [limit][choice]: what it takes of each limit, not negative.  NULL: nothing */
} SolveNode;
typedef struct SolveEdge {
	int a, b;
	const double *cost;             /* [choice of a][choice of b]; equal pointers are equal tables */
} SolveEdge;
typedef struct SolveProblem {
	SolveNode *node; int nnode;
	SolveEdge *edge; int nedge;
	const double *limit; int nlimit;        /* the sums of use that may not be exceeded */
	size_t cap;                     /* entries of the largest table of an elimination; 0: SOLVE_CAP */
	double work;                    /* entries of tables that may be visited before the best that is known is taken; 0: any number */
	bool forget;                    /* compute like parts again instead of remembering them: slower, the same result */
	bool flat;                      /* do not look for like parts: slower, the same cost */
} SolveProblem;
enum { SOLVE_CAP = 1 << 21 };

typedef struct SolveResult {
	bool possible;                  /* there is a choice of finite cost; if not, nothing else is said */
	bool fits;                      /* `choice` keeps the limits; if not, it is the one that needs least of the first that is broken */
	int *choice;                    /* by node */
	double cost, bound;             /* of `choice`; no choice that keeps the limits costs less than bound */
	double *used;                   /* by limit */
	double *least;                  /* by limit: the smallest use of it found, whatever the others; where fits is false */
	bool exact;                     /* by elimination alone; else messages were passed */
	bool stopped;                   /* by the limit of work */
	int left, passes;               /* nodes that were left after pruning; passes of messages */
	int folded;                     /* nodes that are like others in all that they are tied to: solved with those */
	size_t table;                   /* entries of the largest table */
} SolveResult;

void solve_run(const SolveProblem *, Arena *, SolveResult *);
double solve_cost(const SolveProblem *, const int *choice);
extern void (*solve_seen)(const SolveProblem *, const SolveResult *);      /* is shown every problem with its solution; NULL: nobody looks */

/* ---- inside ---- */

/* fold.c */
typedef struct Block {              /* parts that are alike: the same tables between the same places */
	int ncopy;
	int nin, nport;                 /* nodes of a copy; nodes in no copy that these have edges with */
	int *node;                      /* [copy][nin + nport] */
	int *edge, nedge;               /* [copy][nedge]: all edges of the nodes of a copy */
} Block;
typedef struct Fold {
	Block *block; int nblock;
	int *node, nnode, *edge, nedge; /* that are in no copy */
} Fold;

void fold_find(const SolveProblem *, Arena *, Fold *);

/* table.c */
typedef struct Table {
	int id, rank, *dim;
	size_t n;
	double *v;                      /* row-major */
	uint64_t hash;
	struct Table *next, *turned;    /* turned: rows and columns exchanged; NULL: not asked for yet */
	int separable;                  /* 1: the sum of a column and a row; 0: not; -1: not asked for yet */
	const struct Known *keep[2];    /* by axis: what was kept of it last; like layers ask for the same one after the other */
	struct Table *kept[2];
} Table;
typedef struct Known {              /* what was computed once */
	int id;
	uint64_t hash;
	int n; const int *key;
	Table *t;
	double least;                   /* was subtracted from t */
	int *list, nlist;
	struct Known *kept;             /* list, as table_keep_of gives it */
	int from; struct Known *chosen; /* of those choices it kept this list, the last time */
	struct Known *next;
} Known;
typedef struct Tables {
	Arena *arena;
	Table **table; Known **known;
	int ntable, nknown, serial;
	int *key, nkey, room;           /* being written */
	bool forget;
} Tables;

void   table_init(Tables *, Arena *, bool forget);
Table *table_of(Tables *, int rank, const int *dim, double *v);  /* v belongs to it from now on */
Table *table_sum(Tables *, Table *, Table *);                    /* of one shape; either may be NULL */
Table *table_turn(Tables *, Table *);                            /* rows and columns exchanged */
Known *table_keep_of(Tables *, const int *keep, int n);                 /* some of the choices of a variable: equal lists are one */
Table *table_keep(Tables *, Table *, int axis, const Known *keep);
bool   table_separable(Tables *, Table *);                       /* t(i, j) = a(i) + b(j), all finite */
Table *table_row(Tables *, Table *, int axis);                   /* of two axes, that one of length 1: the other alone */
void   table_key_begin(Tables *, int what);
void   table_key_room(Tables *);
Known *table_key_find(Tables *, bool *found);                          /* the entry of the key; new and empty where not found */

static inline void key_add(Tables *s, int x)
{
	if (s->nkey == s->room)
		table_key_room(s);
	s->key[s->nkey++] = x;
}

/* What is left of a problem. */
typedef struct Var {
	int n; const int *choice;       /* those left, as numbers of the problem; shared, so never written */
	int chosen;                     /* equal numbers are equal lists of choices */
	Table *own;                     /* its costs */
	int *edge, nedge;               /* some may be gone */
	bool fixed;                     /* belongs to others, who may tie it to more: stays as it is, but for its costs */
	bool quiet;                     /* nothing near it changed since it was looked at */
} Var;
typedef struct Link { int a, b; Table *t; bool gone; } Link;     /* a < b; rows are choices of a */
/* A variable that is gone: the best of its choices, given those of at most two others. */
typedef struct Follow {
	int v, n; const int *choice;
	Table *own;
	int nto, to[2];
	Table *t[2];                    /* rows are choices of v */
	const int *seen[2]; int nseen[2];       /* the choices of the others, as numbers of the problem */
} Follow;
/* Copies of a block: what is left of them.  They were alike when they were read; what pruning made of them since may differ. */
typedef struct Like { int ncopy, n, *var; } Like;                /* var: [copy][n] */
typedef struct Net {
	Arena *arena;
	Tables *tab;
	Table *nothing;                 /* the costs of a variable that has one choice and pays nothing */
	Var *var; int nvar;
	const int *number;              /* by variable: the node of the problem */
	Like *like; int nlike;
	Link *link; int nlink;          /* room for as many more as there are variables */
	Follow *follow; int nfollow;    /* in the order in which they went */
	double sum;                     /* paid whatever is chosen */
	double unit;                    /* costs are multiples of it */
	double work, most;              /* entries of tables visited; that may be */
	bool impossible;
} Net;

double prune_cost(const Net *, const int *at);                     /* of one position in var->choice for each variable */
void   prune_keep(Net *, int v, Known *keep);
int    prune_other(const Link *, int v);
double prune_at(const Link *, int v, int i, int j);               /* i of v, j of the other */

/* prune.c */
void prune_run(Net *);
void prune_follow(const Net *, int *choice);                           /* those that are gone, given the others */

/* exact.c: a plan of elimination, and the tables of one run of it. */
typedef struct Sweep {
	Net *net;
	int *order, n;                  /* variables as they are eliminated */
	struct Factor ***had;           /* by variable: what it was eliminated from, NULL at the end */
	size_t table;
	bool stopped;                   /* too much work: nothing is known */
} Sweep;
bool exact_plan(Net *, size_t cap, Sweep *);                     /* false: some table would be larger than cap */
bool exact_hopeless(Net *, size_t cap);                          /* a few copies of each block are too much already */
bool exact_run(Sweep *, double *least);                          /* false: nothing has finite cost, or it was stopped */
void exact_decode(const Sweep *, const int *given, int ngiven, int *at);  /* the first ngiven in the order of decoding are given */

/* wide.c */
typedef struct Wide { double bound, cost; int *at; int passes, classes; } Wide;
/* Nodes that look alike as far as `depth` links share messages.  Also removes choices that cannot be in a better solution. */
void wide_run(Net *, int depth, int passes, Wide *);

#endif
