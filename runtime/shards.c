/* The shard that a rank holds of a tensor.  The program has a table of forms (form.h).  The shards of this rank are
 * computed once, at the start; functions that fill, read or save a tensor iterate over the rows of its shard. */
#include "comm.h"

#include <stdlib.h>

int rt_shards_open(Ctx *c)
{
	const RtProgram *p = c->program;
	c->shard_of = calloc((size_t)p->nform + 1, sizeof *c->shard_of);
	if (!c->shard_of)
		return rt_error(c, RT_MEMORY, "no memory");
	for (int i = 0; i < p->nform; i++) {
		int index = form_index(&p->form[i], c->rank);
		c->shard_of[i].naxis = p->form[i].naxis;
		if (index >= 0 && form_shard(&p->form[i], index, &c->shard_of[i]))
			return rt_error(c, RT_MEMORY, "no memory");
	}
	return rt_routes_open(c);
}

void rt_shards_close(Ctx *c)
{
	rt_routes_close(c);
	for (int i = 0; c->shard_of && i < c->program->nform; i++)
		form_shard_free(&c->shard_of[i]);
	free(c->shard_of);
	c->shard_of = NULL;
}

static bool holds(const Ctx *c, int form)
{
	return form_index(&c->program->form[form - 1], c->rank) >= 0;
}

static int64_t all_elements(const RtTensor *t)
{
	int64_t n = 1;
	for (int a = 0; a < t->naxis; a++)
		n *= t->dim[a];
	return n;
}

int64_t rt_elements(const Ctx *c, const RtTensor *t)
{
	if (!t->form)
		return all_elements(t);
	return holds(c, t->form) ? form_elements(&c->shard_of[t->form - 1]) : 0;
}

size_t rt_bytes(const Ctx *c, const RtTensor *t)
{
	return (size_t)rt_elements(c, t) * rt_width(t->type);
}

int64_t rt_origin(const Ctx *c, int form, int axis)
{
	const FormAxis *x = form ? &c->shard_of[form - 1].axis[axis] : NULL;
	return x && x->n ? x->run[0].at : 0;
}

void *rt_address(const Ctx *c, const RtTensor *t)
{
	return (t->window ? c->window : c->slab) + t->offset + (t->copies > 1 ? c->piece % t->copies * t->place : 0);
}

RtValue rt_about(const Ctx *c, int value)
{
	const RtProgram *p = c->program;
	if (value < p->nkept) {
		const RtTensor *t = &p->kept[value].t;
		return (RtValue){ .name = t->name, .type = t->type, .form = t->form, .window = t->window,
			.offset = t->offset, .bytes = (int64_t)rt_bytes(c, t) };
	}
	RtValue v = p->value[value - p->nkept];
	if (v.form)
		v.bytes = form_elements(&c->shard_of[v.form - 1]) * (int64_t)rt_width(v.type);
	return v;
}

/* ---- rows ---- */

/* Walks rows lo .. hi - 1 of a shard; a row is what it holds along the last axis, one run or several.  The axes before
 * it are counted like the digits of a number: digit a is index k[a] of run at[a]. */
static void walk(const FormShard *p, const int64_t *dim, int64_t lo, int64_t hi, RtRow *row, void *arg)
{
	int last = p->naxis - 1, at[RT_AXES];
	int64_t k[RT_AXES], rest = lo;
	for (int a = last - 1; a >= 0; a--) {
		k[a] = rest % p->axis[a].len;
		rest /= p->axis[a].len;
		for (at[a] = 0; k[a] >= p->axis[a].run[at[a]].len; at[a]++)
			k[a] -= p->axis[a].run[at[a]].len;
	}
	for (int64_t i = lo; i < hi; i++) {
		int64_t here = i * p->axis[last].len, there = 0;
		for (int a = 0; a < last; a++)
			there = (there + p->axis[a].run[at[a]].at + k[a]) * dim[a + 1];
		for (int r = 0; r < p->axis[last].n; r++) {
			row(arg, here, there + p->axis[last].run[r].at, p->axis[last].run[r].len);
			here += p->axis[last].run[r].len;
		}
		for (int a = last - 1; a >= 0; a--) {
			if (++k[a] < p->axis[a].run[at[a]].len)
				break;
			k[a] = 0;
			if (++at[a] < p->axis[a].n)
				break;
			at[a] = 0;
		}
	}
}

