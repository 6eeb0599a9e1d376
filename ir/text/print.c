/* A Model as text: the only dumper.
 *
 * The text parses back to the same model, and that prints as the same bytes.  So numbers are printed with as many
 * digits as they need, names are quoted if they are not ids, bytes that would act on a terminal become \xNN, and what
 * ONNX's syntax cannot express (documentation, metadata of nodes) is printed as annotations.  Large constants that lie
 * in a mapped file are printed as a reference to it, so that the dump of a large model stays small. */
#include "text.h"
#include "../wire/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 110 };

static bool dump;                       /* the model states which passes are done: nodes state where they came from */

/* ---- Words and numbers */

static void indentation(FILE *o, int depth)
{
	for (int i = 0; i < depth; i++)
		fputs("  ", o);
}

static void quoted(FILE *o, const char *s)
{
	const char *end = s + strlen(s);
	bool open = s == end || diag_printable((const uint8_t *)s, (size_t)(end - s)) > 0;

	if (open)
		fputc('"', o);
	while (s < end) {
		int n = diag_printable((const uint8_t *)s, (size_t)(end - s));

		if (n == 0) {
			fprintf(o, "%s\\x%02x", open ? "\"" : "", (uint8_t)*s++);
			open = false;
			continue;
		}
		if (!open)
			fputc('"', o);
		open = true;
		if (*s == '"' || *s == '\\')
			fputc('\\', o);
		fwrite(s, 1, (size_t)n, o);
		s += n;
	}
	if (open)
		fputc('"', o);
}

/* Words with a meaning where a name may be. */
static bool reserved(Name s)
{
	static const char *const words[] = { "seq", "optional", "map", "sparse_tensor", "opaque", NULL };

	for (int i = 0; words[i]; i++)
		if (!strcmp(s, words[i]))
			return true;
	return lex_is_float_word(s) || dtype_of(s, strlen(s)) != DT_UNDEFINED;
}

void print_name(FILE *o, Name s)
{
	if (s && lex_is_id(s) && !reserved(s))
		fputs(s, o);
	else
		quoted(o, s ? s : "");
}

/* "a.b.c" when each part is an id, else quoted. */
static void dotted(FILE *o, Name s)
{
	char part[256];
	const char *p = s;

	for (;; p++) {
		size_t n = strcspn(p, ".");

		if (n >= sizeof part)
			break;
		memcpy(part, p, n);
		part[n] = 0;
		if (!lex_is_id(part))
			break;
		p += n;
		if (!*p) {
			fputs(s, o);
			return;
		}
	}
	quoted(o, s);
}

/* The fewest digits that read back as the same number, and always a sign that it is no integer. */
static void number(FILE *o, double v, bool single)
{
	char buf[40];

	if (isnan(v) || isinf(v)) {
		fprintf(o, "%s%s", signbit(v) ? "-" : "", isnan(v) ? "nan" : "inf");
		return;
	}
	for (int digits = single ? 6 : 15; digits <= 17; digits++) {
		snprintf(buf, sizeof buf, "%.*g", digits, v);
		if (single ? strtof(buf, NULL) == (float)v : strtod(buf, NULL) == v)
			break;
	}
	for (char *p = buf; *p; p++)
		if (!strchr("0123456789-+e", *p))
			*p = '.';               /* instead of that of the locale */
	fputs(buf, o);
	if (!strpbrk(buf, ".e"))
		fputs(".0", o);
}

/* The number at that address; an unusual NaN by its bits. */
static void float_at(FILE *o, const void *at)
{
	uint32_t u;
	float f;

	memcpy(&u, at, sizeof u);
	memcpy(&f, at, sizeof f);
	if (isnan(f) && (u & 0x7fffffff) != 0x7fc00000)
		fprintf(o, "nan(0x%08x)", u);
	else
		number(o, f, true);
}

