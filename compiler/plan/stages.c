/* The stages of a pipeline.
 *
 * @pipeline(axis: 0) says that an axis of the mesh enumerates the ranks of a pipeline; each of them is a submesh along
 * the other axes.  A stage is a part of the model on one of them.  With as many stages as ranks, stage i is on rank i.
 * More stages are chunks: rank r has stages r, r + p, ..., or, as a V, r and 2 p - 1 - r (the schedule decides).
 *
 *   nodes      n0 n1 n2 | n3 n4 | n5 n6 n7 | n8 n9           a stage reads values of itself and of earlier stages
 *   stages     0          1       2          3
 *   on         m[0, *]    m[1, *] m[0, *]    m[1, *]         two ranks, two chunks
 *
 * Before the backward pass (stages_spread) every node gets a stage, written as @stage and @on, which the nodes of the
 * backward pass, of recomputation and of the other programs inherit:
 *
 *   - A node with @stage has it.  A node without is in the stage of its latest operand, or, before the first stage that
 *     is marked, in stage 0; what depends on parameters only is in the stage of its first reader.
 *   - Where no node has @stage, the list of nodes is cut into consecutive pieces (cut.c).
 *   - What depends on inputs and constants alone and is read by several stages (masks, tables of positions) is computed
 *     by all ranks, and such inputs are loaded by all of them: nothing is moved.
 *
 * A parameter is with its first reader; other stages that read it get a copy at the beginning of a step. */
#include "plan/plan.h"

#include <string.h>

enum { UNKNOWN = -1, EVERYWHERE = -2 };

typedef struct Spread {
	Graph *g;
	Stages *s;
	const Annot *mesh;
	int *of;                        /* by node: its stage, UNKNOWN or EVERYWHERE */
	int *first, *last;              /* by value: the first and the last stage that reads it */
	bool *free;                     /* by value: it depends on inputs and constants only */
	bool *fed;                      /* by value: it depends on an input */
} Spread;

/* ---- what the model asks for ---- */

static const Annot *first_mesh(const Model *m)
{
	return annot_find(m->annot, "mesh");
}

static int64_t length(const Annot *mesh, int64_t axis)
{
	const Arg *shape = arg_find(mesh->arg, mesh->narg, "shape");
	return axis < shape->narg ? shape->arg[axis].i : 0;
}

static void add_int(Model *m, Annot *a, const char *key, int64_t i)
{
	if (!arg_find(a->arg, a->narg, key))
		arena_push(&m->arena, a->arg, a->narg, ((Arg){ .kind = ARG_INT, .key = name_of(key), .i = i,
			.f = (double)i, .param = name_of(key) }));
}

void stages_default(Model *m)
{
	const Annot *mesh = first_mesh(m);
	if (!opt.stages || !mesh || annot_find(m->annot, "pipeline"))
		return;
	Annot *a = arena_new(&m->arena, Annot);
	a->name = name_of("pipeline");
	add_int(m, a, "axis", 0);
	if (annot_check(a, ON_MODEL))
		die("the pipeline that was made up is refused");
	annot_add(&m->annot, a);
}

static bool is_csv(const char *name)
{
	return text_ends(name, ".csv");
}

static const char *all_names(Arena *a)
{
	const char *text = "";
	for (const PipeSchedule *s = schedules; s->name; s++)
		text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", s->name);
	return text;
}

/* The name of the schedule, and where it is given. */
static const char *schedule_name(const Annot *pipeline, Loc *loc)
{
	const Arg *a = arg_find(pipeline->arg, pipeline->narg, "schedule");
	*loc = opt.schedule ? (Loc){ 0 } : a ? a->loc : pipeline->loc;
	return opt.schedule ? opt.schedule : a ? a->s : NULL;
}

static int read_schedule(Model *m, Stages *s, const Annot *pipeline)
{
	Loc loc;
	const char *name = schedule_name(pipeline, &loc);
	if (name && is_csv(name)) {
		s->csv = arena_new(&m->arena, PipeCsv);
		return csv_read(name, &m->arena, s->csv);
	}
	s->schedule = name ? schedules_find(name) : NULL;
	if (!name || s->schedule)
		return 0;
	err_at(loc, "no schedule is called %s; there are %s, and files of PyTorch (NAME.csv)", name,
		all_names(&m->scratch));
	return -1;
}

