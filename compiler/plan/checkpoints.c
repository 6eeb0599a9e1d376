/* Which nodes the backward pass computes again, so that a rank fits into its memory.
 *
 * The forward pass of each stage is a chain.  It is cut where the fewest bytes go from one piece to the next, and each
 * piece is a block: its time, the bytes that the backward pass reads of it, times the micro-batches in flight, and the
 * bytes that later blocks read (solve/chain.c chooses).  Stages of one rank are one chain, because they share its
 * memory.  It is decided after the backward pass has been built, because only then is it known which values that pass
 * reads, and before copies of nodes are made (train/recompute.c).
 *
 * Bytes are of whole values, without weights and workspace: they put the choices in order, and trials of the whole
 * compiler find the choice that fits (compiler/trials.c).  Nodes with @recompute are not touched, those with @keep are
 * never chosen. */
#include "plan/plan.h"
#include "solve/solve.h"

#include <math.h>
#include <string.h>

typedef struct Checks {
	Graph *g;
	bool *forward;                  /* by node: the loss depends on it, and it runs in every micro-batch */
	bool *late, *weights;           /* by value: the backward pass reads it; gradients of weights do */
	int *last;                      /* by value: the last node of the forward pass that reads it; -1: none */
	int *block;                     /* by node: of the chain; -1: none */
	Node ***node; int *nnode;       /* by block */
	ChainBlock *b; int n;
} Checks;

static double bytes_of(const Value *v)
{
	int64_t n = v && v->type ? type_elements(v->type) : 0;
	return n > 0 ? (double)n * dtype_bits(v->type->elem) / 8 : 0;
}

static bool local(const Checks *c, const Value *v)
{
	return v && v->graph == c->g && v->def;
}

static void find_readers(Checks *c, const Value *loss)
{
	Graph *g = c->g;
	bool *on = arena_array(g->scratch, bool, g->nvalue + 1);
	on[loss->id] = true;
	for (int i = 0; i < g->nvalue; i++)
		c->last[i] = -1;
	for (int i = g->nnode; i-- > 0;) {
		Node *n = g->node[i];
		const Annot *half = annot_find(n->annot, "backward");
		bool leads = false;
		n->mark = i;
		for (int k = 0; k < n->nout; k++)
			leads |= n->out[k] && on[n->out[k]->id];
		for (int k = 0; k < n->nin; k++) {
			if (!local(c, n->in[k]))
				continue;
			int v = n->in[k]->id;
			on[v] |= leads;
			c->last[v] = leads && c->last[v] < i ? i : c->last[v];
			c->late[v] |= !leads && half;
			c->weights[v] |= half && !strcmp(half->arg->s, "W");
		}
		c->forward[i] = leads && !microbatch_begins(n) && !microbatch_updates(n) && !n->row->moves;
	}
}

/* Bytes that go on from each of the listed nodes to later nodes of the forward pass. */
static double *crossing(const Checks *c, Node **list, int n)
{
	double *bytes = arena_array(c->g->scratch, double, n + 2);
	int *at = arena_array(c->g->scratch, int, c->g->nnode + 1);
	for (int i = 0, k = 0; i < c->g->nnode; i++) {
		at[i] = k;
		k += k < n && list[k] == c->g->node[i];
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < list[i]->nout; k++) {
			const Value *v = list[i]->out[k];
			if (!v || c->last[v->id] <= list[i]->mark)
				continue;
			bytes[i] += bytes_of(v);
			bytes[at[c->last[v->id]]] -= at[c->last[v->id]] > i ? bytes_of(v) : 0;
		}
	for (int i = 1; i < n; i++)
		bytes[i] += bytes[i - 1];
	return bytes;
}

static void add_to(Checks *c, Node *n, double micros)
{
	ChainBlock *b = &c->b[c->n - 1];
	c->block[n->mark] = c->n - 1;
	b->seconds += micros * cost_node(n, 1);
	b->pin = annot_find(n->annot, "keep") || annot_find(n->annot, "recompute") ? CHAIN_KEEP : b->pin;
	arena_push(c->g->scratch, c->node[c->n - 1], c->nnode[c->n - 1], n);
}

/* The blocks of one stage: a cut is where fewer bytes go on than at the nodes around it. */
static void cut(Checks *c, int stage, double micros)
{
	enum { NEAR = 4 };
	Node **list = NULL;
	int n = 0;
	for (int i = 0; i < c->g->nnode; i++)
		if (c->forward[i] && (stage < 0 || c->g->node[i]->stage == stage))
			arena_push(c->g->scratch, list, n, c->g->node[i]);
	const double *bytes = n ? crossing(c, list, n) : NULL;
	bool open = false;
	for (int i = 0; i < n; i++) {
		const Annot *a = list[i]->annot;
		bool least = true, pinned = annot_find(a, "keep") || annot_find(a, "recompute");
		if (!open || (pinned != (c->b[c->n - 1].pin == CHAIN_KEEP))) {
			c->b[c->n] = (ChainBlock){ .first = !i };
			c->n++;
		}
		add_to(c, list[i], micros);
		for (int k = i - NEAR; k <= i + NEAR; k++)
			least &= k < 0 || k >= n || (k < i ? bytes[i] <= bytes[k] : bytes[i] < bytes[k] || k == i);
		open = !least;
	}
}

