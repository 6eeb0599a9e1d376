/* Which initialisers are trained.
 *
 * In a file in our language a value with @init is a parameter.  For an .onnx file the first of these decides:
 *
 *   annotations   @param, @freeze and @state with a name or pattern have precedence
 *   recorded      metadata torch.parameter.NAME, which README's export writes from named_parameters(): "trained FIRST"
 *                 or "frozen FIRST", where FIRST is the name under which PyTorch lists a parameter that has several;
 *                 initialisers that are not listed are buffers
 *   marked        PyTorch's newer exporter marks every initialiser as PARAMETER or BUFFER, but not frozen parameters
 *   used          running statistics of batch norm, class weights of a loss, and tables of which only Cos and Sin are
 *                 read, are state
 *   guessed       by names and numbers (guess.c), with a warning for each that does not look like a weight
 *
 * The decision is written as @param, so that a dump contains it, and reported as a table when the program is written.
 *
 * A file whose weights were folded into copies is not the model that was trained: sbpcc warns. */
#include "train/train.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* The first annotation of the model of this kind that names it; NULL: none. */
static const Annot *named(const Model *m, const char *kind, Name name)
{
	for (const Annot *a = m->annot; a; a = a->next)
		if (!strcmp(a->name, kind) && annot_names(a, name))
			return a;
	return NULL;
}

bool params_named(const Model *m, Name name)
{
	return named(m, "param", name) != NULL;
}

/* "PARAMETER", "BUFFER"; NULL: the exporter does not mark it. */
static const char *mark_of(const Value *v)
{
	for (int i = 0; i < v->nmeta; i++)
		if (!strcmp(v->meta[i].key, "pkg.torch.export.graph_signature.InputSpec.kind"))
			return v->meta[i].value;
	return NULL;
}

/* Whether operand k of n is state by definition of the operator. */
static bool state_operand(const Node *n, int k)
{
	if (node_is(n, "BatchNormalization"))
		return k >= 3;
	return k == 2 && (node_is(n, "SoftmaxCrossEntropyLoss") || node_is(n, "NegativeLogLikelihoodLoss"));
}

/* By value id: running statistics.  They may start with equal numbers, but each norm has its own. */
bool *params_state(const Graph *g)
{
	bool *state = arena_array(g->scratch, bool, g->nvalue + 1);

	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin && node_is(g->node[i], "BatchNormalization"); k++)
			if (g->node[i]->in[k] && g->node[i]->in[k]->graph == g && state_operand(g->node[i], k))
				state[g->node[i]->in[k]->id] = true;
	return state;
}

Value *params_gradient(const Graph *g, const Value *param)
{
	const Annot *a = annot_find(param->annot, "gradient");

	return graph_find(g, a ? a->arg[0].s : name_fmt("%s.grad", param->name));
}

const Value *params_owner(const Graph *g, const Value *v)
{
	const char *dot = strrchr(v->name, '.');
	const Value *w = dot ? graph_find(g, name_n(v->name, (size_t)(dot - v->name))) : NULL;

	return w && w->init && w->param ? w : NULL;
}

void params_share(Graph *g, Value *param, const Value *grad)
{
	Annot *a = annot_find(param->annot, "gradient");

	if (!a) {
		a = arena_new(g->arena, Annot);
		a->name = name_of("gradient");
		a->narg = 1;
		a->arg = arena_new(g->arena, Arg);
		annot_add(&param->annot, a);
	}
	a->arg[0] = (Arg){ .kind = ARG_STRING, .s = grad->name, .param = name_of("value") };
	if (annot_check(a, ON_VALUE) < 0)
		die("@gradient(%s) is refused", grad->name);
}

static bool moves(const Node *n)
{
	static const char *const list[] = {
		"Cos", "Sin", "Identity", "Cast", "Slice", "Gather", "GatherND", "Unsqueeze", "Squeeze", "Reshape",
		"Expand", "Concat", "Transpose", NULL,
	};

	for (int i = 0; list[i]; i++)
		if (node_is(n, list[i]))
			return true;
	return false;
}

