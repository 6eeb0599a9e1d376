/* --infer=DIR: the outputs of the model for samples that lie in files, DIR/INPUT.npy, as DIR/OUTPUT.npy.
 *
 * The first axis of each file is the samples.  They go through the program a batch at a time; the tail of the last batch repeats
 * the last sample, and what comes out for the repeats is not written. */
#include "data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 64 };

/* The inputs of inference as if they were those of a step that reads .npy files. */
static int open_inputs(Ctx *c, const char *folder, Set *s)
{
	RtProgram p = *c->program;
	const RtPart *from = &p.part[RT_INFER];
	RtInput *in = calloc((size_t)from->ninput + 1, sizeof *in);
	Ctx view = *c;
	if (!in)
		return rt_error(c, RT_MEMORY, "no memory");
	for (int i = 0; i < from->ninput; i++) {
		in[i] = from->input[i];
		in[i].feed = RT_SAMPLES;
		in[i].file = NULL;
	}
	p.part[RT_TRAIN] = (RtPart){ .input = in, .ninput = from->ninput };
	p.data.format = RT_NPY;
	view.program = &p;
	int code = set_open(&view, s, folder);
	free(in);
	return code;
}

static int load(Ctx *c, const Set *s, int64_t first, int64_t batch)
{
	const RtPart *p = &c->program->part[RT_INFER];
	Wrong w = { 0 };
	int code = 0;
	for (int i = 0; i < p->ninput && !code; i++) {
		const RtInput *in = &p->input[i];
		size_t bytes = rt_whole_bytes(&in->t), row = batch ? bytes / (size_t)batch : 0;
		unsigned char *to = rt_host(c, rt_place(c, &in->t), bytes);
		for (int64_t j = 0; j < batch && !w.code; j++)
			set_fetch(s, in, i, first + j < s->n ? first + j : s->n - 1, 0, (int64_t)(row / rt_width(in->t.type)), to + (size_t)j * row, &w);
		code = w.code ? rt_error(c, w.code, "%s", w.text) : rt_put(c, rt_place(c, &in->t), bytes);
	}
	return code;
}

static FILE *create(Ctx *c, const char *folder, const RtTensor *t, int64_t samples, int64_t batch)
{
	char name[RT_NPY_NAME], path[4096], head[RT_NPY_HEAD];
	int64_t dim[RT_AXES];
	for (int a = 0; a < t->rank; a++)
		dim[a] = !a && t->dim[0] == batch ? samples : t->dim[a];
	size_t n = rt_npy_head(head, t->type, t->rank, dim);
	rt_npy_name(name, t->name);
	FILE *f = snprintf(path, sizeof path, "%s/%s.npy", folder, name) < (int)sizeof path ? fopen(path, "wb") : NULL;
	if (f && fwrite(head, 1, n, f) == n)
		return f;
	rt_error(c, RT_DATA, "cannot write %s: %s", path, strerror(errno));
	if (f)
		fclose(f);
	return NULL;
}

static int store(Ctx *c, const RtTensor *t, FILE *f, unsigned char *host, int64_t first, int64_t samples, int64_t batch)
{
	size_t bytes = rt_whole_bytes(t), keep = bytes;
	bool rows = t->rank && t->dim[0] == batch;
	int code = rt_get(c, host, rt_place(c, t), bytes);
	if (rows && samples - first < batch)
		keep = bytes / (size_t)batch * (size_t)(samples - first);
	if (!code && (rows || first == 0) && fwrite(host, 1, keep, f) != keep)
		code = rt_error(c, RT_DATA, "cannot write %s: %s", t->name, strerror(errno));
	return code;
}

static int all_batches(Ctx *c, const Set *s, FILE **f, unsigned char *host, int64_t batch)
{
	const RtPart *p = &c->program->part[RT_INFER];
	int code = 0;
	for (int64_t first = 0; first < s->n && !code; first += batch) {
		code = load(c, s, first, batch);
		if (!code)
			code = rt_do(c, RT_INFER);
		for (int i = 0; i < p->noutput && !code; i++)
			code = store(c, &p->output[i], f[i], host, first, s->n, batch);
	}
	return code;
}

int rt_infer_files(Ctx *c, const char *folder)
{
	const RtPart *p = &c->program->part[RT_INFER];
	Set s = { 0 };
	FILE *f[OUTPUTS] = { NULL };
	size_t most = 1;
	int64_t batch = p->ninput && p->input[0].t.rank ? p->input[0].t.dim[0] : 0;
	if (c->nrank != 1 || !p->noutput || p->noutput > OUTPUTS)
		return rt_error(c, RT_PLAN, "this program has no inference on one rank");
	for (int i = 0; i < p->ninput; i++)
		if (!p->input[i].t.rank || p->input[i].t.dim[0] != batch)
			return rt_error(c, RT_PLAN, "%s has no axis of samples", p->input[i].t.name);
	int code = open_inputs(c, folder, &s);
	for (int i = 0; i < p->noutput && !code; i++) {
		f[i] = create(c, folder, &p->output[i], s.n, batch);
		code = f[i] ? 0 : RT_DATA;
		most = rt_whole_bytes(&p->output[i]) > most ? rt_whole_bytes(&p->output[i]) : most;
	}
	unsigned char *host = code ? NULL : malloc(most);
	if (!code)
		code = host ? all_batches(c, &s, f, host, batch) : rt_error(c, RT_MEMORY, "no memory");
	for (int i = 0; i < p->noutput; i++)
		if (f[i] && fclose(f[i]) && !code)
			code = rt_error(c, RT_DATA, "cannot write %s: %s", p->output[i].name, strerror(errno));
	if (!code)
		printf("%" PRId64 " samples\n", s.n);
	free(host);
	set_close(&s);
	return code;
}
