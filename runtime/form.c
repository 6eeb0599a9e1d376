/* Shards, their intersections, and the volume of transfers: the definitions of form.h. */
#include "form.h"

#include <stdlib.h>
#include <string.h>

void form_share(int64_t n, int m, int c, int64_t *at, int64_t *len)
{
	int64_t q = n / m, r = n % m;
	*at = c * q + (c < r ? c : r);
	*len = q + (c < r);
}

int form_nrank(const Form *f)
{
	int n = 1;
	for (int k = 0; k < f->ndim; k++)
		n *= f->mesh[k];
	return n;
}

int form_rank(const Form *f, int index)
{
	return f->rank ? f->rank[index] : f->first + index;
}

int form_index(const Form *f, int rank)
{
	int n = form_nrank(f);
	if (!f->rank)
		return rank >= f->first && rank < f->first + n ? rank - f->first : -1;
	for (int i = 0; i < n; i++)
		if (f->rank[i] == rank)
			return i;
	return -1;
}

void form_coord(const Form *f, int index, int *coord)
{
	for (int k = f->ndim - 1; k >= 0; k--) {
		coord[k] = index % f->mesh[k];
		index /= f->mesh[k];
	}
}

static int index_at(const Form *f, const int *coord)
{
	int index = 0;
	for (int k = 0; k < f->ndim; k++)
		index = index * f->mesh[k] + coord[k];
	return index;
}

bool form_one_mesh(const Form *a, const Form *b)
{
	if (a->ndim != b->ndim)
		return false;
	for (int k = 0; k < a->ndim; k++)
		if (a->mesh[k] != b->mesh[k])
			return false;
	if (a->rank == b->rank && (a->rank || a->first == b->first))
		return true;
	for (int i = 0, n = form_nrank(a); i < n; i++)
		if (form_rank(a, i) != form_rank(b, i))
			return false;
	return true;
}

int form_reduction(const Form *f)
{
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_P && f->mesh[k] > 1)
			return f->cut[k].reduce;
	return -1;
}

int form_terms(const Form *f)
{
	int n = 1;
	for (int k = 0; k < f->ndim; k++)
		n *= f->cut[k].kind == FORM_P ? f->mesh[k] : 1;
	return n;
}

/* The term that an index of the mesh holds. */
static int term_at(const Form *f, int index)
{
	int coord[FORM_MESH], term = 0;
	form_coord(f, index, coord);
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_P)
			term = term * f->mesh[k] + coord[k];
	return term;
}

/* ---- shards ---- */

/* The share of one factor of an axis: from .. from + n - 1 of len, each of `inner` elements. */
typedef struct Factor { int64_t len, inner, from, n; const FormReach *reach; } Factor;

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* The windows that a share needs, and the range of the axis that they cover; both inclusive. */
typedef struct Seen { int64_t first, last, from, to; } Seen;

static Seen windows_of(const FormReach *r, int64_t at, int64_t n)
{
	int64_t first = floor_div(at + r->lo, r->div), last = floor_div(at + n - 1 + r->hi, r->div);
	first = first < 0 ? 0 : first >= r->mid ? r->mid - 1 : first;
	last = last >= r->mid ? r->mid - 1 : last < first ? first : last;
	return (Seen){ first, last, first * r->mul + r->from, last * r->mul + r->to };
}

/* The elements that a share of another axis needs of an axis of dim elements. */
static void reach_of(Factor *f, int64_t dim)
{
	Seen s = windows_of(f->reach, f->from, f->n);
	s.from = s.from < 0 ? 0 : s.from;
	s.to = s.to >= dim ? dim - 1 : s.to;
	f->len = dim;
	f->n = f->n && s.to >= s.from ? s.to - s.from + 1 : 0;   /* an empty share needs nothing */
	f->from = f->n ? s.from : 0;
}