static void double_at(FILE *o, const void *at)
{
	uint64_t u;
	double d;

	memcpy(&u, at, sizeof u);
	memcpy(&d, at, sizeof d);
	if (isnan(d) && (u << 1 >> 1) != 0x7ff8000000000000)
		fprintf(o, "nan(0x%016llx)", (unsigned long long)u);
	else
		number(o, d, false);
}

/* ---- Annotations */

static void args(FILE *o, const Arg *arg, int n)
{
	for (int i = 0; i < n; i++) {
		const Arg *a = &arg[i];
		const char *close = NULL;

		if (a->arrow)
			fputs(i ? " -> " : "-> ", o);
		else if (i)
			fputs(", ", o);
		if (a->key)
			fprintf(o, "%s: ", a->key);
		switch (a->kind) {
		case ARG_INT: fprintf(o, "%lld", (long long)a->i); break;
		case ARG_RANGE: fprintf(o, "%lld:%lld", (long long)a->i, (long long)a->j); break;
		case ARG_FACTOR: fprintf(o, "%lld/%lld", (long long)a->i, (long long)a->j); break;
		case ARG_FLOAT: number(o, a->f, false); break;
		case ARG_STRING: quoted(o, a->s); break;
		case ARG_WORD: fputs(a->s, o); break;
		case ARG_STAR: fputc('*', o); break;
		case ARG_LIST: fputc('[', o); close = "]"; break;
		case ARG_INDEX: fprintf(o, "%s[", a->s); close = "]"; break;
		case ARG_CALL: fprintf(o, "%s(", a->s); close = ")"; break;
		}
		if (close) {
			args(o, a->arg, a->narg);
			fputs(close, o);
		}
	}
}

static void annot(FILE *o, const Annot *a)
{
	fprintf(o, "@%s", a->name);
	if (!a->narg)
		return;
	fputc('(', o);
	args(o, a->arg, a->narg);
	fputc(')', o);
}

/* The same on lines of its own, broken between arguments. */
static void annot_lines(FILE *o, const Annot *a)
{
	size_t indent = strlen(a->name) + 2, col = indent;

	fprintf(o, "@%s", a->name);
	for (int i = 0; i < a->narg; i++) {
		char *text = NULL;
		size_t len = 0;
		FILE *to = open_memstream(&text, &len);

		if (!to)
			die("out of memory for an annotation");
		args(to, &a->arg[i], 1);
		fclose(to);
		if (i && col + len > COLUMNS) {
			fprintf(o, ",\n%*s", (int)indent, "");
			col = indent;
		} else {
			fputs(i ? ", " : "(", o);
		}
		fputs(text, o);
		col += len + 2;
		free(text);
	}
	fputs(a->narg ? ")\n" : "\n", o);
}

void print_annots(FILE *o, const Annot *list)
{
	for (; list; list = list->next) {
		fputc(' ', o);
		annot(o, list);
	}
}

/* The last argument of an annotation of a nested message. */
static void where(FILE *o, const char *path)
{
	if (!*path)
		return;
	fputs(", at: ", o);
	quoted(o, path);
}

static void text_annot(FILE *o, const char *name, const char *text, const char *path)
{
	if (!text || !*text)
		return;
	fprintf(o, " @%s(", name);
	quoted(o, text);
	where(o, path);
	fputc(')', o);
}

static void metas(FILE *o, const Pair *meta, int n, const char *path)
{
	for (int i = 0; i < n; i++) {
		fputs(" @meta(", o);
		quoted(o, meta[i].key);
		fputs(", ", o);
		quoted(o, meta[i].value);
		where(o, path);
		fputc(')', o);
	}
}

/* ---- Types and tensors */

static void dims(FILE *o, const Type *t)
{
	if (t->ndim < 0)
		fputs("[]", o);
	for (int i = 0; i < t->ndim; i++) {
		fputs(i ? ", " : "[", o);
		if (t->dim[i] >= 0)
			fprintf(o, "%lld", (long long)t->dim[i]);
		else if (!dim_symbolic(t->dim[i]))
			fputc('?', o);
		else
			print_name(o, dim_text(t->dim[i]));
	}
	if (t->ndim > 0)
		fputc(']', o);
}

