/* The functions of model.h.  model.c includes this file once; it defines the program, and OF(name), which adds the
 * prefix.  They call api.c. */
#include "api.h"

OF(config) *OF(config_new)(void)
{
	return (OF(config) *)rt_config_new();
}

void OF(config_free)(OF(config) *c)
{
	rt_config_free((RtConfig *)c);
}

void OF(config_threads)(OF(config) *c, int threads)
{
	((RtConfig *)c)->threads = threads;
}

void OF(config_seed)(OF(config) *c, uint32_t seed)
{
	((RtConfig *)c)->seed = (int64_t)seed;
}

int OF(config_weights)(OF(config) *c, const char *path)
{
	return rt_config_path(&((RtConfig *)c)->weights, path);
}

int OF(config_weights_map)(OF(config) *c, const char *rules)
{
	return rt_config_path(&((RtConfig *)c)->map, rules);
}

void OF(config_weights_partial)(OF(config) *c, int partial)
{
	((RtConfig *)c)->partial = partial != 0;
}

void OF(config_changed_data)(OF(config) *c, int changed)
{
	((RtConfig *)c)->changed_data = changed != 0;
}

int OF(config_data)(OF(config) *c, const char *path)
{
	return rt_config_path(&((RtConfig *)c)->data, path);
}

OF(context) *OF(context_new)(const OF(config) *config)
{
	return (OF(context) *)rt_open(&program, (const RtConfig *)config);
}

void OF(context_free)(OF(context) *c)
{
	rt_close((RtSession *)c);
}

int OF(step)(OF(context) *c, float *loss)
{
	return rt_step_once((RtSession *)c, loss);
}

int64_t OF(batch)(void)
{
	return program.batch;
}

int OF(step_on)(OF(context) *c, int64_t samples, const void *const *in, float *loss)
{
	return rt_step_on((RtSession *)c, samples, in, loss);
}

int64_t OF(steps)(const OF(context) *c)
{
	return rt_steps_done((const RtSession *)c);
}

double OF(rate)(const OF(context) *c)
{
	return rt_rate((const RtSession *)c);
}

int OF(save)(OF(context) *c, const char *dir)
{
	return rt_save_to((RtSession *)c, dir);
}

int OF(resume)(OF(context) *c, const char *dir)
{
	return rt_resume_from((RtSession *)c, dir);
}

int OF(export)(OF(context) *c, const char *dir)
{
	return rt_export_to((RtSession *)c, dir);
}

int OF(evaluate)(OF(context) *c, double *loss)
{
	return rt_evaluate((RtSession *)c, loss);
}

const char *OF(metric_name)(int i)
{
	return i >= 0 && i < program.nmetric ? program.metric[i].name : NULL;
}

double OF(metric)(const OF(context) *c, const char *name)
{
	return rt_metric((const RtSession *)c, name);
}

int OF(infer)(OF(context) *c, const void *const *in, void *const *out)
{
	return rt_infer((RtSession *)c, in, out);
}

int OF(infer_some)(OF(context) *c, int64_t samples, const void *const *in, void *const *out)
{
	return rt_infer_some((RtSession *)c, samples, in, out);
}

int OF(get)(OF(context) *c, const char *name, void *to, size_t bytes)
{
	return rt_get_parameter((RtSession *)c, name, to, bytes);
}

int OF(set)(OF(context) *c, const char *name, const void *from, size_t bytes)
{
	return rt_set_parameter((RtSession *)c, name, from, bytes);
}

const char *OF(error)(const OF(context) *c)
{
	return rt_last_error((const RtSession *)c);
}

int OF(parameters)(void)
{
	return rt_parameters(&program);
}

const char *OF(parameter)(int i, size_t *bytes)
{
	return rt_parameter(&program, i, bytes);
}

int OF(main)(int argc, char **argv)
{
	return rt_main(&program, argc, argv);
}