/* By value id: how it is used (USE_*).  Nodes are visited last first, so that the uses of a result are known before
 * those of the operands. */
static uint8_t *uses_of(Graph *g)
{
	uint8_t *use = arena_array(g->scratch, uint8_t, g->nvalue + 1);

	for (int i = 0; i < g->nout; i++)
		use[g->out[i]->id] |= USE_OTHER;
	for (int i = g->nnode; i-- > 0;) {
		const Node *n = g->node[i];
		bool angle = node_is(n, "Cos") || node_is(n, "Sin");

		if (n->nout == 1 && n->out[0] && use[n->out[0]->id] == USE_ANGLE && moves(n))
			angle = true;
		for (int k = 0; k < n->nin; k++) {
			if (!n->in[k] || n->in[k]->graph != g)
				continue;
			if (state_operand(n, k))
				use[n->in[k]->id] |= USE_STATE;
			else
				use[n->in[k]->id] |= angle ? USE_ANGLE : USE_OTHER;
		}
	}
	return use;
}

static bool floating(const Value *v)
{
	return v->data ? dtype_is_float(v->data->dtype) : v->type && dtype_is_float(v->type->elem);
}

static bool numbered(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return !strncmp(name, prefix, len) && name[len] && name[len + strspn(name + len, "0123456789")] == 0;
}

/* Whether the TorchScript exporter computed it: onnx::MatMul_46. */
static bool copied(const char *name)
{
	const char *tail = strrchr(name, '_');
	return !strncmp(name, "onnx::", 6) && tail && numbered(tail, "_");
}

/* Signs of a file that was optimised: initialisers without a mark where others have one; copies under a number. */
static void warn_folded(Graph *g, bool marked)
{
	int copies = 0;
	Value *first = NULL;

	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];

		if (!v->data || !floating(v) || v->data->ndim < 1)
			continue;
		bool copy = copied(v->name) || (v->data->ndim > 1 && numbered(v->name, "val_"));
		if (copy || (marked && !mark_of(v))) {
			copies++;
			first = first ? first : v;
		}
	}
	if (!copies)
		return;
	warn_at(first->loc,
		"this file was optimised for inference: %d initialiser%s (such as %s) %s of "
		"the model but computed from some; training %s is not training that model",
		copies, copies == 1 ? "" : "s", first->name, copies == 1 ? "is no parameter" : "are no parameters",
		copies == 1 ? "it" : "them");
	note_at((Loc){ 0 }, "export with torch.onnx.export(model, args, file, dynamo=True, optimize=False)");
}

/* ---- recorded by the export ---- */

static const char record_key[] = "torch.parameter.";

typedef struct Recorded { Name name, first; bool trained; Value *v; Loc loc; } Recorded;
typedef struct Record { Recorded *list; int n; Map byname; } Record;

static int read_entry(Record *r, const Pair *p, Graph *g)
{
	if (strncmp(p->key, record_key, sizeof record_key - 1))
		return 0;
	Recorded one = { .name = name_of(p->key + sizeof record_key - 1), .loc = p->loc };
	bool trained = !strncmp(p->value, "trained ", 8), frozen = !strncmp(p->value, "frozen ", 7);
	const char *first = strchr(p->value, ' ');
	if (!(trained || frozen) || !first[1]) {
		err_at(p->loc,
			"metadata %s is \"%s\"; it must be \"trained NAME\" or \"frozen NAME\": record it again, or "
			"delete it", p->key, p->value);
		return -1;
	}
	one.first = name_of(first + 1);
	one.trained = trained;
	one.v = map_get(&g->byname, one.name);
	one.v = one.v && one.v->init ? one.v : NULL;
	if (map_get(&r->byname, one.name)) {
		err_at(p->loc, "metadata %s stands twice: record it again, or delete one of them", p->key);
		return -1;
	}
	arena_push(g->scratch, r->list, r->n, one);
	map_put(&r->byname, one.name, (void *)(uintptr_t)r->n);
	return 0;
}

static int read_record(Graph *g, Record *r)
{
	const Model *m = g->model->of ? g->model->of : g->model;
	int bad = 0;
	map_init(&r->byname, g->scratch);
	for (int i = 0; i < m->nmeta; i++)
		bad |= read_entry(r, &m->meta[i], g);
	return bad;
}

