/* Shards: which elements of a value each rank holds, and how many bytes they take. */
#include "schedule/schedule.h"

#include <string.h>

Slot *slot_of(const Plan *p, const Value *v)
{
	return v && v->id < p->nslot ? p->slot[v->id] : NULL;
}

const Form *slot_form(const Plan *p, const Slot *s)
{
	return &p->forms->form[s->form];
}

static void lengths(const Plan *p, const Slot *s, int rank, int64_t *len)
{
	const Form *f = slot_form(p, s);
	int index = form_index(f, rank);
	memset(len, 0, FORM_AXES * sizeof *len);
	if (index >= 0)
		form_lengths(f, index, len);
}

int64_t slot_len(const Plan *p, const Slot *s, int axis, int rank)
{
	int64_t len[FORM_AXES];
	lengths(p, s, rank, len);
	return len[axis];
}

void slot_begin(const Plan *p, const Slot *s, int rank, int64_t *at)
{
	const Form *f = slot_form(p, s);
	int index = form_index(f, rank);
	FormShard shard;
	memset(at, 0, FORM_AXES * sizeof *at);
	if (index < 0)
		return;
	if (form_shard(f, index, &shard))
		transfer_no_room();
	for (int a = 0; a < f->naxis; a++)
		at[a] = shard.axis[a].n ? shard.axis[a].run[0].at : 0;
	form_shard_free(&shard);
}

int64_t slot_elements(const Plan *p, const Slot *s, int rank)
{
	int64_t len[FORM_AXES], n = form_index(slot_form(p, s), rank) >= 0;
	lengths(p, s, rank, len);
	for (int a = 0; a < s->ndim; a++)
		n *= len[a];
	return n;
}

bool slot_cut(const Plan *p, const Slot *s)
{
	const Form *f = slot_form(p, s);
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_S && f->mesh[k] > 1)
			return true;
	return form_nrank(f) != p->world->nrank;
}

static bool same_cut(const FormCut *a, const FormCut *b)
{
	return a->axis == b->axis && a->len == b->len && a->inner == b->inner && form_reach_same(a->reach, b->reach);
}

/* terms: P counts as B, because a rank holds the same number of elements. */
bool slot_same_form(const Form *a, const Form *b, bool terms)
{
	if (a->ndim != b->ndim || a->first != b->first || a->rank != b->rank || a->naxis != b->naxis ||
		memcmp(a->dim, b->dim, (size_t)a->naxis * sizeof *a->dim) ||
	    memcmp(a->mesh, b->mesh, (size_t)a->ndim * sizeof *a->mesh))
		return false;
	for (int k = 0; k < a->ndim; k++) {
		const FormCut *x = &a->cut[k], *y = &b->cut[k];
		bool split = x->kind == FORM_S || y->kind == FORM_S;
		if (split && (x->kind != y->kind || !same_cut(x, y)))
			return false;
		if (!split && !terms && (x->kind != y->kind || x->reduce != y->reduce))
			return false;
	}
	return true;
}

bool slot_alike(const Plan *p, const Slot *a, const Slot *b)
{
	return a->form == b->form || slot_same_form(slot_form(p, a), slot_form(p, b), true);
}

bool slot_kept(const Slot *s)
{
	return s->keep == KEEP_PARAM || s->keep == KEEP_STATE || s->keep == KEEP_CONST;
}

int64_t slot_room(const Slot *s)
{
	return s->copies > 1 ? s->copies * memplan_aligned(s->bytes) : s->bytes;
}

int64_t slot_bytes(Slot *const *list, int n)
{
	int64_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += list[i] ? list[i]->bytes : 0;
	return sum;
}

Slot *slot_value(Slot *s)
{
	while (s->view)
		s = s->view;
	return s;
}