/* The factors of an axis that are cut, major first. */
static int factors_of(const Form *f, const int *coord, int axis, Factor *list)
{
	int n = 0;
	for (int k = 0; k < f->ndim; k++) {
		const FormCut *c = &f->cut[k];
		if (c->kind != FORM_S || c->axis != axis)
			continue;
		int i = 0;
		while (i < n && list[i].inner != c->inner)
			i++;
		if (i == n) {
			for (i = n; i > 0 && list[i - 1].inner < c->inner; i--)
				list[i] = list[i - 1];
			list[i] = (Factor){ .len = c->len, .inner = c->inner, .n = c->reach ? c->reach->of : c->len,
				.reach = c->reach };
			n++;
		}
		int64_t at, len;
		form_share(list[i].n, f->mesh[k], coord[k], &at, &len);
		list[i].from += at;
		list[i].n = len;
	}
	for (int i = 0; i < n; i++)
		if (list[i].reach)
			reach_of(&list[i], f->dim[axis]);
	return n;
}

/* Runs of one axis: every combination of the factors before the last, which gives one run each. */
static int axis_runs(const Form *f, const int *coord, int axis, FormAxis *out)
{
	Factor list[FORM_MESH];
	int n = factors_of(f, coord, axis, list);
	int64_t count = 1, dim = f->dim[axis];
	if (!n)
		list[n++] = (Factor){ .len = dim, .inner = 1, .n = dim };
	for (int i = 0; i < n; i++) {
		int64_t above = i ? list[i - 1].inner : dim, each = list[i].len * list[i].inner;
		count *= (each > 0 ? above / each : 0) * (i + 1 < n ? list[i].n : list[i].n > 0);
	}
	*out = (FormAxis){ .len = 0 };
	if (!count)
		return 0;
	if (count > INT32_MAX || !(out->run = malloc((size_t)count * sizeof *out->run)))
		return -1;
	for (int64_t c = 0; c < count; c++) {
		int64_t rest = c, at = 0;
		for (int i = n - 1; i >= 0; i--) {
			int64_t each = list[i].len * list[i].inner, above = i ? list[i - 1].inner : dim;
			if (i < n - 1) {
				at += (list[i].from + rest % list[i].n) * list[i].inner;
				rest /= list[i].n;
			}
			at += rest % (above / each) * each;
			rest /= above / each;
		}
		FormRun r = { at + list[n - 1].from * list[n - 1].inner, list[n - 1].n * list[n - 1].inner };
		out->len += r.len;
		if (out->n && out->run[out->n - 1].at + out->run[out->n - 1].len == r.at)
			out->run[out->n - 1].len += r.len;
		else
			out->run[out->n++] = r;
	}
	return 0;
}

static int64_t axis_length(const Form *f, const int *coord, int axis)
{
	Factor list[FORM_MESH];
	int n = factors_of(f, coord, axis, list);
	int64_t len = f->dim[axis];
	for (int i = 0; i < n && len; i++)
		len = len / list[i].len * list[i].n;
	return len;
}

void form_lengths(const Form *f, int index, int64_t *len)
{
	int coord[FORM_MESH];
	form_coord(f, index, coord);
	for (int a = 0; a < f->naxis; a++)
		len[a] = axis_length(f, coord, a);
}

int form_shard(const Form *f, int index, FormShard *p)
{
	int coord[FORM_MESH];
	form_coord(f, index, coord);
	*p = (FormShard){ .naxis = f->naxis };
	for (int a = 0; a < f->naxis; a++)
		if (axis_runs(f, coord, a, &p->axis[a])) {
			form_shard_free(p);
			return -1;
		}
	return 0;
}

void form_shard_free(FormShard *p)
{
	for (int a = 0; a < p->naxis; a++)
		free(p->axis[a].run);
	*p = (FormShard){ 0 };
}

int64_t form_elements(const FormShard *p)
{
	int64_t n = 1;
	for (int a = 0; a < p->naxis; a++)
		n *= p->axis[a].len;
	return n;
}

