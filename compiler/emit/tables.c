/* The tables of a tree: values that live from step to step (params.c), inputs and the data they come from (in
 * trainer.c).
 *
 * The runtime fills, loads, saves and restores by these rows, so there is no function per value.  What a parameter
 * starts as is a rule (@init), an array of bits in params.c when it is small, or else a tensor of weights.safetensors,
 * which lies beside the program.  Labels and tokens have a range: that of the axis which they are an index into. */
#include "emit/emit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_CONSTANT = 4096, SMALL_WEIGHT = 256 };

static const char *type_of(DType t)
{
	switch (t) {
	case DT_FLOAT: return "F32";
	case DT_DOUBLE: return "F64";
	case DT_INT64: return "I64";
	case DT_INT32: return "I32";
	case DT_INT16: return "I16";
	case DT_INT8: return "I8";
	case DT_UINT64: return "U64";
	case DT_UINT32: return "U32";
	case DT_UINT16: return "U16";
	case DT_UINT8: return "U8";
	case DT_BOOL: return "BOOL";
	default: return NULL;
	}
}

/* %.9g without a point is an int to C. */
static const char *real(Arena *a, double v)
{
	char *s = arena_printf(a, "%.9g", v);
	if (!strcmp(s, "0"))
		return s;
	return arena_printf(a, strpbrk(s, ".en") ? "%sf" : "%s.0f", s);
}

/* Any bytes as a C string: bytes that are not plain are three octal digits, so the next character never joins them. */
static void c_string(Arena *a, Text *t, const char *s)
{
	text_add(t, "\"");
	for (; *s; s++)
		if (strlen(emit_comment(a, (char[]){ *s, 0 })) == 1)
			text_add(t, "%c", *s);
		else
			text_add(t, "\\%03o", (unsigned char)*s);
	text_add(t, "\"");
}

static int print_tensor(Emit *e, Text *t, const Slot *s)
{
	const char *type = type_of(kernel_stored(s->v->type->elem));
	if (!type) {
		err_at(s->v->loc, "this back end cannot keep %s, which is %s", s->v->name, type_text(s->v->type));
		return -1;
	}
	text_add(t, s->copies > 1 ? "TENSOR_COPIES(%d, %" PRId64 ", " : "TENSOR(", s->copies,
		memplan_aligned(s->bytes));
	text_add(t, "%s, %s, %d, %s, %" PRId64 ", %d", values_string(e->tree.arena, s->v->name), type,
		calls_form(e, s), s->window ? "true" : "false", s->offset, s->ndim);
	for (int a = 0; a < s->ndim; a++)
		text_add(t, ", %" PRId64, s->dim[a]);
	text_add(t, s->ndim ? ")" : ", 0)");
	return 0;
}

/* ---- start values ---- */

static double arg_number(const Arg *call, const char *key, double otherwise)
{
	const Arg *a = arg_find(call->arg, call->narg, key);
	return !a ? otherwise : a->kind == ARG_INT ? (double)a->i : a->f;
}

/* Fans of a weight: [in, out] of a matrix, [out, in, window...] of a convolution. */
static void fans(const Type *t, double *in, double *out)
{
	*in = *out = 1;
	if (t->ndim == 1)
		*in = *out = (double)t->dim[0];
	if (t->ndim == 2) {
		*in = (double)t->dim[0];
		*out = (double)t->dim[1];
	}
	if (t->ndim > 2) {
		double window = 1;
		for (int a = 2; a < t->ndim; a++)
			window *= (double)t->dim[a];
		*in = (double)t->dim[1] * window;
		*out = (double)t->dim[0] * window;
	}
}

/* The key of a value for random numbers: a hash of its name. */
uint64_t tables_key(const char *s)
{
	uint64_t h = 0xCBF29CE484222325u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001B3u;
	return h;
}

