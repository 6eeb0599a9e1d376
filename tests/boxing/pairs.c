/* Every pair of forms: the pieces of a transfer give exactly the value, and move exactly what they must.
 *
 * Values are integers and terms of P are made up, so a missing, doubled or misplaced piece shows.  What is received is
 * compared with the volumes of the known transfers (T elements, p ranks), and for a source without P with what a rank
 * lacks. */
#include "ranks.h"

#include <stdbool.h>

/* What the table of volumes says of a pair of forms on one mesh axis; -1: nothing. */
static int64_t by_formula(const Form *src, const Form *dst, bool same, bool disjoint)
{
	int64_t t = elements_of(src), p1 = src->mesh[0], p2 = dst->mesh[0];
	int a = src->cut[0].kind, b = dst->cut[0].kind;
	bool one_reduce = a == FORM_P && b == FORM_P && src->cut[0].reduce == dst->cut[0].reduce;
	if (disjoint) {
		if (a == FORM_P)
			/* each term to each rank: what a way through S improves */
			return b == FORM_B ? p1 * p2 * t : p1 * t;
		return b == FORM_B ? p2 * t : t;
	}
	if (!same)
		return -1;
	if (a == FORM_P)
		return b == FORM_B ? p1 * (p1 - 1) * t : b == FORM_S || !one_reduce ? (p1 - 1) * t : 0;
	if (b == FORM_P || a == FORM_B)
		return 0;
	if (b == FORM_B)
		return (p1 - 1) * t;
	if (src->cut[0].axis == dst->cut[0].axis)
		return 0;
	return src->dim[src->cut[0].axis] % p1 || dst->dim[dst->cut[0].axis] % p1 ? -1 : (p1 - 1) * t / p1;
}

static const char *lower_bound(const World *from, const World *to, const Moved *m)
{
	if (form_terms(from->f) > 1 || form_terms(to->f) > 1)
		return NULL;
	for (int p = 0; p < form_nrank(to->f); p++) {
		int own = form_index(from->f, form_rank(to->f, p));
		int64_t lacks = 0;
		for (int i = 0; i < to->n[p]; i++)
			lacks += own < 0 || from->at[own][to->element[p][i]] < 0;
		if (lacks != m->into[p])
			return "more or less than a rank lacks is received";
	}
	return NULL;
}

/* What form.c says of shards agrees with the definition. */
static const char *shards(const World *from)
{
	for (int p = 0; p < form_nrank(from->f); p++) {
		FormShard shard;
		if (form_shard(from->f, p, &shard))
			return "form_shard fails";
		if (form_elements(&shard) != from->n[p] || form_held(from->f, p) != from->n[p])
			return "a shard of another size";
		form_shard_free(&shard);
	}
	return NULL;
}

/* Equal by form_same: the same ranks hold the same elements of the same terms. */
static bool alike(const World *a, const World *b)
{
	int n = form_nrank(a->f);
	if (n != form_nrank(b->f) || form_terms(a->f) != form_terms(b->f) ||
		form_reduction(a->f) != form_reduction(b->f))
		return false;
	for (int p = 0; p < n; p++) {
		if (form_rank(a->f, p) != form_rank(b->f, p) || a->n[p] != b->n[p] ||
			memcmp(a->element[p], b->element[p], (size_t)a->n[p] * sizeof(int)))
			return false;
		int ca[FORM_MESH], cb[FORM_MESH], ta = 0, tb = 0;
		place_coord(a->f, p, ca);
		place_coord(b->f, p, cb);
		for (int k = 0; k < a->f->ndim; k++)
			ta = a->f->cut[k].kind == FORM_P ? ta * a->f->mesh[k] + ca[k] : ta;
		for (int k = 0; k < b->f->ndim; k++)
			tb = b->f->cut[k].kind == FORM_P ? tb * b->f->mesh[k] + cb[k] : tb;
		if (ta != tb)
			return false;
	}
	return true;
}

/* To P, from other ranks along one mesh axis: a rank of both keeps what it has as its term. */
static int64_t kept_terms(const World *from, const World *to)
{
	int64_t t = elements_of(from->f), kept = 0;
	int a = from->f->cut[0].kind, both = 0;
	if (to->f->cut[0].kind != FORM_P || to->f->mesh[0] == 1 ||
		(form_terms(from->f) > 1 && form_reduction(from->f) != form_reduction(to->f)))
		return -1;
	for (int p = 0; p < form_nrank(to->f); p++) {
		int own = form_index(from->f, form_rank(to->f, p));
		both += own >= 0;
		kept += own >= 0 ? from->n[own] : 0;
	}
	return a == FORM_B ? (both ? 0 : t) : a == FORM_S ? t - kept : (from->f->mesh[0] - both) * t;
}

