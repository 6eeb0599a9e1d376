/* Model -> .onnx.  The bytes depend on the model alone: fields in ascending order (but initialisers in theirs), unknown
 * fields last.
 *
 * Properties for which ONNX has no field are entries of metadata_props under keys of ours (onnx.h), so that reading
 * gives the same model again; S, B, stages and meshes are written a second time as ONNX's own multi-device messages
 * (onnx_shard.c) for other tools.  Numbers are always raw_data, written from where they are; external data stays
 * external. */
#include "onnx.h"

#include <stdlib.h>
#include <string.h>

typedef struct Writer {
	WireOut o;
	const Model *m;
	bool dump;                      /* nodes state where they came from, as print.c does it */
	bool model;                     /* the fields of the model itself are being written */
	int64_t need;                   /* the IR version that the features used so far need */
} Writer;

static void need(Writer *w, int64_t version)
{
	if (w->need < version)
		w->need = version;
}

static void text(Writer *w, uint32_t num, Name s)
{
	if (s && *s)
		wire_out_text(&w->o, num, s);
}

/* A model always had metadata; everything else has it since IR version 10. */
static void entry_with(Writer *w, uint32_t num, const char *key, const char *value, const Blobs *unknown)
{
	size_t at = wire_out_open(&w->o, num);

	wire_out_data(&w->o, 1, key, strlen(key));
	wire_out_data(&w->o, 2, value, strlen(value));
	wire_out_blobs(&w->o, unknown);
	wire_out_close(&w->o, at);
	if (!w->model)
		need(w, 10);
}

static void entry(Writer *w, uint32_t num, const char *key, const char *value)
{
	entry_with(w, num, key, value, &(Blobs){ 0 });
}

static void entries(Writer *w, uint32_t num, const Pair *list, int n)
{
	for (int i = 0; i < n; i++)
		entry_with(w, num,
			strncmp(list[i].key, "sbpcc.", 6) ? list[i].key : name_fmt("%s%s", KEY_PLAIN, list[i].key),
			list[i].value, &list[i].unknown);
}

static void annots_as(Writer *w, uint32_t num, const char *key, const Annot *list)
{
	char *buf = NULL;
	size_t n = 0;
	FILE *f;

	if (!list)
		return;
	if (!(f = open_memstream(&buf, &n)))
		die("out of memory for annotations");
	print_annots(f, list);
	fclose(f);
	entry(w, num, key, name_of(buf + (*buf == ' ')));
	free(buf);
}

static void annots(Writer *w, uint32_t num, const Annot *list)
{
	annots_as(w, num, KEY_ANNOT, list);
}

static void opsets(Writer *w, uint32_t num, const Opset *list, int n)
{
	for (int i = 0; i < n; i++) {
		size_t at = wire_out_open(&w->o, num);

		text(w, 1, list[i].domain);
		wire_out_int(&w->o, 2, list[i].version);
		wire_out_blobs(&w->o, &list[i].unknown);
		wire_out_close(&w->o, at);
	}
}

/* Types and tensors. */

/* The ir_version that has an element type; 3 has the others. */
static void need_type(Writer *w, DType t)
{
	static const int8_t since[DT_COUNT] = {
		[DT_FLOAT8E4M3FN] = 9, [DT_FLOAT8E4M3FNUZ] = 9, [DT_FLOAT8E5M2] = 9, [DT_FLOAT8E5M2FNUZ] = 9,
		[DT_UINT4] = 10, [DT_INT4] = 10, [DT_FLOAT4E2M1] = 11, [DT_FLOAT8E8M0] = 12,
		[DT_UINT2] = 13, [DT_INT2] = 13, [DT_FLOAT6E2M3] = 14, [DT_FLOAT6E3M2] = 14,
	};
	need(w, (unsigned)t < DT_COUNT && since[t] ? since[t] : 3);
}

static void shape(Writer *w, const Type *t, const struct TypeBlobs *b)
{
	size_t at = wire_out_open(&w->o, 2);

	for (int i = 0; i < t->ndim; i++) {
		size_t dim = wire_out_open(&w->o, 1);

		if (dim_known(t->dim[i]))
			wire_out_int(&w->o, 1, t->dim[i]);
		else if (dim_symbolic(t->dim[i]))
			wire_out_text(&w->o, 2, dim_text(t->dim[i]));
		if (t->denote)
			text(w, 3, t->denote[i]);
		if (b->dim)
			wire_out_blobs(&w->o, &b->dim[i]);
		wire_out_close(&w->o, dim);
	}
	wire_out_blobs(&w->o, &b->shape);
	wire_out_close(&w->o, at);
}

