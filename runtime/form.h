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

enum { FORM_AXES = 8, FORM_MESH = 8 };

typedef enum { FORM_B, FORM_S, FORM_P } FormKind;
typedef enum { FORM_SUM, FORM_MAX, FORM_MIN, FORM_PROD } FormReduce;

/* What a window reaches: parts that overlap.  Of another axis, of `of` elements, the share of a rank is a .. b - 1.  It asks for windows
 * (a + lo) / div .. (b - 1 + hi) / div, rounded down, out of `mid` and for one at least; these see the elements from the first one's mul x window + from to
 * the last one's mul x window + to, as far as there are any.
 *
 *   a convolution of step s and padding p, y cut     x: windows are the elements of y, div 1, which see s y - p .. s y - p + span - 1
 *   its gradient, dx cut                             dy: the windows that see an element of dx, div s, mul 1
 *   a pool's gradient, dx cut                        x: all that these windows see */
typedef struct FormReach { int64_t of, div, lo, hi, mid, mul, from, to; } FormReach;

typedef struct FormCut {
	int8_t kind, reduce;            /* reduce: of P; the same for every P of a form */
	int8_t axis;                    /* S */
	int64_t len, inner;             /* S: the axis is so many x len x inner, and len is what is cut; a whole axis: its length x 1 */
	const FormReach *reach;         /* S of a whole axis: a rank holds what its share of another axis reaches; of a destination only.  NULL: its share of this one */
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
bool form_reach_same(const FormReach *, const FormReach *);      /* or both NULL */
bool form_cut_same(const FormCut *, const FormCut *);    /* nothing changes along this axis of the mesh */
bool form_crosses(const Form *, const Form *, int k);    /* of one mesh: ranks that differ along axis k have to do with each other in a transfer */
int  form_group(const Form *, const Form *);             /* how many ranks a transfer brings together, at most */
/* Where the part of a place stands among the windows along axis k of the mesh: what the tensor lacks of them before and behind, and how far
 * the share lies from the first of them.  Zeros where nothing reaches.  Ranks alike in lengths and in these do the same work. */
typedef struct FormEdge { int64_t before, behind, share; } FormEdge;
FormEdge form_edge(const Form *, int place, int k);

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

/* The elements of all pieces that come from another rank, of forms on one mesh, without making them: added to *total; *most becomes what a rank
 * takes, where that is more.  one: of the first place only.  0, -1: no memory. */
int form_volume(const Form *src, const Form *dst, bool one, int64_t *total, int64_t *most);

/* Walks the rows of a piece: n elements side by side, at `from` in the part of the source and at `to` in that of the destination. */
void form_rows(const FormPiece *, void (*row)(void *arg, int64_t from, int64_t to, int64_t n), void *arg);

#endif
