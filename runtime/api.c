/* A program as a library: one rank in the caller's process, opened, used and closed by the caller.  Nothing here prints or
 * ends the process, and there is no state but the session's, so sessions of one program may live side by side.  The
 * functions that users see are in model.h of the tree, under a prefix of their own; they call these. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

struct RtSession {
	Ctx c;
	char error[RT_MESSAGE];
	char *data;                     /* the data set, when the caller named one */
	bool opened, fed;               /* memory and threads; data */
};

/* Two sessions, or a session whose first call failed, must not be mistaken for each other: what cannot be opened says why. */
static int ready(RtSession *s)
{
	return s->opened ? 0 : RT_MEMORY;
}

RtConfig *rt_config_new(void)
{
	RtConfig *c = calloc(1, sizeof *c);
	if (c)
		c->seed = -1;
	return c;
}

void rt_config_free(RtConfig *c)
{
	if (c) {
		free(c->weights);
		free(c->data);
	}
	free(c);
}

int rt_config_path(char **field, const char *path)
{
	char *copy = strdup(path);
	if (!copy)
		return RT_MEMORY;
	free(*field);
	*field = copy;
	return 0;
}

RtSession *rt_open(const RtProgram *p, const RtConfig *config)
{
	static const RtConfig defaults = { .seed = -1 };
	config = config ? config : &defaults;
	RtSession *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	Ctx *c = &s->c;
	*c = (Ctx){ .program = p, .nrank = 1, .seed = config->seed < 0 ? p->seed : (uint64_t)config->seed, .error = s->error };
	if (p->nrank != 1) {
		rt_error(c, RT_PLAN, "this program is for %d ranks: a library is one rank", p->nrank);
		return s;
	}
	int drawn, code = rt_parts_open(c);
	if (!code)
		code = rt_device_open(c, NULL);
	if (!code && config->data && !(s->data = strdup(config->data)))
		code = rt_error(c, RT_MEMORY, "out of memory");
	if (!code)
		code = rt_pool_open(c, config->threads > 0 ? config->threads : rt_threads(c));
	if (!code) {
		s->opened = true;
		code = rt_device_touch(c);
	}
	if (!code)
		code = rt_start_all(c, &(RtFrom){ config->weights, NULL, false }, false, &drawn);
	if (code && s->opened) {
		rt_pool_close(c);
		s->opened = false;
	}
	return s;
}

void rt_close(RtSession *s)
{
	if (!s)
		return;
	if (s->fed)
		rt_data_close(&s->c);
	if (s->opened)
		rt_pool_close(&s->c);
	rt_device_close(&s->c);
	rt_parts_close(&s->c);
	free(s->data);
	free(s);
}

const char *rt_last_error(const RtSession *s)
{
	return s ? s->error : "out of memory";
}

static int feed(RtSession *s)
{
	int code = ready(s);
	if (!code && !s->fed) {
		code = rt_data_open(&s->c, s->data, s->c.step);
		s->fed = !code;
	}
	return code;
}

int rt_step_once(RtSession *s, float *loss)
{
	int code = feed(s);
	if (!code)
		code = rt_do(&s->c, RT_TRAIN);
	if (code)
		return code;
	s->c.step++;
	if (loss)
		*loss = (float)s->c.loss;
	return 0;
}

int rt_evaluate(RtSession *s, double *loss)
{
	RtRecord r;
	int code = feed(s);
	if (!code)
		code = rt_eval_all(&s->c, &r);
	if (!code)
		*loss = rt_record_get(&r, "loss");
	return code;
}

static int write_tensor(Ctx *c, const RtTensor *t, const void *from)
{
	size_t n = rt_bytes(c, t);
	void *to = rt_place(c, t);
	memcpy(rt_host(c, to, n), from, n);
	return rt_put(c, to, n);
}

int rt_infer(RtSession *s, const void *const *in, void *const *out)
{
	const RtPart *p = &s->c.program->part[RT_INFER];
	int code = ready(s);
	for (int i = 0; i < p->ninput && !code; i++)
		code = write_tensor(&s->c, &p->input[i].t, in[i]);
	if (!code)
		code = rt_do(&s->c, RT_INFER);
	for (int i = 0; i < p->noutput && !code; i++)
		code = rt_get(&s->c, out[i], rt_place(&s->c, &p->output[i]), rt_bytes(&s->c, &p->output[i]));
	return code;
}

static const RtTensor *find(RtSession *s, const char *name, size_t bytes, int *code)
{
	const RtProgram *p = s->c.program;
	*code = ready(s);
	for (int i = 0; i < p->nkept && !*code; i++) {
		const RtTensor *t = &p->kept[i].t;
		if (strcmp(t->name, name))
			continue;
		if (rt_bytes(&s->c, t) == bytes)
			return t;
		*code = rt_error(&s->c, RT_USAGE, "%s has %zu bytes, not %zu", name, rt_bytes(&s->c, t), bytes);
	}
	if (!*code)
		*code = rt_error(&s->c, RT_USAGE, "there is no parameter %s", name);
	return NULL;
}

int rt_get_parameter(RtSession *s, const char *name, void *to, size_t bytes)
{
	int code;
	const RtTensor *t = find(s, name, bytes, &code);
	return t ? rt_get(&s->c, to, rt_place(&s->c, t), bytes) : code;
}

int rt_set_parameter(RtSession *s, const char *name, const void *from, size_t bytes)
{
	int code;
	const RtTensor *t = find(s, name, bytes, &code);
	return t ? write_tensor(&s->c, t, from) : code;
}

int rt_parameters(const RtProgram *p)
{
	int n = 0;
	for (int i = 0; i < p->nkept; i++)
		n += p->kept[i].keep != RT_CONSTANT;
	return n;
}

const char *rt_parameter(const RtProgram *p, int i, size_t *bytes)
{
	int k = 0;
	while (k < p->nkept && (p->kept[k].keep == RT_CONSTANT || i-- > 0))
		k++;
	if (k == p->nkept)
		return NULL;
	const RtTensor *t = &p->kept[k].t;
	*bytes = rt_whole_bytes(t);
	return t->name;
}
