/* The route from one form to another: one transfer, or several through intermediate forms where that takes less time.
 *
 * Partial values are reduced among the ranks that hold them before the rest is sent elsewhere; a slow axis of the mesh
 * is crossed by shards rather than by copies; and where two axes change at once, one after the other may be two
 * collectives instead of single pieces.  Intermediate forms are those on either mesh whose cut along each axis is that
 * of one of the ends, none, or a cut of an axis that neither end cuts.  Dijkstra's algorithm runs over these forms from
 * the destination to the source, with transfer_time as length.  Ties go to the route with fewer transfers, then to the
 * form listed first, so the result is reproducible. */
#include "plan/plan.h"

#include <math.h>
#include <string.h>

enum { STOPS = 600 };                   /* 4 choices along 4 axes, on two meshes, and more than that */

static bool equal_form(const Form *a, const Form *b)
{
	if (a->ndim != b->ndim || a->rank != b->rank || a->first != b->first)
		return false;
	for (int k = 0; k < a->ndim; k++)
		if (a->mesh[k] != b->mesh[k] || !transfer_same_cut(&a->cut[k], &b->cut[k]))
			return false;
	return true;
}

/* The longest axis that neither end cuts; -1: none. */
static int free_axis(const Form *from, const Form *to)
{
	int best = -1;
	for (int a = 0; a < from->naxis; a++) {
		bool cut = from->dim[a] < 2;
		for (int k = 0; k < from->ndim; k++)
			cut |= from->cut[k].kind == FORM_S && from->cut[k].axis == a;
		for (int k = 0; k < to->ndim; k++)
			cut |= to->cut[k].kind == FORM_S && to->cut[k].axis == a;
		if (!cut && (best < 0 || from->dim[a] > from->dim[best]))
			best = a;
	}
	return best;
}

/* Adds a choice; reach is only of destinations, never of intermediate forms. */
static void choose(FormCut *list, int *n, FormCut c)
{
	c.reach = NULL;
	for (int i = 0; i < *n; i++)
		if (transfer_same_cut(&list[i], &c))
			return;
	list[(*n)++] = c;
}

/* Whether two cuts of one axis overlap: a contiguous cut and cuts of its factors, or of factors that are not nested. */
static bool overlap(const FormCut *a, const FormCut *b)
{
	if (a->inner == b->inner)
		return a->len != b->len;
	if (a->inner < b->inner)
		return a->inner * a->len > b->inner;
	return b->inner * b->len > a->inner;
}

/* Whether a form is valid: cuts of one axis do not overlap, and all partial entries have one reduction. */
static bool sound(const Form *f)
{
	for (int k = 0; k < f->ndim; k++)
		for (int j = 0; j < k; j++) {
			const FormCut *a = &f->cut[j], *b = &f->cut[k];
			if (a->kind == FORM_P && b->kind == FORM_P && a->reduce != b->reduce)
				return false;
			if (a->kind == FORM_S && b->kind == FORM_S && a->axis == b->axis && overlap(a, b))
				return false;
		}
	return true;
}

/* Adds the intermediate forms on the mesh of `f` to a list of n; returns its new length. */
static int stops(const Form *f, const Form *other, int spare, Form *list, int n)
{
	FormCut cut[FORM_MESH][8];
	int count[FORM_MESH], at[FORM_MESH] = { 0 }, k;
	bool one_mesh = form_one_mesh(f, other);
	for (k = 0; k < f->ndim; k++) {
		count[k] = 0;
		choose(cut[k], &count[k], f->cut[k]);
		if (f->mesh[k] == 1 || (one_mesh && f->cut[k].kind == FORM_P && other->cut[k].kind == FORM_P))
			continue;               /* partial stays partial */
		if (one_mesh)
			choose(cut[k], &count[k], other->cut[k]);
		for (int j = 0; j < other->ndim && !one_mesh; j++)
			if (other->cut[j].kind == FORM_S)
				choose(cut[k], &count[k], other->cut[j]);
		choose(cut[k], &count[k], (FormCut){ .kind = FORM_B });
		if (spare >= 0)
			choose(cut[k], &count[k], (FormCut){ .kind = FORM_S, .axis = (int8_t)spare,
				.len = f->dim[spare], .inner = 1 });
	}
	for (;;) {
		Form x = *f;
		for (k = 0; k < f->ndim; k++)
			x.cut[k] = cut[k][at[k]];
		bool again = !sound(&x);
		for (int i = 0; i < n && !again; i++)
			again = equal_form(&list[i], &x);
		if (n == STOPS)
			return n;
		if (!again)
			list[n++] = x;
		for (k = f->ndim; k-- > 0 && ++at[k] == count[k];)
			at[k] = 0;
		if (k < 0)
			return n;
	}
}

/* Whether all axes of a mesh have equal links: then a route that moves more than the direct transfer is never
 * better. */
static bool alike(const Form *f)
{
	int first = -1;
	for (int k = 0; k < f->ndim; k++) {
		if (f->mesh[k] == 1)
			continue;
		if (first >= 0 && device.axis[k].latency != device.axis[first].latency)
			return false;
		if (first >= 0 && device.axis[k].bytes != device.axis[first].bytes)
			return false;
		first = k;
	}
	return true;
}

/* Whether no route can be shorter than the direct transfer: nothing is moved, one axis of one mesh changes, or each
 * rank receives only what it lacks over equal links. */
