/* Channels: which transfers ranks number together.
 *
 * A channel is a pair of placements: a transfer goes from the ranks of its operand's mesh to the ranks of its result's
 * mesh, and all transfers between these two meshes are on one channel.  The ranks of both meshes perform them in the
 * same order, so they are numbered: number k of one rank meets number k of the others.  A rank of neither mesh knows
 * nothing of them.  A queue between stages has a channel of its own, because its ranks are not in the same order.  All
 * programs share the channels, because they share forms and transfers. */
#include "schedule/schedule.h"

static int add(Graph *g, const Slot *x, const Slot *y, bool queue)
{
	Channels *all = g->model->plan->channels;
	Arena *arena = g->model->main ? g->model->main->graph->arena : g->arena;
	arena_push(arena, all->channel, all->n, ((Channel){ x->form, y->form, queue }));
	return all->n - 1;
}

int channel_of(Graph *g, const Slot *x, const Slot *y)
{
	const Plan *p = g->model->plan;
	Channels *all = p->channels;
	const Form *from = slot_form(p, x), *to = slot_form(p, y);
	for (int i = 0; i < all->n; i++)
		if (!all->channel[i].queue && form_one_mesh(&p->forms->form[all->channel[i].from], from) &&
			form_one_mesh(&p->forms->form[all->channel[i].to], to))
			return i;
	return add(g, x, y, false);
}

int channel_new(Graph *g, const Slot *x, const Slot *y)
{
	return add(g, x, y, true);
}

bool channel_joins(const Action *a, int rank)
{
	return mesh_index(a->n->in[0]->place->mesh, rank) >= 0 || mesh_index(a->n->out[0]->place->mesh, rank) >= 0;
}
