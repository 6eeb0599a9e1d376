/* From a proved plan to files: what stands in which file.
 *
 * Files are made in memory and written together (emit/make.c).  Fixed text is never in this program's strings: it comes
 * from templates/, runtime/ and kernels/, real files that compile on their own and are embedded here; a hole is a pair of
 * comments, and what stands between them is replaced.  Symbols are t<N> and a<N>; a name of the model reaches a file only
 * in a comment and only through emit_comment. */
#include "emit/emit.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

extern const int nemit_text;
extern const char *const emit_text_name[];
extern const char *const emit_text[];

/* ---- files ---- */

static OutFile *tree_find(const Tree *t, const char *path)
{
	for (int i = 0; i < t->nfile; i++)
		if (!strcmp(t->file[i]->path, path))
			return t->file[i];
	return NULL;
}

OutFile *tree_data(Tree *t, const char *path)
{
	OutFile *f = tree_find(t, path);
	if (f)
		return f;
	f = arena_new(t->arena, OutFile);
	f->path = arena_printf(t->arena, "%s", path);
	arena_push(t->arena, t->file, t->nfile, f);
	return f;
}

Text *tree_file(Tree *t, const char *path)
{
	return &tree_data(t, path)->text;
}

static const char *embedded(const char *name)
{
	for (int i = 0; i < nemit_text; i++)
		if (!strcmp(emit_text_name[i], name))
			return emit_text[i];
	return NULL;
}

const char *emit_embedded(const char *name)
{
	const char *s = embedded(name);
	if (!s)
		die("no embedded file %s", name);
	return s;
}

void tree_copy(Tree *t, const char *path, const char *from)
{
	const char *s = emit_embedded(from);
	Text *f = tree_file(t, path);
	if (!f->n)
		text_raw(f, s, strlen(s));
}

/* The headers that a file of kernels includes, and the files of code that belong to these. */
void tree_headers(Tree *t, const char *name)
{
	static const char key[] = "#include \"";
	for (const char *at = strstr(emit_embedded(name), key); at; at = strstr(at, key)) {
		at += sizeof key - 1;
		size_t n = strcspn(at, "\"");
		char *h = arena_printf(t->arena, "%.*s", (int)n, at), *c = arena_printf(t->arena, "%.*sc", (int)n - 1, at);
		if (!strcmp(h, "kernels.h") || !strcmp(h, "rt.h") || !strcmp(h, "bits.h") || tree_find(t, arena_printf(t->arena, "kernels/%s", h)))
			continue;
		tree_copy(t, arena_printf(t->arena, "kernels/%s", h), h), tree_headers(t, h);
		if (embedded(c) && !strstr(name, ".cu"))
			tree_copy(t, arena_printf(t->arena, "kernels/%s", c), c), tree_headers(t, c);
	}
}

/* Does the text define every kernel that the plain text does? */
static bool covers(const char *text, const char *plain)
{
	static const char key[] = "\nint k_";
	for (const char *at = strstr(plain, key); at; at = strstr(at + 1, key)) {
		size_t n = strcspn(at, "(") + 1;
		const char *k = text;
		while ((k = strstr(k, key)) && strncmp(k, at, n))
			k++;
		if (!k)
			return false;
	}
	return true;
}

void tree_kernel(Tree *t, const char *name)
{
	char *fast = arena_printf(t->arena, "%s_fast.c", name), *plain = arena_printf(t->arena, "%s.c", name);
	const char *text = embedded(fast), *file = text && covers(text, emit_embedded(plain)) ? fast : plain;
	tree_copy(t, arena_printf(t->arena, "kernels/%s", file), file);
	tree_headers(t, file);
}

/* ---- templates ---- */

/* How a hole is written, by the kind of file. */
static void marks(const char *name, const char **open, const char **shut, const char **end)
{
	*open = "/*{", *shut = "*/\n", *end = "/*}*/\n";
	if (!strncmp(name, "Makefile", 8))
		*open = "#{", *shut = "\n", *end = "#}\n";
	else if (strstr(name, ".md") || strstr(name, ".html"))
		*open = "<!--{", *shut = "-->\n", *end = "<!--}-->\n";
}

