/* From a proved plan to files: which file holds what.
 *
 * Files are made in memory and written together (emit/tree.c).  Fixed text is not in strings of this program: it comes
 * from templates/, runtime/ and kernels/, whose files compile on their own and are embedded.  A hole in a template is a
 * pair of comments; the text between them is replaced.  A name of the model reaches a file in a comment or a
 * string only through emit_comment, and as an identifier only through emit/names.c. */
#include "emit/emit.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

bool emit_plain(unsigned char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("_.:/-", c));
}

const char *emit_comment(Arena *a, const char *name)
{
	size_t n = strlen(name);
	char *out = arena_array(a, char, 4 * n + 1), *o = out;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];
		if (emit_plain(c))
			*o++ = (char)c;
		else
			o += sprintf(o, "\\x%02X", c);
	}
	*o = 0;
	return out;
}

/* Words of a location are escaped one by one; blanks, brackets and commas between them are harmless in every file. */
const char *emit_from(Arena *a, const Node *n)
{
	static const char between[] = " (),";
	const char *s = loc_brief(n->from ? n->from : n->loc.file ? loc_text(n->loc) : ""), *text = "";
	while (*s) {
		int word = (int)strcspn(s, between), gap = (int)strspn(s + word, between);
		text = arena_printf(a, "%s%s%.*s", text, emit_comment(a, arena_printf(a, "%.*s", word, s)), gap,
			s + word);
		s += word + gap;
	}
	return text;
}

/* ---- model.c, model.h and trainer.c ---- */

const char *emit_banner(const Emit *e, const char *what)
{
	return arena_printf(e->tree.arena,
		"/* %s\n * Written by sbpcc %s for model %s on %d rank%s; README.md has the command and the licence. "
		"*/\n", what, stamp_version, emit_comment(e->tree.arena, e->g->name ? e->g->name : ""),
		e->plan->world->nrank, e->plan->world->nrank == 1 ? "" : "s");
}

static const char *text_of(const Text *t)
{
	return t->s ? t->s : "";
}

const char *const emit_program_name[] = { [PROGRAM_STEP] = "step", [PROGRAM_EVAL] = "eval", [PROGRAM_INFER] = "infer" };

const char *emit_program(const Emit *e)
{
	return emit_program_name[e->now->kind];
}

/* The main program has no name: it is the step of a model that is trained, else its inference. */
static void add_program(Emit *e, const Model *m)
{
	EmitProgram *p = &e->program[e->nprogram++];
	p->model = m;
	p->kind = m->plan->training ? PROGRAM_STEP : PROGRAM_INFER;
	for (int i = 0; i < PROGRAMS; i++)
		if (m->program && !strcmp(m->program, emit_program_name[i]))
			p->kind = i;
}

void emit_turn(Emit *e, int program)
{
	e->now = &e->program[program];
	e->g = e->now->model->graph;
	e->plan = e->now->model->plan;
}

/* Bytes of the slab that the ranks of a role need; 0: that of the program.  Packed weights are at the end of the
 * slab. */
static int64_t slab_of_role(const Emit *e, int role)
{
	int64_t most = 0;
	for (int i = 0; i < e->nprogram; i++) {
		const Plan *p = e->program[i].model->plan;
		if (!p->stages || p->npacked || p->nrole != e->plan->nrole)
			return 0;
		int64_t slab = memplan_of_role(p, &p->role[role]).slab;
		most = slab > most ? slab : most;
	}
	return most < values_slab(e) ? most : 0;
}

/* One entry per role, with its schedules. */
static void print_roles(Emit *e, Text *t)
{
	bool has[PROGRAMS] = { 0 };
	for (int i = 0; i < e->nprogram; i++)
		has[e->program[i].kind] = true;
	for (int r = 0; r < e->plan->nrole; r++) {
		text_add(t, "extern const RtSchedule");
		for (int i = 0, any = 0; i < PROGRAMS; i++)
			if (has[i])
				text_add(t, "%s role%d_%s", any++ ? "," : "", r, emit_program_name[i]);
		text_add(t, ";\n");
	}
	for (int r = 0; r < e->plan->nrole; r++) {
		text_add(t, "static const RtRole role%d = { .schedule = {", r);
		for (int i = 0; i < PROGRAMS; i++)
			text_add(t, has[i] ? "%s &role%d_%s" : "%s NULL", i ? "," : "", r, emit_program_name[i]);
		text_add(t, " }");
		int64_t slab = slab_of_role(e, r);
		if (slab)
			text_add(t, ", .slab_bytes = %" PRId64, slab);
		text_add(t, " };\n");
	}
	text_add(t, "static const RtRole *const roles[] = {");
	for (int r = 0; r < e->plan->nrole; r++)
		text_add(t, "%s &role%d", r ? "," : "", r);
	text_add(t, " };\n");
}

/* Adds a file in which the user's prefix replaces sbp_ in the names of the interface. */
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
		const Slot *s = slot_of(e->plan, list[i]);
		if (s)
			text_add(t, "\n *   %s[%d]  %s  %s", which, i, emit_comment(e->tree.arena, list[i]->name),
				type_text(list[i]->type));
	}
}