void rt_shard_rows(const FormShard *p, const int64_t *dim, RtRow *row, void *arg)
{
	int64_t n = form_elements(p);
	if (n && !p->naxis)
		row(arg, 0, 0, 1);
	else if (n)
		walk(p, dim, 0, n / p->axis[p->naxis - 1].len, row, arg);
}

void rt_rows(const Ctx *c, const RtTensor *t, RtRow *row, void *arg)
{
	int64_t n = rt_elements(c, t);
	if (n && t->form)
		rt_shard_rows(&c->shard_of[t->form - 1], t->dim, row, arg);
	else if (n)
		row(arg, 0, 0, n);              /* the full logical tensor */
}

typedef struct Rows { const FormShard *p; const int64_t *dim; RtRow *row; void *arg; } Rows;

static void some_rows(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Rows *r = arg;
	(void)thread;
	walk(r->p, r->dim, lo, hi, r->row, r->arg);
}

static void some_of_all(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Rows *r = arg;
	(void)thread;
	r->row(r->arg, lo, lo, hi - lo);
}

void rt_rows_threaded(Ctx *c, const RtTensor *t, RtRow *row, void *arg)
{
	enum { GRAIN = 1 << 14 };
	int64_t n = rt_elements(c, t);
	Rows r = { t->form ? &c->shard_of[t->form - 1] : NULL, t->dim, row, arg };
	if (!n)
		return;
	if (!t->form || !t->naxis) {
		rt_parallel(c, n, GRAIN, some_of_all, &r);
		return;
	}
	int64_t width = r.p->axis[t->naxis - 1].len;
	rt_parallel(c, n / width, 1 + GRAIN / width, some_rows, &r);
}

/* ---- other ranks ---- */

Form rt_form_of(const RtProgram *p, const RtTensor *t)
{
	Form f = { .naxis = t->naxis };
	for (int a = 0; a < t->naxis; a++)
		f.dim[a] = t->dim[a];
	return t->form ? p->form[t->form - 1] : f;
}

int rt_shard_on(const RtProgram *p, int rank, const RtTensor *t, FormShard *shard)
{
	Form f = rt_form_of(p, t);
	int index = t->form ? form_index(&f, rank) : 0;
	*shard = (FormShard){ .naxis = t->naxis };
	return index < 0 ? 0 : form_shard(&f, index, shard);
}

int64_t rt_elements_on(const RtProgram *p, int rank, const RtTensor *t)
{
	Form f = rt_form_of(p, t);
	int64_t len[RT_AXES], n = 1;
	int index = t->form ? form_index(&f, rank) : 0;
	if (index < 0)
		return 0;
	form_lengths(&f, index, len);
	for (int a = 0; a < t->naxis; a++)
		n *= len[a];
	return n;
}

bool rt_form_first(const Form *f, int rank, bool terms)
{
	int coord[FORM_MESH], index = f->ndim ? form_index(f, rank) : rank;
	bool first = index >= 0;
	if (!f->ndim)
		return !rank;
	if (first)
		form_coord(f, index, coord);
	for (int k = 0; k < f->ndim && first; k++)
		first = f->cut[k].kind == FORM_S || (terms && f->cut[k].kind == FORM_P) || !coord[k];
	return first;
}

bool rt_first_on(const RtProgram *p, int rank, const RtTensor *t)
{
	Form f = rt_form_of(p, t);
	return t->form ? rt_form_first(&f, rank, false) : !rank;
}