static bool direct(const Transfer *t, const Form *from, const Form *to)
{
	if (t->local)
		return true;
	if (device.nccl || !t->one_mesh)        /* NCCL may do in steps what it cannot do at once: sum, then slice */
		return false;
	bool one_axis = !(t->axes & (t->axes - 1));
	return one_axis || (form_terms(from) == 1 && form_terms(to) == 1 && alike(from));
}

/* With opt.chunks partial values form a tree with the major axis of the mesh at its root, so a minor axis must be
 * reduced before it. */
static bool out_of_turn(const Form *from, const Form *to)
{
	bool left = false;
	for (int k = from->ndim - 1; opt.chunks && k >= 0; k--) {
		if (from->cut[k].kind != FORM_P || from->mesh[k] == 1)
			continue;
		bool stays = k < to->ndim && to->cut[k].kind == FORM_P;
		if (left && !stays)
			return true;
		left |= stays;
	}
	return false;
}

/* A mesh of many axes has too many intermediate forms.  One route is tried beside the direct transfer: it changes one
 * axis after the other, always the cheapest next.  An axis whose change would give an invalid form becomes B first. */
static int one_by_one(const Form *from, const Form *to, int64_t elem_bytes, Form *list, int n)
{
	Form now = *from;
	for (int step = 0; step < 2 * from->ndim; step++) {
		Form best = now;
		double least = INFINITY;
		for (int k = 0; k < from->ndim; k++)
			for (int b = 0; b < 2 && !transfer_same_cut(&now.cut[k], &to->cut[k]); b++) {
				Form x = now;
				x.cut[k] = b ? (FormCut){ .kind = FORM_B } : to->cut[k];
				if (x.cut[k].reach || (x.cut[k].kind == FORM_P && now.cut[k].kind != FORM_P))
					continue;
				if (transfer_same_cut(&x.cut[k], &now.cut[k]) || !sound(&x) || out_of_turn(&now, &x))
					continue;
				double t = transfer_time(transfer_of(&now, &x), &now, &x, elem_bytes);
				if (t < least) {
					least = t;
					best = x;
				}
				break;                  /* B only where the destination's cut is not possible */
			}
		if (least == INFINITY)
			break;
		now = best;
		if (!equal_form(&now, to))
			list[n++] = now;
	}
	return n;
}

/* Whether a hop on one mesh makes a value partial where the destination is not: it would only have to be reduced
 * again. */
static bool in_vain(const Form *from, const Form *to, const Form *end)
{
	for (int k = 0; k < to->ndim; k++)
		if (to->cut[k].kind == FORM_P && from->cut[k].kind != FORM_P && end->cut[k].kind != FORM_P)
			return true;
	return false;
}

static BoxingRoute *search(const Form *from, const Form *to, int64_t elem_bytes)
{
	static Form list[STOPS];
	double far[STOPS];
	int next[STOPS], hops[STOPS], n = 2;
	bool done[STOPS] = { false }, one_mesh = form_one_mesh(from, to);
	int64_t moved[STOPS] = { 0 }, most = INT64_MAX;
	if (alike(from) && alike(to) && !device.nccl)
		most = transfer_of(from, to)->total;
	list[0] = *to;
	list[1] = *from;
	if (!direct(transfer_of(from, to), from, to)) {
		int spare = free_axis(from, to);
		if (one_mesh && mesh_axes_many(from->mesh, from->ndim))
			n = one_by_one(from, to, elem_bytes, list, n);
		else
			n = stops(from, to, spare, list, n);
		if (!one_mesh)
			n = stops(to, from, spare, list, n);
	}
	for (int i = 0; i < n; i++) {
		far[i] = i ? INFINITY : 0;
		hops[i] = 0;
		next[i] = -1;
	}
	for (int at = 0; at != 1;) {
		done[at] = true;
		for (int i = 1; i < n; i++) {
			if (done[i] || far[at] >= far[1] || out_of_turn(&list[i], &list[at]))
				continue;
			if (one_mesh && in_vain(&list[i], &list[at], to))
				continue;
			const Transfer *hop = transfer_of(&list[i], &list[at]);
			double t = far[at] + transfer_time(hop, &list[i], &list[at], elem_bytes);
			int64_t total = moved[at] + hop->total;
			if (total <= most && (t < far[i] || (t <= far[i] && hops[at] + 1 < hops[i]))) {
				far[i] = t;
				moved[i] = total;
				hops[i] = hops[at] + 1;
				next[i] = at;
			}
		}
		at = 1;
		for (int i = 2; i < n; i++)
			if (!done[i] && (far[i] < far[at] || (far[i] <= far[at] && hops[i] < hops[at])))
				at = i;
	}
	BoxingRoute *r = arena_new(&arena_process, BoxingRoute);
	r->n = hops[1];
	r->seconds = far[1];
	r->form = arena_array(&arena_process, Form, r->n);
	for (int i = next[1], k = 0; k < r->n; i = next[i])
		r->form[k++] = list[i];
	return r;
}

const BoxingRoute *boxing_route_find(const Form *from, const Form *to, int64_t elem_bytes)
{
	static FormPairs table;
	static Device of;
	if (memcmp(&of, &device, sizeof of)) {          /* the table is of another machine */
		of = device;
		table = (FormPairs){ 0 };
	}
	void **what = transfer_pair(&table, from, to, elem_bytes);
	if (!*what)
		*what = search(from, to, elem_bytes);
	return *what;
}