static void type(FILE *o, const Type *t)
{
	switch (t->kind) {
	case TY_TENSOR:
		fputs(dtype_name(t->elem), o);
		dims(o, t);
		return;
	case TY_SPARSE:
		fprintf(o, "sparse_tensor(%s", dtype_name(t->elem));
		dims(o, t);
		break;
	case TY_SEQ:
	case TY_OPTIONAL:
		fputs(t->kind == TY_SEQ ? "seq(" : "optional(", o);
		type(o, t->sub);
		break;
	case TY_MAP:
		fprintf(o, "map(%s, ", dtype_name(t->elem));
		type(o, t->sub);
		break;
	case TY_OPAQUE:
		fputs("opaque(", o);
		if (t->domain)
			dotted(o, t->domain);
		if (t->domain)
			fputs(", ", o);
		if (t->name || t->domain)
			dotted(o, t->name ? t->name : "");
		break;
	}
	fputc(')', o);
}

static void tensor_type(FILE *o, const Tensor *t)
{
	fputs(dtype_name(t->dtype), o);
	for (int i = 0; i < t->ndim; i++)
		fprintf(o, "%s%lld", i ? ", " : "[", (long long)t->dim[i]);
	if (t->ndim)
		fputc(']', o);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void element(FILE *o, const Tensor *t, size_t i)
{
	const uint8_t *at = t->data;
	uint64_t u = 0;
	int bits = dtype_bits(t->dtype);

	switch (t->dtype) {
	case DT_FLOAT:
	case DT_COMPLEX64:
		float_at(o, at + 4 * i);
		return;
	case DT_DOUBLE:
	case DT_COMPLEX128:
		double_at(o, at + 8 * i);
		return;
	default:
		break;
	}
	if (bits < 8)
		bits = 8;
	if (t->dtype == DT_BOOL) {
		fputc(tensor_int(t, (int64_t)i) ? '1' : '0', o);
		return;
	}
	if (dtype_bits(t->dtype) == 6)
		u = tensor_packed(t, (int64_t)i);
	else
		memcpy(&u, at + i * (size_t)bits / 8, (size_t)bits / 8);
	if (dtype_is_int(t->dtype) && dtype_is_signed(t->dtype) && dtype_bits(t->dtype) >= 8)
		fprintf(o, "%lld", (long long)((int64_t)(u << (64 - bits)) >> (64 - bits)));
	else
		fprintf(o, "%llu", (unsigned long long)u);
}

/* How many literals the data has, and how many are on a line. */
static size_t literals(const Tensor *t, size_t *per_line)
{
	int bits = dtype_bits(t->dtype);
	bool complex = t->dtype == DT_COMPLEX64 || t->dtype == DT_COMPLEX128;

	*per_line = t->dtype == DT_FLOAT || t->dtype == DT_COMPLEX64 ? 8 :
		dtype_is_int(t->dtype) || (bits && bits <= 16) ? 16 : 4;
	if (dtype_literal_is_byte(t->dtype))
		return t->bytes;
	return (size_t)tensor_elements(t) * (complex ? 2 : 1);
}

static void data(FILE *o, const Tensor *t, int depth)
{
	size_t n, per_line;

	if (t->next) {
		for (int i = 0; i < t->next; i++) {
			fputs(i ? ", " : "[", o);
			print_name(o, t->ext[i].key);
			fputs(": ", o);
			quoted(o, t->ext[i].value);
		}
		fputc(']', o);
		return;
	}
	if (t->file && t->bytes > SMALL_DATA) {
		fputs("[location: ", o);
		quoted(o, base_name(file_of(t->file)->path));
		fprintf(o, ", offset: \"%llu\", length: \"%zu\"]", (unsigned long long)t->file_off, t->bytes);
		return;
	}
	fputc('{', o);
	n = literals(t, &per_line);
	for (size_t i = 0; i < n; i++) {
		if (i)
			fputc(',', o);
		if (n > per_line && i % per_line == 0) {
			fputc('\n', o);
			indentation(o, depth + 1);
		} else if (i) {
			fputc(' ', o);
		}
		if (t->dtype == DT_STRING)
			quoted(o, t->str[i]);
		else
			element(o, t, i);
	}
	if (n > per_line) {
		fputc('\n', o);
		indentation(o, depth);
	}
	fputc('}', o);
}

/* ---- Values */

static void denotation(FILE *o, const Type *t, const char *path)
{
	int n = t->denote && t->ndim > 0 ? t->ndim : 0;

	while (n && !t->denote[n - 1])
		n--;
	if (!t->denotation && !n)
		return;
	fputs(" @denotation(", o);
	quoted(o, t->denotation ? t->denotation : "");
	for (int i = 0; i < n; i++) {
		fputs(", ", o);
		quoted(o, t->denote[i] ? t->denote[i] : "");
	}
	where(o, path);
	fputs(")", o);
}

/* Unknown fields, in strings of a length that can be read back. */
static void unknown(FILE *o, const Message *p)
{
	enum { PIECE = 16384 };
	size_t n = 0;

	if (!p->unknown->n)
		return;
	fputs(" @unknown(", o);
	for (int i = 0; i < p->unknown->n; i++)
		for (size_t k = 0; k < p->unknown->blob[i].bytes; k++, n++)
			fprintf(o, "%s%02x", n % PIECE ? "" : n ? "\", \"" : "\"", p->unknown->blob[i].data[k]);
	fputc('"', o);
	where(o, p->path);
	fputc(')', o);
}

/* A nested message; of the printed thing itself only what is not printed elsewhere. */
static void message(void *ctx, const Message *p)
{
	FILE *o = ctx;

	if (*p->path && p->doc)
		text_annot(o, "doc", *p->doc, p->path);
	if (*p->path && p->meta)
		metas(o, *p->meta, *p->nmeta, p->path);
	if (p->type && strcmp(p->path, "type"))
		denotation(o, p->type, p->path);
	unknown(o, p);
}

static void messages(FILE *o, AnnotOn on, const void *of)
{
	message_each(on, (void *)(uintptr_t)of, NULL, message, o);
}

/* The same on lines of their own. */
static void message_lines(FILE *o, AnnotOn on, const void *of)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		die("out of memory for annotations");
	messages(to, on, of);
	fclose(to);
	/* hexadecimal digits and paths: a blank before @ separates two */
	for (char *s = text + 1; len && *s; s++)
		fputc(s[0] == ' ' && s[1] == '@' ? '\n' : *s, o);
	if (len)
		fputc('\n', o);
	free(text);
}