void template_fill(Text *out, const char *name, ...)
{
	const char *s = emit_embedded(name), *open, *shut, *end;
	marks(name, &open, &shut, &end);
	for (;;) {
		const char *hole = strstr(s, open);
		if (!hole)
			break;
		text_raw(out, s, (size_t)(hole - s));
		hole += strlen(open);
		const char *stop = strstr(hole, shut), *after = stop ? strstr(stop, end) : NULL;
		if (!after)
			die("%s: a hole has no end", name);
		size_t len = (size_t)(stop - hole);
		const char *fill = NULL, *key;
		va_list ap;
		va_start(ap, name);
		while ((key = va_arg(ap, const char *)) != NULL) {
			const char *text = va_arg(ap, const char *);
			if (strlen(key) == len && !strncmp(key, hole, len))
				fill = text;
		}
		va_end(ap);
		if (!fill)
			die("%s: nothing for hole %.*s", name, (int)len, hole);
		text_raw(out, fill, strlen(fill));
		s = after + strlen(end);
	}
	text_raw(out, s, strlen(s));
}

/* ---- names ---- */

static bool plain(unsigned char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("_.:/-", c));
}

const char *emit_comment(Arena *a, const char *name)
{
	size_t n = strlen(name);
	char *out = arena_array(a, char, 4 * n + 1), *o = out;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];
		if (plain(c))
			*o++ = (char)c;
		else
			o += sprintf(o, "\\x%02X", c);
	}
	*o = 0;
	return out;
}

const char *emit_from(Arena *a, const Node *n)
{
	const char *s = loc_brief(n->from ? n->from : n->loc.file ? loc_text(n->loc) : ""), *text = "";
	for (const char *in; (in = strstr(s, " in ")); s = in + 4)          /* a line of a function, in that of its call */
		text = arena_printf(a, "%s%s in ", text, emit_comment(a, arena_printf(a, "%.*s", (int)(in - s), s)));
	return arena_printf(a, "%s%s", text, emit_comment(a, s));
}

/* ---- the plan as bytes, and its hash ---- */

uint64_t emit_hash(const Text *t)
{
	uint64_t h = 0xCBF29CE484222325u;
	for (size_t i = 0; i < t->n; i++)
		h = (h ^ (unsigned char)t->s[i]) * 0x100000001B3u;
	return h;
}

/* A string of the printed plan, from after its opening quote: every byte that is not plain as \\xNN, which in our language
 * stands between the quoted pieces of a string.  Returns what follows the string. */
static const char *plan_string(Text *out, const char *s, const char *end)
{
	bool open = false, any = false;
	for (; s < end && *s != '"'; s++, any = true) {
		s += *s == '\\' && s + 1 < end;
		if (plain((unsigned char)*s) != open)
			text_raw(out, "\"", 1);
		open = plain((unsigned char)*s);
		if (open)
			text_raw(out, s, 1);
		else
			text_add(out, "\\x%02x", (unsigned char)*s);
	}
	text_raw(out, "\"\"", open ? 1 : any ? 0 : 2);
	return s < end ? s + 1 : s;
}

void emit_print(const Model *m, Text *out)
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

/* ---- trainer.c and buffers.h ---- */

static const char *banner(const Emit *e, const char *what)
{
	return arena_printf(e->tree.arena, "/* %s\n * Written by sbpcc %s for model %s on %d rank%s; README.md tells how, and of its licence. */\n", what, sbpcc_version, emit_comment(e->tree.arena, e->g->name ? e->g->name : ""),
	                    e->plan->world->nrank, e->plan->world->nrank == 1 ? "" : "s");
}

const char *emit_banner(const Emit *e, const char *what)
{
	return banner(e, what);
}

static const char *text_of(const Text *t)
{
	return t->s ? t->s : "";
}

const char *emit_part(const Emit *e)
{
	const Model *m = e->g->model;
	return m->program ? m->program : m->plan->training ? "step" : "infer";
}

int emit_part_id(const Emit *e)
{
	const char *s = emit_part(e);
	return *s == 's' ? 0 : *s == 'e' ? 1 : 2;
}

void emit_turn(Emit *e, const Model *m)
{
	e->g = m->graph;
	e->plan = m->plan;
}

int64_t emit_slab(const Emit *e)
{
	int64_t n = 0;
	for (int i = 0; i < e->npart; i++)
		n = e->part[i]->plan->layout.slab > n ? e->part[i]->plan->layout.slab : n;
	return n;
}

