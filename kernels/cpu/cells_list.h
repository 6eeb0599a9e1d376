/* The operands and results of the loops over recurrent cells.  Those that a cell lacks are NULL. */
#ifndef CELLS_LIST_H
#define CELLS_LIST_H

#include "turns.h"

typedef struct Cells {
	Ctx *c;
	const KCells *k;
	void *y, *yh, *before, *gates, *yc, *cells, *inner;             /* forward */
	const void *xw, *r, *h0, *c0, *rb;
	void *dxw, *dh0, *dc0, *side;                                   /* backward */
	const void *dy, *dyh, *dyc, *stay, *state, *saved, *was;        /* gradients of results; saved values */
	const int32_t *lens;
	int gate;                                                       /* number of gates of a cell */
} Cells;

#endif
