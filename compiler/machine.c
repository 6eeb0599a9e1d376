/* The machine: meshes of ranks, from @mesh in the model or from --ranks.  Without either, one rank. */
#include "compiler.h"

#include <string.h>

int mesh_place(const Mesh *m, int rank)
{
	for (int i = 0; m->rank && i < m->nrank; i++)
		if (m->rank[i] == rank)
			return i;
	return m->rank || rank >= m->nrank ? -1 : rank;
}

void mesh_coord(const Mesh *m, int rank, int *coord)
{
	int place = mesh_place(m, rank);
	for (int k = m->ndim - 1; k >= 0; k--) {
		coord[k] = place % m->dim[k];
		place /= m->dim[k];
	}
}

/* The ranks that an argument names, one after the other: 3, 0:7, [5, 4]. */
static void take_ranks(Model *m, const Arg *a, int **list, int *n)
{
	for (int i = 0; a->kind == ARG_LIST && i < a->narg; i++)
		take_ranks(m, &a->arg[i], list, n);
	for (int64_t r = a->i; a->kind != ARG_LIST && r <= (a->kind == ARG_RANGE ? a->j : a->i); r++)
		arena_push(&m->arena, *list, *n, (int)r);
}

/* @mesh(m, cpu, [4], 2, 3, 0, 1): a program is started with as many ranks as the mesh has, so these are 0, 1, 2, ... in some order. */
static int read_ranks(Model *m, const Annot *a, Mesh *h)
{
	int *list = NULL, n = 0;
	bool usual = true;
	for (int i = 0; i < a->narg; i++) {
		if (!a->arg[i].param || strcmp(a->arg[i].param, "ranks"))
			continue;
		int first = n;
		take_ranks(m, &a->arg[i], &list, &n);
		for (int k = first; k < n; k++) {
			usual &= list[k] == k;
			if (list[k] < h->nrank)
				continue;
			err_at(a->arg[i].loc, "there is no rank %d: mesh %s has %d ranks, 0 to %d", list[k], h->name, h->nrank, h->nrank - 1);
			return -1;
		}
	}
	h->rank = usual ? NULL : list;
	return 0;
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
	return read_ranks(m, a, h) ? NULL : h;
}

/* Writes the mesh into the model, so that a dump says it. */
static void declare(Model *m, const Mesh *h)
{
	Annot *a = arena_new(&m->arena, Annot);
	Arg name = { .kind = ARG_WORD, .s = h->name }, kind = { .kind = ARG_WORD, .s = name_of(h->cuda ? "cuda" : "cpu") };
	Arg shape = { .kind = ARG_LIST }, size = { .kind = ARG_INT, .i = h->nrank, .f = h->nrank };
	arena_push(&m->arena, shape.arg, shape.narg, size);
	a->name = name_of("mesh");
	arena_push(&m->arena, a->arg, a->narg, name);
	arena_push(&m->arena, a->arg, a->narg, kind);
	arena_push(&m->arena, a->arg, a->narg, shape);
	if (annot_check(a, ON_MODEL))
		die("the mesh that was made up is refused");
	annot_add(&m->annot, a);
}

int machine_read(Model *m, Plan *p)
{
	for (const Annot *a = m->annot; a; a = a->next) {
		if (strcmp(a->name, "mesh"))
			continue;
		Mesh *h = read_mesh(m, a);
		if (!h)
			return -1;
		arena_push(&m->arena, p->mesh, p->nmesh, h);
	}
	if (p->nmesh > 1) {
		err_at(p->mesh[1]->loc, "this back end plans for one mesh; here is a second");
		return -1;
	}
	if (!p->nmesh) {
		Mesh *h = arena_new(&m->arena, Mesh);
		h->name = name_of("ranks");
		h->cuda = opt.target == TARGET_CUDA;
		h->ndim = 1;
		h->dim[0] = h->nrank = opt.ranks ? (int)opt.ranks : 1;
		arena_push(&m->arena, p->mesh, p->nmesh, h);
		declare(m, h);
	}
	p->main = p->mesh[0];
	if (opt.ranks && opt.ranks != p->main->nrank) {
		err_at(p->main->loc, "mesh %s has %d ranks, but --ranks says %d", p->main->name, p->main->nrank, (int)opt.ranks);
		return -1;
	}
	return 0;
}
