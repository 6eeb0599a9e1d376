/* Meshes of ranks, from @mesh in the model or from --ranks=N, which gives a mesh of one axis called `ranks`.  Without
 * either there is one rank.
 *
 * A program runs on the ranks of all its meshes: 0, 1, 2, ... without a gap.  Values that all ranks have, such as the
 * loss, are on the world mesh: all ranks along one axis.  Where several meshes are given and none is that, it is
 * added. */
#include "plan/plan.h"

#include <string.h>

void mesh_ranks(Model *m, Mesh *h, const int *rank)
{
	bool row = true;
	int most = 0;
	for (int k = 0; k < h->nrank; k++) {
		row &= rank[k] == rank[0] + k;
		most = rank[k] > most ? rank[k] : most;
	}
	h->first = row ? rank[0] : 0;
	h->rank = row ? NULL : rank;
	if (row)
		return;
	int *index = arena_array(&m->arena, int, most + 1);
	for (int k = 0; k < h->nrank; k++)
		index[rank[k]] = k + 1;
	h->index = index;
	h->nindex = most + 1;
}

int mesh_rank(const Mesh *m, int index)
{
	return m->rank ? m->rank[index] : m->first + index;
}

int mesh_index(const Mesh *m, int rank)
{
	if (m->rank)
		return rank < m->nindex ? m->index[rank] - 1 : -1;
	return rank >= m->first && rank < m->first + m->nrank ? rank - m->first : -1;
}

/* The ranks that an argument names, one after the other: 3, 0:7, [5, 4]. */
static void take_ranks(Model *m, const Arg *a, int **list, int *n)
{
	for (int i = 0; a->kind == ARG_LIST && i < a->narg; i++)
		take_ranks(m, &a->arg[i], list, n);
	for (int64_t r = a->i; a->kind != ARG_LIST && r <= (a->kind == ARG_RANGE ? a->j : a->i); r++)
		arena_push(&m->arena, *list, *n, (int)r);
}

/* @mesh(m, cpu, [4], 2, 3, 0, 1) */
static void read_ranks(Model *m, const Annot *a, Mesh *h)
{
	int *list = NULL, n = 0;
	for (int i = 0; i < a->narg; i++)
		if (a->arg[i].param && !strcmp(a->arg[i].param, "ranks"))
			take_ranks(m, &a->arg[i], &list, &n);
	if (n)
		mesh_ranks(m, h, list);
}

/* @mesh(name, cpu, [2, 4]) */
static Mesh *read_mesh(Model *m, const Annot *a)
{
	Mesh *h = arena_new(&m->arena, Mesh);
	const Arg *shape = arg_find(a->arg, a->narg, "shape");
	h->loc = a->loc;
	h->nrank = 1;
	h->name = arg_find(a->arg, a->narg, "name")->s;
	h->cuda = !strcmp(arg_find(a->arg, a->narg, "device")->s, "cuda");
	for (int i = 0; i < shape->narg; i++) {
		const Arg *d = &shape->arg[i];
		if (i == MESH_DIMS || d->i > RANKS_MAX || h->nrank * d->i > RANKS_MAX) {
			err_at(d->loc, "a mesh has at most %d dimensions and %d ranks", MESH_DIMS, RANKS_MAX);
			return NULL;
		}
		h->dim[h->ndim++] = (int)d->i;
		h->nrank *= (int)d->i;
	}
	read_ranks(m, a, h);
	return h;
}

/* Whether an annotation is the @mesh of h. */
static bool declares(const Annot *a, const Mesh *h)
{
	return !strcmp(a->name, "mesh") && arg_find(a->arg, a->narg, "name")->s == h->name;
}

/* The location where the model names a rank of a mesh. */
static Loc rank_loc(Model *m, const Mesh *h, int rank)
{
	for (const Annot *a = m->annot; a; a = a->next) {
		if (!declares(a, h))
			continue;
		for (int i = 0; i < a->narg; i++) {
			int *list = NULL, n = 0;
			if (a->arg[i].param && !strcmp(a->arg[i].param, "ranks"))
				take_ranks(m, &a->arg[i], &list, &n);
			while (n-- > 0)
				if (list[n] == rank)
					return a->arg[i].loc;
		}
	}
	return h->loc;
}

/* The number of ranks; -1 after explaining: their numbers have a gap. */
static int count_ranks(Model *m, const Plan *p)
{
	bool *has = arena_array(&m->scratch, bool, RANKS_MAX);
	int n = 0;
	for (int i = 0; i < p->nmesh; i++)
		for (int k = 0; k < p->mesh[i]->nrank; k++) {
			n += !has[mesh_rank(p->mesh[i], k)];
			has[mesh_rank(p->mesh[i], k)] = true;
		}
	for (int i = 0; i < p->nmesh; i++)
		for (int k = 0; k < p->mesh[i]->nrank; k++) {
			const Mesh *h = p->mesh[i];
			if (mesh_rank(h, k) < n)
				continue;
			Loc loc = rank_loc(m, h, mesh_rank(h, k));
			if (p->nmesh == 1)
				err_at(loc, "there is no rank %d: mesh %s has %d ranks, 0 to %d", mesh_rank(h, k),
					h->name, n, n - 1);
			else
				err_at(loc, "there is no rank %d: the meshes have %d ranks together, 0 to %d",
					mesh_rank(h, k), n, n - 1);
			return -1;
		}
	return n;
}

