/* How a value lies on ranks.  The one place that says where a part begins and ends: the compiler plans by it, the runtime fills,
 * moves and saves by it, tests check it.
 *
 * A form is a mesh of ranks and one cut for each axis of the mesh:
 *
 *   B  ranks along this axis of the mesh hold the same
 *   S  they hold consecutive parts of one axis of the tensor, or of a factor of it: an axis of 3 x 12 x 64 elements that is cut
 *      along its 12 gives each of two ranks three runs of 6 x 64
 *   P  each holds a term as large as the tensor; the value is the sum of the terms (or the largest, the smallest, the product)
 *
 * The part of a rank is a product of sets of indices, one set per axis of the tensor; a set is a list of runs.  It is stored
 * without gaps, in the order of the logical tensor.  Parts need not be equal; they may be empty.
 *
 * A transfer from one form to another is a list of pieces, found by meeting the parts of both sides.  Each element of the
 * destination is written once for every term of the source, in the order of terms, so the result never depends on timing. */
#ifndef FORM_H
#define FORM_H

#include <stdbool.h>
#include <stdint.h>

enum { FORM_AXES = 8, FORM_MESH = 4 };

typedef enum { FORM_B, FORM_S, FORM_P } FormKind;
typedef enum { FORM_SUM, FORM_MAX, FORM_MIN, FORM_PROD } FormReduce;

typedef struct FormCut {
	int8_t kind, reduce;            /* reduce: of P; the same for every P of a form */
	int8_t axis;                    /* S */
	int64_t len, inner;             /* S: the axis is so many x len x inner, and len is what is cut; a whole axis: its length x 1 */
	int64_t before, after;          /* S of a whole axis: parts overlap by so many elements more at either end, as far as there are any; of a destination only */
} FormCut;

typedef struct Form {
	int ndim, mesh[FORM_MESH];
	int first;                      /* ranks of the mesh, the last axis quickest: first, first + 1, ... */
	const int *rank;                /* or these; NULL: those */
	int naxis;
	int64_t dim[FORM_AXES];         /* of the logical tensor */
	FormCut cut[FORM_MESH];
} Form;

/* A run of indices of one axis; a part holds the runs of an axis one after the other. */
typedef struct FormRun { int64_t at, len; } FormRun;
typedef struct FormAxis { FormRun *run; int n; int64_t len; } FormAxis;
typedef struct FormPart { int naxis; FormAxis axis[FORM_AXES]; } FormPart;

/* Part c of m of n elements: n = q m + r, the first r parts have q + 1, the others q. */
void form_share(int64_t n, int m, int c, int64_t *at, int64_t *len);

int  form_places(const Form *);                          /* how many ranks the mesh has */
int  form_rank(const Form *, int place);                 /* the rank at a place of the mesh */
int  form_place(const Form *, int rank);                 /* -1: it is not of the mesh */
void form_coord(const Form *, int place, int *coord);
int  form_part(const Form *, int place, FormPart *);     /* 0; -1: no memory */
void form_lengths(const Form *, int place, int64_t *len); /* of the axes of that part */
void form_part_free(FormPart *);
int64_t form_elements(const FormPart *);
int64_t form_held(const Form *, int place);              /* elements of a part */
int64_t form_common(const Form *, int place, const Form *, int other);   /* elements in both parts; -1: no memory */
bool form_one_mesh(const Form *, const Form *);          /* the same ranks in the same mesh */
int  form_terms(const Form *);                           /* of how many terms the value is made; 1: no P */
int  form_reduction(const Form *);                       /* how they are combined; -1: there is one term only */
bool form_same(const Form *, const Form *);              /* every rank holds the same of both */

/* Where a piece lies along one axis, in the part of the source and in that of the destination. */
typedef struct FormMeet { int64_t from, to, len; } FormMeet;
typedef struct FormPiece {
	int from, to;                   /* places in the meshes of source and destination */
	bool first;                     /* it is written; else it is combined with what is there */
	int naxis;
	struct { FormMeet *meet; int n; } axis[FORM_AXES];
	int64_t from_dim[FORM_AXES], to_dim[FORM_AXES];  /* of the two parts */
	int64_t elements;
} FormPiece;

/* The pieces that a place of the destination takes, in the order in which they are combined.  Elements of a P that no term falls on are the
 * neutral element: *fill tells that there are some.  0, -1: no memory, or what piece gave back when it was not 0. */
int form_pieces(const Form *src, const Form *dst, int to, bool *fill, int (*piece)(void *arg, const FormPiece *), void *arg);

/* Walks the rows of a piece: n elements side by side, at `from` in the part of the source and at `to` in that of the destination. */
void form_rows(const FormPiece *, void (*row)(void *arg, int64_t from, int64_t to, int64_t n), void *arg);

#endif
