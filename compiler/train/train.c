/* The training graph: loss, backward pass, update.
 *
 * A loss that is a mean over the batch is first written as a sum divided by a count, because a sum can be split over
 * ranks and micro-batches and a mean cannot; the count is a constant, or a value of its own when labels can be ignored.
 * The backward pass comes from the gradient column of the table (ir/apply/grad.c).  An update makes a new value that
 * lives in the storage of the old one (into), at the end of the graph, after every reader of the old one. */
#include "train/train.h"

#include <math.h>
#include <string.h>

static double number(const Arg *a)
{
	return a->kind == ARG_INT ? (double)a->i : a->f;
}

/* The value of a numeric argument, or `otherwise` when it is not given. */
static int get_number(const Arg *arg, int n, const char *key, double otherwise, double *out)
{
	const Arg *a = arg_find(arg, n, key);
	*out = otherwise;
	if (!a)
		return 0;
	if (a->kind != ARG_INT && a->kind != ARG_FLOAT) {
		err_at(a->loc, "%s must be a number", key);
		return -1;
	}
	*out = number(a);
	return 0;
}

/* An argument of @train that is not implemented is an error. */
static int read_others(const Annot *a)
{
	static const char *const known[] = {
		"loss", "optimizer", "schedule", "clip", "group", "batch", "steps", "data", "epochs", "seed", "ema",
		"microbatch", "accumulate", "precision", "metrics", NULL,
	};
	for (int i = 0; i < a->narg; i++) {
		bool ok = false;
		for (int k = 0; known[k]; k++)
			ok |= !strcmp(a->arg[i].param, known[k]);
		if (!ok) {
			err_at(a->arg[i].loc, "this back end has no %s yet", a->arg[i].param);
			return -1;
		}
	}
	return 0;
}

/* The loss: named in @train, or the only output of the graph. */
static int read_loss(const Model *m, const Arg *a, Training *t)
{
	const Graph *g = m->graph;
	if (a && a->kind == ARG_CALL && opt.infer)
		return 0;                       /* it was never added (objective.c) */
	if (a) {
		if (!a->s || !(t->loss = graph_find(g, a->s))) {
			err_at(a->loc, "there is no value %s to be the loss", a->s ? a->s : "of this form");
			return -1;
		}
		return 0;
	}
	if (g->nout != 1) {
		err_at(t->loc, "the loss is not named, and the graph has %d outputs: write loss: NAME", g->nout);
		return -1;
	}
	t->loss = g->out[0];
	return 0;
}

/* A frozen node trains none of its parameters. */
static bool frozen(const Node *n, const Value *v)
{
	return v->param && annot_find(n->annot, "frozen");
}

static bool only_frozen(const Graph *g, const Value *p)
{
	bool any = false;
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			if (g->node[i]->in[k] == p) {
				if (!frozen(g->node[i], p))
					return false;
				any = true;
			}
	return any;
}

/* By id, for each value that the loss is computed from: the next value on a path to the loss. */
static Value **ways(Graph *g, Value *loss)
{
	Value **next = arena_array(g->scratch, Value *, g->nvalue);
	next[loss->id] = loss;
	for (int i = g->nnode; i-- > 0;) {
		Node *n = g->node[i];
		Value *to = NULL;
		for (int j = 0; j < n->nout && !to; j++)
			if (n->out[j] && next[n->out[j]->id])
				to = n->out[j];
		for (int j = 0; j < n->nin && to; j++)
			if (n->in[j] && n->in[j]->graph == g && !next[n->in[j]->id] && !frozen(n, n->in[j]))
				next[n->in[j]->id] = to;
	}
	return next;
}

/* Whether the loss depends on a parameter only through a node without a gradient; then reports the path.  An
 * initialiser that is not declared a parameter may be a constant, so it is not reported. */
static bool blocked(Value **next, const Value *p, const Value *loss)
{
	if (!next[p->id] || p == loss || !annot_find(p->annot, "init"))
		return false;
	const Value *at = next[p->id];
	while (at != loss && at->def->row && !at->def->row->nograd)
		at = next[at->id];
	err_at(at->def->loc, "%s has no gradient: the loss %s depends on %s only through it", at->def->op, loss->name,
		p->name);
	int steps = 0;
	for (const Value *v = p; v != loss && steps++ < 10; v = next[v->id])
		note_at(next[v->id]->def->loc, "%s goes into %s", v->name, next[v->id]->name);
	note_at(p->loc,
		"@freeze(\"%s\") leaves it untrained; to train it, let the loss depend on it through operators that "
		"have a gradient", p->name);
	return true;
}

