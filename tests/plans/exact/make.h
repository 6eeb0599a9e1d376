/* Random models, as lists of lines from which some can be left out. */
#ifndef MAKE_H
#define MAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MADE_VALUES = 256, MADE_LINES = 128, MADE_NDIM = 5, MADE_MESHES = 3 };

typedef struct MadeValue {
	char type;                      /* f: float, i: int64, b: bool */
	int ndim;
	int64_t dim[MADE_NDIM];
	bool param;
	int on;                         /* the mesh that is said; -1: none */
	char pin[96];                   /* "@sbp(...)" or nothing */
} MadeValue;
typedef struct MadeLine {
	char right[224];                /* "Split<axis = 1>(v1, [2, 3])" */
	int in[8], nin, out[4], nout;
	bool gone;                      /* left out: its results are inputs where they are used */
} MadeLine;
typedef struct MadeMesh { int dim[8], ndim, rank[8]; } MadeMesh;        /* ranks of the first are 0, 1, 2, ... */
typedef struct Made {
	MadeValue value[MADE_VALUES]; int nvalue;
	MadeLine line[MADE_LINES]; int nline;
	MadeMesh mesh[MADE_MESHES]; int nmesh;
	bool train;
	uint64_t seed, rng;
} Made;

void  make_model(Made *, uint64_t seed);
char *make_text(const Made *);      /* malloc */
uint64_t make_next(uint64_t *rng);

#endif
