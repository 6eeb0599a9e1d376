/* The fields of the messages of onnx.proto, and the messages that hold something of a model.
 *
 * ONNX's text syntax has words for most fields; annotations hold documentation, metadata, denotations and unknown
 * fields (@doc, @meta, @denotation, @unknown).  A message that is not itself a node, value, graph, function or
 * attribute, such as the shape in the type of a value, is named by its path from there, in ONNX's words:
 * "type.tensor_type.shape". Printer and parser use the same walk, so both have the same names. */
#include "wire.h"

#include <string.h>

/* Field numbers are those of onnx.proto. */
const WireSpec message_model       = { "ModelProto",                 " isssissS     S     k    Sk" };
const WireSpec message_graph       = { "GraphProto",                 " Ss  S    sSSSkSS" };
const WireSpec message_node        = { "NodeProto",                  " SSssSsssSk" };
const WireSpec message_attribute   = { "AttributeProto",             " sfisssFISSS ssS    issS" };
const WireSpec message_tensor      = { "TensorProto",                " IisFISIssDIsSi S" };
const WireSpec message_sparse      = { "SparseTensorProto",          " ssI" };
const WireSpec message_value       = { "ValueInfoProto",             " sssS" };
const WireSpec message_type        = { "TypeProto",                  " s  ssssss" };
const WireSpec message_tensor_type = { "TypeProto.Tensor",           " is" };
const WireSpec message_sub_type    = { "TypeProto.Sequence",         " s" };
const WireSpec message_map_type    = { "TypeProto.Map",              " is" };
const WireSpec message_opaque_type = { "TypeProto.Opaque",           " ss" };
const WireSpec message_shape       = { "TensorShapeProto",           " S" };
const WireSpec message_dimension   = { "TensorShapeProto.Dimension", " iss" };
const WireSpec message_opset       = { "OperatorSetIdProto",         " si" };
const WireSpec message_entry       = { "StringStringEntryProto",     " ss" };
const WireSpec message_function    = { "FunctionProto",              " s  SSSSsSsSSsS" };

enum { PATH = 8192 };

typedef struct Walk {
	char path[PATH];                /* of the message that is visited */
	size_t n;
	Arena *make;                    /* messages without contents are visited too */
	MessageFn *visit;
	void *ctx;
} Walk;

/* One step deeper; returns where to go back to.  Messages deeper than PATH are not visited under their own name. */
static size_t down(Walk *w, const char *word, int index)
{
	size_t back = w->n;
	int n = snprintf(w->path + back, PATH - back, index < 0 ? "%s%s" : "%s%s[%d]", back ? "." : "", word, index);

	w->n = n < 0 || (size_t)n >= PATH - back ? PATH - 1 : back + (size_t)n;
	return back;
}

static void up(Walk *w, size_t back)
{
	w->path[w->n = back] = 0;
}

static void visit(Walk *w, Message p)
{
	p.path = w->path;
	w->visit(w->ctx, &p);
}

static void fields(Walk *w, const char *word, int index, const WireSpec *spec, Blobs *unknown)
{
	if (!unknown->n && !w->make)
		return;
	size_t back = down(w, word, index);
	visit(w, (Message){ .spec = spec, .unknown = unknown });
	up(w, back);
}

static void pairs(Walk *w, const char *word, Pair *list, int n)
{
	for (int i = 0; i < n; i++)
		fields(w, word, i, &message_entry, &list[i].unknown);
}

static void opsets(Walk *w, Opset *list, int n)
{
	for (int i = 0; i < n; i++)
		fields(w, "opset_import", i, &message_opset, &list[i].unknown);
}

static bool empty(const Type *t)
{
	const struct TypeBlobs *b = t->unknown;
	int n = b->type.n + b->kind.n + b->shape.n;

	for (int i = 0; b->dim && i < t->ndim; i++)
		n += b->dim[i].n;
	return n == 0;
}