Init tables_init_of(const Value *v, double *a, double *b)
{
	const Annot *an = annot_find(v->annot, "init");
	const Arg *how = an && an->narg ? &an->arg[0] : NULL;
	const char *k = how && how->s ? how->s : "";
	double in, out, dev = -1;
	fans(v->type, &in, &out);
	*a = *b = 0;
	bool ones = !strcmp(k, "ones"), normal = !strcmp(k, "normal");
	if (ones || !strcmp(k, "zeros") || !strcmp(k, "constant")) {
		*a = !strcmp(k, "constant") ? arg_number(how, "value", 0) : ones;
		return INIT_FILL;
	}
	if (normal || !strcmp(k, "uniform")) {
		*a = arg_number(how, normal ? "mean" : "low", 0);
		*b = arg_number(how, normal ? "std" : "high", 1);
		return normal ? INIT_NORMAL : INIT_UNIFORM;
	}
	if (!strncmp(k, "xavier", 6))
		dev = arg_number(how, "gain", 1) * sqrt(2 / (arg_number(how, "fan_in", in) + arg_number(how, "fan_out",
			out)));
	if (!strncmp(k, "kaiming", 7)) {
		const Arg *mode = arg_find(how->arg, how->narg, "mode");
		dev = arg_number(how, "gain", sqrt(2)) / sqrt(arg_number(how, "fan", mode && mode->s &&
			!strcmp(mode->s, "fan_out") ? out : in));
	}
	if (dev < 0) {
		err_at(an ? an->loc : v->loc, "this back end has no initialiser %s", *k ? k : "of this form");
		return INIT_NONE;
	}
	if (!text_ends(k, "_uniform")) {
		*b = dev;
		return INIT_NORMAL;
	}
	*b = dev * sqrt(3);
	*a = -*b;
	return INIT_UNIFORM;
}

/* What @init(file("w.npy")) names: beside the model, of the declared type and shape. */
static Tensor *from_file(const Value *v, const Arg *how, Arena *a)
{
	const Arg *path = arg_find(how->arg, how->narg, "path"), *key = arg_find(how->arg, how->narg, "key");
	uint32_t file = extdata_file(path->loc, path->s);
	Tensor *t = !file ? NULL : text_ends(path->s, ".safetensors") ? safetensors_read(file, key ? key->s : v->name,
		a) : npy_decode(file, a);
	if (!t)
		return NULL;
	bool same = kernel_stored(t->dtype) == kernel_stored(v->type->elem) && t->ndim == v->type->ndim;
	for (int k = 0; same && k < t->ndim; k++)
		same = t->dim[k] == v->type->dim[k];
	if (same)
		return t;
	err_at(path->loc, "%s is %s, but the file holds %s", v->name, type_text(v->type),
		type_text(type_tensor(a, t->dtype, t->ndim, t->dim)));
	return NULL;
}

/* A constant as an array of its bits: exact for every type. */
static void print_bits(const Emit *e, Text *t, const Slot *s, const Tensor *d)
{
	int64_t n = tensor_elements(d);
	int w = dtype_bits(d->dtype) / 8;
	size_t line = 0;
	text_add(t, "static const uint%d_t k%d[] = { /* %s */\n", w * 8, s->id,
		emit_comment(e->tree.arena, s->v->name));
	for (int64_t i = 0; i < n; i++) {
		uint64_t bits = 0;
		memcpy(&bits, (const char *)d->data + i * w, (size_t)w);
		values_pack(t, &line, arena_printf(e->tree.arena, bits < 10 ? "%" PRIu64 "," : "0x%" PRIx64 "u,",
			bits));
	}
	text_add(t, n ? "" : "\t0,");
	values_packed(t);
	text_add(t, "};\n");
}

/* A constant in the form that memory holds. */
static Tensor *as_stored(Arena *a, Tensor *d)
{
	if (kernel_stored(d->dtype) == d->dtype)
		return d;
	Tensor *t = tensor_new(a, kernel_stored(d->dtype), d->ndim, d->dim);
	for (int64_t i = 0; i < tensor_elements(d); i++)
		tensor_set(t, i, tensor_get(d, i));
	return t;
}

