/* What loops over the steps of recurrent cells read and write.  Operands that a cell lacks are NULL. */
#ifndef CELLS_LIST_H
#define CELLS_LIST_H

#include "turns.h"

typedef struct Cells {
	Ctx *c;
	const KCells *k;
	void *y, *yh, *before, *gates, *yc, *cells, *inner;             /* forward */
	const void *xw, *r, *h0, *c0, *rb;
	void *dxw, *dh0, *dc0, *side;                                   /* backward */
	const void *dy, *dyh, *dyc, *stay, *state, *saved, *was;        /* of the forward pass */
	const int32_t *lens;
	int gate;                                                       /* gates of a cell */
} Cells;

#endif
