/* The call that adds squares and scalars: of one SumSquare, or of a group (schedule/fuse.c).
 *
 * A value of a group is a sum of terms, added in order.  A term is the operand of a SumSquare, which counts on one
 * rank only if a zero_fill follows, or a number that another action has made.  A result with memory is the end of a
 * sum; what reads it in the group reads its memory. */
#include "calls.h"

#include <inttypes.h>
#include <string.h>

typedef struct Term { const char *x, *n; int64_t parts; } Term;
/* The value of a node: the sum of `left`, if there is one, and of a term. */
typedef struct Sum Sum;
struct Sum { const Sum *left; Term term; };

typedef struct Sums {
	const Print *p;
	Sum *sum;                       /* by node of the group */
	Text y, terms, x, n, parts;     /* the lists of the call */
	int count;
	int64_t blocks;
	bool chunks;
} Sums;

static Term square(Sums *s, Node *n)
{
	Print of = *s->p;
	of.n = of.whole = n;
	Shape x = args_in(&of, 0);
	int64_t len = loops_count(&x), parts = len ? args_chunks(&of, "squares") : 1;
	s->blocks += k_square_blocks(len, parts);
	return (Term){ statement_param(s->p, slot_of(s->p->e->plan, n->in[0]), false),
		arena_printf(s->p->e->tree.arena, "%" PRId64, len), parts };
}

/* Memory is read as it is. */
static Term plain(const Sums *s, const Slot *x)
{
	bool own = false;
	for (int i = 0; i < s->p->a->nmake; i++)
		own |= s->p->a->make[i] == x;
	return (Term){ statement_param(s->p, x, own), "K_PLAIN", 1 };
}

/* The sum that an operand is. */
static Sum operand_sum(const Sums *s, const Value *v)
{
	const Slot *x = slot_of(s->p->e->plan, v);
	const Group *grp = s->p->a->sums;
	for (int i = 0; i < grp->nnode && !x; i++)
		if (grp->node[i]->out[0] == v)
			return s->sum[i];
	return (Sum){ .term = plain(s, x) };
}

static Sum *sum_copy(const Sums *s, Sum x)
{
	Sum *y = arena_new(s->p->e->tree.arena, Sum);
	*y = x;
	return y;
}

/* One of the operands is a single term. */
static Sum plus(const Sums *s, const Node *n)
{
	Sum a = operand_sum(s, n->in[0]), b = operand_sum(s, n->in[1]);
	if (a.left && b.left)
		die("%s adds two sums of several terms", n->out[0]->name);
	return b.left ? (Sum){ sum_copy(s, b), a.term } : (Sum){ sum_copy(s, a), b.term };
}

static Sum filled(const Sums *s, const Node *n, const Fill *f)
{
	Sum x = operand_sum(s, n->in[0]);
	x.term.n = arena_printf(s->p->e->tree.arena, "rt_mine(c, %d) ? %s : 0", calls_move(s->p->e, f->from, f->to, -1),
		x.term.n);
	return x;
}

static int print_terms(Sums *s, const Sum *x)
{
	int n = x->left ? print_terms(s, x->left) : 0;
	text_add(&s->x, "%s %s", s->x.n ? "," : "", x->term.x);
	text_add(&s->n, "%s %s", s->n.n ? "," : "", x->term.n);
	text_add(&s->parts, "%s %" PRId64, s->parts.n ? "," : "", x->term.parts);
	s->chunks |= x->term.parts > 1;
	return n + 1;
}

/* The sum ends in memory. */
static void print_sum(Sums *s, const Slot *y, const Sum *x)
{
	const char *comma = s->count++ ? "," : "";
	text_add(&s->y, "%s %s", comma, statement_param(s->p, y, true));
	text_add(&s->terms, "%s %d", comma, print_terms(s, x));
}

static void print_call(Sums *s)
{
	Text *t = s->p->t;
	text_add(t, "k_sum_squares_f32(c, &(const KSums){ .count = %d, .y = (float *const[]){%s }", s->count, s->y.s);
	text_add(t, ", .terms = (const int64_t[]){%s }, .x = (const float *const[]){%s }", s->terms.s, s->x.s);
	text_add(t, ", .n = (const int64_t[]){%s }", s->n.s);
	if (s->chunks)
		text_add(t, ", .parts = (const int64_t[]){%s }", s->parts.s);
	text_add(t, " })");
	args_need(s->p, k_work_squares(s->blocks));
	statement_file(s->p->e, "squares");
}

static void call_sum_square(const Print *p)
{
	Sums s = { .p = p };
	Sum x = { .term = square(&s, p->n) };
	print_sum(&s, p->make[0], &x);
	print_call(&s);
}

void squares_group(const Print *p)
{
	const Group *grp = p->a->sums;
	Sums s = { .p = p, .sum = arena_array(p->e->tree.arena, Sum, grp->nnode + 1) };
	for (int i = 0, fill = 0; i < grp->nnode; i++) {
		Node *n = grp->node[i];
		if (kernel_transfer(n))
			s.sum[i] = filled(&s, n, &grp->fill[fill++]);
		else if (n->row->kernel)
			s.sum[i] = (Sum){ .term = square(&s, n) };
		else
			s.sum[i] = plus(&s, n);
		if (slot_of(p->e->plan, n->out[0]))
			print_sum(&s, slot_of(p->e->plan, n->out[0]), &s.sum[i]);
	}
	print_call(&s);
}

const Call squares_calls[] = {
	{ "sum_square", "squares", call_sum_square, false },
	{ 0 },
};