static void type(Writer *w, uint32_t num, const Type *t)
{
	static const uint8_t cases[] = {
		[TY_TENSOR] = 1, [TY_SEQ] = 4, [TY_MAP] = 5, [TY_OPAQUE] = 7, [TY_SPARSE] = 8, [TY_OPTIONAL] = 9,
	};
	size_t at = wire_out_open(&w->o, num), one = wire_out_open(&w->o, cases[t->kind]);
	const struct TypeBlobs none = { 0 }, *b = t->unknown ? t->unknown : &none;

	switch (t->kind) {
	case TY_TENSOR:
	case TY_SPARSE:
		need_type(w, t->elem);
		wire_out_int(&w->o, 1, t->elem);
		if (t->ndim >= 0)
			shape(w, t, b);
		break;
	case TY_SEQ:
	case TY_OPTIONAL:
		need(w, t->kind == TY_OPTIONAL ? 8 : 3);
		type(w, 1, t->sub);
		break;
	case TY_MAP:
		wire_out_int(&w->o, 1, t->elem);
		type(w, 2, t->sub);
		break;
	case TY_OPAQUE:
		text(w, 1, t->domain);
		text(w, 2, t->name);
		break;
	}
	wire_out_blobs(&w->o, &b->kind);
	wire_out_close(&w->o, one);
	text(w, 6, t->denotation);
	wire_out_blobs(&w->o, &b->type);
	wire_out_close(&w->o, at);
}

static void value_meta(Writer *w, uint32_t num, const Value *v)
{
	annots(w, num, v->annot);
	if (v->into)
		entry(w, num, KEY_INTO, v->into->name);
	entries(w, num, v->meta, v->nmeta);
}

/* v: the value whose initialiser this is and whose doc string and metadata are written here, or NULL. */
static void tensor(Writer *w, uint32_t num, const Tensor *t, const Value *v)
{
	WireOut *o = &w->o;
	size_t at = wire_out_open(o, num);

	need_type(w, t->dtype);
	wire_out_ints(o, 1, t->dim, t->ndim, false);
	wire_out_int(o, 2, t->dtype);
	for (int64_t i = 0, n = t->dtype == DT_STRING ? tensor_elements(t) : 0; i < n; i++)
		wire_out_text(o, 6, t->str[i]);
	text(w, 8, v ? v->name : t->name);
	if (!t->next && t->dtype != DT_STRING)
		wire_out_data(o, 9, t->data, t->bytes);
	wire_out_text(o, 12, v ? v->doc : t->doc);
	for (int i = 0; i < t->next; i++) {
		size_t kv = wire_out_open(o, 13);

		wire_out_text(o, 1, t->ext[i].key);
		wire_out_text(o, 2, t->ext[i].value);
		wire_out_blobs(o, &t->ext[i].unknown);
		wire_out_close(o, kv);
	}
	if (t->next)
		wire_out_int(o, 14, 1);
	if (v)
		value_meta(w, 16, v);
	entries(w, 16, t->meta, t->nmeta);
	if (!t->file && !t->next && t->bytes > SMALL_DATA)
		entry(w, 16, KEY_LITERAL, "1");
	wire_out_blobs(o, &t->unknown);
	wire_out_close(o, at);
}

/* As in the file that was read; name, documentation and metadata are those of the values. */
static void sparse(Writer *w, uint32_t num, const Tensor *t, const Value *v)
{
	Tensor values = *t->sparse->values;
	size_t at = wire_out_open(&w->o, num);

	need(w, 6);
	values.doc = t->doc;
	values.meta = t->meta;
	values.nmeta = t->nmeta;
	tensor(w, 1, &values, v);
	tensor(w, 2, t->sparse->indices, NULL);
	wire_out_ints(&w->o, 3, t->dim, t->ndim, false);
	wire_out_blobs(&w->o, &t->sparse->unknown);
	wire_out_close(&w->o, at);
}

/* meta: documentation and metadata are written here.  fields: unknown fields are, among them a type that we cannot
 * express. */
