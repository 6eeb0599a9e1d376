/* Shared by the files of rows: the arrays that make up the table, and rules that several rows use.
 * Each array ends with an empty row. */
#ifndef SBPCC_OPS_H
#define SBPCC_OPS_H

#include "../ir.h"

/* Operands have at most this many axes: infer.c refuses more, so rules keep shapes in arrays of this size. */
enum { RANK_MAX = 32 };

extern const Op ops_pointwise[], ops_movement[], ops_index[], ops_reduce[], ops_shape[];                /* the plain ones */
extern const Op ops_matmul[], ops_conv[], ops_pool[], ops_norm[], ops_loss[], ops_attention[], ops_recurrent[];
extern const Op ops_resize[], ops_spectral[], ops_random[], ops_quant[], ops_einsum[], ops_misc[];
extern const Op ops_optimizer[], ops_boxing[];

/* shape.c: shape rules. */
int shape_like_first(Node *);       /* out[0] is as in[0] */
int shape_broadcast(Node *);        /* out[0] has the dtype of in[0] and the broadcast shape of all operands */
int shape_compare(Node *);          /* as shape_broadcast, but bool */
/* Broadcast of two shapes into dim (room for the larger rank); rank, or -1 after err_at naming both shapes. */
int broadcast_dims(Node *, int rank, Dim *dim, int brank, const Dim *bdim);
int shape_pool(Node *, bool conv);  /* spatial arithmetic of Conv and the pools: auto_pad, pads, strides, dilations, ceil_mode */

/* eval helpers (eval.c): operands as doubles or integers, whatever their type; freed with the evaluation. */
double  *eval_doubles(const Tensor *);              /* a fresh array of all elements */
int64_t *eval_ints(const Tensor *);
void     eval_store(Tensor *out, const double *v);  /* rounds each element to out's type */
void     eval_store_ints(Tensor *out, const int64_t *v);
void    *eval_scratch(size_t bytes);                /* gone when the node is done */
void     eval_strides(const Tensor *, int64_t *stride);       /* in elements, row-major */

/* costs */
Cost cost_pointwise(const Node *);
Cost cost_bytes(const Node *);      /* no flops, all operands and results moved once */

#endif