int64_t form_held(const Form *f, int index)
{
	int coord[FORM_MESH];
	int64_t n = 1;
	form_coord(f, index, coord);
	for (int a = 0; a < f->naxis; a++) {
		Factor list[FORM_MESH];
		int64_t len = f->dim[a];
		for (int i = factors_of(f, coord, a, list) - 1; i >= 0; i--)
			len = list[i].len ? len / list[i].len * list[i].n : 0;
		n *= len;
	}
	return n;
}

bool form_reach_same(const FormReach *a, const FormReach *b)
{
	return a == b || (a && b && !memcmp(a, b, sizeof *a));
}

FormEdge form_edge(const Form *f, int index, int k)
{
	int coord[FORM_MESH];
	const FormCut *c = &f->cut[k];
	if (c->kind != FORM_S || !c->reach)
		return (FormEdge){ 0 };
	int64_t at = 0, n = c->reach->of;
	form_coord(f, index, coord);
	for (int i = 0; i < f->ndim; i++) {
		int64_t from, len;
		if (f->cut[i].kind != FORM_S || f->cut[i].axis != c->axis)
			continue;
		form_share(n, f->mesh[i], coord[i], &from, &len);
		at += from;
		n = len;
	}
	Seen s = windows_of(c->reach, at, n);
	int64_t dim = f->dim[c->axis];
	return n ? (FormEdge){ s.from < 0 ? -s.from : 0, s.to >= dim ? s.to - dim + 1 : 0,
		at - s.first * c->reach->div } : (FormEdge){ 0 };
}

bool form_cut_same(const FormCut *a, const FormCut *b)
{
	if (a->kind != b->kind || (a->kind == FORM_P && a->reduce != b->reduce))
		return false;
	return a->kind != FORM_S || (a->axis == b->axis && a->len == b->len && a->inner == b->inner && !b->reach);
}

/* Along an axis of the mesh on which nothing changes, ranks with different coordinates exchange nothing, unless the
 * axis of the tensor that is cut there is also cut along an axis of the mesh that does change. */
bool form_crosses(const Form *a, const Form *b, int k)
{
	if (!form_cut_same(&a->cut[k], &b->cut[k]))
		return true;
	for (int j = 0; j < a->ndim && a->cut[k].kind == FORM_S; j++)
		if (!form_cut_same(&a->cut[j], &b->cut[j]) &&
		    ((a->cut[j].kind == FORM_S && a->cut[j].axis == a->cut[k].axis) ||
		    (b->cut[j].kind == FORM_S && b->cut[j].axis == a->cut[k].axis)))
			return true;
	return false;
}

int form_group(const Form *a, const Form *b)
{
	int n = form_nrank(a);
	if (!form_one_mesh(a, b)) {
		for (int i = 0; i < form_nrank(b); i++)
			n += form_index(a, form_rank(b, i)) < 0;
		return n;
	}
	n = 1;
	for (int k = 0; k < a->ndim; k++)
		n *= form_crosses(a, b, k) ? a->mesh[k] : 1;
	return n;
}

int form_joined(const Form *a, const Form *b)
{
	return form_one_mesh(a, b) ? form_nrank(a) : form_group(a, b);
}

static bool same_axis(const FormAxis *a, const FormAxis *b)
{
	return a->len == b->len && a->n == b->n && (!a->n || !memcmp(a->run, b->run, (size_t)a->n * sizeof *a->run));
}

static int meet_axis(const FormAxis *x, const FormAxis *y, FormMeet **out, int *count)
{
	int i = 0, j = 0;
	int64_t from = 0, to = 0;
	*count = 0;
	*out = malloc((size_t)(x->n + y->n + 1) * sizeof **out);
	if (!*out)
		return -1;
	while (i < x->n && j < y->n) {
		const FormRun *a = &x->run[i], *b = &y->run[j];
		int64_t lo = a->at > b->at ? a->at : b->at, ea = a->at + a->len, eb = b->at + b->len,
			hi = ea < eb ? ea : eb;
		if (lo < hi)
			(*out)[(*count)++] = (FormMeet){ from + lo - a->at, to + lo - b->at, hi - lo };
		if (ea <= eb) {
			from += a->len;
			i++;
		}
		if (eb <= ea) {
			to += b->len;
			j++;
		}
	}
	return 0;
}