static void value(Writer *w, uint32_t num, const Value *v, bool typed, bool meta, bool fields, int position)
{
	size_t at = wire_out_open(&w->o, num);
	char where[16];

	wire_out_text(&w->o, 1, v->name);
	if (v->type && typed)
		type(w, 2, v->type);
	if (meta) {
		wire_out_text(&w->o, 3, v->doc);
		value_meta(w, 4, v);
	}
	if (position >= 0) {
		snprintf(where, sizeof where, "%d", position);
		entry(w, 4, KEY_INIT, where);
	}
	for (int i = 0; fields && i < v->unknown.n; i++)
		if (v->unknown.blob[i].field != 2 || !(v->type && typed))
			wire_out_bytes(&w->o, v->unknown.blob[i].data, v->unknown.blob[i].bytes);
	wire_out_close(&w->o, at);
}

/* Nodes. */

static void graph(Writer *w, uint32_t num, const Graph *g);

/* Sparse tensors were read as dense ones; those that the text declares as sparse are dense, too. */
static AttrType written_as(const Attr *a)
{
	AttrType t = a->type == AT_SPARSE ? AT_TENSOR : a->type == AT_SPARSES ? AT_TENSORS : a->type;
	int nsparse = 0;

	if (a->ref || a->absent)
		return a->type;
	for (int i = 0; t == AT_TENSORS && i < a->n; i++)
		nsparse += a->u.ts[i]->sparse != NULL;
	if (t == AT_TENSOR && a->u.t->sparse)
		return AT_SPARSE;
	return nsparse == a->n && (nsparse || a->type == AT_SPARSES) && t == AT_TENSORS ? AT_SPARSES : t;
}

static void attribute(Writer *w, uint32_t num, const Attr *a)
{
	WireOut *o = &w->o;
	size_t at = wire_out_open(o, num);
	AttrType t = written_as(a);

	wire_out_text(o, 1, a->name);
	if (!a->ref)
		switch (t) {
		case AT_FLOAT:  wire_out_float(o, 2, a->u.f); break;
		case AT_INT:    wire_out_int(o, 3, a->u.i); break;
		case AT_STRING: wire_out_text(o, 4, a->u.s); break;
		case AT_TENSOR: tensor(w, 5, a->u.t, NULL); break;
		case AT_GRAPH:  graph(w, 6, a->u.g); break;
		case AT_TYPE:                                   /* after the doc string */
		case AT_SPARSE: break;                          /* at the end */
		case AT_INTS:   wire_out_ints(o, 8, a->u.is, a->n, false); break;
		default:
			for (int i = 0; i < a->n; i++)
				if (t == AT_FLOATS)
					wire_out_float(o, 7, a->u.fs[i]);
				else if (t == AT_STRINGS)
					wire_out_text(o, 9, a->u.ss[i]);
				else if (t == AT_TENSORS)
					tensor(w, 10, a->u.ts[i], NULL);
				else if (t == AT_GRAPHS)
					graph(w, 11, a->u.gs[i]);
		}
	wire_out_text(o, 13, a->doc);
	if (!a->ref && t == AT_TYPE)
		type(w, 14, a->u.tp);
	for (int i = 0; !a->ref && t == AT_TYPES && i < a->n; i++)
		type(w, 15, a->u.tps[i]);
	if (t != AT_UNDEFINED)
		wire_out_int(o, 20, t);
	text(w, 21, a->ref);
	if (!a->ref && t == AT_SPARSE)
		sparse(w, 22, a->u.t, NULL);
	for (int i = 0; !a->ref && t == AT_SPARSES && i < a->n; i++)
		sparse(w, 23, a->u.ts[i], NULL);
	wire_out_blobs(o, &a->unknown);
	wire_out_close(o, at);
}

static void node(Writer *w, uint32_t num, const Node *n)
{
	WireOut *o = &w->o;
	size_t at = wire_out_open(o, num);

	for (int i = 0; i < n->nin; i++)
		wire_out_text(o, 1, n->in[i] ? n->in[i]->name : "");
	for (int i = 0; i < n->nout; i++)
		wire_out_text(o, 2, n->out[i] ? n->out[i]->name : "");
	text(w, 3, n->name);
	wire_out_text(o, 4, n->op);
	for (int i = 0; i < n->nattr; i++)
		attribute(w, 5, &n->attr[i]);
	wire_out_text(o, 6, n->doc);
	text(w, 7, n->domain);
	text(w, 8, n->overload);
	if (n->overload && *n->overload)
		need(w, 10);
	annots(w, 9, n->annot);
	if (n->from || (w->dump && n->loc.file))
		entry(w, 9, KEY_FROM, n->from ? n->from : loc_text(n->loc));
	entries(w, 9, n->meta, n->nmeta);
	if (onnx_shard_put_node(o, 10, w->m, n))
		need(w, 11);
	wire_out_blobs(o, &n->unknown);
	wire_out_close(o, at);
}

