/* Names, volumes, times and routes of transfers.
 *
 * A name agrees with the pieces: a local transfer moves nothing, a collective stays inside its groups, and the volume
 * is that of the pieces, except for an all-reduce, which has two phases.  Where one rank is counted for all, the result
 * is that of counting all.  A route is executed transfer by transfer and gives the exact value; it takes no longer than
 * the direct transfer, and over equal links it moves no more. */
#include "ranks.h"
#include "compiler.h"

static bool among(const char *how, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(how, *list))
			return true;
	return false;
}

/* A transfer, and whether its description is true. */
static const char *hop(const World *from, World *to, int64_t *total)
{
	static const char *const local[] = { "none", "slice", "zero_fill", NULL };
	static const char *const grouped[] = { "none", "slice", "zero_fill", "all_reduce", "reduce_scatter",
		"all_gather", "all_to_all", NULL };
	Moved m;
	const char *why = world_move(from, to, &m);
	Transfer t = transfer_count(from->f, to->f, false), exact = transfer_count(from->f, to->f, true);
	*total += t.total;
	if (why)
		return why;
	if (t.total != exact.total || t.busiest != exact.busiest || t.how != exact.how)
		return "one rank does not speak for all";
	if (t.local != among(t.how, local) || (t.local && m.total))
		return "it is not local";
	if (!strcmp(t.how, "none") != form_same(from->f, to->f))
		return "forms are the same, or not";
	if (among(t.how, grouped) && t.one_mesh && (m.across & ~t.axes))
		return "it leaves its groups";
	if (!strcmp(t.how, "all_reduce")) {
		int p = 1;
		int64_t all = 0;
		for (int k = 0; k < to->f->ndim; k++)
			p *= t.axes >> k & 1 ? to->f->mesh[k] : 1;
		for (int i = 0; i < form_nrank(to->f); i++)
			all += to->n[i];
		bool two = t.total == all / p * 2 * (p - 1) && t.busiest <= m.busiest + p;
		return two ? NULL : "another volume than two phases have";
	}
	bool busy = t.busiest == m.busiest || (!t.one_mesh && t.busiest > m.busiest);
	return t.total == m.total && busy ? NULL : "another volume than its pieces have";
}

static void check(const Form *src, const Form *dst, bool alike)
{
	static World w[2];
	const BoxingRoute *r = boxing_route_find(src, dst, 4);
	int64_t once = 0, total = 0;
	world_make(&w[0], src);
	world_fill(&w[0]);
	world_make(&w[1], dst);
	const char *why = hop(&w[0], &w[1], &once);
	int at = 0;
	for (int i = 0; i < r->n && !why; i++, at ^= 1) {
		world_make(&w[!at], &r->form[i]);
		why = hop(&w[at], &w[!at], &total);
	}
	why = why || (r->n && form_same(&r->form[r->n - 1], dst)) ? why : "it ends elsewhere";
	why = why ? why : world_check(&w[at], logical, src);
	why = why || r->seconds <= transfer_seconds(src, dst, 4) ? why : "slower than at once";
	why = why || !alike || total <= once ? why : "it moves more than at once";
	cases++;
	if (why)
		fail(transfer_of(src, dst)->how, why, src, dst);
}

static FormCut cut_no(const int64_t *dim, int i)
{
	return i < 3 ? cut_s(dim, i) : i == 3 ? cut_b() : cut_p(i - 4);
}

static void wires(double outer)
{
	device.bytes = 1e10;
	device.start = 1e-12;
	for (int k = 0; k < MESH_DIMS; k++)
		device.axis[k] = (Wire){ 1e-12, k ? 1e9 : outer };
}

/* The volumes of the table, best ways included: P to B on one set 2 (p - 1) T, from p ranks to q others (p + q - 1)
 * T. */
static void table(void)
{
	static const int64_t dim[3] = { 24, 60, 35 };
	int64_t t = 24 * 60 * 35;
	wires(1e9);
	for (int p = 2; p <= 8; p++)
		for (int q = 2; q <= 8; q++)
			for (int i = 0; i < 25; i++) {
				Form src = form_of(3, dim, 0), dst = form_of(3, dim, 8);
				int a = i / 5, b = i % 5;
				form_add(&src, p, cut_no(dim, a));
				form_add(&dst, q, cut_no(dim, b));
				int64_t want = a == 4 ? (b == 3 ? p + q - 1 : p) * t : (b == 3 ? q : 1) * t, got = 0;
				const BoxingRoute *r = boxing_route_find(&src, &dst, 4);
				for (int k = 0; k < r->n; k++)
					got += transfer_of(k ? &r->form[k - 1] : &src, &r->form[k])->total;
				cases++;
				if (got != want)
					fail(transfer_of(&src, &dst)->how, "another volume than the table has", &src,
						&dst);
				if (p != q)
					continue;
				dst.first = 0;
				bool even = (a > 2 || dim[a] % p == 0) && (b > 2 || dim[b] % p == 0);
				want = a == b || b == 4 ||
					a == 3 ? 0 : a == 4 ? (b == 3 ? 2 : 1) * (p - 1) * t : b == 3 ? (p - 1) *
					t : even ? (p - 1) * t / p : -1;
				got = transfer_of(&src, &dst)->total;
				if (want >= 0 && got != want)
					fail(transfer_of(&src, &dst)->how, "another volume than the table has", &src,
						&dst);
			}
}

