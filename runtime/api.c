/* A model as a library: one rank in the caller's process, opened, used and closed by the caller.  Nothing here prints
 * or ends the process, and all state belongs to a session, so several sessions of one program can exist at once.  Users
 * call the functions of model.h of the tree, which have a prefix of their own and call these. */
#include "api.h"
#include "comm.h"
#include "save.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct RtSession {
	Ctx c;
	char error[RT_MESSAGE];
	char *data;                                     /* the data set, when the caller named one */
	bool opened, fed, changed_data;                 /* memory and threads are open; data is open; data may differ
	                                                 * from that of the checkpoint */
	RtResume from;                                  /* the checkpoint that it was resumed from or wrote last */
	bool resumed;
	char *folder;                                   /* the folder of its checkpoints; NULL: none yet */
	RtRecord last;                                  /* of the last step or evaluation */
};

/* A session that could not be opened fails at each call, with the message of the failure. */
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
		free(c->map);
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
	*c = (Ctx){ .program = p, .nrank = 1, .seed = config->seed < 0 ? p->seed : (uint64_t)config->seed,
		.error = s->error };
	c->rate = NAN;
	s->changed_data = config->changed_data;
	const char *wrong = config->map ? rt_map_wrong(config->map) : NULL;
	if (wrong) {
		rt_error(c, RT_USAGE, "the rules for names of weights: %s", wrong);
		return s;
	}
	if (p->nrank != 1) {
		rt_error(c, RT_PLAN, "this program is for %d ranks: a library runs one rank", p->nrank);
		return s;
	}
	int drawn, code = rt_shards_open(c);
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
		code = rt_start_all(c, &(RtFrom){ config->weights, config->map, config->partial }, false, &drawn);
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
	rt_saver_close(&s->c);
	if (s->fed)
		rt_data_close(&s->c);
	if (s->opened)
		rt_pool_close(&s->c);
	rt_device_close(&s->c);
	rt_shards_close(&s->c);
	free(s->data);
	free(s->folder);
	free(s);
}

const char *rt_last_error(const RtSession *s)
{
	return s ? s->error : "out of memory";
}

/* Opens the data set when it is first needed. */
static int feed(RtSession *s)
{
	Ctx *c = &s->c;
	int code = ready(s);
	if (code || s->fed)
		return code;
	code = rt_data_open(c, s->data, c->step, RT_SAMPLES_TO_TRAIN);
	if (!code && s->resumed && s->from.data && !s->changed_data && rt_data_print(c) != s->from.data)
		code = rt_error(c, RT_DATA, "the data set is not the one that the checkpoint was trained on");
	if (code)
		rt_data_close(c);
	s->fed = !code;
	return code;
}

static int step(RtSession *s, float *loss)
{
	s->c.rate = s->c.program->rate;
	int code = rt_do(&s->c, RT_TRAIN);
	if (code)
		return code;
	s->last = (RtRecord){ .step = s->c.step++ };
	rt_record_add(&s->last, "loss", s->c.loss);
	rt_record_metrics(&s->last, s->c.program, &s->c.sums);
	if (loss)
		*loss = (float)s->c.loss;
	return 0;
}

int rt_step_once(RtSession *s, float *loss)
{
	int code = feed(s);
	if (!code)
		code = rt_data_go_on(&s->c, s->c.step);
	return code ? code : step(s, loss);
}

int rt_step_on(RtSession *s, int64_t samples, const void *const *in, float *loss)
{
	int code = ready(s);
	if (!code && samples != s->c.program->batch)
		code = rt_error(&s->c, RT_USAGE, "a step takes %" PRId64 " samples, not %" PRId64,
			s->c.program->batch, samples);
	if (code)
		return code;
	rt_data_pause(&s->c);           /* it has read ahead for this step */
	s->c.given = in;
	code = step(s, loss);
	s->c.given = NULL;
	return code;
}

int64_t rt_steps_done(const RtSession *s)
{
	return s->c.step;
}

double rt_rate(const RtSession *s)
{
	return s->c.rate;
}

/* A folder holds the checkpoints of one run: it may hold those that this session wrote or was resumed from. */
int rt_save_to(RtSession *s, const char *dir)
{
	Ctx *c = &s->c;
	int code = ready(s);
	uint64_t data = s->fed ? rt_data_print(c) : s->resumed ? s->from.data : 0;
	if (!code && (!s->folder || strcmp(s->folder, dir))) {
		rt_saver_close(c);
		code = rt_config_path(&s->folder, dir);
		RtSaving to = { .dir = s->folder, .keep = INT64_MAX, .data = data,
			.from = *s->from.path ? &s->from : NULL };
		if (!code)
			code = rt_saver_open(c, &to);
	}
	if (!code)
		code = rt_save(c, c->step, true);
	if (code) {
		rt_saver_close(c);      /* the next call begins anew */
		free(s->folder);
		s->folder = NULL;
		return code;
	}
	s->from.step = c->step;
	snprintf(s->from.path, sizeof s->from.path, "%s/" RT_STEP_FORMAT, dir, c->step);
	return 0;
}