int64_t emit_window(const Emit *e)
{
	int64_t n = 0;
	for (int i = 0; i < e->npart; i++)
		n = e->part[i]->plan->layout.window > n ? e->part[i]->plan->layout.window : n;
	return n;
}

/* One entry per role, with the schedules that it has. */
static void print_roles(Emit *e, Text *t)
{
	static const char *const part[] = { "step", "eval", "infer" };
	bool has[3] = { 0 };
	for (int i = 0; i < e->npart; i++) {
		emit_turn(e, e->part[i]);
		has[emit_part_id(e)] = true;
	}
	emit_turn(e, e->part[0]);
	for (int r = 0; r < e->plan->nrole; r++) {
		text_add(t, "extern const RtSchedule");
		for (int i = 0, any = 0; i < 3; i++)
			if (has[i])
				text_add(t, "%s role%d_%s", any++ ? "," : "", r, part[i]);
		text_add(t, ";\n");
	}
	for (int r = 0; r < e->plan->nrole; r++) {
		text_add(t, "static const RtRole role%d = { {", r);
		for (int i = 0; i < 3; i++)
			text_add(t, has[i] ? "%s &role%d_%s" : "%s NULL", i ? "," : "", r, part[i]);
		text_add(t, " } };\n");
	}
	text_add(t, "static const RtRole *const roles[] = {");
	for (int r = 0; r < e->plan->nrole; r++)
		text_add(t, "%s &role%d", r ? "," : "", r);
	text_add(t, " };\n");
}

/* A file of the tree in which the names of the interface begin with the user's prefix instead of sbp_. */
static void prefixed(Emit *e, const char *path, const Text *from)
{
	Text *to = tree_file(&e->tree, path);
	const char *prefix = opt.prefix ? opt.prefix : "sbp";
	for (const char *at = from->s; *at;) {
		const char *next = strstr(at, "sbp_");
		bool word = next && (next == from->s || !(isalnum((unsigned char)next[-1]) || next[-1] == '_'));
		text_raw(to, at, next ? (size_t)(next - at) : strlen(at));
		if (!next)
			break;
		text_add(to, "%s_", word ? prefix : "sbp");
		at = next + 4;
	}
}

/* "in[0] tokens int64[16, 64]" */
static void print_order(const Emit *e, Text *t, const char *which, Value *const *list, int n)
{
	for (int i = 0; i < n; i++) {
		const Slot *s = plan_slot(e->plan, list[i]);
		if (s)
			text_add(t, "\n *   %s[%d]  %s  %s", which, i, emit_comment(e->tree.arena, list[i]->name), type_text(list[i]->type));
	}
}

/* model.h and the program that is nothing but its main. */
static void emit_header(Emit *e)
{
	Text header = { 0 }, main = { 0 }, infer = { 0 }, step = { 0 };
	const Model *m = NULL;
	for (int i = 0; i < e->npart; i++) {
		emit_turn(e, e->part[i]);
		m = emit_part_id(e) == 2 ? e->part[i] : m;
	}
	emit_turn(e, m ? m : e->part[0]);
	if (m) {
		text_add(&infer, "/* The outputs of one batch:");
		emit_order_inputs(e, &infer);
		print_order(e, &infer, "out", e->g->out, e->g->nout);
		text_add(&infer, " */\n");
	} else {
		text_add(&infer, "/* This model has no outputs but the loss: sbp_infer fails. */\n");
	}
	emit_turn(e, e->part[0]);
	if (e->plan->training) {
		text_add(&step, "/* One training step on the caller's samples, as many as sbp_batch tells%s:", e->plan->train.times > 1 ? ", micro-batches one after the other, each" : "");
		emit_order_inputs(e, &step);
		text_add(&step, "\n * Fewer are refused: the step was compiled for that batch. */\n");
	} else {
		text_add(&step, "/* This program does not train: sbp_step and sbp_step_on fail. */\n");
	}
	template_fill(&header, "model.h", "banner", banner(e, "The model as a library."), "infer", infer.s, "step", step.s, NULL);
	template_fill(&main, "trainer.c", "banner", banner(e, "The trainer: the command line is part of the library."), NULL);
	prefixed(e, "model.h", &header);
	prefixed(e, "trainer.c", &main);
}