/* Epochs can be given instead of steps if the data set has an end. */
static int read_epochs(const Annot *a, Training *t)
{
	const Arg *epochs = arg_find(a->arg, a->narg, "epochs");
	double n;
	if (!epochs)
		return 0;
	if (arg_find(a->arg, a->narg, "steps")) {
		err_at(epochs->loc, "steps and epochs both set the length of training: write one of them");
		return -1;
	}
	if (!t->data || !t->data->s || !strcmp(t->data->s, "points")) {
		err_at(epochs->loc, "epochs need a data set that has an end: write steps: N");
		return -1;
	}
	if (get_number(a->arg, a->narg, "epochs", 0, &n))
		return -1;
	t->epochs = opt.steps >= 0 ? 0 : (int64_t)n;
	return 0;
}

/* Warns when the schedule does not end where training ends. */
static void check_schedule(const Annot *a, Training *t)
{
	const Arg *s = arg_find(a->arg, a->narg, "schedule");
	t->total = s ? (int64_t)scalar_given(s, "total", 0) : 0;
	t->warmup = s ? (int64_t)scalar_given(s, "warmup", 0) : 0;
	if (!s || opt.dump_after || opt.infer)
		return;
	const char *who = arg_find(a->arg, a->narg, "steps") ? "steps" : "the default of steps";
	if (opt.steps >= 0)
		who = "--steps";
	long long total = t->total, warmup = t->warmup, steps = t->steps;
	if (total && warmup >= total)
		warn_at(s->loc, "the warm-up of %lld steps leaves nothing of a schedule of %lld steps in all",
			warmup, total);
	if (t->epochs)
		return;                         /* the trainer knows how many steps these are, and warns */
	if (total && total != steps)
		warn_at(s->loc, "the schedule ends at step %lld, but training takes %lld steps, as %s says",
			total, steps, who);
	else if (warmup && warmup >= steps)
		warn_at(s->loc, "the warm-up takes %lld steps, but training takes %lld, as %s says",
			warmup, steps, who);
}

const char *train_defaults(const Model *m, const Training *t)
{
	const Annot *a = annot_find(m->annot, "train");
	const Arg *points = t->data && t->data->s && !strcmp(t->data->s, "points") ? t->data : NULL;
	const char *text = NULL;
	const struct { bool given; const char *what; } list[] = {
		{ arg_find(a->arg, a->narg, "optimizer") != NULL, "optimizer sgd(lr: 0.1) (@train optimizer)" },
		{ t->epochs || opt.steps >= 0 || arg_find(a->arg, a->narg, "steps"),
			"100 steps (@train steps or epochs, --steps)" },
		{ opt.seed >= 0 || arg_find(a->arg, a->narg, "seed"), "seed 1 (@train seed, --seed)" },
		{ !points || arg_find(points->arg, points->narg, "classes"), "points of 10 classes (@train data)" },
		{ !points || arg_find(points->arg, points->narg, "noise"), "points of noise 1 (@train data)" },
	};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (!list[i].given)
			text = text ? name_fmt("%s, %s", text, list[i].what) : list[i].what;
	return text;
}

/* 1: there is a training section; 0: none; -1 after explaining. */
static int train_read(Model *m, Training *t)
{
	const Annot *a = annot_find(m->annot, "train");
	*t = (Training){ 0 };
	if (!a)
		return 0;
	double steps, seed;
	t->loc = a->loc;
	t->data = arg_find(a->arg, a->narg, "data");
	if (read_others(a) || read_loss(m, arg_find(a->arg, a->narg, "loss"), t))
		return -1;
	if (get_number(a->arg, a->narg, "steps", 100, &steps) || get_number(a->arg, a->narg, "seed", 1, &seed))
		return -1;
	if (microbatch_check(m))
		return -1;
	t->microbatches = microbatch_count(m);
	t->steps = opt.steps >= 0 ? opt.steps : (int64_t)steps;
	t->seed = opt.seed >= 0 ? opt.seed : (int64_t)seed;
	t->ema = arg_find(a->arg, a->narg, "ema") != NULL;
	t->rate = scalar_given(arg_find(a->arg, a->narg, "optimizer"), "lr", 0.1);
	if (read_epochs(a, t))
		return -1;
	check_schedule(a, t);
	return 1;
}