/* Graphs.  Doc string and metadata of a value are written once, at its first occurrence: as an input, in its tensor, as
 * an output, or in a value info. */

static bool has_meta(const Value *v)
{
	return v->annot || v->into || v->doc || v->nmeta || v->unknown.n;
}

static void infos(Writer *w, uint32_t num, const Graph *g, bool function)
{
	for (int i = 0; i < g->nvalue; i++) {
		const Value *v = g->value[i];
		bool typed = function ? v->type && (v->declared || v->input || v->output) : v->declared && v->type;
		bool elsewhere = !function && (v->input || v->output || v->init);
		bool more = elsewhere && v->data && !v->input && !v->output &&
		            (v->unknown.n || (v->type && v->type->unknown));

		if (more)       /* what its tensor cannot hold */
			value(w, num, v, true, false, true, -1);
		if (elsewhere || !(typed || has_meta(v)))
			continue;
		value(w, num, v, typed, true, true, -1);
		if (function)
			need(w, 10);
	}
}

static void graph(Writer *w, uint32_t num, const Graph *g)
{
	WireOut *o = &w->o;
	size_t at = wire_out_open(o, num);

	for (int i = 0; i < g->nnode; i++)
		node(w, 1, g->node[i]);
	wire_out_text(o, 2, g->name);
	for (int i = 0; i < g->ninit; i++)
		if (g->init[i]->data) {
			const Value *v = g->init[i]->input ? NULL : g->init[i];

			if (g->init[i]->data->sparse)
				sparse(w, 15, g->init[i]->data, v);
			else
				tensor(w, 5, g->init[i]->data, v);
			need(w, g->init[i]->input ? 3 : 4);
		}
	wire_out_text(o, 10, g->doc);
	for (int i = 0; i < g->nin; i++)
		if (!g->in[i]->init || g->in[i]->data)
			value(w, 11, g->in[i], true, true, true, -1);
	for (int i = 0; i < g->ninit; i++)
		if (!g->init[i]->data)
			value(w, 11, g->init[i], true, true, true, i);
	bool *done = arena_array(w->o.arena, bool, g->nvalue + 1);
	for (int i = 0; i < g->nout; i++) {
		const Value *v = g->out[i];

		value(w, 12, v, true, !v->input && !v->init && !done[v->id],
			!v->input && (!v->init || v->data) && !done[v->id], -1);
		done[v->id] = true;
	}
	infos(w, 13, g, false);
	annots_as(w, 16, KEY_GRAPH, g->annot);
	entries(w, 16, g->meta, g->nmeta);
	wire_out_blobs(o, &g->unknown);
	wire_out_close(o, at);
}

/* Functions. */

/* Attributes without a default are names only and come before the others: writes the order and types that this
 * loses. */
static void attr_order(Writer *w, const Function *f)
{
	int nabsent = 0, absent = 0, given = 0;
	bool lost = false;
	char *buf = NULL;
	size_t n = 0;
	FILE *o = open_memstream(&buf, &n);

	if (!o)
		die("out of memory for attributes");
	for (int i = 0; i < f->nattr; i++)
		nabsent += f->attr[i].absent;
	for (int i = 0; i < f->nattr; i++) {
		const Attr *a = &f->attr[i];
		int at = a->absent ? absent++ : nabsent + given++;

		lost |= at != i || (a->absent && a->type);
		fprintf(o, a->absent && a->type ? "%s%d:%d" : "%s%d", i ? " " : "", at, (int)a->type);
	}
	fclose(o);
	if (lost)
		entry(w, 14, KEY_ATTRS, buf);
	free(buf);
}

