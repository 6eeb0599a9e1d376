/* The problem of choosing signatures, as its parts see it. */
#ifndef SBPCC_ASSIGN_H
#define SBPCC_ASSIGN_H

#include "plan/plan.h"
#include "solve/solve.h"

/* ---- candidates.c ---- */

/* Values of one type and one set of factors: the forms that any node has or wants of them. */
typedef struct Kind {
	int id;
	const Value *v;
	const Sbp **form; int n;        /* each one entry per axis of the mesh */
	double *move;                   /* [from][to]: seconds; NAN: not asked for yet */
	double *part;                   /* bytes of the largest part */
	struct Said { Sbp *sbp; const Annot *note; } *said;     /* by form: as values of the graph have it, which share it; NULL: not asked for yet */
	int moved;                      /* for how many forms move and part have room */
	struct Domain *domain[4];       /* of values that nothing pins: made by a node, or whole (search.c) */
	double stored;                  /* bytes in memory for a byte of its type */
	struct Step { uint64_t key[2]; double seconds; } *step; int nstep, room;   /* changes along one axis of the mesh, by their code */
} Kind;

/* Nodes that are alike: the ways to run them. */
typedef struct Candidate {
	int id;
	Node *n;                        /* one of them */
	NdSig *sig; int nsig;
	Kind **kin, **kout;             /* NULL: left out */
	int **in, **out;                /* [operand][way]: form */
	bool *reads;                    /* by operand: at run time */
	double *cost;                   /* seconds, by way */
	uint64_t inside;                /* operands and results that are never in memory (cost_inside) */
	bool view, expr;                /* its result is its operand; it is pointwise */
	int last;                       /* 1 + the node that had it last */
	struct Seen *seen;              /* by operand, then by result: the table that was asked for last */
} Candidate;

/* What is asked often of a value.  Those of a large model are far apart in memory, so all is read once. */
typedef struct Trait {
	int maker, slot;                /* the node that makes it and which of its results; -1: none of the graph does */
	int into;                       /* what it updates, or -1 */
	bool def, data, param, input, init, output;
} Trait;

typedef struct Candidates {
	Graph *g;
	const Mesh *mesh;
	int with[MESH_DIMS];            /* by axis of the mesh: the first that is cut alike (mesh_axes.c) */
	const Pins *pins;
	Arena *arena;
	Map kinds, ways, tables;
	int nkind, nway;
	Kind **kind;                    /* by value id; NULL: no type */
	Candidate **way;                      /* by index in graph->node */
	Trait *trait;                    /* by value id */
	int *first, *operand;           /* by node: its operands, then its results, by value id; -1: left out */
	uint64_t *fused;                /* of cost_fused */
	double joined;                  /* gradients or parameters that are transferred together */
	int64_t *key; int nkey, room;   /* being written */
} Candidates;

void   candidates_init(Candidates *, Graph *, const Mesh *, const Pins *);
int    candidates_form(Candidates *, Kind *, const Sbp *);               /* the number of a form */
double candidates_move(Candidates *, Kind *, int from, int to);          /* seconds */
double candidates_joined(Candidates *, Kind *, int from, int to);        /* of many transfers for which ranks meet once */
double candidates_shard(Candidates *, Kind *, int form);                  /* bytes */
void   candidates_room(Candidates *);                                    /* for more of a key */
Name   candidates_keyed(Candidates *);                                   /* the key; begins a new one */

static inline int candidates_in(const Candidates *w, int node, int i) { return w->operand[w->first[node] + i]; }
static inline int candidates_out(const Candidates *w, int node, int i) { return w->operand[w->first[node] + w->way[node]->n->nin + i]; }

/* One more entry of the key that is being written. */
static inline void ways_key(Candidates *w, int64_t x)
{
	if (w->nkey == w->room)
		candidates_room(w);
	w->key[w->nkey++] = x;
}

/* ---- search.c ---- */

/* The forms that a value may have, by number of its kind. */
typedef struct Domain { Kind *kind; int *form, n; Name key; } Domain;

typedef struct Search {
	Candidates ways;
	Graph *g;
	const Mesh *mesh;
	const Pins *pins;
	Arena *arena;
	int64_t times;                  /* micro-batches of a step */
	int *home;                      /* by value id: its variable, or -1: as its maker gives it */
	Domain **domain; int ndomain;   /* by variable; NULL: of a node, which have the numbers of the nodes */
	Map domains;
	int *readers;                   /* by value id: nodes that read it */
	bool *gradient;                 /* by value id: of a parameter */
	int *root;                      /* by value id: the first value in its storage */
	SolveProblem p;
	double bytes;                   /* of a rank, at most, by this plan; 0: nobody asked */
} Search;

int search_variable(const Search *, int value);              /* whose choice decides the form of a value; -1: nobody's, it is whole */
int search_form(const Search *, int value, int choice);      /* of that variable: the number of the form */

/* ---- search_memory.c ---- */
int search_memory_solve(Search *, SolveResult *);           /* solves; -1 after explaining: nothing fits */

#endif