/* A float tensor that is one number all over. */
static bool uniform(const Tensor *d, double *v)
{
	if (d->dtype != DT_FLOAT || tensor_elements(d) < 1)
		return false;
	for (size_t i = 4; i < d->bytes; i += 4)
		if (memcmp(d->data, (const char *)d->data + i, 4))
			return false;
	*v = tensor_get(d, 0);
	return isfinite(*v) && !(*v == 0 && signbit(*v));
}

typedef struct Weights { Text head; const Tensor **t; Name *name; int n, nname; uint64_t bytes; } Weights;

/* Constants made by folding may share a name. */
static bool in_file(const Weights *w, Name name)
{
	for (int i = 0; i < w->nname; i++)
		if (w->name[i] == name)
			return true;
	return false;
}

static void add_weight(const Emit *e, Weights *w, const Slot *s, const Tensor *d)
{
	text_add(&w->head, "%s", w->n ? ",\n" : "{\"__metadata__\":{\"sbpcc\":\"start values\"},\n");
	text_add(&w->head, "%s", values_string(e->tree.arena, s->v->name));
	text_add(&w->head, ":{\"dtype\":\"%s\",\"shape\":[", type_of(d->dtype));
	for (int a = 0; a < d->ndim; a++)
		text_add(&w->head, "%s%" PRId64, a ? "," : "", d->dim[a]);
	text_add(&w->head, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", w->bytes, w->bytes + d->bytes);
	w->bytes += d->bytes;
	arena_push(e->tree.arena, w->t, w->n, d);
	arena_push(e->tree.arena, w->name, w->nname, s->v->name);
}

/* The header is padded with blanks to a multiple of 8, so that tensors are aligned when mapped. */
static void write_weights(Emit *e, Weights *w)
{
	if (!w->n)
		return;
	OutFile *f = tree_data(&e->tree, "weights.safetensors");
	text_add(&w->head, "}");
	while (w->head.n % 8)
		text_add(&w->head, " ");
	for (int i = 0; i < 8; i++)
		text_raw(&f->text, &(char){ (char)(w->head.n >> 8 * i) }, 1);
	text_raw(&f->text, w->head.s, w->head.n);
	for (int i = 0; i < w->n; i++) {
		Piece p = { w->t[i]->data, w->t[i]->bytes };
		arena_push(e->tree.arena, f->piece, f->npiece, p);
	}
}

static void print_fill(Text *row, Arena *a, double v)
{
	if (v == 0)
		text_add(row, "ZERO");
	else
		text_add(row, "FILL(%s)", real(a, v));
}

/* The start value of a row. */
static int print_start(Emit *e, Text *row, Text *bits, Weights *w, const Slot *s)
{
	Arena *a = e->tree.arena;
	const Value *v = s->v;
	double x, y;
	Tensor *d = v->data ? v->data : NULL;
	const Annot *an = annot_find(v->annot, "init");
	if (!d && an && an->narg && an->arg[0].s && !strcmp(an->arg[0].s, "file") &&
		!(d = from_file(v, &an->arg[0], a)))
		return -1;
	if (d) {
		if (extdata_load(d))
			return -1;
		d = as_stored(a, d);
		if (uniform(d, &x))
			print_fill(row, a, x);
		else if (d->bytes <= (s->keep == KEEP_CONST ? SMALL_CONSTANT : SMALL_WEIGHT) || in_file(w, v->name)) {
			print_bits(e, bits, s, d);
			text_add(row, "HERE(k%d)", s->id);
		} else {
			add_weight(e, w, s, d);
			text_add(row, "IN_FILE");
		}
		return 0;
	}
	Init how = tables_init_of(v, &x, &y);
	if (how == INIT_NONE)
		return -1;
	if (v->type->elem != DT_FLOAT) {
		err_at(v->loc, "this back end initialises float parameters only; %s is %s", v->name,
			type_text(v->type));
		return -1;
	}
	if (how == INIT_FILL)
		print_fill(row, a, x);
	else
		text_add(row, "%s(%s, %s, 0x%016" PRIx64 "u)", how == INIT_NORMAL ? "NORMAL" : "UNIFORM", real(a, x),
			real(a, y), tables_key(v->name));
	return 0;
}

static int by_id(const void *a, const void *b)
{
	return (*(Slot *const *)a)->id - (*(Slot *const *)b)->id;
}

/* The inputs by id: the same order for a graph that was read back. */
static Slot **inputs_of(const Emit *e, int *n)
{
	const Plan *p = e->plan;
	Slot **list = arena_array(e->tree.arena, Slot *, p->nslot + 1);
	*n = 0;
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i] && !p->slot[i]->view && p->slot[i]->keep == KEEP_INPUT)
			list[(*n)++] = p->slot[i];
	qsort(list, (size_t)*n, sizeof *list, by_id);
	return list;
}