static const Arg *batch_of(const Model *m)
{
	const Annot *a = annot_find(m->annot, "train");
	const Arg *b = a ? arg_find(a->arg, a->narg, "batch") : NULL;
	return b && b->kind == ARG_INT ? b : NULL;
}

void train_bind_batch(const Model *m)
{
	const Arg *b = batch_of(m);
	for (int i = 0; b && i < m->graph->nin; i++) {
		const Type *t = m->graph->in[i]->type;
		if (!t || t->kind != TY_TENSOR || t->ndim < 1 || !dim_symbolic(t->dim[0]))
			continue;
		Dim is = dim_bound(t->dim[0]);
		if (dim_symbolic(is) || (is == b->i && !opt.infer)) {     /* --set may give the same number */
			dim_bind(dim_text(t->dim[0]), b->i / microbatch_count(m));
			return;
		}
	}
}

/* The batch axis is the first axis of the first input that has one: the samples of a step, or of a micro-batch. */
int train_check_batch(const Model *m)
{
	const Arg *b = batch_of(m);
	const Value *v = NULL;
	for (int i = 0; i < m->graph->nin && !v; i++) {
		const Type *t = m->graph->in[i]->type;
		v = t && t->kind == TY_TENSOR && t->ndim > 0 && !m->graph->in[i]->data ? m->graph->in[i] : NULL;
	}
	int64_t microbatches = microbatch_count(m), want = b ? b->i / microbatches : 0;
	Dim d = v ? v->type->dim[0] : DIM_UNKNOWN, is = dim_bound(d);
	if (!b || !v || !dim_known(is) || is == want)
		return 0;
	if (microbatches > 1 && d == b->i)
		return 0;                       /* microbatch_check refuses it */
	const char *sizes = microbatches > 1 ? name_fmt(" in micro-batches of %lld", (long long)want) : "";
	err_at(b->loc, "batch is %lld%s, but the first axis of %s is %lld", (long long)b->i, sizes, v->name,
		(long long)is);
	if (dim_symbolic(d))
		note_at(v->loc, "--set %s=%lld says so: leave one of the two out", dim_text(d),
			(long long)dim_bound(d));
	else
		note_at(v->loc, "%s is declared here; a symbol in place of %lld would take the value of batch", v->name,
			(long long)is);
	return -1;
}

static bool scalar(const Value *v)
{
	return v->type && v->type->kind == TY_TENSOR && v->type->ndim >= 0 && type_elements(v->type) == 1;
}

static Value *sum_of(Graph *g, Loc loc, Value *v)
{
	Value *out = graph_fresh(g, "loss.count");
	return v ? build(g, loc, "ReduceSum", "keepdims=0", 1, &out, 1, v) : NULL;
}

/* The divisor of a mean loss.  Without ignore_index and weights it is the number of labels, a constant; else the sum of
 * a mask, or of the weights of the classes. */
static Value *label_count(Graph *g, Node *n, DType dt, int64_t microbatches)
{
	Value *label = n->in[1], *weight = n->nin > 2 ? n->in[2] : NULL;
	Loc loc = n->loc;
	if (!attr_has(n, "ignore_index") && weight)
		return sum_of(g, loc, build(g, loc, "Gather", NULL, 1, NULL, 2, weight, label));
	if (!attr_has(n, "ignore_index")) {
		int64_t k = type_elements(label->type);
		if (k < 0) {
			err_at(loc, "the number of labels is not known: %s", type_text(label->type));
			return NULL;
		}
		return graph_const(g, tensor_scalar(g->arena, dt, (double)k * (double)microbatches), "loss.count");
	}
	Tensor *ig = tensor_new(g->arena, label->type->elem, 0, NULL);
	tensor_set_int(ig, 0, attr_int(n, "ignore_index"));
	Value *is = build(g, loc, "Equal", NULL, 1, NULL, 2, label, graph_const(g, ig, "loss.ignore"));
	if (is && weight) {
		Tensor *none = tensor_new(g->arena, label->type->elem, 0, NULL);
		Value *at = build(g, loc, "Where", NULL, 1, NULL, 3, is, graph_const(g, none, "loss.none"), label);
		Value *each = at ? build(g, loc, "Gather", NULL, 1, NULL, 2, weight, at) : NULL;
		Value *zero = graph_const(g, tensor_scalar(g->arena, dt, 0), "loss.zero");
		return sum_of(g, loc, each ? build(g, loc, "Where", NULL, 1, NULL, 3, is, zero, each) : NULL);
	}
	Value *used = is ? build(g, loc, "Not", NULL, 1, NULL, 1, is) : NULL;
	char to[32];
	snprintf(to, sizeof to, "to=%d", (int)dt);
	Value *mask = used ? build(g, loc, "Cast", to, 1, NULL, 1, used) : NULL;
	return sum_of(g, loc, mask);
}

