/* Every signature of every row, tried out on the operands of its test column.
 *
 * The node is evaluated whole.  Then, for two, three and four parts (uneven, and with empty ones where an axis is
 * short) and each signature that the compiler knows: operands are cut as forms say (P: as terms that add up), the node
 * that each rank would run is made by the compiler and evaluated, what it gives must have the lengths of the rank's
 * part, and the parts put together must be the whole.  So for mixtures on meshes of two axes.  Forward and gradient
 * rows are alike: both are rows.
 *
 * A row that has no test column, or neither a factor rule nor a word on why no axis of it can be cut, fails. */
#include "case.h"
#include "compiler.h"

#include <sys/wait.h>
#include <unistd.h>

enum { MAXOUT = 8, MAXPLACE = 16 };
static const int itself[] = { 0, 1 };   /* axes of meshes */

typedef struct Whole { Run r; const Case *c; Tensor *in[MAXIN], *out[MAXOUT]; int nout; Arena *a; } Whole;

static bool near(double a, double b, DType t)
{
	return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= (t == DT_FLOAT ? 1e-5 : 1e-9) * (1 + fabs(b));
}

static void copy_element(const Tensor *from, int64_t i, Tensor *to, int64_t k)
{
	if (dtype_is_float(from->dtype))
		tensor_set(to, k, tensor_get(from, i));
	else
		tensor_set_int(to, k, tensor_int(from, i));
}

/* Calls fn with the index of each element of a part, in its order. */
static void each(const FormShard *p, const int64_t *dim, void (*fn)(void *arg, int64_t i, int64_t k), void *arg)
{
	int64_t n = form_elements(p);
	for (int64_t k = 0; k < n; k++) {
		int64_t rest = k, at = 0, stride = 1;
		for (int a = p->naxis; a-- > 0;) {
			int64_t j = rest % p->axis[a].len;
			int run = 0;
			rest /= p->axis[a].len;
			while (j >= p->axis[a].run[run].len)
				j -= p->axis[a].run[run++].len;
			at += (p->axis[a].run[run].at + j) * stride;
			stride *= dim[a];
		}
		fn(arg, at, k);
	}
}

typedef struct Copy { const Tensor *from; Tensor *to; } Copy;

static void take(void *arg, int64_t i, int64_t k)
{
	Copy *c = arg;
	copy_element(c->from, i, c->to, k);
}

static Tensor *part_of(const Tensor *t, const FormShard *p, Arena *a)
{
	int64_t dim[FORM_AXES];
	for (int i = 0; i < p->naxis; i++)
		dim[i] = p->axis[i].len;
	Tensor *r = tensor_new(a, t->dtype, t->ndim, dim);
	each(p, t->dim, take, &(Copy){ t, r });
	return r;
}

/* Which term a place holds: its coordinates along the axes of P. */
static int term_of(const Form *f, int place, int *count)
{
	int coord[FORM_MESH], term = 0;
	form_coord(f, place, coord);
	*count = 1;
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_P) {
			term = term * f->mesh[k] + coord[k];
			*count *= f->mesh[k];
		}
	return term;
}

/* The terms of a value: all but the last are random, and the last makes up for them. */
static Tensor **terms_of(const Tensor *t, int count, Arena *a)
{
	Tensor **list = arena_array(a, Tensor *, count);
	for (int i = 0; i < count; i++)
		list[i] = count == 1 ? (Tensor *)t : tensor_new(a, t->dtype, t->ndim, t->dim);
	for (int64_t e = 0; count > 1 && e < tensor_elements(t); e++) {
		double rest = tensor_get(t, e);
		for (int i = 0; i + 1 < count; i++) {
			double y = uniform(-1, 1);
			tensor_set(list[i], e, y);
			rest -= tensor_get(list[i], e);
		}
		tensor_set(list[count - 1], e, rest);
	}
	return list;
}

static Type *type_of_part(const Type *t, const FormShard *p, Arena *a)
{
	int64_t dim[FORM_AXES];
	for (int i = 0; i < p->naxis; i++)
		dim[i] = p->axis[i].len;
	return type_tensor(a, t->elem, p->naxis, dim);
}

