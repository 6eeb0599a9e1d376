/* The schedule solver's own form of a pipeline and of an order.  Micro-batches are alike, so each block runs them in
 * ascending order.  (Relabelling proves that nothing is lost: the k-th F of a stage can take the k-th micro-batch that
 * arrives, and the same holds for B and W.)  What a rank runs is then a word: a letter is a block, and its k-th
 * occurrence is micro-batch k.  Where a stage has BW and B, the two are counted together, and the k-th W belongs to
 * the k-th B. */
#ifndef SBPCC_WORDS_H
#define SBPCC_WORDS_H

#include "lanes.h"

enum { LETTER_F, LETTER_B, LETTER_W, LETTER_BW, LETTERS };              /* letter = stage * LETTERS + one of these */

typedef struct Word { int *at, n; } Word;                               /* by rank; `at` has room for all letters */

/* One direction of a hop. */
typedef struct Line {
	int from, to;                   /* ranks; the same: no transfer */
	double latency, busy;
} Line;
/* A message leaves, and arrives; the position of its sender in its word; see `origin` below. */
typedef struct LineMessage { double sent, there; int position, origin; } LineMessage;

/* What a pass computes.  Clocks are the ranks and, behind them, the lines.  `origin` is the clock from whose beginning
 * the longest path comes. */
typedef struct Pass {
	double *begin, *end, *first;    /* by clock; by rank: the start of its first task */
	int *origin;                    /* by clock: of its end */
	int *at, *stack, *count, *sent; /* by rank, by letter, by line */
	bool *wait;                     /* by line: its receiver waits */
	LineMessage *message;               /* [line][micro-batch] */
	double **start;                 /* [rank][position] */
	int **micro;                    /* [rank][position] */
} Pass;

typedef struct Words {
	const Pipeline *p;
	int nrank, nletter, nline, nclock, micros, ntask;       /* ntask: of all ranks, with B and W apart */
	double *seconds;                /* by letter */
	int64_t *bytes;                 /* by letter: what memory in use grows by */
	int *rank, *counter;            /* by letter; counter: whose occurrences number its messages */
	int **need, **send;             /* by letter: lines, ended by -1 */
	Line *line;
	double *update, *load;          /* by rank: seconds once per step; seconds of a step, update included */
	int64_t *room;                  /* by rank: bytes for what is kept between blocks */
	double work;                    /* tasks visited so far */
	Pass pass;
	double *x, *newx, *length;      /* see period.c; by clock */
	int *parent, *mark;
} Words;

/* The cost of an order.  A smaller one is better: period first, then makespan, then peak. */
typedef struct WordCost { double period, makespan, span; int64_t peak; bool fits; } WordCost;

/* words.c */
void words_begin(const Pipeline *, Arena *, Words *);
Word *words_new(const Words *, Arena *);
void words_copy(const Words *, Word *to, const Word *from);
/* split: BW becomes B, W.  false: incomplete, or F and B are not in ascending order */
bool words_read(const Words *, const PipeOrder *, bool split, Word *);
void words_write(const Words *, const Word *, Arena *, PipeOrder *);
bool words_step(const Words *, int *count, int letter);                 /* counts it; false: F, B, W out of order */
int64_t words_peak(const Words *, const Word *, int rank);

/* period.c */
bool period_pass(Words *, const Word *);                                /* from pass.begin; false: a deadlock */
double period_find(Words *, const Word *, double stop);                 /* INFINITY: a deadlock, or at least `stop` */
/* Given beginnings in w->x: a clock of a cycle with a mean above `guess`, following w->parent; -1: there is none.
 * `seen` is called when a clock gets a parent, after the pass in which the path to its end was found. */
int period_cycle(Words *, const Word *, double guess, void (*seen)(void *, int clock), void *);
void period_cost(Words *, const Word *, WordCost *);
int period_compare(const WordCost *, const WordCost *);                 /* < 0: the first is better */

/* list.c */
typedef enum { CAP_NONE, CAP_WAY, CAP_DEPTH, CAP_MIDDLE, CAP_TWICE } ListCap;
typedef struct ListRule { ListCap cap; double patience; bool waits_f; int pending; } ListRule;
bool list_order(Words *, const ListRule *, Arena *, Word *);            /* false: a stage does not fit */

/* exact.c: calls `found` with each order of a smaller period; it returns the period to beat from then on.  x:
 * beginnings of a good order, by clock.  true: all orders were tried, there is no better one */
typedef double ExactFound(void *, const Word *);
bool exact_search(Words *, double period, const double *x, double work, ExactFound *, void *);

#endif