/* Rewrites a loss node with reduction mean as sum / count.  1: rewritten. */
static int split_mean(Graph *g, Node *n, int64_t microbatches)
{
	Name mean = name_of("mean");
	if (!n->row || !n->row->composite || !n->nout || !n->out[0] || n->nin < 2)
		return 0;
	bool has = false;
	for (int i = 0; i < n->row->schema->nattr; i++)
		has |= !strcmp(n->row->schema->attr[i].name, "reduction");
	if (!has || attr_str(n, "reduction") != mean)
		return 0;
	Value *loss = n->out[0];
	Attr *a = node_attr(n, "reduction");
	if (!a)
		a = node_attr_add(n, name_of("reduction"), AT_STRING);
	a->u.s = name_of("sum");
	Value *sum = graph_fresh(g, name_fmt("%s.sum", loss->name));
	sum->type = loss->type;
	sum->loc = loss->loc;
	loss->def = NULL;
	n->out[0] = sum;
	sum->def = n;
	sum->defidx = 0;
	Value *count = label_count(g, n, loss->type->elem, microbatches);
	return count && build(g, n->loc, "Div", NULL, 1, &loss, 2, sum, count) ? 1 : -1;
}

int train_split_means(Graph *g, int64_t microbatches)
{
	Node **old = g->node;
	int n = g->nnode;
	g->node = NULL;
	g->nnode = 0;
	for (int i = 0; i < n; i++) {
		arena_push(g->arena, g->node, g->nnode, old[i]);
		if (split_mean(g, old[i], microbatches) < 0)
			return -1;
	}
	return 0;
}

/* The trained parameters, as params.c decided, without statistics of batch norm: only their node updates them, unless
 * @param asks for a gradient. */
static Value **parameters(Graph *g, int *n)
{
	const bool *statistic = params_state(g);
	Value **p = NULL;
	*n = 0;
	for (int i = 0; i < g->ninit; i++)
		if (g->init[i]->param && !g->init[i]->frozen &&
			(!statistic[g->init[i]->id] || params_named(g->model, g->init[i]->name)))
			arena_push(g->scratch, p, *n, g->init[i]);
	return p;
}

/* Scalar OnesLike and ZerosLike become constants, such as the gradient of the loss with respect to itself. */
static void fold_seed(Graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool ones = !strcmp(n->op, "OnesLike"), zeros = !strcmp(n->op, "ZerosLike");
		if ((!ones && !zeros) || !scalar(n->out[0]) || n->out[0]->type->ndim != 0)
			continue;
		Value *c = graph_const(g, tensor_scalar(g->arena, n->out[0]->type->elem, ones),
			name_fmt("%s.one", n->in[0]->name));
		graph_replace(g, n->out[0], c);
	}
}

/* w.grad, or a term of it that has a name of its own, w.grad.use1 */
static bool gradient_name(const char *name)
{
	return text_ends(name, ".grad") || strstr(name, ".grad.use");
}

/* Removes nodes that only copy, such as a ReduceTo to the shape that a value already has.  The name of a gradient
 * passes to the value that was copied, so that w.grad exists and can be pinned.  If a micro-batch is one sample, a
 * ReduceTo may be a sum over the batch although the shapes are equal: microbatch_run decides. */
static void drop_copies(Graph *g, bool sample, Value **grad, int ngrad)
{
	Value **by = arena_array(g->scratch, Value *, g->nvalue + 1);
	int keep = 0, nvalue = g->nvalue;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && n->in[k]->graph == g && n->in[k]->id < nvalue && by[n->in[k]->id])
				n->in[k] = by[n->in[k]->id];
		const Value *c = n->nin ? n->in[0] : NULL;
		if (!strcmp(n->op, "CastLike") && c->data && !c->param && scalar(c) && c->type->ndim == 0) {
			Tensor *t = tensor_scalar(g->arena, n->out[0]->type->elem, tensor_get(c->data, 0));
			by[n->out[0]->id] = graph_const(g, t, c->name);
			n->out[0]->def = NULL;
			continue;
		}
		bool like = (!strcmp(n->op, "ReduceTo") && !sample) || !strcmp(n->op, "LikeShape") ||
			!strcmp(n->op, "CastLike");
		if (!like || n->out[0]->output || !type_equal(n->in[0]->type, n->out[0]->type)) {
			g->node[keep++] = n;
			continue;
		}
		Value *x = n->in[0], *y = n->out[0];
		Name name = y->name;
		by[y->id] = x;
		y->def = NULL;
		if (x->def && !gradient_name(x->name) && gradient_name(name)) {
			graph_rename(g, y, name_fmt("%s.same", name));
			graph_rename(g, x, name);
		}
	}
	g->nnode = keep;
	for (int i = 0; i < ngrad; i++)
		if (grad[i] && by[grad[i]->id])
			grad[i] = by[grad[i]->id];
}