static void check(const char *what, const Form *src, const Form *dst, bool same, bool disjoint)
{
	static World from, to;
	Moved m = { 0 };
	world_make(&from, src);
	world_make(&to, dst);
	world_fill(&from);
	const char *why = world_move(&from, &to, &m);
	why = why ? why : world_check(&to, logical, src);
	why = why ? why : lower_bound(&from, &to, &m);
	why = why ? why : shards(&from);
	why = why || alike(&from, &to) == form_same(src, dst) ? why : "form_same says otherwise";
	int64_t volume = why || src->ndim > 1 || dst->ndim > 1 ? -1 : by_formula(src, dst, same, disjoint);
	volume = why || src->ndim > 1 || dst->ndim > 1 || same || disjoint ? volume : kept_terms(&from, &to);
	why = why || volume < 0 || volume == m.total ? why : "another volume than the table has";
	cases++;
	if (why)
		fail(what, why, src, dst);
}

static FormCut cut_no(const int64_t *dim, int i)
{
	return i < 3 ? cut_s(dim, i) : i == 3 ? cut_b() : cut_p(i - 4);
}

static const int64_t shapes[][3] = { { 2, 3, 4 }, { 8, 4, 2 }, { 5, 7, 3 }, { 1, 3, 2 }, { 3, 1, 8 }, { 9, 2, 5 } };
enum { NSHAPE = sizeof shapes / sizeof shapes[0] };

/* One mesh axis: 1 to 8 ranks to 1 to 8; same or nested sets, overlapping, disjoint. */
static void one_axis(void)
{
	for (int s = 0; s < NSHAPE; s++)
		for (int p = 1; p <= 8; p++)
			for (int q = 1; q <= 8; q++)
				for (int i = 0; i < 49; i++) {
					int a = i / 7, b = i % 7;
					/* the largest and the smallest: two shapes */
					if ((a > 4 || b > 4) && s > 1)
						continue;
					Form src = form_of(3, shapes[s], 0), dst = form_of(3, shapes[s], 0);
					form_add(&src, p, cut_no(shapes[s], a));
					form_add(&dst, q, cut_no(shapes[s], b));
					check("one mesh axis", &src, &dst, p == q, false);
					dst.first = p;
					check("disjoint ranks", &src, &dst, false, true);
					dst.first = (p + 1) / 2;
					if (dst.first < p)
						check("overlapping ranks", &src, &dst, false, false);
				}
}

/* Two: all pairs of (S0, S1, S2, B, P) squared, over meshes of 4 to 8 ranks. */
static void two_axes(void)
{
	static const int mesh[4][2] = { { 2, 2 }, { 2, 3 }, { 4, 2 }, { 3, 2 } };
	static const int mixed[] = { 5, 3, 7, 0, 2, 6, 1, 4 };
	static const int64_t dim[2][3] = { { 4, 6, 2 }, { 5, 3, 7 } };
	for (int m = 0; m < 16; m++)
		for (int i = 0; i < 625; i++) {
			int s = (i + m) & 1, cut[4] = { i % 5, i / 5 % 5, i / 25 % 5, i / 125 };
			Form src = form_of(3, dim[s], 0), dst = form_of(3, dim[s], 0);
			for (int k = 0; k < 2; k++) {
				form_add(&src, mesh[m / 4][k], cut_no(dim[s], cut[k]));
				form_add(&dst, mesh[m % 4][k], cut_no(dim[s], cut[2 + k]));
			}
			check("two mesh axes", &src, &dst, false, false);
			dst.first = i % 3 ? 3 : 8;
			check("two mesh axes, other ranks", &src, &dst, false, false);
			dst.rank = mixed;
			check("two mesh axes, ranks in another order", &src, &dst, false, false);
		}
}

/* Meshes of one to six axes, with cuts of factors of an axis of 24 = 2 x 3 x 4, cut again by another axis of the
 * mesh. */
static FormCut any_cut(const int64_t *dim, int reduce, bool factors, uint64_t r)
{
	static const int64_t len[3] = { 2, 3, 4 }, inner[3] = { 12, 4, 1 };
	if (r % 4 == 0)
		return cut_b();
	if (r % 4 == 1)
		return cut_p(reduce);
	if (r % 4 == 2 && factors)
		return (FormCut){ .kind = FORM_S, .len = len[r / 4 % 3], .inner = inner[r / 4 % 3] };
	return cut_s(dim, factors ? 1 + (int)(r / 4 % 2) : (int)(r / 4 % 3));
}

static Form any_form(const int64_t *dim, uint64_t *r)
{
	static const int most[] = { 8, 4, 2, 2, 2, 2 };
	Form f = form_of(3, dim, (int)(mix(++*r) % 5));
	int left = 8, n = 1 + (int)(mix(++*r) % 6), reduce = (int)(mix(++*r) % 4);
	bool factors = mix(++*r) & 1;
	for (int k = 0; k < n; k++) {
		int ranks = 1 + (int)(mix(++*r) % (uint64_t)most[n - 1]);
		ranks = n > 3 && ranks > left ? 1 : ranks;
		left /= ranks;
		form_add(&f, ranks, any_cut(dim, reduce, factors, mix(++*r) >> 8));
	}
	return f;
}