static const Recorded *recorded(const Record *r, const Value *v)
{
	uintptr_t at = (uintptr_t)map_get(&r->byname, v->name);
	return at ? &r->list[at - 1] : NULL;
}

/* Joins two initialisers of the file that are one parameter. */
static void tie(Graph *g, Record *r)
{
	for (int i = 0; i < r->n; i++) {
		uintptr_t at = (uintptr_t)map_get(&r->byname, r->list[i].first);
		Value *v = r->list[i].v, *first = at ? r->list[at - 1].v : NULL;
		if (!v || !first || v == first)
			continue;
		if (extdata_load(v->data) || extdata_load(first->data))
			return;
		if (tensor_equal(v->data, first->data)) {
			graph_replace(g, v, first);
			continue;
		}
		warn_at(v->loc,
			"%s and %s are one parameter in PyTorch, but their numbers differ here: they are trained as "
			"two", first->name, v->name);
	}
}

/* ---- the decision ---- */

typedef struct Choice { ParamKind kind; const char *why; } Choice;      /* why: the reason, where it is a guess */

bool params_torch(const Graph *g)
{
	const Model *m = g->model->of ? g->model->of : g->model;
	return m->producer_name && !strcmp(m->producer_name, "pytorch");
}

/* Only the newer exporter marks initialisers. */
bool params_script(const Graph *g)
{
	const Model *m = g->model->of ? g->model->of : g->model;
	bool any = false;
	for (int i = 0; i < m->nmeta; i++)
		any |= !strncmp(m->meta[i].key, record_key, sizeof record_key - 1);
	for (int i = 0; i < g->ninit; i++)
		any &= mark_of(g->init[i]) == NULL;
	return any && params_torch(g);
}

static Choice guess(const Graph *g, const Value *v, const uint8_t *use, bool marked)
{
	if (use[v->id] & USE_STATE)
		return (Choice){ .kind = PARAM_STATE };
	if (use[v->id] == USE_ANGLE)
		return (Choice){ PARAM_STATE, "only its sine and cosine are used" };
	if (params_torch(g) && !marked && !copied(v->name)) {
		Guess l = guess_of(g, v, use);
		return (Choice){ l.weight ? PARAM_TRAINED : PARAM_STATE, l.why };
	}
	if (!v->data->ndim)
		return (Choice){ .kind = PARAM_CONSTANT };
	const char *why = guess_numbers(v);
	return (Choice){ why ? PARAM_STATE : PARAM_TRAINED, why };
}

static Choice choose(const Graph *g, const Value *v, const Record *r, const uint8_t *use, bool marked)
{
	const char *mark = mark_of(v);
	const Recorded *rec = recorded(r, v);

	if (v->param || !v->data)
		return (Choice){ .kind = v->param ? PARAM_TRAINED : PARAM_CONSTANT };
	if (!floating(v) || v->input)
		return (Choice){ .kind = PARAM_CONSTANT };
	if (r->n && !rec)
		return (Choice){ .kind = PARAM_STATE };
	if (r->n)
		return (Choice){ .kind = rec->trained ? PARAM_TRAINED : PARAM_FROZEN };
	if (!mark)
		return guess(g, v, use, marked);
	if (strcmp(mark, "PARAMETER"))
		return (Choice){ .kind = PARAM_STATE };
	const char *why = guess_numbers(v);
	return (Choice){ why ? PARAM_FROZEN : PARAM_TRAINED, why };
}

/* Annotations take precedence. */
static Choice decide(const Graph *g, const Value *v, const Record *r, const uint8_t *use, bool marked, bool carries)
{
	const Model *m = g->model;
	if (named(m, "param", v->name) && floating(v))
		return (Choice){ .kind = PARAM_TRAINED };
	if (named(m, "state", v->name))
		return (Choice){ .kind = PARAM_STATE };
	Choice c = { .kind = v->param ? PARAM_TRAINED : PARAM_CONSTANT };
	if (carries)
		c = choose(g, v, r, use, marked);
	if (named(m, "freeze", v->name) && (c.kind == PARAM_TRAINED || c.why))
		return (Choice){ .kind = PARAM_FROZEN };
	return c;
}