/* The parameter that a kept value is an average of; NULL: none. */
static const Value *average_of(const Emit *e, const Slot *s)
{
	return e->plan->train.ema && s->average ? params_owner(s->v->graph, s->v) : NULL;
}

/* The kind of a kept value.  Statistics of the model are state that other programs read too, unlike the state of an
 * optimizer. */
static const char *kept_as(const Emit *e, const Slot *s)
{
	const Model *m = s->v->graph->model->main ? s->v->graph->model->main : s->v->graph->model;
	if (s->keep != KEEP_STATE)
		return s->keep == KEEP_CONST ? "CONSTANT" : s->v->frozen ? "FROZEN" : "PARAMETER";
	for (int i = 0; i < m->nothers && !average_of(e, s); i++) {
		const Value *v = graph_find(m->others[i]->graph, s->v->name);
		if (v && v->init)
			return "STATISTIC";
	}
	return "STATE";
}

/* A row is short if the value is not split and peers do not read it, and shortest for moments of an optimizer. */
static int print_kept(Emit *e, Text *row, Text *bits, Weights *w, const Slot *s)
{
	Arena *a = e->tree.arena;
	const char *keep = kept_as(e, s);
	Text tensor = { 0 }, start = { 0 };
	if (print_tensor(e, &tensor, s) || print_start(e, &start, bits, w, s))
		return -1;
	const Value *of = average_of(e, s);
	if (s->window || slot_cut(e->plan, s) || of) {
		text_add(row, "{ .t = %s, .keep = RT_%s, ", tensor.s, keep);
		if (of)
			text_add(row, ".average_of = %s, ", values_string(a, of->name));
		text_add(row, "%s }", start.s);
		return 0;
	}
	const char *name = values_string(a, s->v->name), *type = type_of(kernel_stored(s->v->type->elem));
	if (!strcmp(keep, "STATE") && s->v->type->elem == DT_FLOAT && !strcmp(start.s, "ZERO"))
		text_add(row, "ZEROS(%s, %" PRId64 ", %d", name, s->offset, s->ndim);
	else if (!strcmp(keep, "PARAMETER") && s->v->type->elem == DT_FLOAT)
		text_add(row, "PARAM(%s, %" PRId64 ", %s, %d", name, s->offset, start.s, s->ndim);
	else
		text_add(row, "KEPT(%s, %s, %s, %" PRId64 ", %s, %d", keep, name, type, s->offset, start.s, s->ndim);
	for (int k = 0; k < s->ndim; k++)
		text_add(row, ", %" PRId64, s->dim[k]);
	text_add(row, s->ndim ? ")" : ", 0)");
	return 0;
}