static void value_annots(FILE *o, const Value *v)
{
	print_annots(o, v->annot);
	if (v->type && (v->input || v->output || v->declared || v->init))
		denotation(o, v->type, "");
	if (v->into) {
		fputs(" @into(", o);
		dotted(o, v->into->name);
		fputc(')', o);
	}
	text_annot(o, "doc", v->doc, "");
	metas(o, v->meta, v->nmeta, "");
	messages(o, ON_VALUE, v);
}

static bool has_type(const Type *t)
{
	return t && (t->kind == TY_OPAQUE || t->kind == TY_SEQ || t->kind == TY_OPTIONAL ||
			    t->elem != DT_UNDEFINED);
}

/* The annotations of a value are printed where it first occurs: input, result of a node, output, or the list of a
 * graph. */
static void interface_value(FILE *o, const Value *v, bool annots)
{
	if (has_type(v->type)) {
		type(o, v->type);
		fputc(' ', o);
	}
	print_name(o, v->name);
	if (annots)
		value_annots(o, v);
}

static void extra_value(FILE *o, const Value *v, int depth)
{
	if (v->data)
		tensor_type(o, v->data);
	else
		type(o, v->type);
	fputc(' ', o);
	print_name(o, v->name);
	if (!v->input && !v->def)
		value_annots(o, v);
	if (v->data) {
		fputs(" = ", o);
		data(o, v->data, depth);
	}
}