/* Evaluates the node of a rank in a model of its own; false when it is refused. */
static bool run_part(const Node *part, Tensor **t, Tensor **out, Arena *a)
{
	Model *m = model_new();
	Graph *g = m->graph = graph_new(m, NULL, name_of("part"));
	Node *n = node_new(g, part->domain, part->op, (Loc){ 0 });
	Tensor *in[MAXIN];
	int nin = 0;
	n->version = part->version;
	n->row = part->row;
	n->shard = part->shard;
	for (int i = 0; i < part->nin; i++) {
		Value *v = part->in[i] ? graph_value_here(g, name_fmt("in%d", i), (Loc){ 0 }) : NULL;
		if (v && part->in[i]->init) {
			v->data = t[i];
			v->init = true;
			arena_push(g->arena, g->init, g->ninit, v);
		} else if (v) {
			v->input = true;
			arena_push(g->arena, g->in, g->nin, v);
			in[nin++] = t[i];
		}
		if (v)
			v->type = type_tensor(g->arena, t[i]->dtype, t[i]->ndim, t[i]->dim);
		node_in(n, v);
	}
	Value *outs[MAXOUT];
	for (int i = 0; i < part->nout; i++) {
		outs[i] = part->out[i] ? graph_value_here(g, name_fmt("out%d", i), (Loc){ 0 }) : NULL;
		node_out(n, outs[i]);
	}
	for (int i = 0; i < part->nattr; i++)
		arena_push(g->arena, n->attr, n->nattr, part->attr[i]);
	bool ok = inline_append(g, n) == 0;
	for (int i = 0; i < part->nout && ok; i++)
		if (outs[i]) {
			outs[i]->output = true;
			arena_push(g->arena, g->out, g->nout, outs[i]);
		}
	Tensor *res[MAXOUT] = { 0 };
	ok = ok && eval_graph(g, in, res, a, (EvalOpts){ 0 }) == 0;
	for (int i = 0, k = 0; i < part->nout && ok; i++)
		out[i] = outs[i] ? res[k++] : NULL;
	model_free(m);
	return ok;
}

/* The result being put together. */
typedef struct Sum { const Tensor *from; double *v; int *terms; Reduce red; } Sum;

static void add(void *arg, int64_t i, int64_t k)
{
	Sum *s = arg;
	double x = tensor_get(s->from, k), y = s->v[i];
	s->v[i] = !s->terms[i]++ ? x : s->red == RED_SUM ? x + y : s->red == RED_PROD ? x * y : s->red == RED_MAX
		? fmax(x, y) : fmin(x, y);
}

/* The first place along axes of B: what it holds is the same. */
static int first_copy(const Form *f, int place)
{
	int coord[FORM_MESH], at = 0;
	form_coord(f, place, coord);
	for (int k = 0; k < f->ndim; k++)
		at = at * f->mesh[k] + (f->cut[k].kind == FORM_B ? 0 : coord[k]);
	return at;
}

static bool equal(const Tensor *x, const Tensor *y, DType inside)
{
	if (x->ndim != y->ndim || memcmp(x->dim, y->dim, (size_t)x->ndim * sizeof *x->dim) != 0)
		return false;
	for (int64_t i = 0; i < tensor_elements(x); i++)
		if (!near(tensor_get(x, i), tensor_get(y, i), inside))
			return false;
	return true;
}

/* Puts the parts together in `whole`; want: what it must be. */
static const char *join(Tensor *whole, const Tensor *want, const Form *f, FormShard *part, Tensor **got, int places,
	Arena *a)
{
	int64_t n = tensor_elements(whole);
	Sum s = { .v = arena_array(a, double, n + 1), .terms = arena_array(a, int, n + 1) };
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_P)
			s.red = (Reduce)f->cut[k].reduce;
	for (int p = 0; p < places; p++) {
		if (!got[p])
			continue;
		int first = first_copy(f, p);
		if (first != p && !equal(got[p], got[first], whole->dtype))
			return "differs among ranks that should hold the same";
		s.from = got[p];
		if (first == p)
			each(&part[p], whole->dim, add, &s);
	}
	for (int64_t i = 0; i < n; i++) {
		if (!s.terms[i] || (want && !near(s.v[i], tensor_get(want, i), want->dtype)))
			return "of the parts is not the whole";
		tensor_set(whole, i, s.v[i]);
	}
	return NULL;
}

