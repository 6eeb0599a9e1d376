/* How a value is laid out on ranks.  This is the one definition of where a shard begins and ends: the compiler plans by
 * it, the runtime fills, moves and saves by it, tests check it.
 *
 * A form is a mesh of ranks and one cut for each axis of the mesh:
 *
 *   B  ranks along this axis of the mesh hold the same data
 *   S  they hold consecutive shards of one axis of the tensor, or of a factor of it: an axis of 3 x 12 x 64 elements
 *      that is cut along its 12 gives each of two ranks three runs of 6 x 64
 *   P  each holds a term as large as the tensor; the value is the sum of the terms (or the maximum, the minimum, the
 *      product)
 *
 * The shard of a rank is a product of sets of indices, one set per axis of the tensor; a set is a list of runs.  It is
 * stored without gaps, in the order of the logical tensor.  Shards may differ in size; they may be empty.
 *
 * A transfer from one form to another is a list of pieces, the intersections of the shards of both sides.  Each element
 * of the destination is written once for every term of the source, in the order of terms, so the result never depends
 * on timing. */
#ifndef FORM_H
#define FORM_H

#include <stdbool.h>
#include <stdint.h>

enum { FORM_AXES = 8, FORM_MESH = 8 };

typedef enum { FORM_B, FORM_S, FORM_P } FormKind;
typedef enum { FORM_SUM, FORM_MAX, FORM_MIN, FORM_PROD } FormReduce;

/* The shard of an operand whose consumer is split by windows: the elements that the windows of a rank read.  Shards of
 * neighbours overlap (a halo).  The consumer's axis has `of` elements, of which the rank has share a .. b - 1:
 *
 *   windows    first = (a + lo) / div to last = (b - 1 + hi) / div, rounded down and clamped to 0 .. mid - 1
 *   elements   mul * first + from to mul * last + to, clamped to the axis of the operand
 *
 * Examples, for stride s, padding p and windows of `span` elements:
 *
 *   convolution, y is split     x: element i of y is window i (div 1), which reads x from s i - p to s i - p + span - 1
 *   its gradient, dx is split   dy: the windows that read an element of dx; div s, mul 1
 *   a pool's gradient, dx split x: all elements that those windows read */
typedef struct FormReach { int64_t of, div, lo, hi, mid, mul, from, to; } FormReach;

typedef struct FormCut {
	int8_t kind, reduce;            /* reduce: of P; the same for every P of a form */
	int8_t axis;                    /* S */
	int64_t len, inner;             /* S: the axis is k x len x inner elements, and len is cut; a full axis: its
	                                 * length x 1 */
	const FormReach *reach;         /* S of a full axis: a rank holds the elements that its windows read; only in
	                                 * destinations.  NULL: it holds its share of this axis */
} FormCut;

typedef struct Form {
	int ndim, mesh[FORM_MESH];
	int first;                      /* ranks of the mesh, the last axis fastest: first, first + 1, ... */
	const int *rank;                /* or these; NULL: those */
	int naxis;
	int64_t dim[FORM_AXES];         /* of the logical tensor */
	FormCut cut[FORM_MESH];
} Form;

/* A run of indices of one axis; a shard stores the runs of an axis one after the other. */
typedef struct FormRun { int64_t at, len; } FormRun;
typedef struct FormAxis { FormRun *run; int n; int64_t len; } FormAxis;
typedef struct FormShard { int naxis; FormAxis axis[FORM_AXES]; } FormShard;

/* Share c of m of n elements: n = q m + r, the first r shares have q + 1 elements, the others q. */
void form_share(int64_t n, int m, int c, int64_t *at, int64_t *len);

/* Ranks of the mesh; index: of a rank in the mesh. */
int  form_nrank(const Form *);
int  form_rank(const Form *, int index);
int  form_index(const Form *, int rank);                 /* -1: not in the mesh */
void form_coord(const Form *, int index, int *coord);
bool form_one_mesh(const Form *, const Form *);          /* the same ranks in the same mesh */
int  form_reduction(const Form *);                       /* how terms are combined; -1: there is one term only */
int  form_terms(const Form *);                           /* the number of terms of the value; 1: no P */

/* Shards. */
void form_lengths(const Form *, int index, int64_t *len); /* of the axes of a shard */
int  form_shard(const Form *, int index, FormShard *);   /* 0; -1: no memory */
void form_shard_free(FormShard *);
int64_t form_elements(const FormShard *);
int64_t form_held(const Form *, int index);              /* elements of a shard */
bool form_reach_same(const FormReach *, const FormReach *);      /* or both NULL */
/* The position of a shard with a reach along axis k of the mesh: how many elements its windows read before the begin
 * and behind the end of the tensor (padding), and the distance of the share from the first window.  Zeros without a
 * reach.  Ranks with equal lengths and equal edges do the same work. */
typedef struct FormEdge { int64_t before, behind, share; } FormEdge;
FormEdge form_edge(const Form *, int index, int k);
bool form_cut_same(const FormCut *, const FormCut *);           /* nothing changes along this axis of the mesh */
bool form_crosses(const Form *, const Form *, int k);           /* of one mesh: a transfer moves data between ranks
                                                                 * that differ along axis k */
int  form_group(const Form *, const Form *);                    /* ranks that a transfer involves together, at most */
int  form_joined(const Form *, const Form *);                   /* ranks of both meshes together */

/* Elements of all pieces that come from another rank, for forms on one mesh, without computing the pieces: added to
 * *total; *most becomes what one rank takes, if that is more.  one: of the first rank only.  0, -1: no memory. */
int form_volume(const Form *src, const Form *dst, bool one, int64_t *total, int64_t *most);
bool form_same(const Form *, const Form *);              /* every rank has the same shard in both */

/* Where a piece lies along one axis, in the shard of the source and in that of the destination. */
typedef struct FormMeet { int64_t from, to, len; } FormMeet;
typedef struct FormPiece {
	int from, to;                   /* indices in the meshes of source and destination */
	bool first;                     /* it is written; else it is combined with what is there */
	int naxis;
	struct { FormMeet *meet; int n; } axis[FORM_AXES];
	int64_t from_dim[FORM_AXES], to_dim[FORM_AXES];  /* of the two shards */
	int64_t elements;
} FormPiece;

/* The pieces that an index of the destination takes, in the order in which they are combined.  Elements of a P without
 * a term are the neutral element: *fill says whether there are any.  0, -1: no memory, or the first nonzero result of
 * piece. */
int form_pieces(const Form *src, const Form *dst, int to, bool *fill,
	int (*piece)(void *arg, const FormPiece *), void *arg);

#endif