/* Files of IR version 3, and exports with keep_initializers_as_inputs, list initialisers as inputs, too: these are not
 * read from data. */
static void own_inputs(Graph *g)
{
	int keep = 0;
	for (int i = 0; i < g->nin; i++) {
		Value *v = g->in[i];
		bool old = g->model->has_ir_version && g->model->ir_version < 4;
		v->input = !(v->init && v->data && (old || params_torch(g)));
		if (v->input)
			g->in[keep++] = v;
	}
	g->nin = keep;
}

/* ---- reports ---- */

/* The name with * for numbers, so that equal layers are reported once. */
static Name pattern_of(const Graph *g, const char *name)
{
	char *text = arena_printf(g->scratch, "%s", name), *to = text;
	for (const char *s = name; *s; s++) {
		bool digit = isdigit((unsigned char)*s), before = s > name && isdigit((unsigned char)s[-1]);
		if (!digit || !before)
			*to++ = digit ? '*' : *s;
	}
	*to = 0;
	return name_of(text);
}

typedef struct Alike { Name name, pattern; int n; } Alike;

/* Names that differ in their numbers only, in the order of the first of each. */
static Alike *group(const Graph *g, Name *name, int n, int *ngroup)
{
	Alike *list = NULL;
	Map at;
	map_init(&at, g->scratch);
	*ngroup = 0;
	for (int i = 0; i < n; i++) {
		Name p = pattern_of(g, name[i]);
		uintptr_t k = (uintptr_t)map_get(&at, p);
		if (k) {
			list[k - 1].n++;
			continue;
		}
		arena_push(g->scratch, list, *ngroup, ((Alike){ name[i], p, 1 }));
		map_put(&at, p, (void *)(uintptr_t)*ngroup);
	}
	return list;
}

static void warn_guesses(Graph *g, const Choice *choice)
{
	bool any = false, *done = arena_array(g->scratch, bool, g->ninit + 1);
	for (int i = 0; i < g->ninit; i++) {
		const Value *v = g->init[i];
		Name *name = NULL;
		int n = 0, groups;
		if (!choice[i].why || done[i])
			continue;
		for (int k = i; k < g->ninit; k++)      /* reasons are few: each is searched for once */
			if (choice[k].why == choice[i].why && choice[k].kind == choice[i].kind) {
				arena_push(g->scratch, name, n, g->init[k]->name);
				done[k] = true;
			}
		const Alike *a = group(g, name, n, &groups);
		for (int k = 0; k < groups; k++) {
			Name one = a[k].n > 1 ? a[k].pattern : a[k].name;
			const char *those = a[k].n > 1 ? name_fmt("%s (%d initialisers)", one, a[k].n) : one;
			v = map_get(&g->byname, a[k].name);
			if (choice[i].kind == PARAM_TRAINED)
				warn_at(v->loc, "%s is trained, but %s; @state(\"%s\") if it is a buffer",
					those, choice[i].why, one);
			else
				warn_at(v->loc, "%s is not trained: %s; @param(\"%s\") if it is a parameter",
					those, choice[i].why, one);
		}
		any = true;
	}
	if (any)
		note_at((Loc){ 0 },
			"an export that records named_parameters() leaves nothing to guess: README.md, From and to "
			"PyTorch");
}

/* The decision as an annotation of the model, for dumps. */
static void note_params(Graph *g, const Choice *choice)
{
	Annot *a = arena_new(g->arena, Annot);

	a->name = name_of("param");
	for (int i = 0; i < g->ninit; i++)
		if (choice[i].kind == PARAM_TRAINED && !named(g->model, "param", g->init[i]->name))
			arena_push(g->arena, a->arg, a->narg,
				((Arg){ .kind = ARG_STRING, .s = g->init[i]->name, .param = name_of("names") }));
	if (a->narg)
		annot_add(&g->model->annot, a);
}

