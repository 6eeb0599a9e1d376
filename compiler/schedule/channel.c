/* Channels: which transfers ranks number together.
 *
 * A channel is a pair of placements: a transfer goes from the ranks of its operand's mesh to the ranks of its result's
 * mesh, and all transfers between these two meshes are on one channel.  The ranks of both meshes perform them in the
 * same order, so they are numbered: number k of one rank meets number k of the others.  A rank of neither mesh knows
 * nothing of them.  All programs share the channels, because they share forms and transfers. */
#include "schedule/schedule.h"

int channel_of(Graph *g, const Slot *x, const Slot *y)
{
	const Plan *p = g->model->plan;
	Channels *all = p->channels;
	const Form *from = slot_form(p, x), *to = slot_form(p, y);
	for (int i = 0; i < all->n; i++)
		if (form_one_mesh(&p->forms->form[all->channel[i].from], from) &&
			form_one_mesh(&p->forms->form[all->channel[i].to], to))
			return i;
	Arena *arena = g->model->main ? g->model->main->graph->arena : g->arena;
	arena_push(arena, all->channel, all->n, ((Channel){ x->form, y->form }));
	return all->n - 1;
}

bool channel_joins(const Action *a, int rank)
{
	return mesh_index(a->n->in[0]->place->mesh, rank) >= 0 || mesh_index(a->n->out[0]->place->mesh, rank) >= 0;
}