static int64_t asked_stages(const Model *m, const Stages *s, const Annot *pipeline)
{
	const Arg *a = arg_find(pipeline->arg, pipeline->narg, "stages");
	int64_t n = opt.stages ? opt.stages : a ? a->i : 0;
	bool given = n;
	for (int i = 0; !given && i < m->graph->nnode; i++)
		n = m->graph->node[i]->stage >= n ? m->graph->node[i]->stage + 1 : n;
	if (!n && s->csv)
		n = s->csv->nstage;
	if (!n)
		n = s->pipe.nrank * (s->schedule && s->schedule->chunks > 1 ? s->schedule->chunks : 1);
	return n;
}

static int check_counts(const Stages *s, const Annot *pipeline, int64_t n)
{
	int p = s->pipe.nrank, chunks = s->schedule ? s->schedule->chunks : 0;
	if (n < p || n % p) {
		err_at(pipeline->loc, "%lld stages cannot be divided evenly over the %d ranks of axis %d of the mesh",
			(long long)n, p, s->axis);
		return -1;
	}
	if (chunks && n != (int64_t)chunks * p) {
		err_at(pipeline->loc, "schedule %s needs %d stage%s for each rank of the pipeline, %d in all, not %lld",
			s->schedule->name, chunks, chunks == 1 ? "" : "s", chunks * p, (long long)n);
		return -1;
	}
	if (s->csv && (s->csv->nrank != p || s->csv->nstage != n)) {
		err_at(pipeline->loc, "the schedule has %d ranks and %d stages, but the pipeline has %d and %lld",
			s->csv->nrank, s->csv->nstage, p, (long long)n);
		return -1;
	}
	return 0;
}

static void place_stages(Stages *s)
{
	if (s->csv)
		for (int i = 0; i < s->pipe.nstage; i++)
			s->pipe.stage[i].rank = s->csv->rank[i];
	else
		schedules_place(s->schedule ? s->schedule : &schedules[0], &s->pipe);
}

int stages_read(Model *m, Plan *p)
{
	const Annot *a = annot_find(m->annot, "pipeline"), *mesh = first_mesh(m);
	if (m->main)
		p->stages = m->main->plan->stages;
	if (!a || p->stages)
		return 0;
	Stages *s = arena_new(&m->arena, Stages);
	s->axis = (int)arg_find(a->arg, a->narg, "axis")->i;
	if (!mesh || !length(mesh, s->axis)) {
		err_at(a->loc, mesh ? "the mesh has no axis %d"
			: "@pipeline needs @mesh, of which axis %d enumerates its "
			"ranks", s->axis);
		return -1;
	}
	s->pipe.nrank = (int)length(mesh, s->axis);
	s->pipe.micros = (int)microbatch_count(m);
	if (read_schedule(m, s, a))
		return -1;
	int64_t n = asked_stages(m, s, a);
	if (check_counts(s, a, n))
		return -1;
	s->pipe.nstage = (int)n;
	s->pipe.stage = arena_array(&m->arena, PipeStage, (int)n);
	place_stages(s);
	if (s->csv && s->csv->micros != s->pipe.micros) {
		err_at(a->loc,
			"the schedule has %d micro-batches, but a step has %d (--micro-batches, or microbatch of "
			"@train)", s->csv->micros, s->pipe.micros);
		return -1;
	}
	if (s->csv && !csv_ascends(s->csv)) {
		if (options_any_ranks(m)) {
			err_at(a->loc,
				"the schedule runs micro-batches in another order than one rank, so sums of gradients "
				"round in another way: --deterministic=any-ranks refuses it");
			return -1;
		}
		if (!opt.dump_after)
			warn_at(a->loc,
				"the schedule runs micro-batches in another order than one rank: sums of gradients "
				"round in another way");
	}
	p->stages = s;
	return 0;
}

int stages_choose_micros(Model *m, bool *free, int *stages, int64_t *from)
{
	const Annot *a = annot_find(m->annot, "pipeline"), *mesh = first_mesh(m);
	Plan sketch = { 0 };
	*free = false;
	*stages = 0;
	*from = 0;
	if (!a || !mesh || opt.infer || m->main || options_done(m, "inline") || !annot_find(m->annot, "train") ||
		microbatch_given(m))
		return 0;
	Loc loc;
	const char *name = schedule_name(a, &loc);
	if (name && is_csv(name)) {
		PipeCsv csv;
		if (csv_read(name, &m->arena, &csv))
			return -1;
		*stages = csv.nstage;
		*from = csv.micros;
	} else {
		if (stages_read(m, &sketch))
			return -1;
		*stages = sketch.stages->pipe.nstage;
	}
	*free = *stages > 1;
	return 0;
}

