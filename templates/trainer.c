/*{banner*/
/* A trainer as sbpcc writes it; this file, as it stands, is the template and trains nothing. */
/*}*/
#include "rt.h"
#include "buffers.h"

/* One entry per role: ranks with equal programs share one. */
/*{roles*/
static const RtRole role0 = { { NULL } };
static const RtRole *const roles[] = { &role0 };
/*}*/

/* What differs between ranks: role, coordinates on the mesh, where the part of each split axis begins and how long it is. */
static const RtRank ranks[] = {
/*{ranks*/
	{ 0, { 0 }, { 0 }, { 0 } },
/*}*/
};

/* Values that live from step to step: params.c. */
extern const RtKept params[];

/* What a step takes from outside: name, type, shape, splits, whether peers see it, offset; how it is fed, range of labels. */
/*{inputs*/
static const RtInput step_inputs[] = {
	{ { 0 }, RT_STEP, 0, NULL },
};
static const RtTensor step_outputs[] = { { 0 } };
/*}*/

static const RtProgram program = {
/*{program*/
	.hash = 0,
	.batch = 1,
	.steps = 0,
	.seed = 1,
	.kept = params,
	.part[RT_TRAIN] = { step_inputs, 0, step_outputs, 0 },
/*}*/
	.nrank = sizeof ranks / sizeof ranks[0],
	.rank = ranks,
	.role = roles,
	.nrole = sizeof roles / sizeof roles[0],
	.value = values,
	.nvalue = NVALUE,
	.most = MOST,
	.slab_bytes = SLAB_BYTES,
	.window_bytes = WINDOW_BYTES,
	.work_shared = RT_WORK_SHARED,
	.work_each = RT_WORK_EACH,
};

int main(int argc, char **argv)
{
	return rt_main(&program, argc, argv);
}
