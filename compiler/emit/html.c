/* report.html: the plan for people, in one file that needs no network: a summary, the memory over a step as a picture
 * and where each value lies in it, the largest values, the work of each action, transfers, and all actions with the
 * lines of the model that they come from.  Names are escaped as in all files of a tree, which leaves nothing that HTML
 * would read. */
#include "emit/emit.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WIDE = 1000, HIGH = 220, COLUMNS = 400, LARGEST = 25 };

/* "12.6 MB"; where exact bytes matter, they are printed beside it. */
static const char *size_text(Arena *a, double bytes)
{
	static const char *const unit[] = { "B", "kB", "MB", "GB", "TB" };
	int u = 0;
	for (; bytes >= 1000 && u < 4; u++)
		bytes /= 1000;
	return arena_printf(a, bytes < 10 && u ? "%.2f %s" : bytes < 100 && u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
}

static int by_number(const void *a, const void *b)
{
	return (*(Slot *const *)a)->entry - (*(Slot *const *)b)->entry;
}

/* Slots of the current program with memory of their own. */
static Slot **memories(const Emit *e, int *n)
{
	Slot **list = arena_array(e->tree.arena, Slot *, e->plan->nslot + 1);
	*n = 0;
	for (int i = 0; i < e->plan->nslot; i++)
		if (e->plan->slot[i] && e->plan->slot[i]->store == e->plan->slot[i] && e->plan->slot[i]->bytes)
			list[(*n)++] = e->plan->slot[i];
	qsort(list, (size_t)*n, sizeof *list, by_number);
	return list;
}

/* ---- summary ---- */

static void print_summary(Emit *e, Text *t)
{
	const Plan *p = e->plan;
	Arena *a = e->tree.arena;
	const RankMemory m = report_memory(e);
	double flops = 0;
	for (int i = 0; i < p->role[0].nstep; i++)
		flops += schedule_flops(e->plan, &p->role[0].step[i]);
	text_add(t, "<h1>%s</h1>\n<table>\n", emit_comment(a, e->g->name ? e->g->name : ""));
	text_add(t, "<tr><td>ranks<td class=n>%d<td>in %d role%s, %s\n", p->world->nrank, p->nrole,
		p->nrole == 1 ? "" : "s", e->target == TARGET_CUDA ? "CUDA" : "C");
	for (int k = 0; k < e->nprogram; k++) {
		emit_turn(e, k);
		text_add(t, "<tr><td>%s<td class=n>%d<td>actions\n", emit_program(e), e->plan->role[0].nstep);
	}
	emit_turn(e, 0);
	if (p->training)
		text_add(t, "<tr><td>batch<td class=n>%" PRId64 "<td>samples, in %" PRId64 " micro-batch%s\n", p->batch,
			p->train.microbatches > 1 ? p->train.microbatches : 1,
		         p->train.microbatches > 1 ? "es" : "");
	text_add(t, "<tr><td>work<td class=n>%.3g<td>floating operations of a rank in one pass over the list of %s\n",
		flops, emit_program(e));
	text_add(t,
		"<tr><td>memory<td class=n>%" PRId64 "<td>bytes of a rank (%s), %" PRId64 " for each thread beyond the "
		"first\n</table>\n", m.total, size_text(a, (double)m.total),
	         m.thread);
}

/* ---- memory ---- */

static void print_class(const Emit *e, Text *t, const char *name, int64_t bytes, int64_t total)
{
	text_add(t, "<tr><td><i class=%s></i>%s<td class=n>%" PRId64 "<td class=n>%s<td class=n>%.1f %%\n", name, name,
		bytes, size_text(e->tree.arena, (double)bytes),
	         total ? 100.0 * (double)bytes / (double)total : 0);
}

static void print_memory(const Emit *e, Text *t)
{
	const Layout *l = &e->plan->layout;
	const RankMemory m = report_memory(e);
	text_add(t, "<h2>Memory of a rank when most is in use");
	if (l->peak >= 0)
		text_add(t, ", at a%d", l->peak);
	text_add(t, "</h2>\n");
	if (e->plan->nplace > 1)
		text_add(t,
			"<p>Here and in the pictures actions are counted over all roles together; the lists of roles "
			"below count those that their ranks do.</p>\n");
	text_add(t, "<table>\n<tr><th>class<th class=n>bytes<th><th class=n>share\n");
	for (int i = 0; i <= KEEP_ACT; i++)
		print_class(e, t, emit_keep[i], l->by[i], m.total);
	if (m.packed)
		print_class(e, t, "packed", m.packed, m.total);
	print_class(e, t, "gaps", m.gaps, m.total);
	print_class(e, t, "workspace", m.work, m.total);
	print_class(e, t, "data", m.data, m.total);
	print_class(e, t, "program", m.base, m.total);
	text_add(t, "</table>\n");
}

/* A column of a picture is a few actions in a row. */
typedef struct Columns { int n, nact; } Columns;

static int first_action(const Columns *c, int column)
{
	return (int)((int64_t)column * c->nact / c->n);
}

static double column_x(const Columns *c, int column)
{
	return (double)column * WIDE / c->n;
}

static double action_x(const Columns *c, int action)
{
	return (double)(action < 0 ? 0 : action > c->nact ? c->nact : action) * WIDE / c->nact;
}

/* Bytes of each class at each action. */
static int64_t *live_bytes(const Emit *e, int nact, Slot **list, int n)
{
	int64_t *by = arena_array(e->tree.arena, int64_t, (size_t)(nact + 1) * (KEEP_ACT + 1));
	for (int i = 0; i < n; i++) {
		int from = list[i]->first < 0 ? 0 : list[i]->first;
		if (from > list[i]->last)
			continue;
		by[from * (KEEP_ACT + 1) + list[i]->keep] += memplan_aligned(list[i]->bytes);
		if (list[i]->last < nact)
			by[(list[i]->last + 1) * (KEEP_ACT + 1) + list[i]->keep] -= memplan_aligned(list[i]->bytes);
	}
	for (int i = KEEP_ACT + 1; i < nact * (KEEP_ACT + 1); i++)
		by[i] += by[i - (KEEP_ACT + 1)];
	return by;
}

static int64_t sum_at(const int64_t *by, int action)
{
	int64_t n = 0;
	for (int k = 0; k <= KEEP_ACT; k++)
		n += by[action * (KEEP_ACT + 1) + k];
	return n;
}

static void print_axis(const Emit *e, Text *t, const Columns *c, const char *top)
{
	text_add(t, "<text x=4 y=12>%s</text><text x=0 y=%d>a0</text><text x=%d y=%d text-anchor=end>a%d</text>\n", top,
		HIGH + 14, WIDE, HIGH + 14, c->nact - 1);
	if (e->plan->layout.peak >= 0)
		text_add(t, "<line class=peak x1=%.1f x2=%.1f y1=0 y2=%d /><text x=%.1f y=%d>a%d</text>\n",
			action_x(c, e->plan->layout.peak), action_x(c, e->plan->layout.peak), HIGH,
		         action_x(c, e->plan->layout.peak) + 3, HIGH + 14, e->plan->layout.peak);
}

/* Bytes of each class over the actions, what is kept below.  A column shows its fullest action; each area reaches to
 * the bottom and is drawn over those that stand on it. */
static void print_areas(const Emit *e, Text *t, const Columns *c, Slot **list, int n)
{
	static const Keep order[] = { KEEP_PARAM, KEEP_STATE, KEEP_CONST, KEEP_INPUT, KEEP_GRAD, KEEP_ACT };
	const int64_t *by = live_bytes(e, c->nact, list, n);
	int *pick = arena_array(e->tree.arena, int, c->n + 1);
	int64_t most = 1;
	for (int k = 0; k < c->n; k++) {
		pick[k] = first_action(c, k);
		for (int i = pick[k]; i < first_action(c, k + 1); i++)
			pick[k] = sum_at(by, i) > sum_at(by, pick[k]) ? i : pick[k];
		most = sum_at(by, pick[k]) > most ? sum_at(by, pick[k]) : most;
	}
	text_add(t, "<svg viewBox=\"0 0 %d %d\"><title>bytes in use at each action</title>\n", WIDE, HIGH + 18);
	for (int q = KEEP_ACT; q >= 0; q--) {
		text_add(t, "<path class=%s d=\"M0 %d", emit_keep[order[q]], HIGH);
		for (int k = 0; k < c->n; k++) {
			int64_t high = 0;
			for (int below = 0; below <= q; below++)
				high += by[pick[k] * (KEEP_ACT + 1) + order[below]];
			text_add(t, " V%.1f H%.1f", HIGH - (double)high * HIGH / (double)most, column_x(c, k + 1));
		}
		text_add(t, " V%d Z\" />\n", HIGH);
	}
	print_axis(e, t, c, size_text(e->tree.arena, (double)most));
	text_add(t, "</svg>\n");
}

/* Where values of a step lie: time to the right, offsets upwards, without what is kept.  Small ones are left out. */
static void print_map(const Emit *e, Text *t, const Columns *c, Slot **list, int n)
{
	int64_t base = e->plan->layout.kept, top = e->plan->layout.slab;
	if (top <= base)
		return;
	double scale = (double)HIGH / (double)(top - base);
	text_add(t,
		"<p>Where the values of a step lie in the slab above what is kept: from the action that makes them to "
		"the last that reads them.</p>\n"
	            "<svg viewBox=\"0 0 %d %d\"><title>offsets and lives of values</title>\n", WIDE, HIGH + 18);
	for (int i = 0; i < n; i++) {
		const Slot *s = list[i];
		if (s->window || s->offset < base || s->first > s->last || (double)s->bytes * scale < 0.5)
			continue;
		double x = action_x(c, s->first), w = action_x(c, s->last + 1) - x;
		text_add(t,
			"<rect class=\"block %s\" x=%.1f y=%.1f width=%.1f height=%.1f><title>%s: "
			"%" PRId64 " bytes, a%d to a%d</title></rect>\n", emit_keep[s->keep], x,
		         HIGH - (double)(s->offset - base + s->bytes) * scale, w, (double)s->bytes * scale,
		         emit_comment(e->tree.arena, s->v->name), s->bytes, s->first, s->last);
	}
	print_axis(e, t, c, size_text(e->tree.arena, (double)(top - base)));
	text_add(t, "</svg>\n");
}

/* ---- values, work, actions ---- */

static int by_bytes(const void *a, const void *b)
{
	const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : by_number(a, b);
}

static void print_largest(const Emit *e, Text *t, Slot **list, int n)
{
	Arena *a = e->tree.arena;
	qsort(list, (size_t)n, sizeof *list, by_bytes);
	text_add(t,
		"<h2>Largest values</h2>\n<table>\n<tr><th>value<th>class<th>type<th>SBP<th class=n>bytes<th "
		"class=n>offset<th>in use\n");
	for (int i = 0; i < n && i < LARGEST; i++) {
		const Slot *s = list[i];
		text_add(t,
			"<tr><td class=c>%s<td><i class=%s></i>%s<td class=c>%s<td>%s<td "
			"class=n>%" PRId64 "<td class=n>%" PRId64 "<td>", emit_comment(a, s->v->name),
		         emit_keep[s->keep], emit_keep[s->keep], role_shape(e, s, e->plan->role[0].rank[0]),
		         sbp_text(s->v->sbp, s->v->place->mesh->ndim), s->bytes, s->offset);
		text_add(t, s->first < 0 ? "always\n" : "a%d to a%d\n", s->first, s->last);
	}
	text_add(t, "</table>\n");
}

/* The share of each column in all floating operations. */
static void print_work(const Emit *e, Text *t, const Columns *c)
{
	double *sum = arena_array(e->tree.arena, double, c->n + 1), most = 0;
	for (int k = 0; k < c->n; k++) {
		for (int i = first_action(c, k); i < first_action(c, k + 1); i++)
			sum[k] += schedule_flops(e->plan, &e->plan->role[0].step[i]);
		most = sum[k] > most ? sum[k] : most;
	}
	if (most == 0)
		return;
	text_add(t,
		"<h2>Work</h2>\n<p>Floating operations over the actions.</p>\n<svg viewBox=\"0 0 %d "
		"%d\"><title>floating operations</title><path class=work d=\"M0 %d", WIDE,
	         HIGH + 18, HIGH);
	for (int k = 0; k < c->n; k++)
		text_add(t, " V%.1f H%.1f", HIGH - sum[k] * HIGH / most, column_x(c, k + 1));
	text_add(t, " V%d Z\" />\n", HIGH);
	print_axis(e, t, c, arena_printf(e->tree.arena, "%.3g", most));
	text_add(t, "</svg>\n");
}

static int64_t written(const Action *a)
{
	int64_t n = 0;
	for (int i = 0; i < a->nmake; i++)
		n += a->make[i] ? a->make[i]->bytes : 0;
	return n;
}

/* The arrow of a signature means something to HTML. */
static void print_about(const Emit *e, Text *t, const Action *a)
{
	Text about = { 0 };
	role_about(e, &about, a);
	for (const char *s = about.s; *s; s++)
		text_add(t, *s == '>' ? "&gt;" : "%c", *s);
}

static void print_transfers(const Emit *e, Text *t)
{
	bool any = false;
	text_add(t, "<h2>Transfers of %s</h2>\n", emit_program(e));
	for (int k = 0; k < e->plan->nrole; k++) {
		const Role r = role_own(e, &e->plan->role[k]);
		for (int i = 0; i < r.nstep; i++) {
			const Action *a = &r.step[i];
			if (a->kind != ACT_COLLECTIVE && a->kind != ACT_START)
				continue;
			text_add(t,
				any ? "" : "<table>\n<tr><th>role<th>action<th>transfer<th class=n>bytes<th>what\n");
			text_add(t, "<tr><td>%d<td>a%d<td>%s<td class=n>%" PRId64 "<td class=c>", k, a->id, a->how,
				written(a));
			print_about(e, t, a);
			text_add(t, "\n");
			any = true;
		}
	}
	text_add(t, any ? "</table>\n" : "<p>None.</p>\n");
}

static void print_actions(const Emit *e, Text *t, const Role *all)
{
	const Role r = role_own(e, all);
	text_add(t,
		"<details%s><summary>%s, role %d: %d actions</summary>\n<table>\n<tr><th>action<th>what<th>shapes<th "
		"class=n>operations<th class=n>bytes written\n",
	         e->now->kind == PROGRAM_STEP || e->nprogram == 1 ? " open" : "", emit_program(e), r.id, r.nstep);
	for (int i = 0; i < r.nstep; i++) {
		const Action *a = &r.step[i];
		text_add(t, "<tr id=%s%d-a%d><td>a%d<td class=c>", emit_program(e), r.id, a->id, a->id);
		print_about(e, t, a);
		text_add(t, "<td class=c>%s<td class=n>%.3g<td class=n>%" PRId64 "\n", role_shapes(e, a, r.rank[0]),
			schedule_flops(e->plan, a), written(a));
	}
	text_add(t, "</table></details>\n");
}

/* What each rank of a pipeline does when, as the simulator plays the tasks that are emitted. */
static void print_timeline(Emit *e, Text *t)
{
	LaneNet net;
	LanePlay play;
	if (!e->plan->stages || !e->plan->training)
		return;
	lane_net_of(e->g, e->tree.arena, &net);
	if (!play_net(&net, 2, true, e->tree.arena, &play))
		die("a proved pipeline stands still");
	text_add(t, "<h2>Timeline of a step</h2>\n<p>As predicted: %.3f ms for a step in the long run.</p>\n",
		1e3 * play.period);
	timeline_html(t, &net, &play);
}

void html_emit(Emit *e)
{
	Text t = { 0 };
	int n, nact = e->plan->role[0].nstep;
	Columns c = { nact < COLUMNS ? nact : COLUMNS, nact };
	Slot **list = memories(e, &n);
	print_summary(e, &t);
	print_memory(e, &t);
	if (nact) {
		print_areas(e, &t, &c, list, n);
		print_map(e, &t, &c, list, n);
	}
	print_largest(e, &t, list, n);
	if (nact)
		print_work(e, &t, &c);
	print_timeline(e, &t);
	print_transfers(e, &t);
	text_add(&t, "<h2>Actions</h2>\n");
	for (int k = 0; k < e->nprogram; k++) {
		emit_turn(e, k);
		for (int i = 0; i < e->plan->nrole; i++)
			print_actions(e, &t, &e->plan->role[i]);
	}
	emit_turn(e, 0);
	tree_fill(tree_file(&e->tree, "report.html"), "report.html", "title", arena_printf(e->tree.arena, "%s\n",
		emit_comment(e->tree.arena, e->g->name ? e->g->name : "")),
	              "body", t.s, NULL);
}
