/* SBP signatures, and the choice of one for each node.
 *
 * On one mesh axis a value is split along an axis of its own (S), whole on every rank (B), or a sum of one term per rank
 * (P).  The legal signatures of a node follow from its factor rule: splitting a factor splits every operand and result
 * that has it and makes the results that lack it partial; a linear operand lets P through.
 *
 * The choice is made in the order of the graph: inputs are split along the batch, parameters and constants are whole,
 * pins are what they are, and each node takes the signature whose transfers and work cost least given its operands. */
#include "compiler.h"

#include <stdlib.h>
#include <string.h>

bool sbp_equal(const Sbp *a, const Sbp *b, int ndim)
{
	for (int i = 0; i < ndim; i++)
		if (a[i].kind != b[i].kind || (a[i].kind == SBP_S && (a[i].axis != b[i].axis || a[i].leaf != b[i].leaf || a[i].before != b[i].before || a[i].after != b[i].after)) || (a[i].kind == SBP_P && a[i].red != b[i].red))
			return false;
	return true;
}

const char *sbp_text(const Sbp *s, int ndim)
{
	static char ring[8][64];
	static int next;
	static const char *const red[] = { [RED_SUM] = "P", [RED_MAX] = "P(max)", [RED_MIN] = "P(min)", [RED_PROD] = "P(prod)" };
	char *t = ring[next++ % 8];
	size_t n = 0;
	t[0] = 0;
	for (int i = 0; i < ndim && n < 48; i++) {
		if (i)
			n += (size_t)snprintf(t + n, 64 - n, " ");
		if (s[i].kind == SBP_S && s[i].leaf)
			n += (size_t)snprintf(t + n, 64 - n, "S(%d/%d)", s[i].axis, s[i].leaf - 1);
		else if (s[i].kind == SBP_S)
			n += (size_t)snprintf(t + n, 64 - n, "S(%d)", s[i].axis);
		else
			n += (size_t)snprintf(t + n, 64 - n, "%s", s[i].kind == SBP_B ? "B" : red[s[i].red]);
	}
	return t;
}

Form sbp_form(const Value *v, const Sbp *s, const Mesh *m)
{
	Form f = { .ndim = m->ndim, .rank = m->rank, .naxis = v->type->rank };
	for (int a = 0; a < f.naxis; a++)
		f.dim[a] = v->type->dim[a];
	for (int k = 0; k < m->ndim; k++) {
		f.mesh[k] = m->dim[k];
		FormCut *c = &f.cut[k];
		c->kind = (int8_t)(s[k].kind == SBP_S ? FORM_S : s[k].kind == SBP_B ? FORM_B : FORM_P);
		c->reduce = (int8_t)s[k].red;
		if (s[k].kind != SBP_S)
			continue;
		c->axis = (int8_t)s[k].axis;
		c->len = f.dim[s[k].axis];
		c->inner = 1;
		c->before = s[k].before;
		c->after = s[k].after;
		if (!s[k].leaf)
			continue;
		const struct FactorAxis *x = &v->factors->axis[s[k].axis];
		c->len = v->graph->factor[x->factor[s[k].leaf - 1]];
		for (int i = s[k].leaf; i < x->n; i++)
			c->inner *= v->graph->factor[x->factor[i]];
	}
	return f;
}

/* ---- signatures ---- */

static Sig *new_sig(Node *n, Arena *a, Sig **list, int *count)
{
	Sig s = { arena_array(a, Sbp, n->nin + 1), arena_array(a, Sbp, n->nout + 1) };
	arena_push(a, *list, *count, s);
	return &(*list)[*count - 1];
}

/* The axis of a row that has factor f: -1 none, -2 several. */
static int axis_of(const int *row, int rank, int f)
{
	int axis = -1;
	for (int a = 0; row && a < rank; a++)
		if (row[a] == f)
			axis = axis == -1 ? a : -2;
	return axis;
}

static bool floating(const Value *v)
{
	return v->type && dtype_is_float(v->type->elem);
}