static const char *nd_text(const Node *n, const NdSig *s)
{
	const char *t = "";
	for (int k = 0; k < s->ndim; k++)
		t = name_fmt("%s%s%s", t, k ? " | " : "", signatures_text(n, s->sig[k]));
	return t;
}

static void say(const Whole *w, const NdSig *s, const Mesh *m, const char *what)
{
	const char *mesh = "";
	for (int k = 0; k < m->ndim; k++)
		mesh = name_fmt("%s%s%d", mesh, k ? "x" : "", m->dim[k]);
	fail(w->c, name_fmt("%s on %s: %s", nd_text(w->r.n, s), mesh, what));
}

static void origins(const FormShard *p, int64_t *from)
{
	for (int k = 0; k < p->naxis; k++)
		from[k] = p->axis[k].len ? p->axis[k].run[0].at : 0;
}

/* What a rank without work holds of a result. */
static Tensor *neutral(const Type *whole, const Form *f, const FormShard *p, Arena *a)
{
	static const double with[] = { [FORM_SUM] = 0, [FORM_MAX] = -INFINITY, [FORM_MIN] = INFINITY, [FORM_PROD] = 1 };
	double x = 0;
	Type *part = type_of_part(whole, p, a);
	Tensor *t = tensor_new(a, whole->elem, part->ndim, part->dim);
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_P)
			x = with[f->cut[k].reduce];
	for (int64_t i = 0; i < tensor_elements(t); i++)
		tensor_set(t, i, x);
	return t;
}

/* Runs a node by a signature on operands that are cut for it; NULL, or what is wrong.  sum[i]: result i put together
 * again. */
static const char *run_sig(const Node *n, const NdSig *s, const Mesh *m, Tensor *const *whole, Tensor *const *want,
	Tensor **sum, Arena *arena)
{
	Arena a = { 0 };
	Form fin[MAXIN], fout[MAXOUT];
	FormShard pin[MAXIN][MAXPLACE], pout[MAXOUT][MAXPLACE];
	Tensor **term[MAXIN] = { 0 }, *got[MAXOUT][MAXPLACE] = { { 0 } };
	const char *wrong = NULL;
	int count;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i]) {
			fin[i] = sbp_form(n->in[i], s->in[i], m);
			term_of(&fin[i], 0, &count);
			term[i] = terms_of(whole[i], count, &a);
		}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			fout[i] = sbp_form(n->out[i], s->out[i], m);
	for (int p = 0; p < m->nrank && !wrong; p++) {
		Type *tin[MAXIN] = { 0 }, *tout[MAXOUT] = { 0 };
		Tensor *t[MAXIN] = { 0 }, *out[MAXOUT] = { 0 };
		bool any = false;
		for (int i = 0; i < n->nin; i++)
			if (n->in[i]) {
				form_shard(&fin[i], p, &pin[i][p]);
				tin[i] = type_of_part(n->in[i]->type, &pin[i][p], &a);
			}
		for (int i = 0; i < n->nout; i++)
			if (n->out[i]) {
				form_shard(&fout[i], p, &pout[i][p]);
				tout[i] = type_of_part(n->out[i]->type, &pout[i][p], &a);
				any |= form_elements(&pout[i][p]) > 0;
			}
		if (!any)
			continue;               /* nothing to do on this rank */
		int64_t from[FORM_AXES] = { 0 };
		bool out_side;
		int at, axis;
		if (op_origin(n, &out_side, &at, &axis))
			origins(out_side ? &pout[at][p] : &pin[at][p], from);
		const int64_t **begin = arena_array(&a, const int64_t *, n->nin + n->nout + 1);
		for (int i = 0; i < n->nin + n->nout; i++) {
			int64_t *to = arena_array(&a, int64_t, FORM_AXES);
			if (i < n->nin ? n->in[i] != NULL : n->out[i - n->nin] != NULL)
				origins(i < n->nin ? &pin[i][p] : &pout[i - n->nin][p], to);
			begin[i] = to;
		}
		const Node *part = shard_node_of(n, tin, tout, begin, from, &a);
		for (int i = 0; part && i < part->nin; i++)
			if (part->in[i] && (i >= n->nin || part->in[i]->data != n->in[i]->data))
				t[i] = part->in[i]->data;       /* the compiler made it */
			else if (part->in[i])
				t[i] = part_of(term[i][term_of(&fin[i], p, &count)], &pin[i][p], &a);
		if (part && !run_part(part, t, out, &a)) {
			wrong = name_fmt("rank %d cannot run it", p);
			break;
		}
		for (int i = 0; i < n->nout && !wrong; i++) {
			if (!n->out[i])
				continue;
			got[i][p] = out[i] = part ? out[i] : neutral(n->out[i]->type, &fout[i], &pout[i][p], &a);
			for (int k = 0; k < pout[i][p].naxis; k++)
				if (out[i]->ndim != pout[i][p].naxis || out[i]->dim[k] != pout[i][p].axis[k].len)
					wrong = name_fmt("result %d of rank %d is not as long as its part", i, p);
		}
	}
	for (int i = 0; i < n->nout && !wrong; i++) {
		const Type *t = n->out[i] ? n->out[i]->type : NULL;
		sum[i] = t ? tensor_new(arena, t->elem, t->ndim, t->dim) : NULL;
		const char *why = NULL;
		if (t)
			why = join(sum[i], want ? want[i] : NULL, &fout[i], pout[i], got[i], m->nrank, &a);
		if (why)
			wrong = name_fmt("result %d %s", i, why);
	}
	arena_free(&a);
	return wrong;
}