static int64_t common_runs(const Form *a, const int *ca, const Form *b, const int *cb, int axis)
{
	FormAxis x, y;
	FormMeet *list = NULL;
	int n = 0;
	int64_t len = 0;
	if (axis_runs(a, ca, axis, &x))
		return -1;
	if (axis_runs(b, cb, axis, &y) || meet_axis(&x, &y, &list, &n))
		len = -1;
	for (int i = 0; i < n && len >= 0; i++)
		len += list[i].len;
	free(list);
	free(x.run);
	free(y.run);
	return len;
}

/* Factors of both sides fit: they are the same one, or disjoint. */
static bool fit(const Factor *x, const Factor *y)
{
	return x->inner == y->inner ? x->len == y->len : x->inner >= y->inner * y->len || y->inner >= x->inner * x->len;
}

/* Elements of one axis in both shards, -1: no memory.  If the factors fit, the common indices of each factor multiply;
 * else runs are intersected. */
static int64_t common_axis(const Form *a, const int *ca, const Form *b, const int *cb, int axis)
{
	Factor x[FORM_MESH], y[FORM_MESH];
	int nx = factors_of(a, ca, axis, x), ny = factors_of(b, cb, axis, y);
	int64_t len = a->dim[axis];
	bool fits = true;
	for (int i = 0; i < nx; i++)
		for (int j = 0; j < ny; j++)
			fits &= fit(&x[i], &y[j]);
	if (!fits)
		return common_runs(a, ca, b, cb, axis);
	for (int j = 0; j < ny; j++)
		len = y[j].len ? len / y[j].len : 0;
	for (int i = 0; i < nx; i++) {
		int j = 0;
		while (j < ny && y[j].inner != x[i].inner)
			j++;
		if (j == ny) {
			len = x[i].len ? len / x[i].len * x[i].n : 0;
			continue;
		}
		int64_t lo = x[i].from > y[j].from ? x[i].from : y[j].from, ex = x[i].from + x[i].n,
			ey = y[j].from + y[j].n;
		y[j].n = (ex < ey ? ex : ey) - lo;
		y[j].n = y[j].n < 0 ? 0 : y[j].n;
	}
	for (int j = 0; j < ny; j++)
		len *= y[j].n;
	return len;
}

/* ---- volumes on one mesh ---- */

static bool cuts(const Form *f, int k, int axis)
{
	return f->cut[k].kind == FORM_S && f->cut[k].axis == axis;
}

/* The elements that a shard of the destination has in common with shards of the source, along one axis of the tensor:
 * with shards of all coordinates along open axes of the mesh, of its own coordinate along the others.  -1: no
 * memory. */
static int64_t shared_axis(const Form *src, const Form *dst, const int *at, const bool *open, int axis)
{
	int cell[FORM_MESH];
	int64_t sum = 0, cells = 1;
	bool all = true;
	for (int k = 0; k < src->ndim; k++) {
		all &= !cuts(src, k, axis) || open[k];
		cells *= cuts(src, k, axis) && open[k] ? src->mesh[k] : 1;
		cell[k] = at[k];
	}
	if (all)
		return axis_length(dst, at, axis);
	for (int64_t c = 0; c < cells && sum >= 0; c++) {
		int64_t rest = c;
		for (int k = 0; k < src->ndim; k++)
			if (cuts(src, k, axis) && open[k]) {
				cell[k] = (int)(rest % src->mesh[k]);
				rest /= src->mesh[k];
			}
		int64_t both = common_axis(src, cell, dst, at, axis);
		sum = both < 0 ? -1 : sum + both;
	}
	return sum;
}

