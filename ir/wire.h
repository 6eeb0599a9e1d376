/* The protobuf wire format, as far as ONNX uses it.  Private to the files that read and write .onnx.
 *
 * Reading walks over mapped bytes: a Msg is a span with the description of its message, wire_next gives its known
 * fields one after the other.  What every message needs is done there once: bounds, wire types, fields that are not
 * known (kept as Blobs where the caller says), singular fields that stand twice (the last one wins).  A malformed byte is reported where it
 * stands and ends all walks of that file.  Writing appends to one growing buffer; messages that contain others are
 * closed by moving what was written up by the size of their length. */
#ifndef SBPCC_WIRE_H
#define SBPCC_WIRE_H

#include "ir.h"

enum { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_GROUP, WIRE_GROUP_END, WIRE_FIXED32 };

/* One letter for each field number: i varint, f fixed32, d fixed64, s bytes, text or message; capitals repeat (numbers
 * also packed); k is kept as it is, a space is unknown. */
typedef struct Spec { const char *name, *kind; } Spec;

typedef struct Wire {
	uint32_t file;
	const uint8_t *base;
	Arena *arena;
	int depth;                      /* of the message being read */
	bool bad;                       /* a mistake was reported */
	int nunknown;                   /* fields nobody knows */
	int ntwice;                     /* singular fields that stood twice */
	Loc unknown, twice;             /* the first of each */
	const Spec *twice_in;
	uint32_t twice_field;
} Wire;

typedef struct Msg {
	Wire *w;
	const Spec *spec;
	size_t nkind;
	const uint8_t *start, *p, *end;
	uint32_t seen;                  /* singular fields so far */
	Blobs *keep;                    /* where fields go that are not known; NULL: the message as a whole is kept */
	bool again;                     /* a second walk: nothing is counted or kept */
} Msg;

typedef struct Field {
	uint32_t num;
	int wire;
	const uint8_t *at;              /* the tag */
	uint64_t v;                     /* varint */
	const uint8_t *p; size_t n;     /* payload */
} Field;

Loc  wire_loc(const Wire *, const uint8_t *at, size_t len);
Msg  wire_msg(Wire *, const Spec *, const Field *, Blobs *keep);
Msg  wire_again(const Msg *);                            /* the same message from its start */
bool wire_field(Wire *, const Blob *, Field *);          /* a field that was kept */
bool wire_next(Msg *, Field *);                          /* false at the end, or when something is bad */
bool wire_enter(Wire *, const uint8_t *at);              /* one message deeper: false when that is too deep */
bool wire_varint(Wire *, const uint8_t **p, const uint8_t *end, uint64_t *v);
int64_t wire_count(const Field *, int width);            /* numbers in one field, packed or not; width 0: varints */
Name wire_name(Wire *, const Field *);                   /* a name: at most limits.name_bytes, no NUL */
Name wire_text(Wire *, const Field *);                   /* any text without a NUL */
void wire_ints(Wire *, const Field *, int64_t **list, int *n);   /* append, packed or not */
void wire_warn(const Wire *);                            /* one line for what was counted */

/* parts.c: the messages of onnx.proto. */
extern const Spec spec_model, spec_graph, spec_node, spec_attribute, spec_tensor, spec_sparse, spec_value, spec_type, spec_tensor_type, spec_sub_type,
	spec_map_type, spec_opaque_type, spec_shape, spec_dimension, spec_opset, spec_entry, spec_function;

/* Entries of ours in metadata_props, for what ONNX has no field for.  The reader takes them out again. */
#define KEY_ANNOT   "sbpcc.annot"       /* annotations as text */
#define KEY_FROM    "sbpcc.from"        /* of a node: its place in its original file */
#define KEY_INTO    "sbpcc.into"        /* of a value: the older value in whose storage it lives */
#define KEY_INIT    "sbpcc.init"        /* of an input that is a parameter without data: its place among the initialisers */
#define KEY_LITERAL "sbpcc.literal"     /* of a tensor: it stood in the text as literals */
#define KEY_PROGRAM "sbpcc.program."    /* and its name: another program of a dump, as text */
#define KEY_HEADER  "sbpcc.header"      /* of a model: the ir_version that was written, or 0; 1 if opset_import was */
#define KEY_ATTRS   "sbpcc.attrs"       /* of a function: order and types of attributes without a default */
#define KEY_GRAPH   "sbpcc.graph"       /* annotations of a graph, or of the body of a function */
#define KEY_DOC     "sbpcc.doc"         /* of a function: doc string of its body */
#define KEY_PLAIN   "sbpcc.meta:"       /* before a key that looks like one of ours and is the user's */
#define KEY_BODY    "sbpcc.body:"       /* of a function: before each metadata key of its body */

/* Writing.  Large data is not copied: a span says what stands at a place of the buffer when it goes to the file. */
typedef struct Span { size_t at, n; const void *p; } Span;
typedef struct Out { uint8_t *p; size_t n, cap; Span *span; int nspan; Arena *arena; } Out;

void   out_bytes(Out *, const void *p, size_t n);
void   out_int(Out *, uint32_t field, int64_t v);
void   out_data(Out *, uint32_t field, const void *p, size_t n);
void   out_text(Out *, uint32_t field, Name s);          /* nothing for NULL */
void   out_float(Out *, uint32_t field, float v);
void   out_ints(Out *, uint32_t field, const int64_t *v, int n, bool packed);
size_t out_open(Out *, uint32_t field);                  /* a message inside: out_close(o, what out_open gave) */
void   out_close(Out *, size_t at);
void   out_blobs(Out *, const Blobs *);
size_t out_size(const Out *);
int    out_write(Out *, FILE *);                         /* all of it; frees the buffer; -1 when the file does not take it */

/* onnx_shard.c: multi-device messages. */
typedef struct ShardReader ShardReader;

bool shard_put_node(Out *, uint32_t field, const Model *, const Node *);         /* true when something was written */
void shard_put_configs(Out *, uint32_t field, const Model *);
ShardReader *shard_reader(Wire *);
bool shard_config(ShardReader *, const Field *);                                 /* false: a message of ours, not to be kept */
bool shard_node(ShardReader *, Node *, const Field *);
void shard_finish(ShardReader *, Model *);                                       /* gives the model the annotations */

#endif