/* "(a, b)", or one per line when that is longer than a line. */
static void interface(FILE *o, Value **v, int n, bool in, int depth)
{
	char *text = NULL;
	size_t len = 0;
	bool lines = false;

	for (int pass = 0; pass < 2; pass++) {
		FILE *to = pass ? o : open_memstream(&text, &len);

		if (!to)
			die("out of memory for a list");
		lines = pass && len > COLUMNS - 20;
		for (int i = 0; i < n; i++) {
			if (lines) {
				fputs(i ? ",\n" : "\n", to);
				indentation(to, depth + 1);
			} else if (i) {
				fputs(", ", to);
			}
			interface_value(to, v[i], in || (!v[i]->def && !v[i]->input && !v[i]->init));
		}
		if (!pass) {
			fclose(to);
			fputc('(', o);
		}
	}
	free(text);
	if (lines) {
		fputc('\n', o);
		indentation(o, depth);
	}
	fputc(')', o);
}

static bool plain_declared(const Value *v)
{
	return v->declared && !v->input && !v->output && !v->init && v->type;
}

static int extras(FILE *o, const Graph *g, int depth)
{
	int n = 0;

	for (int i = 0; i < g->ninit + g->nvalue; i++) {
		const Value *v = i < g->ninit ? g->init[i] : g->value[i - g->ninit];

		if (i >= g->ninit && !plain_declared(v))
			continue;
		fputs(n++ ? ",\n" : "\n", o);
		if (n == 1) {
			indentation(o, depth);
			fputs("<\n", o);
		}
		indentation(o, depth + 1);
		extra_value(o, v, depth + 1);
	}
	if (n) {
		fputc('\n', o);
		indentation(o, depth);
		fputc('>', o);
	}
	return n;
}

/* ---- Attributes and nodes */

static void graph(FILE *o, const Graph *g, int depth);

static void attr_tensor(FILE *o, const Tensor *t, int depth)
{
	tensor_type(o, t);
	fputc(' ', o);
	if (t->name && *t->name) {
		print_name(o, t->name);
		fputs(" = ", o);
	}
	data(o, t, depth);
}

static void attr_item(FILE *o, const Attr *a, int i, int depth)
{
	switch (a->type) {
	case AT_UNDEFINED: break;
	case AT_FLOAT: float_at(o, &a->u.f); break;
	case AT_INT: fprintf(o, "%lld", (long long)a->u.i); break;
	case AT_STRING: quoted(o, a->u.s); break;
	case AT_SPARSE:
	case AT_TENSOR: attr_tensor(o, a->u.t, depth); break;
	case AT_GRAPH: graph(o, a->u.g, depth); break;
	case AT_TYPE: type(o, a->u.tp); break;
	case AT_FLOATS: float_at(o, &a->u.fs[i]); break;
	case AT_INTS: fprintf(o, "%lld", (long long)a->u.is[i]); break;
	case AT_STRINGS: quoted(o, a->u.ss[i]); break;
	case AT_SPARSES:
	case AT_TENSORS: attr_tensor(o, a->u.ts[i], depth); break;
	case AT_GRAPHS: graph(o, a->u.gs[i], depth); break;
	case AT_TYPES: type(o, a->u.tps[i]); break;
	}
}

static bool plural(AttrType t)
{
	return (t >= AT_FLOATS && t <= AT_GRAPHS) || t == AT_SPARSES || t == AT_TYPES;
}