static void any_pairs(void)
{
	static const int64_t dim[3] = { 24, 3, 2 };
	uint64_t r = 1;
	for (int i = 0; i < 12000; i++) {
		Form src = any_form(dim, &r), dst = any_form(dim, &r);
		/* their values are 1 and -1 */
		if (form_reduction(&src) == FORM_PROD || form_reduction(&dst) == FORM_PROD)
			for (int k = 0; k < FORM_MESH; k++)
				src.cut[k].reduce = dst.cut[k].reduce = FORM_PROD;
		if (mix(++r) & 1) {
			dst.ndim = src.ndim;
			dst.first = src.first;
			for (int k = 0; k < src.ndim; k++) {
				dst.mesh[k] = src.mesh[k];
				if (!dst.cut[k].len && dst.cut[k].kind == FORM_S)
					dst.cut[k] = src.cut[k];
			}
		}
		check("any two forms", &src, &dst, false, false);
	}
}

/* Parts that overlap: what windows reach.  Forward: windows of a span, a stride and a padding are cut; backward: what
 * they see; both: all that the windows see that see a part of it. */
static FormReach any_reach(int64_t in, int i)
{
	int64_t stride = 1 + i % 3, dil = 1 + i / 3 % 2, k = 1 + i / 6 % 4, span = (k - 1) * dil + 1,
		lo = i / 24 % 2 ? span / 2 : 0, hi = i / 48 % 2 ? span - 1 : 0;
	int64_t out = in + lo + hi < span ? 0 : (in + lo + hi - span) / stride + 1,
		more = span > stride ? span - stride : 0;
	FormReach r = { .of = out, .div = 1, .mid = out, .mul = stride, .from = -lo, .to = -lo + span - 1 };
	if (i / 96 % 3 == 1)
		/* of dy, which is as long as the tensor here */
		r = (FormReach){ .of = out, .div = stride, .lo = lo - more, .hi = lo, .mid = in, .mul = 1 };
	if (i / 96 % 3 == 2)
		r = (FormReach){ .of = in, .div = stride, .lo = lo - more, .hi = lo, .mid = out, .mul = stride,
			.from = -lo, .to = -lo + span - 1 };
	return r;
}

static int64_t held_of(const Form *f)
{
	int64_t n = 0;
	for (int i = 0; i < form_nrank(f); i++)
		n += form_held(f, i);
	return n;
}

static void edges(void)
{
	static const int64_t dim[3] = { 11, 8, 2 };
	static FormReach reach[288 * 2];
	for (int i = 0; i < 288 * 2; i++)
		reach[i] = any_reach(dim[i % 2], i / 2);
	for (int p = 1; p <= 8; p++)
		for (int i = 0; i < 288 * 2; i++) {
			Form src = form_of(3, dim, 0), dst = form_of(3, dim, i % 4 / 2 ? 2 : 0);
			if (reach[i].of < 1 || reach[i].mid < 1)
				continue;
			form_add(&src, p, cut_no(dim, (i / 2 + p) % 5));
			form_add(&dst, p, cut_s(dim, i % 2));
			dst.cut[0].reach = &reach[i];
			check("parts that windows reach", &src, &dst, false, false);
			form_add(&src, 2, cut_no(dim, (i + p) % 5));
			form_add(&dst, 2, cut_no(dim, (i + 2 * p) % 5));
			if (dst.cut[1].kind == FORM_S && dst.cut[1].axis == dst.cut[0].axis)
				dst.cut[1].reach = dst.cut[0].reach;
			check("parts that windows reach on two mesh axes", &src, &dst, false, false);
		}
}

/* A window of three over a cut axis: each rank takes one row of each neighbour, and nothing else moves. */
static void strips(void)
{
	static const int64_t dim[3] = { 11, 8, 2 };
	static const FormReach three = { .of = 11, .div = 1, .mid = 11, .mul = 1, .from = -1, .to = 1 };
	for (int p = 2; p <= 6; p++) {
		Form src = form_of(3, dim, 0), dst = form_of(3, dim, 0);
		form_add(&src, p, cut_s(dim, 0));
		form_add(&dst, p, cut_s(dim, 0));
		dst.cut[0].reach = &three;
		int64_t rows = held_of(&dst) - held_of(&src), moved = 0, most = 0;
		cases++;
		if (form_volume(&src, &dst, false, &moved, &most) || moved != rows ||
			rows != 2 * (p - 1) * dim[1] * dim[2])
			fail("strips", "not the rows of the neighbours", &src, &dst);
	}
}

int main(void)
{
	run("one-mesh-axis", one_axis);
	run("two-mesh-axes", two_axes);
	run("up-to-six-mesh-axes-and-factors", any_pairs);
	run("edges", edges);
	run("strips", strips);
	return ended();
}
