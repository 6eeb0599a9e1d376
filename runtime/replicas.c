/* Compares replicas: kept values that several ranks hold, as full tensors or as equal shards, must have the same bytes
 * on each, because ranks compute them from the same bytes in the same order.  So a faulty memory or processor is
 * detected before its result is saved.
 *
 *            ranks 0 and 2    ranks 1 and 3        w is (B, S(0)) on 2 x 2: two groups, each with equal checksums
 *   w        rows 0 .. 4      rows 5 .. 9 */
#include "comm.h"
#include "save.h"

/* The checksum of all values kept in this form; 0: full tensors on every rank. */
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

/* The number of the shard of this rank, counted over the axes of the mesh that cut; -1: none.  *count: the number of
 * shards. */
static int shard_of(const Ctx *c, const Form *f, int *count)
{
	int coord[FORM_MESH], index = form_index(f, c->rank), shard = 0;
	*count = 1;
	if (index >= 0)
		form_coord(f, index, coord);
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind != FORM_B) {
			*count *= f->mesh[k];
			shard = shard * f->mesh[k] + (index >= 0 ? coord[k] : 0);
		}
	return index >= 0 ? shard : -1;
}

/* Compares with the largest and the smallest value of a group; all ranks call it. */
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
		int shards, mine = shard_of(c, f, &shards);
		if (shards == form_nrank(f) || !used(c, i + 1))
			continue;
		uint32_t sum = mine >= 0 ? checksum(c, i + 1) : 0;
		for (int k = 0; k < shards; k++)
			same &= alike(c, sum, k == mine);
	}
	int code = same ? 0 : rt_error(c, RT_NUMERIC,
		"parameters or state differ from those of another rank: memory or a processor is faulty");
	return (int)rt_worst(c, (uint32_t)code);
}