/* With as many results as it has, else with those that it must have. */
static bool whole_case(Whole *w, const Case *c, Tensor **t, Arena *a)
{
	const Schema *s = c->op->schema;
	int few = nresults(c->op), all = s->nout && !s->out[s->nout - 1].variadic ? s->nout : few;
	for (int nout = all; nout >= few; nout = nout > few ? few : few - 1) {
		Tensor *in[MAXIN];
		FILE *keep;
		*w = (Whole){ .c = c, .nout = nout, .a = a };
		memcpy(w->in, t, sizeof w->in);
		memcpy(w->r.t, t, sizeof w->r.t);
		quiet(&keep);
		bool ok = nout <= MAXOUT && build_case(&w->r, c, nout, false) == 0;
		inputs_of(c, t, in);
		ok = ok && eval_graph(w->r.g, in, w->out, a, (EvalOpts){ 0 }) == 0;
		diag_out = keep;
		diag_reset();
		if (ok)
			return true;
		model_free(w->r.m);
	}
	return false;
}

static bool is_marked(const Node *n, void *arg)
{
	(void)arg;
	return n->mark == 1;
}

/* By its definition: each node of that runs by any of its signatures, whatever they are. */
static const char *run_definition(const Whole *w, const Mesh *m)
{
	Whole d;
	Arena a = { 0 };
	const char *wrong = NULL;
	if (!whole_case(&d, w->c, (Tensor **)w->in, &a))
		return "it cannot be built again";
	d.r.n->mark = 1;
	if (inline_lower(d.r.g, is_marked, NULL) || infer_graph(d.r.g))
		return "it has no definition";
	factors_run(d.r.g);
	Tensor **now = arena_array(&a, Tensor *, d.r.g->nvalue + 1);
	for (int i = 0; i < d.r.g->nvalue; i++)
		now[i] = d.r.g->value[i]->data;
	for (int i = 0; i < w->c->nin; i++)
		if (d.r.in[i])
			now[d.r.in[i]->id] = w->in[i];
	for (int i = 0; i < d.r.g->nnode && !wrong; i++) {
		Node *n = d.r.g->node[i];
		Tensor *in[MAXIN] = { 0 }, *out[MAXOUT] = { 0 };
		int count;
		NdSig *list = signatures_product(n, m, itself, &a, &count), *s = &list[(int)uniform(0, count)];
		for (int k = 0; k < m->ndim; k++)
			if (s->sig[k]->define)
				s = &list[0];
		for (int k = 0; k < n->nin; k++)
			in[k] = n->in[k] ? now[n->in[k]->id] : NULL;
		Tensor *want[MAXOUT] = { 0 };
		bool known = !n->row->random && eval_node(n, in, want, &a, false) == 0;
		wrong = run_sig(n, s, m, in, known ? want : NULL, out, &a);
		if (wrong)
			wrong = name_fmt("by definition, %s by %s: %s", n->op, nd_text(n, s), wrong);
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				now[n->out[k]->id] = out[k];
	}
	for (int i = 0; i < d.r.g->nout && !wrong; i++)
		if (!equal(now[d.r.g->out[i]->id], w->out[i], DT_FLOAT))       /* norms count in float */
			wrong = name_fmt("by definition, result %d is another", i);
	model_free(d.r.m);
	arena_free(&a);
	return wrong;
}

