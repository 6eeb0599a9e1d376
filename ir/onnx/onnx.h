/* .onnx files.  Other folders use onnx_read, onnx_write and onnx_tensor_file; the rest is shared by the files of this
 * folder: the state of a reader, and the readers of messages that another file contains.  A mistake is reported with
 * its location and sets w.bad, which ends every walk. */
#ifndef SBPCC_ONNX_H
#define SBPCC_ONNX_H

#include "../text/text.h"
#include "../wire/wire.h"

typedef struct OnnxShards OnnxShards;

typedef struct OnnxReader {
	WireIn w;
	Model *m;
	SrcFile *src;
	int64_t nodes;
	OnnxShards *shard;
} OnnxReader;

/* Entries of ours in metadata_props, for what ONNX has no field for.  The reader takes them out again. */
#define KEY_ANNOT   "sbpcc.annot"       /* annotations as text */
#define KEY_FROM    "sbpcc.from"        /* of a node: its location in its original file */
#define KEY_INTO    "sbpcc.into"        /* of a value: the older value in whose storage it lives */
#define KEY_INIT    "sbpcc.init"        /* of an input, a parameter without data: its position among the initialisers */
#define KEY_LITERAL "sbpcc.literal"     /* of a tensor: it stood in the text as literals */
#define KEY_PROGRAM "sbpcc.program."    /* and its name: another program of a dump, as text */
#define KEY_HEADER  "sbpcc.header"      /* of a model: the ir_version that was written, or 0; 1 if opset_import was */
#define KEY_ATTRS   "sbpcc.attrs"       /* of a function: order and types of attributes without a default */
#define KEY_GRAPH   "sbpcc.graph"       /* annotations of a graph, or of the body of a function */
#define KEY_DOC     "sbpcc.doc"         /* of a function: doc string of its body */
#define KEY_PLAIN   "sbpcc.meta:"       /* before a key that looks like one of ours and is the user's */
#define KEY_BODY    "sbpcc.body:"       /* of a function: before each metadata key of its body */

static inline Loc onnx_at(const OnnxReader *r, const WireField *f)
{
	return wire_loc(&r->w, f->p, f->n);
}

/* onnx_attr.c */
Attr onnx_attribute(OnnxReader *, const WireField *, Graph *);
void onnx_unique_attrs(OnnxReader *, const Attr *, int n);

/* onnx_graph.c */
Graph *onnx_graph(OnnxReader *, const WireField *, Graph *outer);
void   onnx_function(OnnxReader *, const WireField *);          /* added to the model */

/* onnx_read.c */
Model *onnx_read(uint32_t file);
void onnx_entry(OnnxReader *, const WireField *, Pair **list, int *n);      /* StringStringEntryProto */
Name onnx_take(Pair *list, int *n, const char *key);                        /* removes our entry with that key; NULL */
void onnx_annots(OnnxReader *, Pair *list, int *n, AnnotOn, Annot **to); /* removes the entries of annotations */
void onnx_opset(OnnxReader *, const WireField *, Opset **list, int *n);
void onnx_shards(OnnxReader *, Blobs *, uint32_t num, Node *);  /* reads multi-device messages; removes those of ours */

/* onnx_shard.c: multi-device messages. */
bool onnx_shard_put_node(WireOut *, uint32_t field, const Model *, const Node *);   /* whether something was written */
void onnx_shard_put_configs(WireOut *, uint32_t field, const Model *);
OnnxShards *onnx_shard_reader(WireIn *);
bool onnx_shard_config(OnnxShards *, const WireField *);        /* false: a message of ours, not to be kept */
bool onnx_shard_node(OnnxShards *, Node *, const WireField *);
void onnx_shard_finish(OnnxShards *, Model *);                  /* adds the annotations to the model */

/* onnx_tensor.c */
Tensor *onnx_tensor(OnnxReader *, const WireField *);
Tensor *onnx_sparse(OnnxReader *, const WireField *);           /* as a dense one */
Tensor *onnx_tensor_file(const char *path, Arena *);            /* input_N.pb */

/* onnx_type.c */
DType onnx_elem(OnnxReader *, const WireField *);
Type *onnx_type(OnnxReader *, const WireField *, bool *hollow); /* NULL: neither element type nor kind is given */
void  onnx_type_merge(OnnxReader *, Type *to, const Type *from);

/* onnx_write.c */
int onnx_write(FILE *, const Model *);

#endif