static const char *how_of(const char *from, const char *to, int p, int q, int first)
{
	static const int64_t dim[3] = { 8, 12, 6 };
	Form src = form_of(3, dim, 0), dst = form_of(3, dim, first);
	form_add(&src, p, cut_no(dim, *from == 'S' ? from[1] - '0' : *from == 'B' ? 3 : 4));
	form_add(&dst, q, cut_no(dim, *to == 'S' ? to[1] - '0' : *to == 'B' ? 3 : 4));
	return transfer_of(&src, &dst)->how;
}

static void names(void)
{
	static const struct { const char *from, *to; int p, q, first; const char *how; } list[] = {
		{ .from = "P", .to = "B", .p = 4, .q = 4, .how = "all_reduce" },
		{ .from = "P", .to = "S1", .p = 4, .q = 4, .how = "reduce_scatter" },
		{ .from = "S1", .to = "B", .p = 4, .q = 4, .how = "all_gather" },
		{ .from = "S0", .to = "S1", .p = 4, .q = 4, .how = "all_to_all" },
		{ .from = "B", .to = "B", .p = 1, .q = 4, .first = 4, .how = "broadcast" },
		{ .from = "B", .to = "S0", .p = 1, .q = 4, .first = 4, .how = "scatter" },
		{ .from = "S0", .to = "B", .p = 4, .q = 1, .first = 4, .how = "gather" },
		{ .from = "P", .to = "B", .p = 4, .q = 1, .first = 4, .how = "reduce" },
		{ .from = "S0", .to = "S0", .p = 4, .q = 4, .first = 4, .how = "send" },
		{ .from = "B", .to = "S1", .p = 4, .q = 4, .how = "slice" },
		{ .from = "B", .to = "P", .p = 4, .q = 4, .how = "zero_fill" },
		{ .from = "S0", .to = "P", .p = 4, .q = 4, .how = "zero_fill" },
		{ .from = "S2", .to = "S2", .p = 3, .q = 3, .how = "none" },
		{ .from = "B", .to = "B", .p = 4, .q = 2, .how = "slice" },
		{ .from = "P", .to = "P", .p = 1, .q = 1, .how = "none" },
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
		const char *how = how_of(list[i].from, list[i].to, list[i].p, list[i].q, list[i].first);
		cases++;
		if (strcmp(how, list[i].how) && failed++ < 20)
			printf("not ok %s of %d to %s of %d is %s, not %s\n", list[i].from, list[i].p, list[i].to,
				list[i].q, how, list[i].how);
	}
}

static void one_axis(void)
{
	static const int64_t dim[2][3] = { { 8, 4, 2 }, { 5, 7, 3 } };
	wires(1e9);
	for (int i = 0; i < 2 * 8 * 8 * 25 * 3; i++) {
		const int64_t *d = dim[i & 1];
		int p = i / 2 % 8 + 1, q = i / 16 % 8 + 1, a = i / 128 % 5, b = i / 640 % 5, set = i / 3200;
		Form src = form_of(3, d, 0), dst = form_of(3, d, set == 0 ? 0 : set == 1 ? p : (p + 1) / 2);
		form_add(&src, p, cut_no(d, a));
		form_add(&dst, q, cut_no(d, b));
		check(&src, &dst, true);
	}
}

static void two_axes(void)
{
	static const int mesh[4][2] = { { 2, 2 }, { 2, 3 }, { 4, 2 }, { 3, 2 } };
	static const int64_t dim[2][3] = { { 4, 6, 2 }, { 5, 3, 7 } };
	for (int slow = 0; slow < 2; slow++) {
		wires(slow ? 1e8 : 1e9);
		for (int m = 0; m < 4; m++)
			for (int i = 0; i < 1250; i++) {
				const int64_t *d = dim[i / 625];
				int cut[4] = { i % 5, i / 5 % 5, i / 25 % 5, i / 125 % 5 };
				Form src = form_of(3, d, 0), dst = form_of(3, d, 0);
				for (int k = 0; k < 2; k++) {
					form_add(&src, mesh[m][k], cut_no(d, cut[k]));
					form_add(&dst, mesh[m][k], cut_no(d, cut[2 + k]));
				}
				check(&src, &dst, !slow);
				if (slow || i % 7)
					continue;
				dst.first = i % 2 ? 3 : 8;
				dst.mesh[0] = mesh[(m + i) % 4][0];
				dst.mesh[1] = mesh[(m + i) % 4][1];
				check(&src, &dst, true);
			}
	}
}

/* On a slow outer axis sums cross it by parts. */
static void slow_axis(void)
{
	static const int64_t dim[2] = { 1024, 1024 };
	static const char *const want[] = { "reduce_scatter", "all_reduce", "all_gather" };
	Form src = form_of(2, dim, 0), dst = form_of(2, dim, 0);
	wires(1e7);
	for (int k = 0; k < 2; k++) {
		form_add(&src, 4, cut_p(FORM_SUM));
		form_add(&dst, 4, cut_b());
	}
	const BoxingRoute *r = boxing_route_find(&src, &dst, 4);
	cases++;
	for (int k = 0; k < 3; k++)
		if (r->n != 3 || strcmp(transfer_of(k ? &r->form[k - 1] : &src, &r->form[k])->how, want[k])) {
			fail("slow axis", "sums do not cross the slow axis by parts", &src, &dst);
			return;
		}
}

int main(void)
{
	run("names", names);
	run("volumes-of-the-table", table);
	run("one-mesh-axis", one_axis);
	run("two-mesh-axes", two_axes);
	run("slow-axis", slow_axis);
	return ended();
}