/* A frozen value is a parameter that no gradient reaches: it is loaded and saved, and programs share it.  Stored
 * statistics of batch norm are frozen until a node in training mode updates them, and so is @state that has @init but
 * no data.  In a dump the value has @frozen. */
static void keep_frozen(Graph *g, Value *v, bool statistic)
{
	v->frozen |= ((statistic || !v->data) && !v->param) || annot_find(v->annot, "frozen");
	v->param |= v->frozen;
	if (v->frozen && !annot_find(v->annot, "frozen")) {
		Annot *a = arena_new(g->arena, Annot);
		a->name = name_of("frozen");
		annot_add(&v->annot, a);
	}
}

/* Constants and state are never trained: @freeze has no effect on them. */
static void warn_freeze(const Graph *g)
{
	for (const Annot *a = g->model->annot; a; a = a->next) {
		bool any = strcmp(a->name, "freeze") != 0;

		for (int i = 0; i < g->ninit && !any; i++)
			any = g->init[i]->frozen && annot_names(a, g->init[i]->name);
		if (!any)
			warn_at(a->loc, "nothing that @freeze names here is a parameter: it changes nothing");
	}
}

/* Keeps the decisions for the table that is reported when the program is written. */
static void remember(Graph *g, const Choice *choice, const Record *r, bool marked)
{
	Params *p = arena_new(g->arena, Params);
	if (r->n)
		p->by = "as recorded by the export";
	else if (marked)
		p->by = "as the exporter marks them, which does not show what is frozen";
	else if (params_torch(g))
		p->by = "by their names and numbers, because the file does not mark them";
	else
		p->by = "all of type float that have an axis";
	for (int i = 0; i < g->ninit; i++)
		arena_push(g->arena, p->name[choice[i].kind], p->n[choice[i].kind], g->init[i]->name);
	for (int i = 0; i < r->n; i++) {
		bool there = false, listed = false;       /* by one of its names */
		for (int k = 0; k < r->n; k++) {
			there |= r->list[k].first == r->list[i].first && r->list[k].v;
			listed |= r->list[k].first == r->list[i].first && k < i;
		}
		if (!there && !listed)
			arena_push(g->arena, p->missing, p->nmissing, r->list[i].name);
	}
	g->model->params = p;
}

/* One row of the table: the number of initialisers and as many names as fit into a line. */
static void report_row(const Graph *g, const char *what, Name *name, int n)
{
	int64_t numbers = 0;
	int groups, left = n;
	const Alike *a = group(g, name, n, &groups);
	Text list = { 0 };
	for (int i = 0; i < n; i++) {
		const Value *v = graph_find(g, name[i]);
		int64_t k = v && v->type ? type_elements(v->type) : 0;
		numbers += k > 0 ? k : 0;
	}
	for (int i = 0; i < groups && list.n < 90; i++) {
		const char *one = a[i].n > 1 ? a[i].pattern : a[i].name;
		text_add(&list, list.n ? ", %s" : "%s", diag_escape(g->scratch, one, strlen(one)));
		left -= a[i].n;
	}
	if (!n)
		return;
	printf("  %-11s %5d  ", what, n);
	if (numbers)
		printf("%" PRId64 " number%s: ", numbers, numbers == 1 ? "" : "s");
	printf("%s", list.s);
	if (left)
		printf(" and %d more", left);
	putchar('\n');
}

void params_report(const Model *m)
{
	const Params *p = m->params;
	if (!p || !m->plan->training)
		return;
	const Graph *g = m->graph;
	enum { UPDATED, IDLE };
	Name *trained[2] = { NULL }, *state[2] = { NULL };
	int ntrained[2] = { 0 }, nstate[2] = { 0 };
	for (int i = 0; i < p->n[PARAM_TRAINED]; i++) {
		int k = graph_find(g, name_fmt("%s.next", p->name[PARAM_TRAINED][i])) ? UPDATED : IDLE;
		arena_push(g->scratch, trained[k], ntrained[k], p->name[PARAM_TRAINED][i]);
	}
	for (int i = 0; i < p->n[PARAM_STATE]; i++) {
		int k = graph_find(g, name_fmt("%s.next", p->name[PARAM_STATE][i])) ? UPDATED : IDLE;
		arena_push(g->scratch, state[k], nstate[k], p->name[PARAM_STATE][i]);
	}
	printf("%s: parameters %s\n", file_of(m->file)->path, p->by);
	report_row(g, "trained", trained[UPDATED], ntrained[UPDATED]);
	report_row(g, "no gradient", trained[IDLE], ntrained[IDLE]);
	report_row(g, "statistics", state[UPDATED], nstate[UPDATED]);
	report_row(g, "frozen", p->name[PARAM_FROZEN], p->n[PARAM_FROZEN]);
	report_row(g, "state", state[IDLE], nstate[IDLE]);
	report_row(g, "not in file", p->missing, p->nmissing);
}