/* Splitting factor f, when every operand and result allows it. */
static bool split_factor(Node *n, const FactorRule *r, int f, Sig *s)
{
	for (int i = 0; i < n->nin; i++) {
		int axis = n->in[i] ? axis_of(r->in[i], n->in[i]->type->rank, f) : -1;
		if (axis == -2)
			return false;
		if (axis >= 0)
			s->in[i] = (Sbp){ .kind = SBP_S, .axis = axis };
	}
	for (int i = 0; i < n->nout; i++) {
		int axis = n->out[i] ? axis_of(r->out[i], n->out[i]->type->rank, f) : -1;
		if (axis == -2 || (axis == -1 && n->out[i] && !floating(n->out[i])))
			return false;
		s->out[i] = axis >= 0 ? (Sbp){ .kind = SBP_S, .axis = axis } : (Sbp){ .kind = SBP_P, .red = r->red };
	}
	return true;
}

static bool ranked(const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && (!n->in[i]->type || n->in[i]->type->rank < 0))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && (!n->out[i]->type || n->out[i]->type->rank < 0))
			return false;
	return true;
}

Sig *sbp_signatures(Node *n, int parts, Arena *a, int *count)
{
	Sig *list = NULL;
	*count = 0;
	new_sig(n, a, &list, count);
	if (parts == 1 || !ranked(n))
		return list;
	const FactorRule *r = factor_rule(n, a);
	for (int f = 0; r && f < r->nfactor; f++) {
		if (r->len[f] < parts)          /* an empty shard: never better */
			continue;
		new_sig(n, a, &list, count);
		if (!split_factor(n, r, f, &list[*count - 1]))
			(*count)--;
	}
	if (!strcmp(n->op, "Zeros")) {          /* any part of it, and any term of it, is zero */
		for (int k = 0; k < n->out[0]->type->rank; k++)
			new_sig(n, a, &list, count)->out[0] = (Sbp){ .kind = SBP_S, .axis = k };
		new_sig(n, a, &list, count)->out[0] = (Sbp){ .kind = SBP_P };
	}
	int *group = arena_array(a, int, n->nin + 1), most = 0;
	factor_linear(n, group);
	for (int i = 0; i < n->nin; i++)
		most = group[i] > most ? group[i] : most;
	for (int k = 1; k <= most; k++) {
		Sig *s = new_sig(n, a, &list, count);
		for (int i = 0; i < n->nin; i++)
			s->in[i].kind = group[i] == k ? SBP_P : SBP_B;
		for (int i = 0; i < n->nout; i++)
			s->out[i].kind = SBP_P;
	}
	return list;
}

/* ---- pins ---- */

static int read_sbp(const Arg *a, const Value *v, Sbp *out)
{
	int rank = v->type ? v->type->rank : -1;
	if (!strcmp(a->s ? a->s : "", "B")) {
		*out = (Sbp){ .kind = SBP_B };
	} else if (!strcmp(a->s ? a->s : "", "P")) {
		*out = (Sbp){ .kind = SBP_P };
		if (a->narg && a->arg[0].s && strcmp(a->arg[0].s, "sum")) {
			err_at(a->loc, "this back end has P(sum) only");
			return -1;
		}
	} else if (!strcmp(a->s ? a->s : "", "S") && a->narg == 1 && a->arg[0].kind == ARG_INT) {
		int64_t axis = a->arg[0].i;
		if (axis < 0 || axis >= rank) {
			err_at(a->loc, "%s cannot be split along axis %lld: it is %s", v->name, (long long)axis, type_text(v->type));
			return -1;
		}
		*out = (Sbp){ .kind = SBP_S, .axis = (int)axis };
	} else {
		err_at(a->loc, "an SBP is S(AXIS), B or P");
		return -1;
	}
	return 0;
}

/* 1: v is pinned; 0: not; -1 after explaining. */
static int pin_of(Graph *g, Value *v, const Mesh *m)
{
	const Annot *a = annot_find(v->annot, "sbp");
	if (!a)
		return 0;
	if (a->narg != m->ndim) {
		err_at(a->loc, "mesh %s has %d axes, but %d SBPs are given for %s", m->name, m->ndim, a->narg, v->name);
		return -1;
	}
	v->sbp = arena_array(g->arena, Sbp, m->ndim);
	for (int i = 0; i < m->ndim; i++)
		if (read_sbp(&a->arg[i], v, &v->sbp[i]))
			return -1;
	return 1;
}