/* The common elements along one axis of the tensor, by coordinates along the axes of the mesh that cut it on either
 * side. */
typedef struct Shared { int64_t all, own; } Shared;
typedef struct SharedAxis { Shared *of; int64_t stride[FORM_MESH]; } SharedAxis;

static int share_axis(const Form *src, const Form *dst, const bool *open, bool one, int axis, SharedAxis *s)
{
	int64_t n = 1;
	for (int k = dst->ndim - 1; k >= 0; k--) {
		bool other = !one && (cuts(src, k, axis) || cuts(dst, k, axis));
		s->stride[k] = other ? n : 0;
		n *= other ? dst->mesh[k] : 1;
	}
	s->of = malloc((size_t)n * sizeof *s->of);
	for (int64_t i = 0; s->of && i < n; i++) {
		int at[FORM_MESH];
		for (int k = 0; k < dst->ndim; k++)
			at[k] = s->stride[k] ? (int)(i / s->stride[k] % dst->mesh[k]) : 0;
		s->of[i] = (Shared){ shared_axis(src, dst, at, open, axis), common_axis(src, at, dst, at, axis) };
		if (s->of[i].all < 0 || s->of[i].own < 0)
			return -1;
	}
	return s->of ? 0 : -1;
}

/* On one mesh a piece stays where it is if possible (falls_on): each index takes the pieces of a P at its own
 * coordinate, and the first index those of a B and of terms with another reduction; its own pieces are not moved. */
int form_volume(const Form *src, const Form *dst, bool one, int64_t *total, int64_t *most)
{
	int reduce = form_reduction(src), ranks = one ? 1 : form_nrank(dst), code = 0;
	bool open[FORM_MESH], first[FORM_MESH], apart = reduce >= 0 && reduce != form_reduction(dst);
	int64_t terms = 1;
	SharedAxis axis[FORM_AXES] = { { 0 } };
	for (int k = 0; k < dst->ndim; k++) {
		bool keeps = dst->cut[k].kind == FORM_P, term = src->cut[k].kind == FORM_P;
		bool meet = src->cut[k].kind == FORM_B || (apart && term);
		first[k] = keeps && meet;
		open[k] = !keeps || meet;
		terms *= term && open[k] ? src->mesh[k] : 1;
	}
	for (int a = 0; a < dst->naxis && !code; a++)
		code = share_axis(src, dst, open, one, a, &axis[a]);
	for (int i = 0, at[FORM_MESH] = { 0 }; i < ranks && !code; i++) {
		int64_t all = terms, own = 1;
		for (int k = 0; k < dst->ndim; k++)
			if (first[k] && at[k])
				all = 0;
		for (int a = 0; a < dst->naxis && all; a++) {
			int64_t index = 0;
			for (int k = 0; k < dst->ndim; k++)
				index += at[k] * axis[a].stride[k];
			all *= axis[a].of[index].all;
			own *= axis[a].of[index].own;
		}
		own = all ? own : 0;
		*total += all - own;
		*most = all - own > *most ? all - own : *most;
		for (int k = dst->ndim; k-- > 0 && ++at[k] == dst->mesh[k];)
			at[k] = 0;
	}
	for (int a = 0; a < dst->naxis; a++)
		free(axis[a].of);
	return code;
}

static bool same_shard(const Form *a, const Form *b, int index)
{
	FormShard x, y;
	bool same = true;
	if (form_shard(a, index, &x))
		return false;
	if (form_shard(b, index, &y)) {
		form_shard_free(&x);
		return false;
	}
	bool empty = !form_elements(&x) && !form_elements(&y);
	for (int i = 0; i < x.naxis && !empty; i++)
		same &= same_axis(&x.axis[i], &y.axis[i]);
	form_shard_free(&x);
	form_shard_free(&y);
	return same;
}