/* The gradient of w is named w.grad, so that it can be pinned.  A value that had the name was dropped, or is a term of
 * the gradient. */
static void name_gradient(Graph *g, Value *grad, Name name)
{
	Value *old = graph_find(g, name);
	if (old && old != grad)
		graph_rename(g, old, name_fmt(old->def ? "%s.term" : "%s.same", name));
	graph_rename(g, grad, name);
}

/* The running variance of PyTorch, which takes f = n / (n - 1) times the variance of the batch.  The node gives m old +
 * (1 - m) var; f times that, minus (f - 1) m old, is m old + (1 - m) f var. */
static Value *unbiased(Graph *g, const Node *n, Value *biased, Value *old)
{
	const Type *x = n->in[0]->type;
	const Annot *local = annot_find(n->annot, "local_stats");
	int64_t microbatches = g->model->microbatches ? g->model->microbatches : 1;
	int64_t parts = local ? local->arg[0].i / microbatches : 1;
	int64_t all = type_elements(x), count = all > 0 ? all / x->dim[1] / parts : 0;
	Scalars m = { g, n->loc, old->type->elem, false };
	if (count < 2) {
		err_at(n->loc, "the unbiased variance of %s is not known: it is that of %lld number%s", n->in[0]->name,
			(long long)count, count == 1 ? "" : "s");
		return NULL;
	}
	double f = (double)count / (double)(count - 1), keep = attr_float(n, "momentum");
	Value *more = scalar_scaled(&m, biased, f), *less = scalar_scaled(&m, old, (f - 1) * keep);
	Value *next = scalar_op2(&m, "Sub", more, less);
	return m.bad ? NULL : next;
}

/* Makes statistics of batch norm state: other programs must not take them for constants, and its node updates them.
 * Nodes that share statistics update them one after the other, as PyTorch does. */
static int keep_statistics(Graph *g, bool update)
{
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool batch = !strcmp(n->op, "BatchNormalization") && !*n->domain &&
			(n->row->since < 14 ? n->nout > 1 : attr_int(n, "training_mode") != 0);
		for (int k = 1; batch && k < 3; k++) {
			Value *old = k + 2 < n->nin ? n->in[k + 2] : NULL;
			Name next = old ? name_fmt("%s.next", old->name) : NULL;
			Value *known = next ? graph_find(g, next) : NULL;
			Value *before = known && known->into && known->into == old ? known : NULL;
			if (!old || !old->init || (known && !before && (k >= n->nout || known != n->out[k])))
				continue;
			old->param = true;
			old->frozen = false;
			annot_drop(&old->annot, "frozen");
			if (!update)
				continue;
			while (n->nout < k)     /* a result that is computed but not kept */
				node_out(n, graph_fresh(g, name_fmt("%s.mean", n->out[0]->name)));
			if (n->nout <= k)
				node_out(n, graph_fresh(g, next));
			if (!n->out[k] || n->out[k]->output)
				continue;
			if (before) {           /* a norm that is used again continues from its last update */
				graph_rename(g, before, name_fmt("%s.by%d", old->name, i));
				before->into = NULL;
				n->in[k + 2] = before;
			}
			bool plain = k == 1 || !annot_find(n->annot, "unbiased");
			graph_rename(g, n->out[k], plain ? next : name_fmt("%s.biased%d", old->name, i));
			if (infer_node(n))
				return -1;
			Value *to = plain ? n->out[k] : unbiased(g, n, n->out[k], n->in[k + 2]);
			if (!to)
				return -1;
			graph_rename(g, to, next);
			to->into = old;
		}
	}
	return 0;
}

static bool draws(const Node *n, void *arg)
{
	(void)arg;
	return n->row->random;
}