static void function(Writer *w, uint32_t num, const Function *f)
{
	WireOut *o = &w->o;
	size_t at = wire_out_open(o, num);
	const Graph *g = f->body;

	need(w, 8);
	wire_out_text(o, 1, f->name);
	for (int i = 0; i < g->nin; i++)
		wire_out_text(o, 4, g->in[i]->name);
	for (int i = 0; i < g->nout; i++)
		wire_out_text(o, 5, g->out[i]->name);
	for (int i = 0; i < f->nattr; i++)
		if (f->attr[i].absent)
			wire_out_text(o, 6, f->attr[i].name);
	for (int i = 0; i < g->nnode; i++)
		node(w, 7, g->node[i]);
	wire_out_text(o, 8, f->doc);
	if (f->nopset)
		opsets(w, 9, f->opset, f->nopset);
	else
		opsets(w, 9, w->m->opset, w->m->nopset);
	text(w, 10, f->domain);
	for (int i = 0; i < f->nattr; i++)
		if (!f->attr[i].absent) {
			attribute(w, 11, &f->attr[i]);
			need(w, 9);
		}
	infos(w, 12, g, true);
	text(w, 13, f->overload);
	if (!f->nopset && w->m->nopset)
		entry(w, 14, KEY_HEADER, "0 0");
	attr_order(w, f);
	annots(w, 14, f->annot);
	annots_as(w, 14, KEY_GRAPH, g->annot);
	if (g->doc)
		entry(w, 14, KEY_DOC, g->doc);
	for (int i = 0; i < g->nmeta; i++)
		entry(w, 14, name_fmt("%s%s", KEY_BODY, g->meta[i].key), g->meta[i].value);
	entries(w, 14, f->meta, f->nmeta);
	wire_out_blobs(o, &f->unknown);
	wire_out_close(o, at);
}

/* The part after the header; written first, because it decides the IR version. */
static void body(Writer *w)
{
	const Model *m = w->m;
	Opset newest = { .domain = name_of(""), .version = OPSET_MAX };

	wire_out_text(&w->o, 2, m->producer_name);
	wire_out_text(&w->o, 3, m->producer_version);
	wire_out_text(&w->o, 4, m->domain);
	if (m->has_model_version)
		wire_out_int(&w->o, 5, m->model_version);
	wire_out_text(&w->o, 6, m->doc);
	graph(w, 7, m->graph);
	opsets(w, 8, m->nopset ? m->opset : &newest, m->nopset ? m->nopset : 1);
	w->model = true;
	annots(w, 14, m->annot);
	entries(w, 14, m->meta, m->nmeta);
	w->model = false;
	for (int i = 0; i < m->nfunction; i++)
		function(w, 25, m->function[i]);
	if (w->need >= 11 || annot_find(m->annot, "mesh")) {
		need(w, 11);
		onnx_shard_put_configs(&w->o, 26, m);
	}
	wire_out_blobs(&w->o, &m->unknown);
}

/* The other programs of a dump, as text. */
static void programs(Writer *w)
{
	for (int i = 0; i < w->m->nothers; i++) {
		const Model *o = w->m->others[i];
		char *text = NULL;
		size_t n = 0;
		FILE *f = open_memstream(&text, &n);

		if (!f)
			die("out of memory");
		print_model(f, o);
		fclose(f);
		w->model = true;
		entry(w, 14, name_fmt(KEY_PROGRAM "%s", o->program), text);
		free(text);
	}
}

int onnx_write(FILE *f, const Model *m)
{
	Arena tmp = { 0 };
	Writer w = { .o = { .arena = &tmp }, .m = m, .need = 8 };
	WireOut head = { .arena = &tmp };
	int64_t written = m->has_ir_version ? m->ir_version : 0;
	char header[40];

	if (m->has_ir_version)
		w.need = IR_MIN;
	w.dump = annot_find(m->annot, "done") != NULL;
	body(&w);
	programs(&w);
	int64_t version = written > w.need ? written : w.need;
	if (version != written || !m->nopset) {
		snprintf(header, sizeof header, "%lld %d", (long long)written, m->nopset != 0);
		w.model = true;
		entry(&w, 14, KEY_HEADER, header);
	}
	int bad = 0;
	if (wire_out_size(&w.o) > (size_t)INT32_MAX - 16) {
		fail_at(EXIT_LIMIT, (Loc){ 0 }, "the model has %zu bytes; a .onnx file can have 2 GiB",
			wire_out_size(&w.o));
		bad = -1;
	}
	wire_out_int(&head, 1, version);
	if (!bad && (wire_out_write(&head, f) || wire_out_write(&w.o, f))) {
		fail_at(EXIT_ENV, (Loc){ 0 }, "cannot write the .onnx file");
		bad = -1;
	}
	free(head.p);
	free(w.o.p);
	arena_free(&tmp);
	return bad;
}
