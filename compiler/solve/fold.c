/* Identical layers of a problem.
 *
 * A model of a hundred layers is the same problem a hundred times, connected by a few nodes: the values that flow from
 * layer to layer, forward and backward, and those that all layers share.  Equal costs have equal pointers, so this is
 * visible before anything is computed.  This file divides the problem into motifs.  A motif is a set of copies: each
 * has the same nodes connected by the same tables, and its nodes have no other edges than those to ports, nodes outside
 * of all copies.  solve.c then reads and prunes one copy of a motif.  For the others it writes what is left of the
 * first, with the same tables, and decodes the choices inside once for each assignment of the ports.
 *
 *        port         port         port                      port        port        port
 *    .... x0 -[ copy ]- x1 -[ copy ]- x2 ....    becomes    .... x0 - a b - x1 - a b - x2 ....
 *               \          /                                           \       /
 *                  shared                                                shared
 *
 * How copies are found:
 *   - Every node gets a colour: a hash of its costs, its tables and the colours of its neighbours, a few edges far
 *     (Weisfeiler and Leman 1968).
 *   - Most colours of a model of n layers occur n times.  The nodes of such a colour are the seeds of the copies.
 *   - Copies grow in lockstep.  One in the middle is the pattern; the node at the end of its next edge and the nodes at
 *     the same edges of the other copies are added.  They must be alike and in no copy yet.  A copy that differs, at
 *     the ends of the model or at an unusual layer, is dropped; when too many would be, the node stays outside of all
 *     copies.
 *   - Where two copies touch, one of the two nodes is taken out of all copies and becomes a port.
 *   - Finally each copy is compared with the pattern, edge by edge and port by port.
 * Colours only guide the search: everything that is relied on is compared.
 *
 * The motifs do not depend on the addresses of tables, only on which are equal, so the result is reproducible.  Each
 * pruning step inside of a copy holds for every assignment of the ports, so it is also valid in the whole problem: the
 * least cost is the same with and without motifs. */
#include "solve/solve.h"

#include <string.h>

enum {
	ROUNDS = 3,                     /* radius of the neighbourhood that a colour describes */
	COPIES = 3,                     /* least copies of a motif */
	MOTIFS = 8,                     /* most motifs */
	SMALL = 16,                     /* fewer nodes are not worth a motif */
	TOUCHES = 512                   /* most pairs of roles by which copies touch: with more they are no layers */
};

/* The edges of each node, in the order of the problem; a self-loop is listed twice. */
typedef struct Near { int *first, *edge; } Near;

typedef struct Copies {
	int n, left;                    /* copies; those not dropped */
	bool *bad;
	int first;                      /* number of copy 0 in owner */
	int pattern;                    /* the copy that the others are compared with */
	int **node, nnode;              /* [role][copy] */
} Copies;

typedef struct Finder {
	const SolveProblem *p;
	Arena *arena;
	Near near;
	uint64_t *colour;
	int *owner, *role;              /* by node: its copy, or one of those below; its position in the copy */
	int nowner;
} Finder;
enum { NONE = -1, REFUSED = -2, PORT = -3 };            /* REFUSED: by this motif; PORT: never inside of a motif */