/* model.h, and trainer.c, which has only main. */
static void emit_header(Emit *e)
{
	Text header = { 0 }, main = { 0 }, infer = { 0 }, step = { 0 };
	int outputs = -1;                       /* the program that infers */
	for (int i = 0; i < e->nprogram; i++)
		outputs = e->program[i].kind == PROGRAM_INFER ? i : outputs;
	if (outputs >= 0) {
		emit_turn(e, outputs);
		text_add(&infer, "/* The outputs of one batch:");
		tables_order_inputs(e, &infer);
		print_order(e, &infer, "out", e->g->out, e->g->nout);
		text_add(&infer, " */\n");
	} else {
		text_add(&infer, "/* This model has no outputs but the loss: sbp_infer fails. */\n");
	}
	emit_turn(e, 0);
	if (e->plan->training) {
		text_add(&step, "/* One training step on the caller's samples, as many as sbp_batch returns%s:",
			e->plan->train.microbatches > 1 ? ", micro-batches one after the other, each" : "");
		tables_order_inputs(e, &step);
		text_add(&step, "\n * Fewer are refused: the step was compiled for that batch. */\n");
	} else {
		text_add(&step, "/* This program does not train: sbp_step and sbp_step_on fail. */\n");
	}
	tree_fill(&header, "model.h", "banner", emit_banner(e, "The model as a library."), "infer", infer.s, "step",
		step.s, NULL);
	tree_fill(&main, "trainer.c", "banner", emit_banner(e, "The trainer: the command line is part of the library."),
		NULL);
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
		values_pack(&ranks, &line, arena_printf(e->tree.arena, "%d,", p->role_of[r]));
	if (p->nrole > 1) {
		values_packed(&ranks);
		text_add(&ranks, "};\n\n");
	}
	text_add(&program, "\t.nrank = %d,\n%s", p->world->nrank, p->nrole > 1 ? "\t.role_of = role_of,\n" : "");
	text_add(&program,
		"\t.hash = 0x%016" PRIx64 "u,\n\t.batch = %" PRId64 ",\n\t.microbatches = %" PRId64 ",\n\t.steps = "
		"%" PRId64 ",\n\t.seed = %" PRId64 ",\n", hash, p->batch,
	         p->train.microbatches ? p->train.microbatches : 1, p->train.steps, p->train.seed);
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
	int bad = tables_params(e, &program);
	for (int i = 0; i < e->nprogram && !bad; i++) {
		emit_turn(e, i);
		bad = tables_inputs(e, &inputs, &program);
	}
	emit_turn(e, 0);
	tables_metric_rows(e, &inputs, &program);
	if (bad)
		return -1;
	Text model = { 0 };
	tree_fill(&model, "model.c", "banner",
		emit_banner(e, "The model: its roles, its inputs, and the functions of model.h."), "roles",
		text_of(&roles), "ranks", text_of(&ranks), "inputs", text_of(&inputs), "program", text_of(&program),
		NULL);
	prefixed(e, "model.c", &model);
	emit_header(e);
	return 0;
}

const char *const emit_keep[] = { "input", "parameter", "optimizer", "constant", "gradient", "activation" };

static void wrap_files(Tree *t)
{
	for (int i = 0; i < t->nfile; i++) {
		OutFile *f = t->file[i];
		if (!f->copied && (text_ends(f->path, ".c") || text_ends(f->path, ".h") || text_ends(f->path, ".cu")))
			wrap_lines(&f->text);
	}
}

int emit_run(Graph *g)
{
	Model *m = g->model;
	if (m->main || (!opt.out && !opt.change.made))
		return 0;
	Emit e = { .g = g, .plan = m->plan, .tree = { .arena = g->scratch },
		.target = m->plan->main->cuda ? TARGET_CUDA : TARGET_C };
	uint64_t hash;
	const char *made = stamp_make(&e, m, &hash);
	add_program(&e, m);
	for (int i = 0; i < m->nothers && e.nprogram < PROGRAMS; i++)
		add_program(&e, m->others[i]);
	emit_turn(&e, 0);
	values_number(&e);
	if (emit_trainer(&e, hash))
		return -1;
	for (int k = 0; k < e.nprogram; k++) {
		emit_turn(&e, k);
		for (int i = 0; i < e.plan->nrole; i++)
			role_add(&e, &e.plan->role[i]);
	}
	emit_turn(&e, 0);
	blocks_write(&e);
	role_write(&e);
	values_write(&e);
	pointwise_write(&e);
	json_emit(&e);
	html_emit(&e);
	make_emit(&e, made);
	int64_t bytes = m->plan->predicted.bytes = report_memory(&e).total;
	if (!opt.out)
		return 0;
	if (device.memory && (double)bytes > device.memory) {
		fail_at(EXIT_NOPLAN, m->plan->main->loc, "this plan takes %" PRId64 " bytes a rank, more than %.0f",
			bytes, device.memory);
		return -1;
	}
	wrap_files(&e.tree);
	if (tree_write(&e.tree, opt.out))
		return -1;
	report_print(&e);
	return 0;
}
