/* Reads the text of a pipeline: a line for each property, `NAME NUMBER... UNIT`, described in PIPELINES.md.  A
 * property of stages, hops or ranks has one number for all of them, or one for each. */
#include "lanes/spec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { COUNT, SECONDS, BYTES, SKIP, WORD } Kind;
typedef enum { RANKS, STAGES, MICROS, F, B, W, UPDATE, HOP, BUSY, MESSAGE, KEPT, KEPT_W, FIXED, MEMORY, SKIPS,
	SCHEDULE, CSV, NKEY } KeyId;
static const struct { const char *name; Kind kind; const char *each; } keys[] = {
	[RANKS] = { "ranks", COUNT, NULL },
	[STAGES] = { "stages", COUNT, NULL },
	[MICROS] = { "micros", COUNT, NULL },
	[F] = { "F", SECONDS, "stages" },
	[B] = { "B", SECONDS, "stages" },
	[W] = { "W", SECONDS, "stages" },
	[UPDATE] = { "update", SECONDS, "stages" },
	[HOP] = { "hop", SECONDS, "hops" },
	[BUSY] = { "busy", SECONDS, "hops" },
	[MESSAGE] = { "message", BYTES, "hops" },
	[KEPT] = { "kept", BYTES, "stages" },
	[KEPT_W] = { "kept-w", BYTES, "stages" },
	[FIXED] = { "fixed", BYTES, "stages" },
	[MEMORY] = { "memory", BYTES, "ranks" },
	[SKIPS] = { "skip", SKIP, NULL },
	[SCHEDULE] = { "schedule", WORD, NULL },
	[CSV] = { "csv", WORD, NULL },
};
static const struct { const char *name; Kind kind; double factor; } units[] = {
	{ "s", SECONDS, 1 }, { "ms", SECONDS, 1e-3 }, { "us", SECONDS, 1e-6 },
	{ "B", BYTES, 1 }, { "kB", BYTES, 1e3 }, { "MB", BYTES, 1e6 }, { "GB", BYTES, 1e9 },
	{ "KiB", BYTES, 1024 }, { "MiB", BYTES, 1048576 }, { "GiB", BYTES, 1073741824 },
};
enum { NUNIT = sizeof units / sizeof *units, COUNT_MOST = 1 << 16, TASKS_MOST = 1 << 24 };

/* A property as it stands in the text. */
typedef struct Row { double *v; int n; const char *word; Loc at; } Row;
typedef struct Reader {
	Arena *arena;
	uint32_t file;
	const char *text;
	size_t pos, end;                /* of the line */
	Row row[NKEY];
	PipeHop *skip; Loc *skip_at; int nskip;
	bool bad;
} Reader;

typedef struct Word { const char *s; size_t n; Loc at; } Word;

/* The next word of the line; n is 0 at its end. */
static Word next(Reader *r)
{
	while (r->pos < r->end && strchr(" \t\r", r->text[r->pos]))
		r->pos++;
	size_t from = r->pos;
	while (r->pos < r->end && !strchr(" \t\r", r->text[r->pos]))
		r->pos++;
	size_t n = r->pos - from;
	return (Word){ r->text + from, n, { .file = r->file, .len = n ? (uint32_t)n : 1, .off = from } };
}

static bool is(Word w, const char *s)
{
	return strlen(s) == w.n && !memcmp(s, w.s, w.n);
}

static bool number_of(Word w, double *v)
{
	char text[64], *end;
	if (!w.n || w.n >= sizeof text || !strchr("0123456789.", *w.s))
		return false;
	memcpy(text, w.s, w.n);
	text[w.n] = 0;
	if (strspn(text, "0123456789.eE+-") != w.n)
		return false;
	*v = strtod(text, &end);
	return !*end && isfinite(*v);
}

static int wrong(Reader *r, Loc at, const char *text)
{
	err_at(at, "%s", text);
	r->bad = true;
	return -1;
}

/* Numbers to the end of the line, and a unit. */
static int numbers(Reader *r, Row *row, Kind kind)
{
	Word w;
	double v, factor = 1;
	while ((w = next(r)).n && number_of(w, &v))
		arena_push(r->arena, row->v, row->n, v);
	if (!row->n)
		return wrong(r, w.at, "a number is expected here");
	if (w.n) {
		factor = 0;
		for (int i = 0; i < NUNIT; i++)
			if (units[i].kind == kind && is(w, units[i].name))
				factor = units[i].factor;
		if (!factor && kind == SECONDS)
			return wrong(r, w.at, "this is neither a number nor a unit of time: s, ms or us");
		if (!factor && kind == BYTES)
			return wrong(r, w.at, "this is neither a number nor a unit of bytes: B, kB, MB, GB, KiB, MiB "
				"or GiB");
		if (!factor)
			return wrong(r, w.at, "this is not a number");
		if ((w = next(r)).n)
			return wrong(r, w.at, "nothing may follow the unit");
	}
	for (int i = 0; i < row->n; i++)
		row->v[i] *= factor;
	return 0;
}