/* Writes what was chosen as an annotation. */
void sbp_note(Graph *g, Value *v, const Mesh *m)
{
	if (annot_find(v->annot, "sbp"))
		return;
	Annot *a = arena_new(g->arena, Annot);
	a->name = name_of("sbp");
	for (int i = 0; i < m->ndim; i++) {
		Sbp s = v->sbp[i];
		Arg arg = { .kind = s.kind == SBP_S ? ARG_CALL : ARG_WORD, .s = name_of(s.kind == SBP_S ? "S" : s.kind == SBP_B ? "B" : "P") };
		Arg axis = { .kind = ARG_INT, .i = s.axis, .f = s.axis };
		if (s.kind == SBP_S)
			arena_push(g->arena, arg.arg, arg.narg, axis);
		arena_push(g->arena, a->arg, a->narg, arg);
	}
	if (annot_check(a, ON_VALUE))
		die("@sbp of %s is refused", v->name);
	annot_add(&v->annot, a);
}

/* ---- choice ---- */

static int64_t bytes_of(const Value *v)
{
	int64_t n = type_elements(v->type);
	return n < 0 ? 0 : n * dtype_bits(v->type->elem) / 8;
}

/* What it costs to run n by s, given its operands and the results that are settled already. */
static double price(Node *n, const Sig *s, int parts)
{
	bool split = false;
	double t = 0;
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i])
			continue;
		split |= s->in[i].kind == SBP_S;
		double move = cost_box(n->in[i]->sbp, &s->in[i], bytes_of(n->in[i]), parts);
		t += emit_reads(n, i) ? move : 1e-3 * move;     /* only its shape matters: any form will do, its own is neater */
	}
	for (int i = 0; i < n->nout; i++)
		split |= n->out[i] && s->out[i].kind == SBP_S;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && n->out[i]->sbp)
			t += cost_box(&s->out[i], n->out[i]->sbp, bytes_of(n->out[i]), parts);
	return t + cost_node(n, split ? 1.0 / parts : 1.0);
}

Sig *sbp_choose(Node *n, int parts, Arena *a)
{
	int count;
	Sig *list = sbp_signatures(n, parts, a, &count), *best = &list[0];
	double least = price(n, best, parts);
	for (int i = 1; i < count; i++) {
		double t = price(n, &list[i], parts);
		if (t < least) {
			least = t;
			best = &list[i];
		}
	}
	return best;
}

static Sbp *settle(Graph *g, Value *v, Sbp s)
{
	v->sbp = arena_new(g->arena, Sbp);
	*v->sbp = s;
	return v->sbp;
}

/* Inputs are split along the batch, which is the first axis of the first input; all else starts whole. */
static Sbp source(const Graph *g, const Value *v, int parts)
{
	const Type *b = g->nin ? g->in[0]->type : NULL, *t = v->type;
	if (v->input && !v->init && parts > 1 && t && b && t->rank > 0 && b->rank > 0 && t->dim[0] == b->dim[0] && t->dim[0] >= parts)
		return (Sbp){ .kind = SBP_S };
	return (Sbp){ .kind = SBP_B };
}

int sbp_solve(Graph *g, Plan *p)
{
	int parts = p->main->dim[0], bad = 0;
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];
		int pin = pin_of(g, v, p->main);
		bad |= pin < 0;
		if (!pin && !v->def)
			settle(g, v, source(g, v, parts));
	}
	for (int i = 0; i < g->nvalue && !bad; i++)     /* an update lives where the old value lives */
		if (g->value[i]->into && g->value[i]->into->sbp && !g->value[i]->sbp)
			settle(g, g->value[i], *g->value[i]->into->sbp);
	for (int i = 0; i < g->nout && !bad; i++)       /* what is reported is whole */
		if (!g->out[i]->sbp)
			settle(g, g->out[i], (Sbp){ .kind = SBP_B });
	for (int i = 0; i < g->nnode && !bad; i++) {
		Node *n = g->node[i];
		Value *sum = n->nout && n->out[0] && n->out[0]->into && n->nin ? n->in[0] : NULL;
		if (!strcmp(n->op, "Zeros"))
			continue;               /* as what is added to it */
		if (sum && !sum->sbp)
			settle(g, sum, n->out[0]->sbp ? *n->out[0]->sbp : *n->in[1]->sbp);
		Sig *s = sbp_choose(n, parts, g->scratch);
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && !n->out[k]->sbp)
				settle(g, n->out[k], s->out[k]);
	}
	for (int i = 0; i < g->nvalue && !bad; i++)
		if (g->value[i]->def || g->value[i]->init || g->value[i]->input)
			sbp_note(g, g->value[i], p->main);
	return bad ? -1 : 0;
}