int tables_params(Emit *e, Text *program)
{
	Text rows = { 0 }, bits = { 0 };
	Weights w = { 0 };
	size_t line = 0;
	Slot **list = e->plan->kept;
	int n = e->plan->nkept;
	for (int i = 0; i < n; i++) {
		Text row = { 0 };
		if (print_kept(e, &row, &bits, &w, list[i]))
			return -1;
		values_pack(&rows, &line, arena_printf(e->tree.arena, "%s,", row.s));
	}
	text_add(&rows, n ? "" : "\t{ ZERO }");
	values_packed(&rows);
	text_add(program, "\t.kept = params,\n\t.nkept = %d,\n", n);
	tree_fill(tree_file(&e->tree, "params.c"), "params.c", "banner",
		emit_banner(e, "Values that live from step to step, and their initial values."),
	              "constants", bits.s ? bits.s : "", "rows", rows.s, NULL);
	write_weights(e, &w);
	return 0;
}

/* ---- inputs and data ---- */

/* The length of the axis that operand k of n is an index into; 0: it is none, or some of its elements are not. */
static int64_t index_range(const Node *n, int k)
{
	int axis;
	return op_index(n, k, &axis) && !attr_has(n, "ignore_index") ? n->in[0]->type->dim[axis] : 0;
}

/* The smallest range that anything computed from v by moving its elements is used with. */
static int64_t range_of(const Graph *g, const Value *input)
{
	uint8_t *is = arena_array(g->scratch, uint8_t, g->nvalue + 1);
	int64_t range = 0;
	is[input->id] = 1;
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nin; k++) {
			if (!n->in[k] || !is[n->in[k]->id])
				continue;
			int64_t r = index_range(n, k);
			range = r && (!range || r < range) ? r : range;
			if (n->row->carries && k == 0 && n->out[0])
				is[n->out[0]->id] = 1;
		}
	}
	return range;
}

static const struct Format { const char *name, *word; bool tokens; } formats[] = {
	{ "points", "POINTS", false }, { "bytes", "BYTES", true }, { "tokens16", "TOKENS16", true },
	{ "tokens32", "TOKENS32", true }, { "npy", "NPY", false },
	{ "idx", "IDX", false }, { "cifar", "CIFAR", false }, { "safetensors", "SAFETENSORS", false },
	{ "tar", "TAR", false },
};

static const struct Format *format_of(const Arg *d)
{
	for (size_t i = 0; d && d->s && i < sizeof formats / sizeof formats[0]; i++)
		if (!strcmp(formats[i].name, d->s))
			return &formats[i];
	return NULL;
}

/* The file that npy(x: "a.npy") names for an input; NULL: none. */
static const char *file_of_input(const Arg *d, const Value *v)
{
	for (int i = 0; d && i < d->narg; i++)
		if (d->arg[i].key && d->arg[i].kind == ARG_STRING && d->arg[i].key == v->name &&
			strcmp(d->arg[i].key, "folder") && strcmp(d->arg[i].key, "validation") &&
			(!strcmp(d->s, "npy") || !strcmp(d->s, "idx")))
			return d->arg[i].s;
	return NULL;
}

static void print_share(const Emit *e, Text *t, const Arg *d, const char *key, const char *field)
{
	double v = arg_number(d, key, 0);
	if (v != 0)
		text_add(t, ", .%s = %s", field, real(e->tree.arena, v));
}

/* The paths of a set, as a table of their own. */
static int print_paths(Arena *a, Text *paths, const Arg *d)
{
	int n = 0;
	for (int i = 0; i < d->narg; i++) {
		const char *param = d->arg[i].param;
		if (!param || d->arg[i].kind != ARG_STRING || (strcmp(param, "file") && strcmp(param, "files") &&
			strcmp(param, "folder")))
			continue;
		text_add(paths, n++ ? ", " : "");
		c_string(a, paths, d->arg[i].s);
	}
	return n;
}