/* ---- the stage of each node ---- */

/* Values that depend on inputs and constants only. */
static void find_free(Spread *w)
{
	Graph *g = w->g;
	for (int i = 0; i < g->nvalue; i++) {
		const Value *v = g->value[i];
		w->free[i] = !v->def && !v->param;
		w->fed[i] = v->input && !v->param;
	}
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		bool all = !n->row->random, any = n->row->random;
		for (int k = 0; k < n->nin; k++) {
			if (!n->in[k] || n->in[k]->graph != g)
				continue;
			all &= w->free[n->in[k]->id];
			any |= w->fed[n->in[k]->id];
		}
		for (int k = 0; k < n->nout; k++)
			if (n->out[k]) {
				w->free[n->out[k]->id] = all;
				w->fed[n->out[k]->id] = any;
			}
	}
}

static bool is_free(const Spread *w, const Node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			return w->free[n->out[k]->id];
	return false;
}

static int latest_operand(const Spread *w, const Node *n)
{
	int at = UNKNOWN;
	for (int k = 0; k < n->nin; k++) {
		const Value *v = n->in[k];
		if (v && v->graph == w->g && v->def && w->of[v->def->mark] > at)
			at = w->of[v->def->mark];
	}
	return at;
}

/* Nodes that follow their operands. */
static void follow(Spread *w)
{
	for (int i = 0; i < w->g->nnode; i++) {
		const Node *n = w->g->node[i];
		if (w->of[i] != UNKNOWN || is_free(w, n))
			continue;
		w->of[i] = latest_operand(w, n);
		if (w->of[i] == UNKNOWN && n->nout && n->out[0] && w->fed[n->out[0]->id])
			w->of[i] = 0;
	}
}

static void reads(Spread *w, const Node *n, int stage)
{
	for (int k = 0; k < n->nin; k++) {
		const Value *v = n->in[k];
		if (!v || v->graph != w->g)
			continue;
		w->first[v->id] = stage < w->first[v->id] ? stage : w->first[v->id];
		w->last[v->id] = stage > w->last[v->id] ? stage : w->last[v->id];
	}
}

/* From the last node to the first: nodes whose stage their readers decide. */
static void precede(Spread *w)
{
	int last = w->s->pipe.nstage - 1;
	for (int i = 0; i < w->g->nvalue; i++) {
		w->first[i] = last + 1;
		w->last[i] = UNKNOWN;
	}
	for (int i = w->g->nnode; i-- > 0;) {
		const Node *n = w->g->node[i];
		int first = last + 1, latest = UNKNOWN;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k]) {
				first = w->first[n->out[k]->id] < first ? w->first[n->out[k]->id] : first;
				latest = w->last[n->out[k]->id] > latest ? w->last[n->out[k]->id] : latest;
			}
		if (w->of[i] == UNKNOWN)
			w->of[i] = first > last ? last : first;
		else if (w->of[i] != EVERYWHERE)
			first = latest = w->of[i];
		if (is_free(w, n) && !annot_find(n->annot, "stage") && latest > first && first <= last)
			w->of[i] = EVERYWHERE;
		if (w->of[i] == EVERYWHERE) {
			reads(w, n, first);
			reads(w, n, latest);
		} else {
			reads(w, n, w->of[i]);
		}
	}
}

