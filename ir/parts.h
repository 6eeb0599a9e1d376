/* Private to the printer, the parser and parts.c. */
#ifndef SBPCC_PARTS_H
#define SBPCC_PARTS_H

#include "wire.h"

/* parts.c: the messages that a model, a function, a graph, a node, a value or an attribute is made of in an .onnx file. */
typedef struct Part {
	const char *path;               /* from that thing to the message, in ONNX's words: "type.tensor_type.shape"; "" is the thing itself */
	const Spec *spec;               /* the fields that such a message has */
	Blobs *unknown;
	Name *doc;                      /* NULL: it has none */
	Pair **meta; int *nmeta;        /* NULL: it has none */
	Type *type;                     /* the message is this type; or NULL */
} Part;
typedef void PartFn(void *ctx, const Part *);
/* Those that hold something, or with make all of them, for what is given to them (place says what it is: ON_NODE a Node). */
void parts_each(AnnotPlace, void *of, Arena *make, PartFn *, void *ctx);

#endif