/* The bytes of each block: values that later blocks read, and values that only its backward pass reads. */
static void weigh(Checks *c, const InFlight *flight)
{
	Graph *g = c->g;
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		ChainBlock *b = c->block[i] >= 0 ? &c->b[c->block[i]] : NULL;
		for (int k = 0; b && k < n->nout; k++) {
			const Value *v = n->out[k];
			if (!v || (!c->late[v->id] && c->last[v->id] < 0))
				continue;
			double bytes = bytes_of(v), copies = 1, again = 1;
			if (flight && n->stage >= 0) {
				copies = c->weights[v->id] ? flight[n->stage].f_w : flight[n->stage].f_b;
				again = c->weights[v->id] ? flight[n->stage].b_w : 1;
			}
			bool out = c->last[v->id] >= 0 && c->block[c->last[v->id]] != c->block[i];
			if (out)
				b->out += copies * bytes;
			else if (c->late[v->id])
				b->kept += copies * bytes;
			if (out || c->late[v->id])
				b->again += again * bytes;
			else
				b->work += bytes;
		}
	}
}

static bool open_checks(Graph *g, Checks *c)
{
	const Plan *p = g->model->plan;
	*c = (Checks){ .g = g };
	if (!p->training || !p->train.loss)
		return false;
	c->forward = arena_array(g->scratch, bool, g->nnode + 1);
	c->late = arena_array(g->scratch, bool, g->nvalue + 1);
	c->weights = arena_array(g->scratch, bool, g->nvalue + 1);
	c->last = arena_array(g->scratch, int, g->nvalue + 1);
	c->block = arena_array(g->scratch, int, g->nnode + 1);
	c->b = arena_array(g->scratch, ChainBlock, g->nnode + 1);
	c->node = arena_array(g->scratch, Node **, g->nnode + 1);
	c->nnode = arena_array(g->scratch, int, g->nnode + 1);
	for (int i = 0; i < g->nnode; i++)
		c->block[i] = -1;
	find_readers(c, p->train.loss);
	return true;
}

static void mark_segment(const Checks *c, const int *segment, int from, int number, Checkpoints *to)
{
	Graph *g = c->g;
	int n = 0;
	while (from + n < c->n && segment[n] == segment[0])
		n++;
	for (int b = from; b < from + n; b++)
		for (int i = 0; i < c->nnode[b]; i++) {
			Annot *a = arena_new(g->arena, Annot);
			a->name = name_of("recompute");
			arena_push(g->arena, a->arg, a->narg, ((Arg){ .kind = ARG_INT, .i = number, .f = number }));
			if (annot_check(a, ON_NODE))
				die("@recompute is refused");
			annot_add(&c->node[b][i]->annot, a);
		}
	const Node *first = c->node[from][0], *last = c->node[from + n - 1][c->nnode[from + n - 1] - 1];
	to->names = arena_printf(g->arena, "%s%s%s .. %s", to->names, *to->names ? ", " : "", first->out[0]->name,
		last->out[0]->name);
}

/* One rank: the blocks from .. from + n - 1. */
static void choose(Checks *c, int from, int n, double limit, int *number, Checkpoints *to)
{
	const ChainBlock *b = c->b + from;
	int *none = arena_array(c->g->scratch, int, n + 1);
	ChainResult r;
	double most = chain_peak(b, n, none), low = 0, high = most;
	for (int i = 0; i < 12; i++) {
		double mid = (low + high) / 2;
		*(chain_solve(b, n, mid, c->g->scratch, &r) ? &high : &low) = mid;
	}
	to->most = fmax(to->most, most);
	to->least = fmax(to->least, high);
	if (!limit || most <= limit) {
		to->bytes = limit ? fmax(to->bytes, most) : 0;
		return;
	}
	if (!chain_solve(b, n, fmax(limit, high), c->g->scratch, &r))
		return;
	to->bytes = fmax(to->bytes, chain_peak(b, n, r.segment));
	to->seconds = fmax(to->seconds, r.seconds);
	for (int i = 0; i < n; i++)
		if (r.segment[i] && (!i || r.segment[i] != r.segment[i - 1]))
			mark_segment(c, r.segment + i, from + i, ++*number, to);
}

void checkpoints_choose(Graph *g, double limit, Checkpoints *to)
{
	Stages *s = g->model->plan->stages;
	int64_t micros = g->model->plan->train.microbatches;
	Checks c;
	*to = (Checkpoints){ .names = "" };
	if (!open_checks(g, &c))
		return;
	int ranks = s ? s->pipe.nrank : 1, stages = s ? s->pipe.nstage : 1, number = 0;
	int *from = arena_array(g->scratch, int, ranks + 1);
	for (int r = 0; r < ranks; r++) {
		for (int i = 0; i < stages; i++)
			if (!s || s->pipe.stage[i].rank == r)
				cut(&c, s ? i : -1, micros > 1 ? (double)micros : 1);
		from[r + 1] = c.n;
	}
	weigh(&c, s ? in_flight_find(s, g->arena, g->scratch) : NULL);
	for (int r = 0; r < ranks; r++)
		if (from[r + 1] > from[r])
			choose(&c, from[r], from[r + 1] - from[r], limit, &number, to);
}