/* Random nodes read the number of the step, so that each step draws different numbers. */
static int give_steps(Graph *g)
{
	if (inline_lower(g, draws, NULL))
		return -1;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		if (strcmp(n->op, "RandomUniform01") || (n->nin > 2 && n->in[2]))
			continue;
		while (n->nin < 3)
			node_in(n, NULL);
		n->in[2] = lr_step_input(g, n->loc);
	}
	return 0;
}

static bool local_statistics(const Node *n, void *arg)
{
	(void)arg;
	return node_is(n, "BatchNormalization") && annot_find(n->annot, "local_stats");
}

static int build_training(Graph *g, Training *t)
{
	Value *loss = t->loss;
	if (!scalar(loss)) {
		err_at(loss->loc, "the loss %s must be a scalar, but is %s", loss->name,
			loss->type ? type_text(loss->type) : "of unknown type");
		note_at((Loc){ 0 },
			"of scores or predictions, loss: cross_entropy(%s, TARGET), mse(%s, TARGET) and the like "
			"compute one (sbpcc --list-annotations)", loss->name, loss->name);
		return -1;
	}
	int np;
	Value **param = parameters(g, &np);
	if (!np) {
		bool frozen = false;
		for (int i = 0; i < g->ninit; i++)
			frozen |= g->init[i]->frozen;
		err_at(t->loc, frozen ? "there is nothing to train: all parameters are frozen"
			: "there is nothing to train: no value has @init, and there is no initialiser of a floating "
			"type");
		return -1;
	}
	if (keep_statistics(g, false) || programs_make(g->model) || keep_statistics(g, true) || give_steps(g))
		return -1;
	if (whole_batch_constants(g))
		return -1;
	/* in micro-batches, statistics of parts of the batch are means that each micro-batch has its own of */
	if (t->microbatches > 1 && inline_lower(g, local_statistics, NULL))
		return -1;
	if (train_split_means(g, t->microbatches) || microbatch_means(g, t->microbatches))
		return -1;
	int trained = 0;
	for (int i = 0; i < np; i++)            /* all but statistics */
		if (!graph_find(g, name_fmt("%s.next", param[i]->name)))
			param[trained++] = param[i];
	np = trained;
	for (int i = 0; i < g->nout; i++)
		g->out[i]->output = false;
	g->nout = 0;
	loss->output = true;
	arena_push(g->arena, g->out, g->nout, loss);
	if (programs_report(g))
		return -1;
	graph_sweep(g);
	Value **grad = arena_array(g->scratch, Value *, np), **next = ways(g, loss);
	const Annot *train = annot_find(g->model->annot, "train");
	LossScale *scale = loss_scale_begin(g, train);
	if (t->microbatches > 1) {
		if (microbatch_grad(g, t->microbatches, loss, param, np, grad, scale))
			return -1;
	} else if (grad_build(g, loss, param, np, grad) || loss_scale_seed(scale, loss)) {
		return -1;
	}
	drop_copies(g, t->microbatches > 1 && microbatch_rows(g) == 1, grad, np);
	if (loss_scale_gradients(scale, param, grad, np))
		return -1;
	for (int i = 0; i < np; i++) {
		if (!grad[i]) {
			if (blocked(next, param[i], loss))
				return -1;
			if (!only_frozen(g, param[i]))
				warn_at(param[i]->loc, "the loss does not depend on %s: it is not trained",
					param[i]->name);
			continue;
		}
		name_gradient(g, grad[i], name_fmt("%s.grad", param[i]->name));
	}
	/* one value may be the gradient of several parameters, and has one name */
	for (int i = 0; i < np; i++)
		if (grad[i] && params_gradient(g, param[i]) != grad[i])
			params_share(g, param[i], grad[i]);
	if (optimizer_build(g, train, param, grad, np) || loss_scale_end(scale))
		return -1;
	if (t->ema)
		programs_average(g->model);
	fold_seed(g);
	graph_sweep(g);
	return graph_sort(g) || infer_graph(g) ? -1 : 0;
}

int train_run(Graph *g)
{
	Model *m = g->model;
	if (!m->plan)
		m->plan = arena_new(&m->arena, Plan);
	Training *t = &m->plan->train;
	int has = train_read(m, t);
	if (has < 0)
		return -1;
	m->plan->training = has && !opt.infer;
	if (!options_done(m, "train") && (m->plan->training ? build_training(g, t) : programs_alone(m)))
		return -1;
	return programs_resolve(m) || resolve_run(m) ? -1 : 0;        /* pins of nodes and values that were added */
}