static int emit_trainer(Emit *e, uint64_t hash)
{
	const Plan *p = e->plan;
	Text roles = { 0 }, ranks = { 0 }, inputs = { 0 }, program = { 0 };
	size_t line = 0;
	print_roles(e, &roles);
	text_add(&ranks, p->nrole > 1 ? "/* The role of each rank. */\nstatic const uint16_t role_of[] = {\n" : "");
	for (int r = 0; r < p->world->nrank && p->nrole > 1; r++)
		emit_pack(&ranks, &line, arena_printf(e->tree.arena, "%d,", p->role_of[r]));
	if (p->nrole > 1) {
		emit_packed(&ranks);
		text_add(&ranks, "};\n\n");
	}
	text_add(&program, "\t.nrank = %d,\n%s", p->world->nrank, p->nrole > 1 ? "\t.role_of = role_of,\n" : "");
	text_add(&program, "\t.hash = 0x%016" PRIx64 "u,\n\t.batch = %" PRId64 ",\n\t.times = %" PRId64 ",\n\t.steps = %" PRId64 ",\n\t.seed = %" PRId64 ",\n", hash, p->batch,
	         p->train.times ? p->train.times : 1, p->train.steps, p->train.seed);
	if (p->training)
		text_add(&program, "\t.rate = %.17g,\n", p->train.rate);
	if (p->train.epochs)
		text_add(&program, "\t.epochs = %" PRId64 ",\n", p->train.epochs);
	if (p->train.total)
		text_add(&program, "\t.total = %" PRId64 ",\n", p->train.total);
	if (p->train.warmup)
		text_add(&program, "\t.warmup = %" PRId64 ",\n", p->train.warmup);
	if (p->train.ema)
		text_add(&program, "\t.ema = true,\n");
	int bad = emit_params(e, &program);
	for (int i = 0; i < e->npart && !bad; i++) {
		emit_turn(e, e->part[i]);
		bad = emit_inputs(e, &inputs, &program);
	}
	emit_turn(e, e->part[0]);
	emit_metric_rows(e, &inputs, &program);
	if (bad)
		return -1;
	Text model = { 0 };
	template_fill(&model, "model.c", "banner", banner(e, "The model: its roles, its inputs, and the functions of model.h."), "roles", text_of(&roles), "ranks", text_of(&ranks), "inputs", text_of(&inputs), "program", text_of(&program), NULL);
	prefixed(e, "model.c", &model);
	emit_header(e);
	return 0;
}

const char *const emit_keep[] = { "input", "parameter", "optimizer", "constant", "gradient", "activation" };

int emit_run(Graph *g)
{
	Model *m = g->model;
	if (m->main || (!opt.out && !opt.change.made))
		return 0;
	Emit e = { .g = g, .plan = m->plan, .tree = { .arena = g->scratch }, .target = m->plan->main->cuda ? TARGET_CUDA : TARGET_C };
	uint64_t hash;
	const char *made = emit_stamp(&e, m, &hash);
	e.part[e.npart++] = m;
	for (int i = 0; i < m->nothers && e.npart < 3; i++)
		e.part[e.npart++] = m->others[i];
	emit_number(&e);
	if (emit_trainer(&e, hash))
		return -1;
	for (int k = 0; k < e.npart; k++) {
		emit_turn(&e, e.part[k]);
		for (int i = 0; i < e.plan->nrole; i++)
			if (emit_schedule(&e, &e.plan->role[i]))
				return -1;
	}
	emit_turn(&e, m);
	emit_schedules(&e);
	emit_values(&e);
	emit_kernels(&e);
	emit_plan(&e);
	emit_html(&e);
	emit_make(&e, made);
	int64_t bytes = m->plan->predicted.bytes = emit_memory(&e).total;
	if (!opt.out)
		return 0;
	if (figures.memory && (double)bytes > figures.memory) {
		fail_at(EXIT_NOPLAN, m->plan->main->loc, "this plan takes %" PRId64 " bytes a rank, more than %.0f", bytes, figures.memory);
		return -1;
	}
	if (tree_write(&e.tree, opt.out))
		return -1;
	emit_report(&e);
	return 0;
}