/* One signature on one mesh. */
static bool check(const Whole *w, const NdSig *s, const Mesh *m)
{
	Arena a = { 0 };
	Tensor *sum[MAXOUT] = { 0 };
	bool define = false;
	for (int k = 0; k < s->ndim; k++)
		define |= s->sig[k]->define;
	const char *wrong = define ? run_definition(w, m) : run_sig(w->r.n, s, m, w->in, w->out, sum, &a);
	if (wrong)
		say(w, s, m, wrong);
	arena_free(&a);
	diag_reset();
	return !wrong;
}

static Mesh mesh_like(int ndim, int a, int b)
{
	Mesh m = { .name = name_of("m"), .ndim = ndim, .dim = { a, b }, .nrank = ndim == 1 ? a : a * b };
	return m;
}

static int signatures(Whole *w, bool *good)
{
	static const int pair[][2] = { { 2, 2 }, { 3, 2 }, { 2, 4 } };
	int n, tried = 0;
	for (int parts = 2; parts <= 4; parts++) {
		Mesh m = mesh_like(1, parts, 1);
		NdSig *list = signatures_product(w->r.n, &m, itself, w->a, &n);
		for (int i = 0; i < n && *good; i++, tried++)
			*good = check(w, &list[i], &m);
	}
	for (int k = 0; k < 3 && *good; k++) {
		Mesh m = mesh_like(2, pair[k][0], pair[k][1]);
		NdSig *list = signatures_product(w->r.n, &m, itself, w->a, &n);
		for (int i = 0; i < 8 && *good; i++, tried++)
			*good = check(w, &list[(int)uniform(0, n)], &m);
	}
	return tried;
}

/* Results whose length depends on the contents of operands are made whole, and never planned for. */
static bool known(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && type_elements(n->out[i]->type) < 0)
			return false;
	return true;
}

static void walk(const Op *op)
{
	const char *p = op->test;
	int variant = 0, tried = 0;
	bool good = true;
	while (p && *p && good) {
		Case c;
		Whole w;
		Arena a = { 0 };
		Tensor *t[MAXIN] = { 0 };
		const char *next = read_case(&c, op, p, &a);
		if (!next)
			return;
		p = *next == '|' ? next + 1 : next;
		snprintf(c.title, sizeof c.title, "%s-%d/%d", op->name, op->since, ++variant);
		for (int i = 0; i < c.nin; i++)
			t[i] = c.in[i].given ? make(&c.in[i], &a) : NULL;
		if (whole_case(&w, &c, t, &a)) {        /* else the walk says why */
			if (w.r.g->nnode == 1 && w.r.g->node[0] == w.r.n && known(w.r.n)) {
				factors_run(w.r.g);
				tried += signatures(&w, &good);
			}
			model_free(w.r.m);
		}
		diag_reset();
		arena_free(&a);
	}
	if (good)
		printf("ok %s-%d: %d\n", op->name, op->since, tried);
}

int main(int argc, char **argv)
{
	language_init();
	for (int i = 0, n = op_count(); i < n; i++) {
		const Op *op = op_at(i);
		int status = 0;
		bool core = op->eval || op->expr || op->composite;
		if (!core || op->moves || (argc > 1 && strcmp(argv[1], op->name)))
			continue;
		if (!op->test)
			printf("not ok %s-%d: it has no test\n", op->name, op->since);
		else if (!op->factors && !op->factor_fn && !op->unsplit)
			printf("not ok %s-%d: nothing is said of its axes\n", op->name, op->since);
		fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			walk(op);
			fflush(NULL);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
			printf("not ok %s-%d: the check crashed (status %d)\n", op->name, op->since, status);
	}
	return 0;
}