/* Adds @mesh to a model that does not declare it, so that a dump contains it. */
static void declare(Model *m, const Mesh *h)
{
	for (const Annot *a = m->annot; a; a = a->next)
		if (declares(a, h))
			return;
	Annot *a = arena_new(&m->arena, Annot);
	Arg name = { .kind = ARG_WORD, .s = h->name };
	Arg kind = { .kind = ARG_WORD, .s = name_of(h->cuda ? "cuda" : "cpu") };
	Arg shape = { .kind = ARG_LIST };
	for (int k = 0; k < h->ndim; k++)
		arena_push(&m->arena, shape.arg, shape.narg, ((Arg){ .kind = ARG_INT, .i = h->dim[k],
			.f = h->dim[k] }));
	a->name = name_of("mesh");
	arena_push(&m->arena, a->arg, a->narg, name);
	arena_push(&m->arena, a->arg, a->narg, kind);
	arena_push(&m->arena, a->arg, a->narg, shape);
	if (annot_check(a, ON_MODEL))
		die("the mesh that was made up is refused");
	annot_add(&m->annot, a);
}

static Mesh *line_of(Model *m, const char *name, bool cuda, int nrank)
{
	Mesh *h = arena_new(&m->arena, Mesh);
	h->name = name_of(name);
	h->cuda = cuda;
	h->ndim = 1;
	h->dim[0] = h->nrank = nrank;
	return h;
}

/* The mesh of all ranks along one axis. */
static Mesh *find_world(Model *m, Plan *p, int nrank)
{
	const char *name = "ranks";
	if (p->nmesh == 1)
		return p->main;
	for (int i = 0; i < p->nmesh; i++)
		if (p->mesh[i]->ndim == 1 && p->mesh[i]->nrank == nrank && !p->mesh[i]->rank && !p->mesh[i]->first)
			return p->mesh[i];
	for (int i = 0; i < p->nmesh; i++)
		if (!strcmp(p->mesh[i]->name, name)) {
			name = name_fmt("%s.all", name);
			i = -1;
		}
	Mesh *h = line_of(m, name, p->main->cuda, nrank);
	arena_push(&m->arena, p->mesh, p->nmesh, h);
	declare(m, h);
	return h;
}

/* With --stages=N the first axis is that of the pipeline: N ranks, or, where there are fewer, or several stages are
 * for each (a V), as many as divide N. */
void mesh_default(Model *m)
{
	const PipeSchedule *s = opt.schedule ? schedules_find(opt.schedule) : NULL;
	if (!opt.ranks || annot_find(m->annot, "mesh"))
		return;
	Mesh *h = line_of(m, "ranks", opt.target == TARGET_CUDA, (int)opt.ranks);
	int64_t line = opt.stages / (s && s->chunks > 1 ? s->chunks : 1);
	if (line > opt.ranks)
		line = opt.ranks;
	if (line > 0 && line < opt.ranks && opt.ranks % line == 0) {
		h->ndim = 2;
		h->dim[0] = (int)line;
		h->dim[1] = (int)(opt.ranks / line);
	}
	declare(m, h);
}

/* A program is for one kind of device: that of --target, if it is given. */
static int check_devices(const Plan *p)
{
	const Mesh *first = p->main;
	if (opt.target != TARGET_MESH && first->cuda != (opt.target == TARGET_CUDA)) {
		err_at(first->loc,
			"mesh %s is of %s devices, but --target is %s: leave --target out, or change the mesh",
			first->name, first->cuda ? "cuda" : "cpu", opt.target == TARGET_CUDA ? "cuda" : "c");
		return -1;
	}
	for (int i = 1; i < p->nmesh; i++)
		if (p->mesh[i]->cuda != first->cuda) {
			err_at(p->mesh[i]->loc,
				"mesh %s is of %s devices and mesh %s of %s: a program is for one kind of device",
				p->mesh[i]->name, p->mesh[i]->cuda ? "cuda" : "cpu",
				first->name, first->cuda ? "cuda" : "cpu");
			return -1;
		}
	return 0;
}

int mesh_read(Model *m, Plan *p)
{
	if (m->main) {                          /* all programs run on the same ranks */
		const Plan *first = m->main->plan;
		p->mesh = first->mesh;
		p->nmesh = first->nmesh;
		p->main = first->main;
		p->world = first->world;
		for (int i = 0; i < p->nmesh; i++)
			declare(m, p->mesh[i]);
		return 0;
	}
	for (const Annot *a = m->annot; a; a = a->next) {
		if (strcmp(a->name, "mesh"))
			continue;
		Mesh *h = read_mesh(m, a);
		if (!h)
			return -1;
		arena_push(&m->arena, p->mesh, p->nmesh, h);
	}
	if (!p->nmesh) {
		Mesh *h = line_of(m, "ranks", opt.target == TARGET_CUDA, opt.ranks ? (int)opt.ranks : 1);
		arena_push(&m->arena, p->mesh, p->nmesh, h);
		declare(m, h);
	}
	p->main = p->mesh[0];
	int nrank = check_devices(p) ? -1 : count_ranks(m, p);
	if (nrank < 0)
		return -1;
	p->world = find_world(m, p, nrank);
	if (opt.ranks && opt.ranks != nrank) {
		if (p->nmesh == 1)
			err_at(p->main->loc, "mesh %s has %d ranks, but --ranks is %d", p->main->name, nrank,
				(int)opt.ranks);
		else
			err_at(p->main->loc, "the meshes have %d ranks together, but --ranks is %d", nrank,
				(int)opt.ranks);
		return -1;
	}
	return 0;
}