static int print_data(const Emit *e, Text *t, Text *paths)
{
	const Training *tr = &e->plan->train;
	const Arg *d = tr->data;
	const struct Format *f = format_of(d);
	Arena *a = e->tree.arena;
	if (!f) {
		err_at(d ? d->loc : tr->loc,
			"the training section names no data: write data: points(classes: 10, noise: 1)");
		return -1;
	}
	text_add(t, "\t.data = { .format = RT_%s", f->word);
	if (!strcmp(f->name, "points"))
		text_add(t, ", .classes = %" PRId64 ", .noise = %s", (int64_t)arg_number(d, "classes", 10),
			real(a, arg_number(d, "noise", 1)));
	int npath = print_paths(a, paths, d);
	if (npath)
		text_add(t, ", .path = data_paths, .npath = %d", npath);
	const Arg *held = arg_find(d->arg, d->narg, "validation");
	if (held && held->kind == ARG_STRING) {
		text_add(t, ", .held = ");
		c_string(a, t, held->s);
	} else {
		print_share(e, t, d, "validation", "validation");
	}
	const Arg *shuffle = arg_find(d->arg, d->narg, "shuffle");
	if (shuffle && !strcmp(shuffle->s, "false"))
		text_add(t, ", .in_order = true");
	print_share(e, t, d, "scale", "scale");
	print_share(e, t, d, "mean", "mean");
	print_share(e, t, d, "std", "dev");
	text_add(t, " },\n");
	return 0;
}

/* Whether the source can give this input. */
static int check_input(const Slot *s, const struct Format *f, int *tokens, int64_t *width)
{
	DType dt = s->v->type->elem;
	bool integer = dt == DT_INT64 || dt == DT_INT32;
	if (f && f->tokens && integer && s->ndim == 2 && (!*tokens || *width == s->dim[1]) && ++*tokens <= 2) {
		*width = s->dim[1];
		return 0;
	}
	if (s->ndim >= 1 && f && (f->tokens ? dt == DT_BOOL : dt == DT_FLOAT || dt == DT_INT64 || dt == DT_BOOL ||
		(integer && strcmp(f->name, "points"))))
		return 0;
	if (f && f->tokens)
		err_at(s->v->loc,
			"tokens are for one or two inputs int64[N, T], the second one token later than the first; %s "
			"is %s", s->v->name, type_text(s->v->type));
	else
		err_at(s->v->loc, "data are float rows, int64 labels and bool masks; %s is %s", s->v->name,
			type_text(s->v->type));
	return -1;
}

void tables_order_inputs(const Emit *e, Text *t)
{
	int n, k = 0;
	Slot **list = inputs_of(e, &n);
	for (int i = 0; i < n; i++)
		if (strcmp(list[i]->v->name, "train.micro") && strcmp(list[i]->v->name, "train.step"))
			text_add(t, "\n *   in[%d]  %s  %s", k++, emit_comment(e->tree.arena, list[i]->v->name),
				type_text(list[i]->v->type));
}

/* Outputs in their order. */
static int print_outputs(Emit *e, Text *rows)
{
	text_add(rows, "static const RtTensor %s_outputs[] = {\n", emit_program(e));
	for (int i = 0; i < e->g->nout; i++) {
		Text row = { 0 };
		if (print_tensor(e, &row, slot_of(e->plan, e->g->out[i])))
			return -1;
		text_add(rows, "\t%s,\n", row.s);
	}
	text_add(rows, "};\n");
	return 0;
}

/* The table of weights that stay packed.  Returns the fields of RtIo about it; "": there are none. */
static const char *print_packed(const Emit *e, Text *rows)
{
	const Plan *p = e->plan;
	size_t line = 0;
	Text list = { 0 };
	if (!p->npacked)
		return "";
	for (int i = 0; i < p->npacked; i++) {
		const Packed *w = &p->packed[i];
		values_pack(&list, &line,
			arena_printf(e->tree.arena,
			"{ .value = %d, .offset = %" PRId64 ", .k = %" PRId64 ", .n = %" PRId64 ", .row = %" PRId64
			", .col = %" PRId64 " },", w->w->entry, w->offset, w->k, w->n, w->row, w->col));
	}
	values_packed(&list);
	text_add(rows,
		"/* Weights that stay packed: value, offset of the packed copy, k x n, strides of the weight. */\n"
		"static const RtPacked %s_packed[] = {\n%s};\n", emit_program(e), list.s);
	return arena_printf(e->tree.arena, ", .packed = %s_packed, .npacked = %d", emit_program(e),
		p->npacked);
}