static int check_stages(const Spread *w)
{
	int n = w->s->pipe.nstage, errors = diag_errors();
	int *count = arena_array(w->g->scratch, int, n + 1);
	for (int i = 0; i < w->g->nnode; i++) {
		const Node *node = w->g->node[i];
		if (w->of[i] >= n) {
			err_at(node->loc, "stage %d does not exist: the pipeline has %d stages, 0 to %d", w->of[i], n,
				n - 1);
			return -1;
		}
		if (w->of[i] >= 0)
			count[w->of[i]]++;
		for (int k = 0; w->of[i] >= 0 && k < node->nin; k++) {
			const Value *v = node->in[k];
			const Node *d = v && v->graph == w->g ? v->def : NULL;
			if (!d || w->of[d->mark] <= w->of[i])
				continue;
			err_at(node->loc,
				"%s of stage %d reads %s of stage %d: a stage reads only its own "
				"values and those of earlier stages",
				node->op, w->of[i], v->name, w->of[d->mark]);
			note_at(d->loc, "%s is computed here", v->name);
			break;
		}
	}
	for (int i = 0; i < n && diag_errors() == errors; i++)
		if (!count[i])
			err_at(annot_find(w->g->model->annot, "pipeline")->loc,
				"stage %d of the pipeline has no node: give it one with @stage(%d), or use fewer "
				"stages", i, i);
	return diag_errors() > errors ? -1 : 0;
}

/* ---- written down ---- */

static Arg *place_arg(Spread *w, int stage)
{
	Graph *g = w->g;
	const Arg *shape = arg_find(w->mesh->arg, w->mesh->narg, "shape");
	Arg *on = arena_new(g->arena, Arg);
	*on = (Arg){ .kind = stage < 0 || shape->narg == 0 ? ARG_WORD : ARG_INDEX, .loc = w->mesh->loc,
		.s = arg_find(w->mesh->arg, w->mesh->narg, "name")->s };
	for (int k = 0; stage >= 0 && k < shape->narg; k++) {
		int64_t at = w->s->pipe.stage[stage].rank;
		Arg one = k == w->s->axis ? (Arg){ .kind = ARG_INT, .i = at, .f = (double)at }
			: (Arg){ .kind = ARG_STAR };
		arena_push(g->arena, on->arg, on->narg, one);
	}
	return on;
}

static void annotate(Graph *g, Annot **list, const char *name, const Arg *arg, int narg, AnnotOn where)
{
	Annot *a = arena_new(g->arena, Annot);
	a->name = name_of(name);
	for (int i = 0; i < narg; i++)
		arena_push(g->arena, a->arg, a->narg, arg[i]);
	if (annot_check(a, where))
		die("@%s is refused", name);
	annot_add(list, a);
}

/* A value that all ranks of the pipeline hold: whole along its axis. */
static void hold_everywhere(Spread *w, Value *v)
{
	Graph *g = w->g;
	const Arg *shape = arg_find(w->mesh->arg, w->mesh->narg, "shape");
	Arg *entry = NULL;
	int n = 0;
	if (annot_find(v->annot, "on"))
		return;
	annotate(g, &v->annot, "on", place_arg(w, EVERYWHERE), 1, ON_VALUE);
	if (annot_find(v->annot, "sbp"))
		return;
	for (int k = 0; k < shape->narg; k++)
		arena_push(g->scratch, entry, n, ((Arg){ .kind = ARG_WORD, .s = name_of(k == w->s->axis ? "B"
			: "_") }));
	annotate(g, &v->annot, "sbp", entry, n, ON_VALUE);
}

static int write_down(Spread *w)
{
	Graph *g = w->g;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		Arg *on = place_arg(w, w->of[i]);
		const Annot *given = annot_find(n->annot, "on");
		if (given && !arg_same(given->arg, on)) {
			err_at(given->loc,
				"%s is placed by @on, but stage %d of the pipeline is elsewhere: leave @on out", n->op,
				w->of[i]);
			return -1;
		}
		if (!given)
			annotate(g, &n->annot, "on", on, 1, ON_NODE);
		n->stage = w->of[i] < 0 ? -1 : w->of[i];
		if (w->of[i] >= 0 && !annot_find(n->annot, "stage"))
			annotate(g, &n->annot, "stage", &(Arg){ .kind = ARG_INT, .i = w->of[i], .f = w->of[i] }, 1,
				ON_NODE);
		for (int k = 0; k < n->nout && w->of[i] == EVERYWHERE; k++)
			if (n->out[k])
				hold_everywhere(w, n->out[k]);
	}
	for (int i = 0; i < g->nin; i++)
		if (!g->in[i]->param && w->last[g->in[i]->id] > w->first[g->in[i]->id])
			hold_everywhere(w, g->in[i]);
	return 0;
}

static bool given(const Graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if (annot_find(g->node[i]->annot, "stage"))
			return true;
	return false;
}