static int skip(Reader *r, Loc at)
{
	Row row = { 0 };
	if (numbers(r, &row, SECONDS))
		return -1;
	/* stages are numbers without a unit */
	Word first;
	r->pos = (size_t)at.off + at.len;
	double from, to;
	if (row.n != 3 || !number_of(first = next(r), &from) || !number_of(next(r), &to))
		return wrong(r, at, "a skip connection is written: skip FROM TO SECONDS");
	PipeHop h = { .from = (int)from, .to = (int)to, .latency = row.v[2] };
	if (h.from != from || h.to != to)
		return wrong(r, first.at, "stages are whole numbers");
	r->skip_at = arena_grow(r->arena, r->skip_at, r->nskip, sizeof *r->skip_at);
	r->skip_at[r->nskip] = first.at;
	arena_push(r->arena, r->skip, r->nskip, h);
	return 0;
}

static void read_line(Reader *r)
{
	Word w = next(r);
	if (!w.n)
		return;
	int k = 0;
	while (k < NKEY && !is(w, keys[k].name))
		k++;
	if (k == NKEY) {
		const char *names[NKEY + 1] = { 0 };
		for (int i = 0; i < NKEY; i++)
			names[i] = keys[i].name;
		diag_unknown(w.at, "unknown property", name_n(w.s, w.n), names);
		r->bad = true;
		return;
	}
	if (keys[k].kind == SKIP) {
		skip(r, w.at);
		return;
	}
	Row *row = &r->row[k];
	if (row->at.file) {
		err_at(w.at, "%s is given twice", keys[k].name);
		note_at(row->at, "it is given here, too");
		r->bad = true;
		return;
	}
	row->at = w.at;
	if (keys[k].kind != WORD) {
		numbers(r, row, keys[k].kind);
		return;
	}
	w = next(r);
	row->word = w.n ? name_n(w.s, w.n) : NULL;
	if (!w.n)
		wrong(r, w.at, "a name is expected here");
	else if ((row->at = w.at, w = next(r)).n)
		wrong(r, w.at, "nothing may follow the name");
}

/* ---- from rows to a pipeline ---- */

static int count_of(Reader *r, KeyId k, int otherwise)
{
	const Row *row = &r->row[k];
	if (!row->at.file && otherwise > 0)
		return otherwise;
	if (!row->at.file) {
		err_at((Loc){ .file = r->file, .len = 1 }, "the number of %s is missing", keys[k].name);
		r->bad = true;
		return 1;
	}
	if (row->n != 1 || row->v[0] < 1 || row->v[0] > COUNT_MOST || row->v[0] != floor(row->v[0])) {
		err_at(row->at, "%s is one whole number from 1 to %d", keys[k].name, COUNT_MOST);
		r->bad = true;
		return 1;
	}
	return (int)row->v[0];
}

/* Number i of n; a row that is missing is all zero. */
static double value(Reader *r, KeyId k, int i, int n)
{
	const Row *row = &r->row[k];
	if (!row->n)
		return 0;
	if (row->n == 1 || row->n == n)
		return row->v[row->n == 1 ? 0 : i];
	if (!i) {
		err_at(row->at, "%s has %d numbers, but there are %d %s: write one number, or one for each",
			keys[k].name, row->n, n, keys[k].each);
		r->bad = true;
	}
	return 0;
}

static void fill_stages(Reader *r, Pipeline *p)
{
	p->stage = arena_array(r->arena, PipeStage, p->nstage);
	for (int i = 0, n = p->nstage; i < n; i++) {
		PipeStage *s = &p->stage[i];
		*s = (PipeStage){ .rank = i % p->nrank, .f = value(r, F, i, n), .b = value(r, B, i, n),
			.w = value(r, W, i, n), .update = value(r, UPDATE, i, n) };
		s->kept = (int64_t)value(r, KEPT, i, n);
		s->kept_w = r->row[KEPT_W].n ? (int64_t)value(r, KEPT_W, i, n) : s->kept / 2;
		s->fixed = (int64_t)value(r, FIXED, i, n);
	}
}

static void fill_hops(Reader *r, Pipeline *p)
{
	int n = p->nstage - 1;
	p->hop = arena_array(r->arena, PipeHop, n + r->nskip);
	for (int i = 0; i < n; i++)
		p->hop[p->nhop++] = (PipeHop){ .from = i, .to = i + 1, .latency = value(r, HOP, i, n),
			.busy = value(r, BUSY, i, n), .bytes = (int64_t)value(r, MESSAGE, i, n) };
	for (int i = 0; i < r->nskip; i++) {
		PipeHop h = r->skip[i];
		if (h.from + 1 >= h.to || h.to >= p->nstage) {
			err_at(r->skip_at[i], "a skip connection goes from a stage to a later one that is not the "
				"next; there are %d stages", p->nstage);
			r->bad = true;
		} else {
			p->hop[p->nhop++] = h;
		}
	}
}

