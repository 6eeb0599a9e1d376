/* Shared by the files that read .onnx, and by nothing else: the state of a reader, and the messages that one file
 * reads and another contains.  A mistake is reported where it stands and sets w.bad, which ends every walk. */
#ifndef SBPCC_ONNX_READ_H
#define SBPCC_ONNX_READ_H

#include "wire.h"

typedef struct Reader {
	Wire w;
	Model *m;
	SrcFile *src;
	int64_t nodes;
	ShardReader *shard;
} Reader;

/* onnx_read.c */
void onnx_entry(Reader *, const Field *, Pair **list, int *n);                  /* StringStringEntryProto */
Name onnx_take(Pair *list, int *n, const char *key);                            /* takes the entry of ours with that key out; NULL */
void onnx_annots(Reader *, Pair *list, int *n, AnnotPlace, Annot **to);         /* takes the annotations out */
void onnx_opset(Reader *, const Field *, Opset **list, int *n);
void onnx_shards(Reader *, Blobs *, uint32_t num, Node *);                      /* reads multi-device messages among kept fields; takes those of ours out */

/* onnx_type.c */
DType onnx_elem(Reader *, const Field *);
Type *onnx_type(Reader *, const Field *, bool *hollow);                         /* NULL when neither elements nor kind are said */
void  onnx_type_merge(Reader *, Type *to, const Type *from);

/* onnx_tensor.c */
Tensor *onnx_tensor(Reader *, const Field *);
Tensor *onnx_sparse(Reader *, const Field *);                                   /* as a dense one */

/* onnx_attr.c */
Attr onnx_attribute(Reader *, const Field *, Graph *);
void onnx_unique_attrs(Reader *, const Attr *, int n);

/* onnx_graph.c */
Graph *onnx_graph(Reader *, const Field *, Graph *outer);
void   onnx_function(Reader *, const Field *);                                  /* added to the model */

static inline Loc at(const Reader *r, const Field *f)
{
	return wire_loc(&r->w, f->p, f->n);
}

#endif