static void attribute(FILE *o, const Attr *a, int depth)
{
	bool typed = a->type != AT_UNDEFINED && (a->ref || a->absent || (plural(a->type) && !a->n));

	print_name(o, a->name);
	if (typed)
		fprintf(o, ": %s", type_attr_name(a->type));
	if (a->absent)
		return;
	fputs(" = ", o);
	if (a->ref) {
		fputc('@', o);
		print_name(o, a->ref);
	} else if (plural(a->type)) {
		fputc('[', o);
		for (int i = 0; i < a->n; i++) {
			if (i)
				fputs(", ", o);
			attr_item(o, a, i, depth);
		}
		fputc(']', o);
	} else {
		attr_item(o, a, 0, depth);
	}
	text_annot(o, "doc", a->doc, "");
	messages(o, ON_ATTR, a);
}

static void attributes(FILE *o, const Attr *attr, int n, int depth)
{
	if (!n)
		return;
	fputc('<', o);
	for (int i = 0; i < n; i++) {
		if (i)
			fputs(", ", o);
		attribute(o, &attr[i], depth);
	}
	fputc('>', o);
}

static void node(FILE *o, const Node *n, int depth)
{
	indentation(o, depth);
	if (n->name && *n->name) {
		fputc('[', o);
		print_name(o, n->name);
		fputs("] ", o);
	}
	for (int i = 0; i < n->nout; i++) {
		if (i)
			fputs(", ", o);
		print_name(o, n->out[i] ? n->out[i]->name : "");
		if (n->out[i] && n->out[i]->def == n)
			value_annots(o, n->out[i]);
	}
	fputs(" = ", o);
	if (n->domain && *n->domain) {
		dotted(o, n->domain);
		fputc('.', o);
	}
	print_name(o, n->op);
	if (n->overload && *n->overload) {
		fputc(':', o);
		print_name(o, n->overload);
	}
	attributes(o, n->attr, n->nattr, depth);
	fputc('(', o);
	for (int i = 0; i < n->nin; i++) {
		if (i)
			fputs(", ", o);
		print_name(o, n->in[i] ? n->in[i]->name : "");
	}
	fputc(')', o);
	print_annots(o, n->annot);
	text_annot(o, "doc", n->doc, "");
	metas(o, n->meta, n->nmeta, "");
	messages(o, ON_NODE, n);
	if (n->from || (dump && n->loc.file))
		text_annot(o, "from", n->from ? n->from : loc_text(n->loc), "");
	fputc('\n', o);
}

/* ---- Graphs, functions, the model */


/* Everything of a graph but its name. */
static void graph_rest(FILE *o, const Graph *g, int depth)
{
	int n;

	interface(o, g->in, g->nin, true, depth);
	fputs(" => ", o);
	interface(o, g->out, g->nout, false, depth);
	n = extras(o, g, depth);
	print_annots(o, g->annot);
	text_annot(o, "doc", g->doc, "");
	metas(o, g->meta, g->nmeta, "");
	messages(o, ON_GRAPH, g);
	if (n) {
		fputc('\n', o);
		indentation(o, depth);
	} else {
		fputc(' ', o);
	}
	fputs("{\n", o);
	for (int i = 0; i < g->nnode; i++)
		node(o, g->node[i], depth + 1);
	indentation(o, depth);
	fputc('}', o);
}

static void graph(FILE *o, const Graph *g, int depth)
{
	print_name(o, g->name);
	fputc(' ', o);
	graph_rest(o, g, depth);
}

/* ---- Headers: entries are joined by separators, over several lines when one is too short */

typedef struct Header { FILE *out; const char *sep; int n; } Header;

static FILE *entry(Header *h, const char *key)
{
	fprintf(h->out, "%s%s: ", h->n++ ? h->sep : "", key);
	return h->out;
}

static void header_string(Header *h, const char *key, Name s)
{
	if (s && *s)
		quoted(entry(h, key), s);
}

/* Also when it is empty: a file may have it so. */
static void header_given(Header *h, const char *key, Name s)
{
	if (s)
		quoted(entry(h, key), s);
}

static void header_int(Header *h, const char *key, bool given, int64_t v)
{
	if (given)
		fprintf(entry(h, key), "%lld", (long long)v);
}

