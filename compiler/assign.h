/* The problem of choosing signatures, as its parts see it. */
#ifndef SBPCC_ASSIGN_H
#define SBPCC_ASSIGN_H

#include "compiler.h"
#include "solve.h"

/* ---- ways.c ---- */

/* Values of one type and one set of factors: the forms that any node has or wants of them. */
typedef struct Kind {
	int id;
	const Value *v;
	const Sbp **form; int n;        /* each one entry per axis of the mesh */
	double *move;                   /* [from][to]: seconds; NAN: not asked for yet */
	double *part;                   /* bytes of the largest part */
	int moved;                      /* for how many forms move and part have room */
	struct Step { uint64_t key; double seconds; } *step; int nstep, room;   /* changes along one axis of the mesh, by their code */
} Kind;

/* Nodes that are alike: the ways to run them. */
typedef struct Way {
	int id;
	Node *n;                        /* one of them */
	NdSig *sig; int nsig;
	Kind **kin, **kout;             /* NULL: left out */
	int **in, **out;                /* [operand][way]: form */
	bool *reads;                    /* by operand: at run time */
	double *cost;                   /* seconds, by way */
} Way;

typedef struct Ways {
	Graph *g;
	const Mesh *mesh;
	const Pins *pins;
	Arena *arena;
	Map kinds, ways, tables;
	int nkind, nway;
	Kind **kind;                    /* by value id; NULL: no type */
	Way **way;                      /* by index in graph->node */
	bool *fused;                    /* by value id: never in memory */
	int64_t *key; int nkey, room;   /* being written */
} Ways;

void   ways_init(Ways *, Graph *, const Mesh *, const Pins *);
int    kind_form(Ways *, Kind *, const Sbp *);               /* the number of a form */
double kind_move(Ways *, Kind *, int from, int to);          /* seconds */
double kind_joined(Ways *, Kind *, int from, int to);        /* of many transfers for which ranks meet once */
double kind_part(Ways *, Kind *, int form);                  /* bytes */
void   ways_room(Ways *);                                    /* for more of a key */
Name   ways_keyed(Ways *);                                   /* the key; begins a new one */

/* One more entry of the key that is being written. */
static inline void ways_key(Ways *w, int64_t x)
{
	if (w->nkey == w->room)
		ways_room(w);
	w->key[w->nkey++] = x;
}

/* ---- assign.c ---- */

/* The forms that a value may have, by number of its kind. */
typedef struct Domain { Kind *kind; int *form, n; Name key; } Domain;

typedef struct Assign {
	Ways ways;
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
	SolveProblem p;
	double bytes;                   /* of a rank, at most, by this plan; 0: nobody asked */
} Assign;

int assign_variable(const Assign *, const Value *);          /* whose choice decides the form of a value; -1: nobody's, it is whole */
int assign_form(const Assign *, const Value *, int choice);  /* of that variable: the number of the form */

/* ---- assign_memory.c ---- */
int assign_within_memory(Assign *, SolveResult *);           /* solves; -1 after explaining: nothing fits */

#endif