static int check_annotated(const Graph *g)
{
	for (const Annot *a = g->model->annot; a; a = a->next)
		for (int i = 0; i < a->narg && !strcmp(a->name, "param"); i++) {
			const Value *v = a->arg[i].s ? map_get(&g->byname, name_of(a->arg[i].s)) : NULL;
			if (v && v->init && !floating(v)) {
				err_at(a->arg[i].loc, "%s cannot be trained: it holds %s", v->name, type_text(v->type));
				return -1;
			}
		}
	return 0;
}

/* Whether the weights are initialisers: those of an .onnx file, or of a text with @train but without parameters. */
static bool carries_weights(const Graph *g)
{
	const Model *m = g->model;
	bool any = annot_find(m->annot, "param") || options_done(m, "params") || m->main;
	for (int i = 0; i < g->ninit; i++)
		any |= g->init[i]->param;
	return m->from_onnx || (!any && annot_find(m->annot, "train"));
}

/* A parameter without elements is a constant. */
static void leave_empty(Graph *g)
{
	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];

		if (!v->param || !v->type || type_elements(v->type) != 0)
			continue;
		warn_at(v->loc, "%s has no elements (%s): it is not trained", v->name, type_text(v->type));
		v->param = false;
		v->annot = NULL;
		v->data = v->data ? v->data : tensor_new(g->arena, v->type->elem, v->type->ndim, v->type->dim);
	}
}

/* Before inlining: marks parameters, so that inference does not take them for constants. */
int params_run(Graph *g)
{
	Model *m = g->model;
	bool marked = false, carries = carries_weights(g), *statistic = params_state(g);
	bool train = carries && annot_find(m->annot, "train") && !opt.infer;
	Record record = { 0 };
	Choice *choice;

	if (read_record(g, &record) || check_annotated(g))
		return -1;
	if (train)
		own_inputs(g);
	tie(g, &record);
	uint8_t *use = uses_of(g);
	for (int i = 0; i < g->ninit; i++)
		marked |= mark_of(g->init[i]) != NULL;
	choice = arena_array(g->scratch, Choice, g->ninit + 1);
	for (int i = 0; i < g->ninit; i++) {
		choice[i] = decide(g, g->init[i], &record, use, marked, carries);
		g->init[i]->frozen = choice[i].kind == PARAM_FROZEN;
		g->init[i]->param = choice[i].kind == PARAM_TRAINED || g->init[i]->frozen;
	}
	for (int i = 0; i < g->nvalue; i++)     /* in a dump: statistics that a node updates */
		if (g->value[i]->into && g->value[i]->into->init)
			g->value[i]->into->param = true;
	if (!m->main && !annot_find(m->annot, "done"))
		warn_freeze(g);
	for (int i = 0; i < g->ninit; i++)
		keep_frozen(g, g->init[i], !m->main && statistic[g->init[i]->id]);
	for (int i = 0; m->main && i < g->ninit; i++) {
		const Value *v = graph_find(m->main->graph, g->init[i]->name);
		g->init[i]->param |= v && v->init && v->param;
		g->init[i]->frozen |= v && v->init && v->frozen;
	}
	leave_empty(g);
	if (train) {
		warn_guesses(g, choice);
		remember(g, choice, &record, marked);
	}
	if (m->from_onnx)
		warn_folded(g, marked);
	if (carries)
		note_params(g, choice);
	return 0;
}
