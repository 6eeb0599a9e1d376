/* The protobuf wire format, as far as ONNX uses it.  Private to ir/.
 *
 * Reading walks over mapped bytes: a WireMsg is a span with the description of its message, wire_next gives its known
 * fields one after the other.  wire_next also checks bounds and wire types, keeps unknown fields as Blobs where the
 * caller wants them, and lets the last one of repeated singular fields win.  A malformed byte is reported with its
 * offset and ends all walks of that file.  Writing appends to one growing buffer; at the end of a nested message, its
 * bytes are moved up to make room for its length. */
#ifndef SBPCC_WIRE_H
#define SBPCC_WIRE_H

#include "../graph/graph.h"

/* wire.c: reading. */
enum { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_GROUP, WIRE_GROUP_END, WIRE_FIXED32 };

/* One letter for each field number: i varint, f fixed32, d fixed64, s bytes, text or message; capitals repeat (numbers
 * also packed); k is kept as it is, a space is unknown. */
typedef struct WireSpec { const char *name, *kind; } WireSpec;

typedef struct WireIn {
	uint32_t file;
	const uint8_t *base;
	Arena *arena;
	int depth;                      /* of the message being read */
	bool bad;                       /* a mistake was reported */
	int nunknown;                   /* unknown fields */
	int ntwice;                     /* singular fields that stood twice */
	Loc unknown, twice;             /* the first of each */
	const WireSpec *twice_in;
	uint32_t twice_field;
} WireIn;

typedef struct WireMsg {
	WireIn *w;
	const WireSpec *spec;
	size_t nkind;
	const uint8_t *start, *p, *end;
	uint32_t seen;                  /* singular fields so far */
	Blobs *keep;                    /* where fields go that are not known; NULL: the message as a whole is kept */
	bool again;                     /* a second walk: nothing is counted or kept */
} WireMsg;

typedef struct WireField {
	uint32_t num;
	int wire;
	const uint8_t *at;              /* the tag */
	uint64_t v;                     /* varint */
	const uint8_t *p; size_t n;     /* payload */
} WireField;

Loc  wire_loc(const WireIn *, const uint8_t *at, size_t len);
WireMsg  wire_msg(WireIn *, const WireSpec *, const WireField *, Blobs *keep);
WireMsg  wire_again(const WireMsg *);                            /* the same message from its start */
bool wire_field(WireIn *, const Blob *, WireField *);          /* a field that was kept */
bool wire_next(WireMsg *, WireField *);                          /* false at the end, or when something is bad */
bool wire_enter(WireIn *, const uint8_t *at);              /* one message deeper: false when that is too deep */
bool wire_varint(WireIn *, const uint8_t **p, const uint8_t *end, uint64_t *v);
int64_t wire_count(const WireField *, int width);            /* numbers in one field, packed or not; width 0: varints */
Name wire_name(WireIn *, const WireField *);                   /* a name: at most limits.name_bytes, no NUL */
Name wire_text(WireIn *, const WireField *);                   /* any text without a NUL */
void wire_ints(WireIn *, const WireField *, int64_t **list, int *n);   /* append, packed or not */
void wire_warn(const WireIn *);                            /* one line for what was counted */

/* Writing.  Large data is not copied: a span says which bytes to insert at an offset of the buffer. */
typedef struct WireSpan { size_t at, n; const void *p; } WireSpan;
typedef struct WireOut { uint8_t *p; size_t n, cap; WireSpan *span; int nspan; Arena *arena; } WireOut;

void   wire_out_bytes(WireOut *, const void *p, size_t n);
void   wire_out_int(WireOut *, uint32_t field, int64_t v);
void   wire_out_data(WireOut *, uint32_t field, const void *p, size_t n);
void   wire_out_text(WireOut *, uint32_t field, Name s);          /* nothing for NULL */
void   wire_out_float(WireOut *, uint32_t field, float v);
void   wire_out_ints(WireOut *, uint32_t field, const int64_t *v, int n, bool packed);
size_t wire_out_open(WireOut *, uint32_t field);                  /* a message inside, up to wire_out_close */
void   wire_out_close(WireOut *, size_t at);
void   wire_out_blobs(WireOut *, const Blobs *);
size_t wire_out_size(const WireOut *);
int    wire_out_write(WireOut *, FILE *);                         /* everything; frees the buffer; -1: write error */

/* message.c: the messages of onnx.proto, and those that a model, a function, a graph, a node, a value or an attribute
 * is made of. */
extern const WireSpec message_model, message_graph, message_node, message_attribute, message_tensor, message_sparse,
	message_value, message_type, message_tensor_type, message_sub_type, message_map_type, message_opaque_type,
	message_shape, message_dimension, message_opset, message_entry, message_function;

typedef struct Message {
	const char *path;               /* as in onnx.proto: "type.tensor_type.shape"; "": the thing itself */
	const WireSpec *spec;           /* the fields that such a message has */
	Blobs *unknown;
	Name *doc;                      /* NULL: it has none */
	Pair **meta; int *nmeta;        /* NULL: it has none */
	Type *type;                     /* the message is this type; or NULL */
} Message;
typedef void MessageFn(void *ctx, const Message *);
/* Visits the messages of `of` that are not empty; with make, all of them.  `on` tells what `of` is: ON_NODE a Node. */
void message_each(AnnotOn, void *of, Arena *make, MessageFn *, void *ctx);

#endif
