/* .onnx files: protobuf -> Model, without a protobuf library.
 *
 * The file is mapped and walked once or twice per message.  Names are interned; everything else that is large stays in
 * the mapped file: a Tensor points into it.  This file reads the model itself and what all messages have (metadata,
 * operator sets); types, tensors, attributes and graphs have files of their own.
 *
 * The reader refuses what cannot be represented: malformed bytes, sizes that contradict each other, unknown element
 * types.  verify.c checks all other rules of a graph, for text and protobuf alike. */
#include "onnx.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void onnx_entry(OnnxReader *r, const WireField *f, Pair **list, int *n)
{
	Pair p = { .key = name_of(""), .value = name_of(""), .loc = onnx_at(r, f) };
	WireMsg m = wire_msg(&r->w, &message_entry, f, &p.unknown);
	WireField g;

	while (wire_next(&m, &g)) {
		if (g.num == 1)
			p.key = wire_text(&r->w, &g);
		else
			p.value = wire_text(&r->w, &g);
	}
	p.plain = !strncmp(p.key, KEY_PLAIN, strlen(KEY_PLAIN));
	if (p.plain)
		p.key = name_of(p.key + strlen(KEY_PLAIN));
	arena_push(r->w.arena, *list, *n, p);
}

/* Removes our own entry with that key from a list. */
Name onnx_take(Pair *list, int *n, const char *key)
{
	for (int i = 0; i < *n; i++)
		if (!list[i].plain && !strcmp(list[i].key, key)) {
			Name value = list[i].value;

			memmove(list + i, list + i + 1, sizeof *list * (size_t)(--*n - i));
			return value;
		}
	return NULL;
}

void onnx_annots(OnnxReader *r, Pair *list, int *n, AnnotOn on, Annot **to)
{
	Name text = onnx_take(list, n, on == ON_GRAPH ? KEY_GRAPH : KEY_ANNOT);

	if (text && parse_annots(file_memory(name_fmt("%s (annotation)", r->src->path), text, strlen(text)), r->m,
			    on, to))
		r->w.bad = true;
}

void onnx_opset(OnnxReader *r, const WireField *f, Opset **list, int *n)
{
	Opset o = { .domain = name_of(""), .loc = onnx_at(r, f) };
	WireMsg m = wire_msg(&r->w, &message_opset, f, &o.unknown);
	WireField g;

	while (wire_next(&m, &g)) {
		if (g.num == 1)
			o.domain = wire_name(&r->w, &g);
		else
			o.version = (int64_t)g.v;
	}
	for (int i = 0; i < *n; i++)
		if ((*list)[i].domain == o.domain) {
			if ((*list)[i].version != o.version)
				err_at(o.loc, "domain \"%s\" is imported twice, in versions %lld and %lld", o.domain,
					(long long)(*list)[i].version, (long long)o.version);
			for (int k = 0; k < o.unknown.n; k++)
				arena_push(r->w.arena, (*list)[i].unknown.blob, (*list)[i].unknown.n,
					o.unknown.blob[k]);
			return;
		}
	arena_push(r->w.arena, *list, *n, o);
}

void onnx_shards(OnnxReader *r, Blobs *list, uint32_t num, Node *n)
{
	int kept = 0;
	WireField f;

	for (int i = 0; i < list->n; i++) {
		bool found = list->blob[i].field == num && wire_field(&r->w, &list->blob[i], &f) &&
		             f.wire == WIRE_BYTES;

		if (!found || (n ? onnx_shard_node(r->shard, n, &f) : onnx_shard_config(r->shard, &f)))
			list->blob[kept++] = list->blob[i];
	}
	list->n = kept;
}

