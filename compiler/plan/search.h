/* The search for signatures: pins, and the data that candidates.c, search.c and search_memory.c share. */
#ifndef SBPCC_SEARCH_H
#define SBPCC_SEARCH_H

#include "plan/plan.h"
#include "solve/solve.h"

/* ---- pins.c: @sbp of values and nodes ---- */
typedef struct NodePin { Sbp **in, **out; } NodePin;         /* an entry per axis of the mesh; NULL: free */
typedef struct Pins {
	Sbp **value;                    /* by value id: per axis of the mesh, SBP_ANY where free; NULL: not pinned */
	NodePin **node;                 /* by index in graph->node; NULL: not pinned */
} Pins;
Pins *pins_read(Graph *, const Mesh *);                      /* NULL after explaining */
NodePin *pins_node(Node *, const Mesh *, Arena *, int *bad);
bool  pins_allow(const Node *, const NodePin *, const Sig *, int k);     /* along axis k of the mesh */

/* ---- candidates.c ---- */

/* Values of one type and one set of factors: the SBPs that any node has or needs of them. */
typedef struct Kind {
	int id;
	const Value *v;                 /* a representative */
	const Sbp **sbp; int n;         /* the SBPs, each an entry per axis of the mesh */
	double *move;                   /* [from][to]: seconds of the transfer; NAN: not computed yet */
	double *shard;                  /* by SBP: bytes of the largest shard */
	struct Chosen *chosen;          /* by SBP: what values of the graph share (search.c) */
	int moved;                      /* the number of SBPs that move and shard have room for */
	struct Domain *domain[4];       /* of unpinned values: [has a producer + 2 * only_b] (search.c) */
	double stored;                  /* bytes in memory per byte of its type */
	struct Step *step;              /* memo: changes along one axis of the mesh (candidates.c) */
	int nstep, room;
} Kind;

/* Identical nodes and their candidates: the signatures they may run by. */
typedef struct Candidate {
	int id;
	Node *n;                        /* a representative */
	NdSig *sig; int nsig;
	Kind **kin, **kout;             /* NULL: omitted operand or result */
	int **in, **out;                /* [operand][candidate]: the number of an SBP of its kind */
	bool *reads;                    /* by operand: read at run time */
	double *cost;                   /* seconds, by candidate */
	uint64_t inside;                /* operands and results that are never in memory (cost_inside) */
	bool view, expr;                /* its result shares the memory of its operand; it is pointwise */
	int last;                       /* 1 + the last node found to be one of these */
	struct Seen *seen;              /* by operand, then by result: the last table that was used */
} Candidate;

/* Properties of a value that are needed often.  The values of a large model are far apart in memory, so they are read
 * once. */
typedef struct Trait {
	int maker, slot;                /* its producer and the index among the results; -1: no node of the graph */
	int into;                       /* the value that it updates, or -1 */
	bool def, data, param, input, init, output;
} Trait;

typedef struct Candidates {
	Graph *g;
	const Mesh *mesh;
	int with[MESH_DIMS];            /* by axis of the mesh: the first axis of its bundle (mesh_axes.c) */
	const Pins *pins;
	Arena *arena;
	Map kinds, candidates, tables;
	int nkind, ncandidate;
	Kind **kind;                    /* by value id; NULL: no type */
	Candidate **candidate;          /* by index in graph->node */
	Trait *trait;                   /* by value id */
	int *first, *operand;           /* by node: the ids of its operands, then of its results; -1: omitted */
	uint64_t *fused;                /* of cost_fused */
	double joined;                  /* gradients or parameters per bucket */
	int64_t *key; int nkey, room;   /* the key being written */
} Candidates;

void   candidates_init(Candidates *, Graph *, const Mesh *, const Pins *);
int    candidates_sbp(Candidates *, Kind *, const Sbp *);                /* the number of an SBP of a kind */
double candidates_move(Candidates *, Kind *, int from, int to);          /* seconds */
double candidates_joined(Candidates *, Kind *, int from, int to);        /* seconds, in a bucket with others */
double candidates_shard(Candidates *, Kind *, int sbp);                  /* bytes */
void   candidates_room(Candidates *);                                    /* grows the key */
Name   candidates_keyed(Candidates *);                                   /* the key; begins a new one */

static inline int candidates_in(const Candidates *w, int node, int i)
{
	return w->operand[w->first[node] + i];
}

static inline int candidates_out(const Candidates *w, int node, int i)
{
	return w->operand[w->first[node] + w->candidate[node]->n->nin + i];
}

/* One more entry of the key that is being written. */
static inline void candidates_key(Candidates *w, int64_t x)
{
	if (w->nkey == w->room)
		candidates_room(w);
	w->key[w->nkey++] = x;
}

/* ---- search.c ---- */

/* The SBPs that a value may have, as numbers of its kind. */
typedef struct Domain { Kind *kind; int *sbp, n; Name key; } Domain;

typedef struct Search {
	Candidates candidates;
	Graph *g;
	const Mesh *mesh;
	const Pins *pins;
	Arena *arena;
	int64_t microbatches;           /* of a step */
	int *home;                      /* by value id: its variable; -1: it has the SBP that its producer gives */
	Domain **domain; int ndomain;   /* by variable; NULL: the variable of a node; those come first */
	Map domains;
	int *readers;                   /* by value id: nodes that read it */
	bool *gradient;                 /* by value id: of a parameter */
	int *root;                      /* by value id: the first value in its storage */
	SolveProblem p;
	double bytes;                   /* peak memory of a rank by this plan; 0: not computed */
} Search;

int search_variable(const Search *, int value);              /* that decides the SBP of a value; -1: none, it is B */
int search_sbp(const Search *, int value, int choice);       /* the number of its SBP, by the choice of its variable */

/* ---- search_memory.c ---- */
int search_memory_solve(Search *, SolveResult *);            /* solves; -1 after explaining: nothing fits */

#endif
