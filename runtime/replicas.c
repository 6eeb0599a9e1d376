/* Ranks that hold the same numbers are held against each other: what several ranks keep, whole or the same part of it, must have the same bytes on
 * each, because they compute it from the same bytes in the same order.  A bit that memory or a processor got wrong shows here, before it is saved.
 *
 *            ranks 0 and 2    ranks 1 and 3        w is (B, S(0)) on 2 x 2: two groups, and the checksums of each are one number
 *   w        rows 0 .. 4      rows 5 .. 9 */
#include "comm.h"
#include "save.h"

/* Of all that is kept in this form; 0: whole on every rank. */
static uint32_t checksum(Ctx *c, int form)
{
	uint32_t sum = 0;
	for (int i = 0; i < c->program->nkept; i++) {
		const RtTensor *t = &c->program->kept[i].t;
		if (c->program->kept[i].keep != RT_CONSTANT && t->form == form)
			sum = rt_crc32c(sum, rt_address(c, t), rt_bytes(c, t));
	}
	return sum;
}

static bool used(const Ctx *c, int form)
{
	for (int i = 0; i < c->program->nkept; i++)
		if (c->program->kept[i].keep != RT_CONSTANT && c->program->kept[i].t.form == form)
			return true;
	return false;
}

/* Which part the rank has, counted over the axes of the mesh that cut; -1: none.  *parts: how many there are. */
static int part_of(const Ctx *c, const Form *f, int *parts)
{
	int coord[FORM_MESH], place = form_index(f, c->rank), part = 0;
	*parts = 1;
	if (place >= 0)
		form_coord(f, place, coord);
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind != FORM_B) {
			*parts *= f->mesh[k];
			part = part * f->mesh[k] + (place >= 0 ? coord[k] : 0);
		}
	return place >= 0 ? part : -1;
}

/* The largest and the smallest of a group are told to all; all ranks call it. */
static bool alike(Ctx *c, uint32_t mine, bool member)
{
	uint32_t most = rt_worst(c, member ? mine : 0), least = ~rt_worst(c, member ? ~mine : 0);
	return !member || (mine == most && mine == least);
}

int rt_replicas(Ctx *c)
{
	bool same = true;
	if (c->nrank == 1 || c->device)
		return 0;
	if (used(c, 0))
		same = alike(c, checksum(c, 0), true);
	for (int i = 0; i < c->program->nform; i++) {
		const Form *f = &c->program->form[i];
		int parts, mine = part_of(c, f, &parts);
		if (parts == form_nrank(f) || !used(c, i + 1))
			continue;
		uint32_t sum = mine >= 0 ? checksum(c, i + 1) : 0;
		for (int k = 0; k < parts; k++)
			same &= alike(c, sum, k == mine);
	}
	int code = same ? 0 : rt_error(c, RT_NUMERIC, "parameters or state differ from those of another rank: memory or a processor is faulty");
	return (int)rt_worst(c, (uint32_t)code);
}