static void opsets(Header *h, const Opset *set, int n)
{
	for (int i = 0; i < n; i++) {
		fputs(i ? ", " : "[", i ? h->out : entry(h, "opset_import"));
		quoted(h->out, set[i].domain);
		fprintf(h->out, " : %lld%s", (long long)set[i].version, i == n - 1 ? "]" : "");
	}
}

static void pairs(Header *h, const Pair *pair, int n)
{
	for (int i = 0; i < n; i++) {
		fputs(i ? ", " : "[", i ? h->out : entry(h, "metadata_props"));
		quoted(h->out, pair[i].key);
		fputs(" : ", h->out);
		quoted(h->out, pair[i].value);
		fputs(i == n - 1 ? "]" : "", h->out);
	}
}

static void model_entries(Header *h, const void *of)
{
	const Model *m = of;

	header_int(h, "ir_version", m->has_ir_version, m->ir_version);
	opsets(h, m->opset, m->nopset);
	header_given(h, "producer_name", m->producer_name);
	header_given(h, "producer_version", m->producer_version);
	header_given(h, "domain", m->domain);
	header_int(h, "model_version", m->has_model_version, m->model_version);
	header_given(h, "doc_string", m->doc);
	pairs(h, m->meta, m->nmeta);
}

static void function_entries(Header *h, const void *of)
{
	const Function *f = of;

	header_string(h, "domain", f->domain);
	header_string(h, "overload", f->overload);
	opsets(h, f->opset, f->nopset);
	header_string(h, "doc_string", f->doc);
}

static void header(FILE *o, void (*entries)(Header *, const void *), const void *of)
{
	char *text = NULL;
	size_t len = 0;
	Header one = { .sep = ", " }, many = { .sep = ",\n  ", .out = o };

	one.out = open_memstream(&text, &len);
	if (!one.out)
		die("out of memory for a header");
	entries(&one, of);
	fclose(one.out);
	if (len + 2 > COLUMNS) {
		fputs("<\n  ", o);
		entries(&many, of);
		fputs("\n>\n", o);
	} else if (len) {
		fprintf(o, "<%s>\n", text);
	}
	free(text);
}

static void function(FILE *o, const Function *f)
{
	fputc('\n', o);
	for (const Annot *a = f->annot; a; a = a->next)
		annot_lines(o, a);
	for (int i = 0; i < f->nmeta; i++) {
		fputs("@meta(", o);
		quoted(o, f->meta[i].key);
		fputs(", ", o);
		quoted(o, f->meta[i].value);
		fputs(")\n", o);
	}
	message_lines(o, ON_FUNCTION, f);
	header(o, function_entries, f);
	print_name(o, f->name);
	fputc(' ', o);
	if (f->nattr) {
		attributes(o, f->attr, f->nattr, 0);
		fputc(' ', o);
	}
	graph_rest(o, f->body, 0);
	fputc('\n', o);
}

void print_model(FILE *o, const Model *m)
{
	dump = annot_find(m->annot, "done") != NULL;
	header(o, model_entries, m);
	for (const Annot *a = m->annot; a; a = a->next)
		annot_lines(o, a);
	message_lines(o, ON_MODEL, m);
	if (m->graph) {
		graph(o, m->graph, 0);
		fputc('\n', o);
	}
	for (int i = 0; i < m->nfunction; i++)
		function(o, m->function[i]);
	for (int i = 0; i < m->nothers; i++) {
		fprintf(o, "\n@program(%s)\n", m->others[i]->program);
		print_model(o, m->others[i]);
	}
}

static void io(FILE *o, const char *what, Value *const *list, int n)
{
	for (int i = 0; i < n; i++) {
		fprintf(o, "%-6s ", what);
		print_name(o, list[i]->name);
		fputs("  ", o);
		if (list[i]->type)
			type(o, list[i]->type);
		else
			fputs("of a type that is not declared", o);
		fputc('\n', o);
	}
}

void print_io(FILE *o, const Graph *g)
{
	io(o, "input", g->in, g->nin);
	io(o, "output", g->out, g->nout);
}
