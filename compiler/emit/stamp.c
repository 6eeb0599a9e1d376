/* The origin of a tree: the version of sbpcc, the model, the command; a copy of the model; the licence.
 *
 * Only inputs that decide the tree are recorded: not where or when it was written, nor options that only print.
 * plan.ir has the same as @made, so that the tree which is written from a plan is that of the model: the copies then
 * come from beside the plan, or from where the model was, if their checksums are still the same. */
#include "emit/emit.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

const char stamp_version[] = SBPCC_VERSION;

enum { ONNX_COPIED = 1 << 20 };         /* bytes: a larger .onnx file is named, not copied */

typedef struct Source {
	const char *path;               /* as it was given */
	const char *as;                 /* its name in the tree */
	char sum[41];
	const void *data; size_t bytes; /* NULL: it was not found again */
} Source;

static const char *ending(const char *path)
{
	size_t n = strlen(path);
	return n > 5 && !strcmp(path + n - 5, ".onnx") ? "onnx" : "ir";
}

/* A file that this run has read. */
static void from_run(Source *s)
{
	for (uint32_t i = 1; file_of(i); i++)
		if (!strcmp(file_of(i)->path, s->path)) {
			s->data = file_of(i)->data ? (const void *)file_of(i)->data : "";
			s->bytes = file_of(i)->bytes;
			sha1_text(s->data, s->bytes, s->sum);
			return;
		}
}

/* The file there, if it is the one with this checksum. */
static bool from_file(Source *s, const char *path)
{
	FILE *f = fopen(path, "rb");
	Text t = { 0 };
	char room[1 << 14], sum[41];
	for (size_t n; f && (n = fread(room, 1, sizeof room, f)) > 0;)
		text_raw(&t, room, n);
	bool read = f && !ferror(f);
	if (f)
		fclose(f);
	if (!read)
		return false;
	sha1_text(t.s ? t.s : "", t.n, sum);
	if (strcmp(sum, s->sum))
		return false;
	s->data = t.s ? t.s : "";
	s->bytes = t.n;
	return true;
}

/* The source of a plan: the copy beside it, else the file that it was copied from. */
static void from_tree(Arena *a, Source *s)
{
	const char *slash = strrchr(opt.input, '/');
	if (!from_file(s, arena_printf(a, "%.*s%s", slash ? (int)(slash - opt.input) + 1 : 0, opt.input, s->as)))
		from_file(s, s->path);
}

static const char *text_arg(const Annot *a, const char *key)
{
	const Arg *x = a ? arg_find(a->arg, a->narg, key) : NULL;
	return x ? x->s : NULL;
}

/* ---- @made ---- */

static Annot *take(Model *m)
{
	for (Annot **at = &m->annot; *at; at = &(*at)->next)
		if (!strcmp((*at)->name, "made")) {
			Annot *a = *at;
			*at = a->next;
			return a;
		}
	return NULL;
}

static void add(Model *m, Annot *a, const char *key, const char *text)
{
	bool listed = !strcmp(key, "options");
	Arg x = { .kind = ARG_STRING, .s = name_of(text), .param = name_of(key), .key = listed ? NULL : name_of(key) };
	arena_push(&m->arena, a->arg, a->narg, x);
}

static bool has_option(const Annot *a, const char *text)
{
	for (int i = 0; i < a->narg; i++)
		if (!strcmp(a->arg[i].param, "options") && !strcmp(a->arg[i].s, text))
			return true;
	return false;
}

/* A file that is given beside a plan is listed after the sources of the plan, unless it is one of them. */
static Annot *make(Model *m, const Annot *old, const Source *model, const Source *place)
{
	Annot *a = arena_new(&m->arena, Annot);
	a->name = name_of("made");
	add(m, a, "by", name_fmt("sbpcc-%s", stamp_version));
	add(m, a, "model", model->path);
	add(m, a, "sum", model->sum);
	for (int i = 0; old && i < old->narg; i++)
		if (!strcmp(old->arg[i].param, "options"))
			add(m, a, "options", old->arg[i].s);
	for (int i = 0; i < opt.ngiven; i++)
		if (!old || !has_option(a, opt.given[i]))
			add(m, a, "options", opt.given[i]);
	if (place->path) {
		add(m, a, "place", place->path);
		add(m, a, "place_sum", place->sum);
	}
	return a;
}

/* ---- README.md ---- */

