/* Ranks that hold the same numbers are held against each other: what every rank keeps whole must have the same bytes everywhere, because
 * all ranks compute it from the same bytes in the same order.  A bit that memory or a processor got wrong shows here, before it is saved. */
#include "run.h"

int rt_replicas(Ctx *c)
{
	uint32_t mine = 0;
	if (c->nrank == 1 || c->device)
		return 0;
	for (int i = 0; i < c->program->nkept; i++) {
		const RtTensor *t = &c->program->kept[i].t;
		if (c->program->kept[i].keep != RT_CONSTANT && !t->form)
			mine = rt_crc32c(mine, rt_place(c, t), rt_bytes(c, t));
	}
	uint32_t first = rt_agree(c, mine);
	int code = mine == first ? 0 : rt_error(c, RT_NUMERIC, "parameters or state differ from those of rank 0: a memory or a processor is faulty");
	return (int)rt_worst(c, (uint32_t)code);
}