static Spread open_spread(Graph *g, Stages *s)
{
	Spread w = { .g = g, .s = s, .mesh = first_mesh(g->model) };
	w.of = arena_array(g->scratch, int, g->nnode + 1);
	w.first = arena_array(g->scratch, int, g->nvalue + 1);
	w.last = arena_array(g->scratch, int, g->nvalue + 1);
	w.free = arena_array(g->scratch, bool, g->nvalue + 1);
	w.fed = arena_array(g->scratch, bool, g->nvalue + 1);
	for (int i = 0; i < g->nnode; i++) {
		const Annot *a = annot_find(g->node[i]->annot, "stage");
		w.of[i] = a ? (int)a->arg->i : UNKNOWN;
		g->node[i]->mark = i;
	}
	find_free(&w);
	return w;
}

bool stages_cut_differs(Graph *g, const Loads *l)
{
	Stages *s = g->model->plan->stages;
	Spread w = open_spread(g, s);
	if (cut_nodes(g, s, w.free, l, w.of))
		return false;
	for (int i = 0; i < g->nnode; i++)
		if (w.of[i] != UNKNOWN && w.of[i] != l->of[i].stage)
			return true;
	return false;
}

bool stages_cut_free(Graph *g)
{
	const Stages *s = g->model->plan->stages;
	return s && s->pipe.nstage > 1 && !given(g);
}

int stages_spread(Graph *g)
{
	Model *m = g->model;
	if (!m->plan)
		m->plan = arena_new(&m->arena, Plan);
	if (stages_read(m, m->plan))
		return -1;
	Stages *s = m->plan->stages;
	if (!s)
		return 0;
	Spread w = open_spread(g, s);
	if (!given(g) && cut_nodes(g, s, w.free, opt.change.loads, w.of))
		return -1;
	follow(&w);
	precede(&w);
	if (check_stages(&w) || write_down(&w))
		return -1;
	Annot *a = annot_find(m->annot, "pipeline");
	add_int(m, a, "stages", s->pipe.nstage);
	if (opt.schedule && !arg_find(a->arg, a->narg, "schedule"))
		arena_push(&m->arena, a->arg, a->narg, ((Arg){ .kind = ARG_STRING, .key = name_of("schedule"),
			.s = name_of(opt.schedule), .param = name_of("schedule") }));
	return 0;
}

/* ---- after the backward pass ---- */

/* With one micro-batch nothing is summed, so the pass of micro-batches has marked nothing: what follows gradients and
 * is none itself is the update. */
static void find_updates(Graph *g)
{
	bool *late = arena_array(g->scratch, bool, g->nvalue + 1);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool backward = annot_find(n->annot, "backward") != NULL, after = backward;
		for (int k = 0; k < n->nin; k++)
			after |= n->in[k] && n->in[k]->graph == g && late[n->in[k]->id];
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				late[n->out[k]->id] = after;
		if (after && !backward && !microbatch_updates(n))
			microbatch_update(n);
	}
}

/* A reported value of the body is computed by one stage; all ranks get it once per step, after the last micro-batch. */
static void report_once(Graph *g, int out)
{
	Value *v = g->out[out], *all;
	Name name = v->name;
	if (!v->def || microbatch_updates(v->def))
		return;
	graph_rename(g, v, name_fmt("%s.total", name));
	all = graph_fresh(g, name);
	v->output = false;
	if (!build(g, v->def->loc, "Identity", NULL, 1, &all, 1, v))
		die("%s cannot be reported", name);
	microbatch_update(all->def);
	all->def->from = v->def->from;
	int at = 0;
	while (!microbatch_updates(g->node[at]))
		at++;
	memmove(g->node + at + 1, g->node + at, (size_t)(g->nnode - 1 - at) * sizeof *g->node);
	g->node[at] = all->def;         /* before anything is updated */
	all->output = true;
	g->out[out] = all;
	if (g->model->plan->train.loss == v)
		g->model->plan->train.loss = all;
}

void stages_updates(Graph *g)
{
	const Plan *p = g->model->plan;
	if (!p->stages || !p->training || g->model->main || options_done(g->model, "plan"))
		return;
	if (p->train.microbatches < 2)
		find_updates(g);
	for (int i = 0; i < g->nout; i++)
		report_once(g, i);
}

bool stages_one_report(const Graph *g)
{
	return g->model->program && !strcmp(g->model->program, "eval");
}