bool form_same(const Form *a, const Form *b)
{
	int n = form_nrank(a);
	if (n != form_nrank(b) || a->naxis != b->naxis)
		return false;
	for (int i = 0; i < n; i++)
		if (form_rank(a, i) != form_rank(b, i))
			return false;
	if (form_terms(a) != form_terms(b) || form_reduction(a) != form_reduction(b))
		return false;
	for (int i = 0; i < n; i++)
		if (term_at(a, i) != term_at(b, i))
			return false;
	for (int i = 0; i < n; i++)
		if (!same_shard(a, b, i))
			return false;
	return true;
}

/* ---- pieces ---- */

/* 1: they intersect; 0: not; -1: no memory. */
static int meet(const FormShard *x, const FormShard *y, FormPiece *p)
{
	p->naxis = x->naxis;
	p->elements = 1;
	for (int a = 0; a < x->naxis; a++) {
		if (meet_axis(&x->axis[a], &y->axis[a], &p->axis[a].meet, &p->axis[a].n)) {
			p->naxis = a;
			return -1;
		}
		int64_t n = 0;
		for (int i = 0; i < p->axis[a].n; i++)
			n += p->axis[a].meet[i].len;
		p->elements *= n;
		p->from_dim[a] = x->axis[a].len;
		p->to_dim[a] = y->axis[a].len;
	}
	return p->elements > 0;
}

static void piece_free(FormPiece *p)
{
	for (int a = 0; a < p->naxis; a++)
		free(p->axis[a].meet);
}

/* The index of a copy of a piece, by number: copies differ in the coordinates along B. */
static int copy_of(const Form *src, const int *cell, int copy)
{
	int at[FORM_MESH];
	for (int k = src->ndim - 1; k >= 0; k--) {
		bool b = src->cut[k].kind == FORM_B;
		at[k] = b ? copy % src->mesh[k] : cell[k];
		copy /= b ? src->mesh[k] : 1;
	}
	return index_at(src, at);
}

/* Among the indices of the destination with the coordinates of `to` along S: the one whose rank already holds the
 * piece; -1: none. */
static int at_home(const Form *src, const Form *dst, const int *cell, const int *to)
{
	int copies = 1;
	for (int k = 0; k < src->ndim; k++)
		copies *= src->cut[k].kind == FORM_B ? src->mesh[k] : 1;
	for (int i = 0; i < copies; i++) {
		int coord[FORM_MESH], index = form_index(dst, form_rank(src, copy_of(src, cell, i)));
		if (index < 0)
			continue;
		form_coord(dst, index, coord);
		int k = 0;
		while (k < dst->ndim && (dst->cut[k].kind != FORM_S || coord[k] == to[k]))
			k++;
		if (k == dst->ndim)
			return index;
	}
	return -1;
}

/* True if a piece of the source at these coordinates is a term of the shard of the destination at `to`.  A piece stays
 * where it is if possible: on one mesh, P keeps its own term, S its own shard, and the first rank that of B; otherwise
 * a rank of both meshes keeps what it has, and the indices of P take the rest in turn.  Terms with another reduction
 * than the destination meet at one index. */
static bool falls_on(const Form *src, const Form *dst, const int *cell, int number, const int *to, bool one_mesh)
{
	int reduce = form_reduction(src), terms = form_terms(src), from[FORM_MESH], home[FORM_MESH];
	bool apart = reduce >= 0 && reduce != form_reduction(dst);
	if (form_terms(dst) == 1)
		return true;
	for (int k = 0; k < src->ndim; k++)
		from[k] = src->cut[k].kind == FORM_B || (apart && src->cut[k].kind == FORM_P) ? 0 : cell[k];
	number = apart ? number / terms : number;
	int index = one_mesh ? -1 : at_home(src, dst, from, to);
	if (index >= 0)
		form_coord(dst, index, home);
	for (int k = dst->ndim - 1; k >= 0; k--) {
		if (dst->cut[k].kind != FORM_P)
			continue;
		if (to[k] != (one_mesh ? from[k] : index >= 0 ? home[k] : number % dst->mesh[k]))
			return false;
		number /= dst->mesh[k];
	}
	return true;
}