/* Metrics, which are reported beside the loss. */
void tables_metric_rows(Emit *e, Text *rows, Text *program)
{
	static const char *const how[] = { [METRIC_MEAN] = "MEAN", [METRIC_EXP] = "EXP", [METRIC_ROOT] = "ROOT" };
	int n;
	const Metric *list = objective_metrics(e->g->model, &n);
	if (!n || !e->plan->training)
		return;
	text_add(rows,
		"/* Metrics: name, function of sum / count, whether sum and count are its own or "
		"those of the loss. */\nstatic const RtMetric metrics[] = {\n");
	for (int i = 0; i < n; i++)
		text_add(rows, "\t{ %s, RT_%s, %s },\n", values_string(e->tree.arena, list[i].name), how[list[i].how],
			list[i].own ? "true" : "false");
	text_add(rows, "};\n");
	text_add(program, "\t.metric = metrics,\n\t.nmetric = %d,\n", n);
}

int tables_inputs(Emit *e, Text *rows, Text *program)
{
	static const char *const id[] = { [PROGRAM_STEP] = "RT_TRAIN", [PROGRAM_EVAL] = "RT_EVAL",
		[PROGRAM_INFER] = "RT_INFER" };
	int n, samples = 0, tokens = 0;
	int64_t width = 0;
	const struct Format *f = e->now->kind != PROGRAM_INFER ? format_of(e->plan->train.data) : NULL;
	Slot **list = inputs_of(e, &n);
	Text paths = { 0 };
	text_add(rows, "static const RtInput %s_inputs[] = {\n", emit_program(e));
	for (int i = 0; i < n; i++) {
		const Slot *s = list[i];
		bool micro = !strcmp(s->v->name, "train.micro"), step = micro || !strcmp(s->v->name, "train.step");
		const char *file = f ? file_of_input(e->plan->train.data, s->v) : NULL;
		Text row = { 0 };
		text_add(&row, "{ .t = ");
		if ((!step && f && check_input(s, f, &tokens, &width)) || print_tensor(e, &row, s))
			return -1;
		const char *source = "RT_SAMPLES";
		if (e->now->kind == PROGRAM_INFER)
			source = "RT_CALLER";
		else if (step)
			source = micro ? "RT_MICRO" : "RT_STEP";
		text_add(&row, ", .feed = %s", source);
		int64_t range = step || s->v->type->elem == DT_FLOAT ? 0 : range_of(e->g, s->v);
		if (range)
			text_add(&row, ", .range = %" PRId64, range);
		if (file) {
			text_add(&row, ", .file = ");
			c_string(e->tree.arena, &row, file);
		}
		text_add(rows, "\t%s },\n", row.s);
		samples += !step;
	}
	text_add(rows, n ? "};\n" : "\t{ .feed = RT_STEP },\n};\n");
	if (print_outputs(e, rows) || (e->now->kind == PROGRAM_STEP && samples && print_data(e, program, &paths)))
		return -1;
	if (paths.n)
		text_add(rows, "static const char *const data_paths[] = { %s };\n", paths.s);
	const char *packed = print_packed(e, rows);
	text_add(program, "\t.io[%s] = { .input = %s_inputs, .ninput = %d, .output = %s_outputs, .noutput = %d%s },\n",
		id[e->now->kind], emit_program(e), n, emit_program(e), e->g->nout, packed);
	return 0;
}