/* A word of the shell, written in printable characters that Markdown does not interpret. */
static const char *word(Arena *a, const char *s)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/-=,+@%";
	Text t = { 0 };
	bool quoted = !*s || s[strspn(s, plain)];
	text_add(&t, quoted ? "'" : "");
	for (; *s; s++) {
		if (*s == '\'')
			text_add(&t, "'\\''");
		else if (*s < ' ' || *s > '~' || strchr("<>&`", *s))
			text_add(&t, "\\x%02X", (unsigned char)*s);
		else
			text_raw(&t, s, 1);
	}
	text_add(&t, quoted ? "'" : "");
	return arena_printf(a, "%s", t.s);
}

static void put_copy(Tree *t, Text *about, const Source *s, const char *what)
{
	bool copied = s->data && (strcmp(ending(s->path), "onnx") || s->bytes <= ONNX_COPIED);
	if (copied) {
		Piece whole = { s->data, s->bytes };
		OutFile *f = tree_data(t, s->as);
		arena_push(t->arena, f->piece, f->npiece, whole);
		text_add(about, "`%s` is a copy of the %s, `%s`", s->as, what, word(t->arena, s->path));
	} else {
		text_add(about, "The %s, `%s`, is not copied here", what, word(t->arena, s->path));
	}
	text_add(about, " (SHA-1 %s).\n", s->sum);
}

static uint64_t hash_of(const Text *t)
{
	uint64_t h = 0xCBF29CE484222325u;
	for (size_t i = 0; i < t->n; i++)
		h = (h ^ (unsigned char)t->s[i]) * 0x100000001B3u;
	return h;
}

/* A string of the printed plan, from after its opening quote: every byte that is not plain as \\xNN, which in our
 * language stands between the quoted pieces of a string.  Returns what follows the string. */
static const char *plan_string(Text *out, const char *s, const char *end)
{
	bool open = false, any = false;
	for (; s < end && *s != '"'; s++, any = true) {
		s += *s == '\\' && s + 1 < end;
		if (emit_plain((unsigned char)*s) != open)
			text_raw(out, "\"", 1);
		open = emit_plain((unsigned char)*s);
		if (open)
			text_raw(out, s, 1);
		else
			text_add(out, "\\x%02x", (unsigned char)*s);
	}
	text_raw(out, "\"\"", open ? 1 : any ? 0 : 2);
	return s < end ? s + 1 : s;
}

/* The plan; bytes with a meaning in C or make are escaped. */
static void print_plan(const Model *m, Text *out)
{
	char *s = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&s, &n);
	if (!f)
		die("out of memory");
	print_model(f, m);
	fclose(f);
	for (const char *at = s, *end = s + n; at < end;) {
		const char *quote = memchr(at, '"', (size_t)(end - at));
		text_raw(out, at, (size_t)((quote ? quote : end) - at));
		at = quote ? plan_string(out, quote + 1, end) : end;
	}
	free(s);
}

const char *stamp_make(Emit *e, Model *m, uint64_t *hash)
{
	Arena *a = e->tree.arena;
	Annot *old = take(m);
	Source model = { .path = text_arg(old, "model") }, place = { .path = text_arg(old, "place") };
	Text bare = { 0 }, about = { 0 };
	model.path = model.path ? model.path : opt.input;
	model.as = arena_printf(a, "model.%s", ending(model.path));
	place.path = place.path ? place.path : opt.place;
	place.as = "model.place";
	if (old) {
		snprintf(model.sum, sizeof model.sum, "%s", text_arg(old, "sum"));
		from_tree(a, &model);
	} else {
		from_run(&model);
	}
	if (text_arg(old, "place_sum")) {
		snprintf(place.sum, sizeof place.sum, "%s", text_arg(old, "place_sum"));
		from_tree(a, &place);
	} else if (place.path) {
		from_run(&place);
	}
	print_plan(m, &bare);
	*hash = hash_of(&bare);
	Annot *made = make(m, old, &model, &place);
	annot_add(&m->annot, made);
	print_plan(m, tree_file(&e->tree, "plan.ir"));
	text_add(&about, "Written by sbpcc %s, by\n\n    sbpcc %s", stamp_version, word(a, model.path));
	for (int i = 0; i < made->narg; i++)
		if (!strcmp(made->arg[i].param, "options"))
			text_add(&about, " %s", word(a, made->arg[i].s));
	text_add(&about, "\n\n");
	put_copy(&e->tree, &about, &model, "model");
	if (place.path)
		put_copy(&e->tree, &about, &place, "file of --place");
	tree_copy(&e->tree, "LICENSE", "LICENSE");
	return arena_printf(a, "%s", about.s);
}