/* Chooses the sender among ranks that hold the same piece: this rank if it holds it, else the nearest on the mesh, else
 * they take turns. */
static int holder(const Form *src, const Form *dst, const int *cell, int to, bool one_mesh)
{
	int at[FORM_MESH], mine[FORM_MESH], n = 1, own = form_index(src, form_rank(dst, to));
	bool holds = own >= 0;
	if (holds)
		form_coord(src, own, mine);
	for (int k = 0; k < src->ndim; k++) {
		at[k] = cell[k];
		if (src->cut[k].kind != FORM_B)
			holds &= own >= 0 && mine[k] == cell[k];
		else
			n *= src->mesh[k];
	}
	if (holds)
		return own;
	int turn = one_mesh ? 0 : to % n;
	if (one_mesh)
		form_coord(dst, to, mine);
	for (int k = src->ndim - 1; k >= 0; k--)
		if (src->cut[k].kind == FORM_B) {
			at[k] = one_mesh ? mine[k] : turn % src->mesh[k];
			turn /= one_mesh ? 1 : src->mesh[k];
		}
	return index_at(src, at);
}

/* True if the shards at these coordinates have common elements, without computing them: most cells of a large mesh have
 * none. */
static bool meets(const Form *src, const int *cell, const Form *dst, const int *to)
{
	for (int a = 0; a < src->naxis; a++)
		if (!common_axis(src, cell, dst, to, a))
			return false;
	return true;
}

/* Pieces of the source are numbered with the cells of S first and the terms of P last: all terms of a cell follow each
 * other. */
int form_pieces(const Form *src, const Form *dst, int to, bool *fill,
	int (*piece)(void *, const FormPiece *), void *arg)
{
	int order[FORM_MESH], n = 0, cells = 1, terms = 1, mine[FORM_MESH], code = 0;
	bool one_mesh = form_one_mesh(src, dst);
	int64_t wanted, given = 0;
	FormShard want;
	form_coord(dst, to, mine);
	for (int k = 0; k < src->ndim; k++)
		if (src->cut[k].kind == FORM_S) {
			order[n++] = k;
			cells *= src->mesh[k];
		}
	for (int k = 0; k < src->ndim; k++)
		if (src->cut[k].kind == FORM_P) {
			order[n++] = k;
			terms *= src->mesh[k];
		}
	if (form_shard(dst, to, &want))
		return -1;
	wanted = form_elements(&want);
	for (int c = 0; c < cells && !code && wanted; c++) {
		bool first = true;
		for (int t = 0; t < terms && !code; t++) {
			int cell[FORM_MESH] = { 0 }, rest = c * terms + t;
			for (int i = n - 1; i >= 0; i--) {
				cell[order[i]] = rest % src->mesh[order[i]];
				rest /= src->mesh[order[i]];
			}
			if (!t && !meets(src, cell, dst, mine))
				break;
			if (!falls_on(src, dst, cell, c * terms + t, mine, one_mesh))
				continue;
			FormShard x;
			FormPiece p = { .from = holder(src, dst, cell, to, one_mesh), .to = to, .first = first };
			if (form_shard(src, p.from, &x)) {
				code = -1;
				break;
			}
			int met = meet(&x, &want, &p);
			if (met > 0) {
				given += first ? p.elements : 0;
				first = false;
				code = piece ? piece(arg, &p) : 0;
			}
			code = met < 0 ? -1 : code;
			piece_free(&p);
			form_shard_free(&x);
		}
	}
	if (fill)
		*fill = given < wanted;
	form_shard_free(&want);
	return code;
}
