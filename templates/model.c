/*{banner*/
/* A model as sbpcc writes it; this file, as it stands, is the template and does nothing. */
/*}*/
#include "model.h"
#include "buffers.h"

/* One entry per role: ranks with equal programs share one. */
/*{roles*/
static const RtRole role0 = { { NULL } };
static const RtRole *const roles[] = { &role0 };
/*}*/

/*{ranks*/
/*}*/
/* Values that live from step to step: params.c. */
extern const RtKept params[];

/* What a step takes from outside: name, type, shape, form, whether peers see it, offset; how it is fed, range of labels. */
/*{inputs*/
static const RtInput step_inputs[] = {
	{ { 0 }, RT_STEP, 0, NULL },
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
	.part[RT_TRAIN] = { step_inputs, 0, step_outputs, 0, NULL, 0 },
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
	.shape = shapes,
	.shape_of = shape_of,
	.gradient = gradients,
	.ngradient = &ngradient,
	.slab_bytes = SLAB_BYTES,
	.window_bytes = WINDOW_BYTES,
	.work_shared = WORK_SHARED,
	.work_each = WORK_EACH,
};

/* ---- model.h ---- */

sbp_config *sbp_config_new(void)
{
	return (sbp_config *)rt_config_new();
}

void sbp_config_free(sbp_config *c)
{
	rt_config_free((RtConfig *)c);
}

void sbp_config_threads(sbp_config *c, int threads)
{
	((RtConfig *)c)->threads = threads;
}

void sbp_config_seed(sbp_config *c, uint32_t seed)
{
	((RtConfig *)c)->seed = (int64_t)seed;
}

int sbp_config_weights(sbp_config *c, const char *path)
{
	return rt_config_path(&((RtConfig *)c)->weights, path);
}

int sbp_config_weights_map(sbp_config *c, const char *rules)
{
	return rt_config_path(&((RtConfig *)c)->map, rules);
}

void sbp_config_weights_partial(sbp_config *c, int partial)
{
	((RtConfig *)c)->partial = partial != 0;
}

void sbp_config_changed_data(sbp_config *c, int changed)
{
	((RtConfig *)c)->changed_data = changed != 0;
}

int sbp_config_data(sbp_config *c, const char *path)
{
	return rt_config_path(&((RtConfig *)c)->data, path);
}

sbp_context *sbp_context_new(const sbp_config *config)
{
	return (sbp_context *)rt_open(&program, (const RtConfig *)config);
}

void sbp_context_free(sbp_context *c)
{
	rt_close((RtSession *)c);
}

int sbp_step(sbp_context *c, float *loss)
{
	return rt_step_once((RtSession *)c, loss);
}

int64_t sbp_batch(void)
{
	return program.batch;
}

int sbp_step_on(sbp_context *c, int64_t samples, const void *const *in, float *loss)
{
	return rt_step_on((RtSession *)c, samples, in, loss);
}

int64_t sbp_steps(const sbp_context *c)
{
	return rt_steps_done((const RtSession *)c);
}

double sbp_rate(const sbp_context *c)
{
	return rt_rate((const RtSession *)c);
}

int sbp_save(sbp_context *c, const char *dir)
{
	return rt_save_to((RtSession *)c, dir);
}

int sbp_resume(sbp_context *c, const char *dir)
{
	return rt_resume_from((RtSession *)c, dir);
}

int sbp_export(sbp_context *c, const char *dir)
{
	return rt_export_to((RtSession *)c, dir);
}

int sbp_evaluate(sbp_context *c, double *loss)
{
	return rt_evaluate((RtSession *)c, loss);
}

int sbp_infer(sbp_context *c, const void *const *in, void *const *out)
{
	return rt_infer((RtSession *)c, in, out);
}

int sbp_infer_some(sbp_context *c, int64_t samples, const void *const *in, void *const *out)
{
	return rt_infer_some((RtSession *)c, samples, in, out);
}

int sbp_get(sbp_context *c, const char *name, void *to, size_t bytes)
{
	return rt_get_parameter((RtSession *)c, name, to, bytes);
}

int sbp_set(sbp_context *c, const char *name, const void *from, size_t bytes)
{
	return rt_set_parameter((RtSession *)c, name, from, bytes);
}

const char *sbp_error(const sbp_context *c)
{
	return rt_last_error((const RtSession *)c);
}

int sbp_parameters(void)
{
	return rt_parameters(&program);
}

const char *sbp_parameter(int i, size_t *bytes)
{
	return rt_parameter(&program, i, bytes);
}

int sbp_main(int argc, char **argv)
{
	return rt_main(&program, argc, argv);
}