static void type(Walk *w, const char *word, Type *t)
{
	static const char *const cases[] = {
		[TY_TENSOR] = "tensor_type", [TY_SEQ] = "sequence_type", [TY_OPTIONAL] = "optional_type",
		[TY_MAP] = "map_type", [TY_SPARSE] = "sparse_tensor_type", [TY_OPAQUE] = "opaque_type",
	};
	static const WireSpec *const specs[] = {
		[TY_TENSOR] = &message_tensor_type, [TY_SEQ] = &message_sub_type, [TY_OPTIONAL] = &message_sub_type,
		[TY_MAP] = &message_map_type, [TY_SPARSE] = &message_tensor_type, [TY_OPAQUE] = &message_opaque_type,
	};

	if (!t->unknown && w->make)
		t->unknown = arena_new(w->make, struct TypeBlobs);
	if (t->unknown && w->make && !t->unknown->dim && t->ndim > 0)
		t->unknown->dim = arena_array(w->make, Blobs, NDIM_MAX);
	size_t back = down(w, word, -1);
	struct TypeBlobs none = { 0 }, *b = t->unknown ? t->unknown : &none;
	visit(w, (Message){ .spec = &message_type, .unknown = &b->type, .type = t });
	fields(w, cases[t->kind], -1, specs[t->kind], &b->kind);
	size_t kind = down(w, cases[t->kind], -1);
	if (t->ndim >= 0)
		fields(w, "shape", -1, &message_shape, &b->shape);
	for (int i = 0; b->dim && i < t->ndim; i++)
		fields(w, "shape.dim", i, &message_dimension, &b->dim[i]);
	if (t->sub)
		type(w, t->kind == TY_MAP ? "value_type" : "elem_type", t->sub);
	up(w, kind);
	up(w, back);
	if (w->make && empty(t))
		t->unknown = NULL;
}

static void tensor(Walk *w, const char *word, Tensor *t)
{
	size_t back = down(w, word, -1);

	visit(w, (Message){ .spec = &message_tensor, .unknown = &t->unknown, .doc = &t->doc,
				    .meta = &t->meta, .nmeta = &t->nmeta });
	pairs(w, "external_data", t->ext, t->next);
	pairs(w, "metadata_props", t->meta, t->nmeta);
	up(w, back);
}

static void value(Walk *w, Value *v)
{
	visit(w, (Message){ .spec = &message_value, .unknown = &v->unknown, .doc = &v->doc,
				    .meta = &v->meta, .nmeta = &v->nmeta });
	pairs(w, "metadata_props", v->meta, v->nmeta);
	if (v->type && (v->input || v->output || v->declared || v->init))
		type(w, "type", v->type);
	if (v->data)
		tensor(w, "tensor", v->data);
}

static void attribute(Walk *w, Attr *a)
{
	visit(w, (Message){ .spec = &message_attribute, .unknown = &a->unknown, .doc = &a->doc });
	if (a->ref || a->absent)
		return;
	if (a->type == AT_TENSOR)
		tensor(w, "t", a->u.t);
	else if (a->type == AT_TYPE)
		type(w, "tp", a->u.tp);
}

void message_each(AnnotOn on, void *of, Arena *make, MessageFn *f, void *ctx)
{
	Walk w = { .n = 0, .make = make, .visit = f, .ctx = ctx };

	w.path[0] = 0;
	if (on == ON_MODEL) {
		Model *m = of;

		visit(&w, (Message){ .spec = &message_model, .unknown = &m->unknown });
		opsets(&w, m->opset, m->nopset);
		pairs(&w, "metadata_props", m->meta, m->nmeta);
	} else if (on == ON_FUNCTION) {
		Function *fn = of;

		visit(&w, (Message){ .spec = &message_function, .unknown = &fn->unknown,
					    .meta = &fn->meta, .nmeta = &fn->nmeta });
		opsets(&w, fn->opset, fn->nopset);
		pairs(&w, "metadata_props", fn->meta, fn->nmeta);
	} else if (on == ON_GRAPH) {
		Graph *g = of;

		visit(&w, (Message){ .spec = &message_graph, .unknown = &g->unknown, .doc = &g->doc,
					    .meta = &g->meta, .nmeta = &g->nmeta });
		pairs(&w, "metadata_props", g->meta, g->nmeta);
	} else if (on == ON_NODE) {
		Node *n = of;

		visit(&w, (Message){ .spec = &message_node, .unknown = &n->unknown, .doc = &n->doc,
					    .meta = &n->meta, .nmeta = &n->nmeta });
		pairs(&w, "metadata_props", n->meta, n->nmeta);
	} else if (on == ON_ATTR) {
		attribute(&w, of);
	} else {
		value(&w, of);
	}
}
