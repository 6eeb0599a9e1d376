/*{banner*/
/* A model as sbpcc writes it; this file, as it stands, is the template and does nothing. */
/*}*/
#include "model.h"
#include "buffers.h"
#include "tables.h"

/* One entry per role: ranks with equal programs share one. */
/*{roles*/
static const RtRole role0 = { .schedule = { NULL } };
static const RtRole *const roles[] = { &role0 };
/*}*/

/*{ranks*/
/*}*/
/* Values that live from step to step: params.c. */
extern const RtKept params[];

/* Inputs and outputs of each program; a tensor has a name, a type, a form (1 + its index into the forms; 0: every rank
 * holds the full tensor), whether peers read it, an offset, the number of axes and a shape. */
/*{inputs*/
static const RtInput step_inputs[] = {
	{ .feed = RT_STEP },
};
static const RtTensor step_outputs[] = { { 0 } };
/*}*/

static const RtProgram program = {
/*{program*/
	.hash = 0,
	.nrank = 1,
	.batch = 1,
	.steps = 0,
	.seed = 1,
	.kept = params,
	.io[RT_TRAIN] = { .input = step_inputs, .output = step_outputs },
/*}*/
	.role = roles,
	.nrole = sizeof roles / sizeof roles[0],
	.value = values,
	.nvalue = NVALUE,
	.most = MOST,
	.form = forms,
	.nform = NFORM,
	.move = moves,
	.nmove = NMOVE,
	.channel = channels,
	.nchannel = NCHANNEL,
	.shape = shapes,
	.shape_of = shape_of,
	.gradient = gradients,
	.ngradient = &ngradient,
	.slab_bytes = SLAB_BYTES,
	.window_bytes = WINDOW_BYTES,
	.work_shared = WORK_SHARED,
	.work_each = WORK_EACH,
};

/* The functions of model.h, under the prefix of this model. */
#define OF(name) sbp_##name
#include "library.h"