static void header(OnnxReader *r, const WireField *f)
{
	Model *m = r->m;

	switch (f->num) {
	case 1: m->ir_version = (int64_t)f->v; m->has_ir_version = true; break;
	case 2: m->producer_name = wire_text(&r->w, f); break;
	case 3: m->producer_version = wire_text(&r->w, f); break;
	case 4: m->domain = wire_text(&r->w, f); break;
	case 5: m->model_version = (int64_t)f->v; m->has_model_version = true; break;
	case 6: m->doc = wire_text(&r->w, f); break;
	case 8: onnx_opset(r, f, &m->opset, &m->nopset); break;
	case 14: onnx_entry(r, f, &m->meta, &m->nmeta); break;
	}
}

static void check_header(OnnxReader *r)
{
	Model *m = r->m;
	Loc start = { .file = r->w.file, .len = 1 };

	if (r->w.bad)
		return;
	if (!m->has_ir_version)
		err_at(start, "this is no ONNX model: it has no ir_version");
	else if (m->ir_version < IR_MIN || m->ir_version > IR_MAX)
		err_at(start, "IR version %lld is not supported; %d to %d are", (long long)m->ir_version, IR_MIN,
			IR_MAX);
	else if (!m->nopset)
		err_at(start, "the model imports no operator set (opset_import)");
	else
		return;
	r->w.bad = true;
}

/* The text that this file was written from lacked fields that a file must have. */
static void restore_header(Model *m, const char *text)
{
	char *end;

	int64_t version = strtol(text, &end, 10);
	if (version && (version < IR_MIN || version > IR_MAX))
		return;                         /* the entry is not one that we wrote */
	m->ir_version = version;
	m->has_ir_version = m->ir_version != 0;
	if (*end == ' ' && end[1] == '0')
		m->nopset = 0;
}

/* The other programs of a dump. */
static void programs(OnnxReader *r)
{
	static const char *const names[] = { "eval", "infer" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		Name text = onnx_take(r->m->meta, &r->m->nmeta, name_fmt(KEY_PROGRAM "%s", names[i]));
		Model *o = text ? parse_text(file_memory(name_fmt("<program %s>", names[i]), text, strlen(text)))
		                : NULL;

		if (text && !o)
			r->w.bad = true;
		if (!o)
			continue;
		o->main = r->m;
		o->program = name_of(names[i]);
		arena_push(&r->m->arena, r->m->others, r->m->nothers, o);
	}
}

Model *onnx_read(uint32_t file)
{
	SrcFile *src = file_of(file);
	Model *model = model_new();
	OnnxReader r = { .w = { .file = file, .base = src->data, .arena = &model->arena }, .m = model, .src = src };
	WireMsg m = wire_msg(&r.w, &message_model, &(WireField){ .p = src->data, .n = src->bytes }, &model->unknown);
	WireField f, last = { 0 };
	int ngraph = 0;

	src->binary = true;
	r.shard = onnx_shard_reader(&r.w);
	model->file = file;
	model->from_onnx = true;
	while (wire_next(&m, &f)) {
		if (f.num == 7)
			last = f, ngraph++;
		else
			header(&r, &f);
	}
	Name as_written = onnx_take(model->meta, &model->nmeta, KEY_HEADER);
	onnx_annots(&r, model->meta, &model->nmeta, ON_MODEL, &model->annot);
	programs(&r);
	/* In file order, so that the table of nodes ascends; of several graphs the last one counts. */
	for (WireMsg again = wire_again(&m); wire_next(&again, &f);) {
		if (f.num == 7 && f.p == last.p)
			model->graph = onnx_graph(&r, &f, NULL);
		else if (f.num == 25)
			onnx_function(&r, &f);
	}
	onnx_shards(&r, &model->unknown, 26, NULL);
	check_header(&r);
	if (!r.w.bad && !ngraph) {
		err_at((Loc){ .file = file, .off = src->bytes, .len = 1 }, "the model has no graph");
		r.w.bad = true;
	}
	if (!r.w.bad)
		onnx_shard_finish(r.shard, model);
	if (r.w.bad) {
		model_free(model);
		return NULL;
	}
	wire_warn(&r.w);
	if (as_written)
		restore_header(model, as_written);
	return model;
}