int rt_resume_from(RtSession *s, const char *dir)
{
	Ctx *c = &s->c;
	RtResume r = { 0 };
	int code = ready(s);
	if (!code)
		code = rt_resume_find(c, dir, false, &r);
	if (!code)
		code = rt_resume_load(c, &r);
	if (code)
		return code;
	rt_saver_close(c);              /* it belonged to another run */
	free(s->folder);
	s->folder = NULL;
	if (s->fed)
		rt_data_close(c);
	s->fed = false;
	s->resumed = true;
	s->from = r;
	c->step = r.step;
	c->seed = r.seed;
	return 0;
}

int rt_export_to(RtSession *s, const char *dir)
{
	int code = ready(s);
	return code ? code : rt_export(&s->c, dir);
}

int rt_evaluate(RtSession *s, double *loss)
{
	RtRecord r;
	int code = feed(s);
	if (!code)
		code = rt_eval_all(&s->c, &r);
	if (!code) {
		s->last = r;
		*loss = rt_record_get(&r, "loss");
	}
	return code;
}

double rt_metric(const RtSession *s, const char *name)
{
	return rt_record_get(&s->last, name);
}

static int write_tensor(Ctx *c, const RtTensor *t, const void *from)
{
	size_t n = rt_bytes(c, t);
	void *to = rt_address(c, t);
	memcpy(rt_host(c, to, n), from, n);
	return rt_put(c, to, n);
}

static int64_t batch_of(const RtIo *p)
{
	return p->ninput && p->input[0].t.naxis ? p->input[0].t.dim[0] : 1;
}

static bool has_samples(const RtTensor *t, int64_t batch)
{
	return t->naxis && t->dim[0] == batch;
}

/* Samples first .. first + some - 1; the rest of the batch repeats the last one. */
static int write_samples(Ctx *c, const RtInput *in, const void *from, int64_t batch, int64_t first, int64_t some)
{
	size_t bytes = rt_bytes(c, &in->t);
	if (!has_samples(&in->t, batch)) {
		int code = rt_check_range(c, in, from);
		return code ? code : write_tensor(c, &in->t, from);
	}
	size_t each = bytes / (size_t)batch;
	void *to = rt_address(c, &in->t);
	unsigned char *host = rt_host(c, to, bytes);
	memcpy(host, (const char *)from + (size_t)first * each, (size_t)some * each);
	for (int64_t i = some; i < batch; i++)
		memcpy(host + (size_t)i * each, host + (size_t)(some - 1) * each, each);
	int code = rt_check_range(c, in, host);
	return code ? code : rt_put(c, to, bytes);
}

static int read_samples(Ctx *c, const RtTensor *t, void *out, int64_t batch, int64_t first, int64_t some)
{
	size_t bytes = rt_bytes(c, t), each = has_samples(t, batch) ? bytes / (size_t)batch : 0;
	return rt_get(c, (char *)out + (size_t)first * each, rt_address(c, t), each ? (size_t)some * each : bytes);
}

/* Samples of the caller, and where it wants the outputs. */
typedef struct Batches { const void *const *in; void *const *out; int64_t samples, batch; } Batches;

static int64_t some_of(const Batches *b, int64_t first)
{
	return b->samples - first < b->batch ? b->samples - first : b->batch;
}

static int load(Ctx *c, void *arg)
{
	const Batches *b = arg;
	const RtIo *p = &c->program->io[RT_INFER];
	int64_t first = c->micro * b->batch;
	int code = 0;
	for (int i = 0; i < p->ninput && !code; i++)
		code = write_samples(c, &p->input[i], b->in[i], b->batch, first, some_of(b, first));
	return code;
}

static int take(Ctx *c, const int *output, int n, void *arg)
{
	const Batches *b = arg;
	const RtIo *p = &c->program->io[RT_INFER];
	int64_t first = c->micro * b->batch;
	int code = 0;
	for (int i = 0; i < n && !code; i++)
		code = read_samples(c, &p->output[output[i]], b->out[output[i]], b->batch, first, some_of(b, first));
	return code;
}

int rt_infer_some(RtSession *s, int64_t samples, const void *const *in, void *const *out)
{
	Ctx *c = &s->c;
	const RtIo *p = &c->program->io[RT_INFER];
	int64_t batch = batch_of(p);
	int code = ready(s);
	if (!code && !c->program->role[0]->schedule[RT_INFER])
		code = rt_error(c, RT_PLAN, "this program has no inference");
	if (!code && samples < 1)
		code = rt_error(c, RT_USAGE, "inference takes 1 sample at least, not %" PRId64, samples);
	return code ? code : rt_do_batches(c, RT_INFER, (samples + batch - 1) / batch,
		&(RtBatches){ .load = load, .take = take,
			.arg = &(Batches){ .in = in, .out = out, .samples = samples, .batch = batch } });
}

int rt_infer(RtSession *s, const void *const *in, void *const *out)
{
	return rt_infer_some(s, batch_of(&s->c.program->io[RT_INFER]), in, out);
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
	return t ? rt_get(&s->c, to, rt_address(&s->c, t), bytes) : code;
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
	*bytes = rt_logical_bytes(t);
	return t->name;
}