static uint64_t stir(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 31;
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void find_near(Finder *f)
{
	const SolveProblem *p = f->p;
	int *at = arena_array(f->arena, int, p->nnode + 2);
	for (int e = 0; e < p->nedge; e++) {
		at[p->edge[e].a + 2]++;
		at[p->edge[e].b + 2]++;
	}
	for (int i = 2; i < p->nnode + 2; i++)
		at[i] += at[i - 1];
	f->near.edge = arena_array(f->arena, int, 2 * (size_t)p->nedge + 1);
	for (int e = 0; e < p->nedge; e++) {
		f->near.edge[at[p->edge[e].a + 1]++] = e;
		f->near.edge[at[p->edge[e].b + 1]++] = e;
	}
	f->near.first = at;
}

static int degree(const Finder *f, int v)
{
	return f->near.first[v + 1] - f->near.first[v];
}

static int edge_of(const Finder *f, int v, int k)
{
	return f->near.edge[f->near.first[v] + k];
}

static int other(const Finder *f, int v, int k)
{
	const SolveEdge *e = &f->p->edge[edge_of(f, v, k)];
	return e->a == v ? e->b : e->a;
}

static void find_colours(Finder *f)
{
	const SolveProblem *p = f->p;
	uint64_t *sum = arena_array(f->arena, uint64_t, p->nnode + 1);
	f->colour = arena_array(f->arena, uint64_t, p->nnode + 1);
	for (int i = 0; i < p->nnode; i++)
		f->colour[i] = stir(stir((uint64_t)p->node[i].n, address(p->node[i].cost)), address(p->node[i].use));
	for (int r = 0; r < ROUNDS; r++) {
		memset(sum, 0, sizeof *sum * (size_t)p->nnode);
		for (int i = 0; i < p->nedge; i++) {
			const SolveEdge *e = &p->edge[i];
			uint64_t t = address(e->cost);
			sum[e->a] += stir(f->colour[e->b], t);
			sum[e->b] += stir(f->colour[e->a], t + 1);
		}
		for (int i = 0; i < p->nnode; i++)
			f->colour[i] = stir(f->colour[i], sum[i]);
	}
}

/* ---- seeds ---- */

typedef struct Shade { uint64_t colour; int times; } Shade;
typedef struct Shades { Shade *list; int n, *slot; size_t room; } Shades;       /* slot: hashed 1 + index in list */

static int *slot_of(const Shades *s, uint64_t colour)
{
	size_t i = (size_t)colour & (s->room - 1);
	while (s->slot[i] && s->list[s->slot[i] - 1].colour != colour)
		i = (i + 1) & (s->room - 1);
	return &s->slot[i];
}

/* The entry of a colour; a model of many layers has few. */
static Shade *shade_of(Arena *a, Shades *s, uint64_t colour)
{
	if (2 * (size_t)s->n >= s->room) {
		s->room = s->room ? 2 * s->room : 256;
		s->slot = arena_array(a, int, s->room);
		for (int i = 0; i < s->n; i++)
			*slot_of(s, s->list[i].colour) = i + 1;
	}
	int *slot = slot_of(s, colour);
	if (!*slot) {
		arena_push(a, s->list, s->n, ((Shade){ colour, 0 }));
		*slot = s->n;
	}
	return &s->list[*slot - 1];
}

/* The most common multiplicity among the colours of free nodes, and the first colour that has it; 0: none occurs often
 * enough. */
static int find_seed(Finder *f, uint64_t *colour)
{
	int n = f->p->nnode, best = 0, *many = arena_array(f->arena, int, n + 1);
	Shades s = { 0 };
	for (int i = 0; i < n; i++)
		if (f->owner[i] == NONE)
			shade_of(f->arena, &s, f->colour[i])->times++;
	for (int i = 0; i < s.n; i++)
		many[s.list[i].times]++;
	for (int k = COPIES; k <= n; k++)
		best = many[k] && (!best || many[k] >= many[best]) ? k : best;
	if (!best || (int64_t)best * many[best] < SMALL)
		return 0;
	int at = 0;
	while (s.list[at].times != best)
		at++;
	*colour = s.list[at].colour;
	return best;
}

/* ---- growing ---- */

static bool alike(const Finder *f, int x, int y)
{
	const SolveNode *a = &f->p->node[x], *b = &f->p->node[y];
	if (a->n != b->n || a->cost != b->cost || a->use != b->use || degree(f, x) != degree(f, y))
		return false;
	for (int k = 0; k < degree(f, x); k++) {
		const SolveEdge *d = &f->p->edge[edge_of(f, x, k)], *e = &f->p->edge[edge_of(f, y, k)];
		if (d->cost != e->cost || (d->a == x) != (e->a == y) || (d->b == x) != (e->b == y))
			return false;
	}
	return true;
}

/* Drops a copy. */
static void give_up(Finder *f, Copies *c, int copy)
{
	c->bad[copy] = true;
	c->left--;
	for (int r = 0; r < c->nnode; r++)
		if (f->owner[c->node[r][copy]] == c->first + copy)
			f->owner[c->node[r][copy]] = NONE;
}

/* Adds one more node to each copy: the one at edge k of role r.  Copies without such a node are dropped; if they are
 * too many, the node is not added. */
static void grow(Finder *f, Copies *c, int r, int k)
{
	int *to = arena_array(f->arena, int, c->n), like = other(f, c->node[r][c->pattern], k);
	int missing = 0, allowed = c->n / 3 - (c->n - c->left);
	for (int i = 0; i < c->n && missing <= allowed; i++) {
		if (c->bad[i])
			continue;
		int y = other(f, c->node[r][i], k);
		to[i] = f->owner[y] == NONE && alike(f, like, y) ? y : NONE;
		missing += to[i] == NONE;
		if (to[i] == NONE)
			continue;
		f->owner[y] = c->first + i;
		f->role[y] = c->nnode;
	}
	if (missing > allowed || f->owner[like] != c->first + c->pattern) {
		for (int i = 0; i < c->n; i++) {
			if (c->bad[i] || to[i] == NONE)
				continue;
			if (f->owner[to[i]] == c->first + i && f->role[to[i]] == c->nnode)
				f->owner[to[i]] = NONE;
		}
		f->owner[like] = f->owner[like] == NONE ? REFUSED : f->owner[like];
		return;
	}
	for (int i = 0; i < c->n && missing; i++)
		if (!c->bad[i] && to[i] == NONE)
			give_up(f, c, i);
	arena_push(f->arena, c->node, c->nnode, to);
}

static void grow_all(Finder *f, Copies *c)
{
	for (int r = 0; r < c->nnode; r++)
		for (int k = 0; k < degree(f, c->node[r][c->pattern]); k++)
			if (f->owner[other(f, c->node[r][c->pattern], k)] == NONE)
				grow(f, c, r, k);
	for (int i = 0; i < f->p->nnode; i++)
		f->owner[i] = f->owner[i] == REFUSED ? NONE : f->owner[i];
}

/* ---- copies that touch ---- */

typedef struct Touch { int a, b; bool gone; } Touch;      /* roles of two nodes of different copies */

static bool is_inside(const Finder *f, const Copies *c, int copy, int v)
{
	return f->owner[v] == c->first + copy;
}

/* Whether a copy has the same inner edges as the pattern. */
static bool same_inside(const Finder *f, const Copies *c, int copy)
{
	for (int r = 0; r < c->nnode; r++)
		for (int k = 0, v = c->node[r][c->pattern]; k < degree(f, v); k++) {
			int x = other(f, v, k), y = other(f, c->node[r][copy], k);
			bool in = is_inside(f, c, c->pattern, x);
			if (in != is_inside(f, c, copy, y) || (in && f->role[x] != f->role[y]))
				return false;
		}
	return true;
}

/* The pairs of roles by which copies touch; NULL: none, or too many. */
static Touch *find_touches(const Finder *f, const Copies *c, int *n)
{
	Touch *list = NULL;
	*n = 0;
	for (int i = 0; i < c->n; i++)
		for (int r = 0; r < c->nnode && !c->bad[i]; r++)
			for (int k = 0, v = c->node[r][i]; k < degree(f, v); k++) {
				int y = other(f, v, k), at = 0;
				if (f->owner[y] < c->first || f->owner[y] == c->first + i)
					continue;
				while (at < *n && (list[at].a != r || list[at].b != f->role[y]))
					at++;
				if (at == TOUCHES)
					return NULL;
				if (at == *n)
					arena_push(f->arena, list, *n, ((Touch){ r, f->role[y], false }));
			}
	return list;
}

/* Removes roles, those that touch most others first, until no copy touches another. */
static void separate(Finder *f, Copies *c)
{
	int n, *times = arena_array(f->arena, int, c->nnode), kept = 0;
	bool *out = arena_array(f->arena, bool, c->nnode);
	Touch *t = find_touches(f, c, &n);
	for (int r = 0; r < c->nnode && n && !t; r++)
		out[r] = true;
	while (t) {
		int worst = -1;
		memset(times, 0, sizeof *times * (size_t)c->nnode);
		for (int i = 0; i < n; i++)
			if (!t[i].gone) {
				times[t[i].a]++;
				times[t[i].b]++;
			}
		for (int r = 0; r < c->nnode; r++)
			if (times[r] && (worst < 0 || times[r] > times[worst]))
				worst = r;
		if (worst < 0)
			break;
		out[worst] = true;
		for (int i = 0; i < n; i++)
			t[i].gone |= t[i].a == worst || t[i].b == worst;
	}
	for (int r = 0; r < c->nnode; r++) {
		for (int i = 0; i < c->n && out[r]; i++)
			if (!c->bad[i])
				f->owner[c->node[r][i]] = NONE;
		if (!out[r])
			c->node[kept++] = c->node[r];
	}
	c->nnode = kept;
}

/* Sorts roles by the order of the pattern's nodes in the problem. */
static void sort_roles(Finder *f, Copies *c)
{
	int **node = arena_array(f->arena, int *, c->nnode + 1), n = 0;
	int *at = arena_array(f->arena, int, f->p->nnode + 1);
	for (int r = 0; r < c->nnode; r++)
		at[c->node[r][c->pattern]] = r + 1;
	for (int v = 0; v < f->p->nnode; v++)
		if (at[v])
			node[n++] = c->node[at[v] - 1];
	c->node = node;
	for (int r = 0; r < n; r++)
		for (int i = 0; i < c->n; i++)
			if (!c->bad[i])
				f->role[c->node[r][i]] = r;
}

/* ---- motifs ---- */

/* An edge of the pattern: edge k of a role, and the port at its end; -1: an inner edge. */
typedef struct Slot { int role, k, port; } Slot;

static Slot *find_slots(const Finder *f, const Copies *c, int *nslot, int *nport)
{
	Slot *slot = NULL;
	int *port = NULL;
	*nslot = *nport = 0;
	for (int r = 0; r < c->nnode; r++)
		for (int k = 0, v = c->node[r][c->pattern]; k < degree(f, v); k++) {
			int y = other(f, v, k), at = 0;
			bool in = is_inside(f, c, c->pattern, y);
			if (in && (f->role[y] < r || (y == v && k && edge_of(f, v, k) == edge_of(f, v, k - 1))))
				continue;               /* listed at its other end */
			while (at < *nport && port[at] != y)
				at++;
			if (!in && at == *nport)
				arena_push(f->arena, port, *nport, y);
			arena_push(f->arena, slot, *nslot, ((Slot){ r, k, in ? -1 : at }));
		}
	return slot;
}

/* Writes the nodes of a copy, then its ports, and its edges; false: its ports do not correspond one to one to those of
 * the pattern. */
static bool write_copy(const Finder *f, const Copies *c, int copy, const Slot *slot, Motif *b, int *seen)
{
	int *node = b->node + (size_t)b->ncopy * (size_t)(b->nin + b->nport);
	int *edge = b->edge + (size_t)b->ncopy * (size_t)b->nedge;
	for (int r = 0; r < b->nin; r++)
		node[r] = c->node[r][copy];
	for (int k = 0; k < b->nport; k++)
		node[b->nin + k] = -1;
	for (int i = 0; i < b->nedge; i++) {
		int v = node[slot[i].role], y = other(f, v, slot[i].k);
		edge[i] = edge_of(f, v, slot[i].k);
		if (slot[i].port < 0)
			continue;
		int *port = &node[b->nin + slot[i].port];
		if (*port < 0 && seen[y] != copy + 1) {
			*port = y;
			seen[y] = copy + 1;
		}
		if (*port != y)
			return false;
	}
	for (int k = 0; k < b->nport; k++)
		if (f->p->node[node[b->nin + k]].n != f->p->node[b->node[b->nin + k]].n)
			return false;
	b->ncopy++;
	return true;
}

static bool write_motif(Finder *f, Copies *c, Motif *b)
{
	int nslot, nport, *seen = arena_array(f->arena, int, f->p->nnode + 1);
	Slot *slot = find_slots(f, c, &nslot, &nport);
	*b = (Motif){ .nin = c->nnode, .nport = nport, .nedge = nslot };
	b->node = arena_array(f->arena, int, (size_t)c->left * (size_t)(b->nin + nport) + 1);
	b->edge = arena_array(f->arena, int, (size_t)c->left * (size_t)nslot + 1);
	write_copy(f, c, c->pattern, slot, b, seen);
	for (int i = 0; i < c->n; i++)
		if (i != c->pattern && !c->bad[i] && !write_copy(f, c, i, slot, b, seen))
			give_up(f, c, i);
	return b->ncopy >= COPIES;
}

static void drop_all(Finder *f, Copies *c)
{
	for (int i = 0; i < c->n; i++)
		if (!c->bad[i])
			give_up(f, c, i);
}

/* Grows one motif from the nodes of a colour; false: they are no seeds of copies. */
static bool find_motif(Finder *f, uint64_t colour, int times, Motif *b)
{
	Copies c = { .n = times, .left = times, .first = f->nowner, .pattern = times / 2 };
	int *seed = arena_array(f->arena, int, times), n = 0;
	c.bad = arena_array(f->arena, bool, times);
	f->nowner += times;
	for (int v = 0; v < f->p->nnode; v++)
		if (f->owner[v] == NONE && f->colour[v] == colour) {
			f->owner[v] = c.first + n;
			f->role[v] = 0;
			seed[n++] = v;
		}
	arena_push(f->arena, c.node, c.nnode, seed);
	for (int i = 0; i < times; i++)
		if (!alike(f, seed[c.pattern], seed[i]))
			give_up(f, &c, i);
	grow_all(f, &c);
	for (int i = 0; i < times; i++)
		if (!c.bad[i] && !same_inside(f, &c, i))
			give_up(f, &c, i);
	separate(f, &c);
	sort_roles(f, &c);
	if (c.nnode && c.left >= COPIES && write_motif(f, &c, b) && b->ncopy * b->nin >= SMALL) {
		for (int i = 0; i < b->ncopy; i++)
			for (int k = b->nin; k < b->nin + b->nport; k++)
				f->owner[b->node[i * (b->nin + b->nport) + k]] = PORT;
		return true;
	}
	drop_all(f, &c);
	for (int i = 0; i < times; i++)         /* so that this colour is not tried again */
		f->colour[seed[i]] = stir(f->colour[seed[i]], (uint64_t)seed[i]);
	return false;
}

static void find_rest(const Finder *f, Arena *a, Fold *out)
{
	const SolveProblem *p = f->p;
	out->node = arena_array(a, int, p->nnode + 1);
	out->edge = arena_array(a, int, p->nedge + 1);
	for (int v = 0; v < p->nnode; v++)
		if (f->owner[v] < 0)
			out->node[out->nnode++] = v;
	for (int e = 0; e < p->nedge; e++)
		if (f->owner[p->edge[e].a] < 0 && f->owner[p->edge[e].b] < 0)
			out->edge[out->nedge++] = e;
}

void fold_find(const SolveProblem *p, Arena *a, Fold *out)
{
	Finder f = { .p = p, .arena = a };
	f.owner = arena_array(a, int, p->nnode + 1);
	f.role = arena_array(a, int, p->nnode + 1);
	uint64_t colour;
	int times, left = p->nnode;
	*out = (Fold){ .motif = arena_array(a, Motif, MOTIFS) };
	memset(f.owner, -1, sizeof *f.owner * ((size_t)p->nnode + 1));
	if (p->nnode >= COPIES * SMALL && !p->flat) {
		find_near(&f);
		find_colours(&f);
		for (int i = 0; i < MOTIFS && left > p->nnode / 8 && (times = find_seed(&f, &colour)); i++) {
			Motif *b = &out->motif[out->nmotif];
			if (!find_motif(&f, colour, times, b))
				continue;
			left -= b->ncopy * b->nin;
			out->nmotif++;
		}
	}
	find_rest(&f, a, out);
}