static void find_schedule(Reader *r, PipeSpec *spec)
{
	const Row *row = &r->row[SCHEDULE];
	if (!row->word)
		return;
	spec->where = row->at;
	spec->schedule = schedules_find(row->word);
	spec->solver = !strcmp(row->word, "solver");
	if (spec->schedule || spec->solver)
		return;
	const char *names[64] = { 0 };
	int n = 0;
	for (int i = 0; i < 62 && schedules[i].name; i++)
		names[n++] = schedules[i].name;
	names[n] = "solver";
	diag_unknown(row->at, "unknown schedule", row->word, names);
	r->bad = true;
}

/* The file stands beside the text that names it. */
static int find_csv(Reader *r, const char *path, PipeSpec *spec)
{
	const Row *row = &r->row[CSV];
	if (!row->word)
		return 0;
	spec->where = row->at;
	if (spec->schedule || spec->solver)
		return wrong(r, row->at, "either a schedule or a file of one is named");
	const char *slash = strrchr(path, '/');
	int folder = slash && *row->word != '/' ? (int)(slash + 1 - path) : 0;
	spec->csv = arena_new(r->arena, PipeCsv);
	if (csv_read(name_fmt("%.*s%s", folder, path, row->word), r->arena, spec->csv))
		r->bad = true;
	return r->bad ? -1 : 0;
}

/* A number that the text and the file have. */
static void agree(Reader *r, KeyId k, int v, int file)
{
	if (!r->bad && v != file) {
		err_at(r->row[k].at, "there are %d %s in the text and %d in its file", v, keys[k].name, file);
		r->bad = true;
	}
}

static int fill(Reader *r, const char *path, PipeSpec *spec)
{
	Pipeline *p = &spec->pipe;
	find_schedule(r, spec);
	if (find_csv(r, path, spec))
		return -1;
	const PipeCsv *csv = spec->csv;
	p->nrank = count_of(r, RANKS, csv ? csv->nrank : 0);
	p->micros = count_of(r, MICROS, csv ? csv->micros : 0);
	int chunks = spec->schedule && spec->schedule->chunks ? spec->schedule->chunks : 1;
	p->nstage = count_of(r, STAGES, csv ? csv->nstage : p->nrank * chunks);
	if (csv) {
		agree(r, RANKS, p->nrank, csv->nrank);
		agree(r, MICROS, p->micros, csv->micros);
		agree(r, STAGES, p->nstage, csv->nstage);
	}
	if (r->bad)
		return -1;
	if (p->nstage % p->nrank && !csv) {
		err_at(r->row[STAGES].at, "%d stages cannot be dealt out evenly to %d ranks", p->nstage, p->nrank);
		return -1;
	}
	if ((int64_t)p->nstage * p->micros > TASKS_MOST) {
		err_at(r->row[MICROS].at, "%d stages of %d micro-batches are more than %d", p->nstage,
			p->micros, TASKS_MOST);
		return -1;
	}
	fill_stages(r, p);
	fill_hops(r, p);
	if (r->row[MEMORY].n) {
		p->limit = arena_array(r->arena, int64_t, p->nrank);
		for (int i = 0; i < p->nrank; i++)
			p->limit[i] = (int64_t)value(r, MEMORY, i, p->nrank);
	}
	if (!r->row[F].n || !r->row[B].n) {
		err_at((Loc){ .file = r->file, .len = 1 }, "the times F and B of a micro-batch are missing");
		r->bad = true;
	}
	if (spec->schedule)
		schedules_place(spec->schedule, p);
	for (int s = 0; csv && s < p->nstage; s++)
		p->stage[s].rank = csv->rank[s];
	return r->bad ? -1 : 0;
}

int spec_read(const char *path, Arena *a, PipeSpec *spec)
{
	ExitCode why;
	Reader r = { .arena = a, .file = file_open(path, &why) };
	if (!r.file)
		return -1;
	const SrcFile *f = file_of(r.file);
	r.text = (const char *)f->data;
	*spec = (PipeSpec){ 0 };
	for (size_t at = 0; at < f->bytes; at++) {
		const char *end = memchr(r.text + at, '\n', f->bytes - at);
		size_t stop = end ? (size_t)(end - r.text) : f->bytes;
		const char *comment = memchr(r.text + at, '#', stop - at);
		r.pos = at;
		r.end = comment ? (size_t)(comment - r.text) : stop;
		read_line(&r);
		at = stop;
	}
	return r.bad ? -1 : fill(&r, path, spec);
}
