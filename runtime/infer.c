/* --infer=DIR: reads samples from DIR/INPUT.npy and writes the outputs of the model to DIR/OUTPUT.npy.
 *
 * The first axis of each file is that of samples.  They are processed a batch at a time; the last batch is filled up
 * with the last sample, and the outputs of these repeats are not written. */
#include "comm.h"
#include "data.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUTPUTS = 64 };

/* Opens the inputs of inference as those of a step that reads .npy files. */
static int open_inputs(Ctx *c, const char *folder, Set *s)
{
	RtProgram p = *c->program;
	const RtIo *from = &p.io[RT_INFER];
	RtInput *in = calloc((size_t)from->ninput + 1, sizeof *in);
	Ctx view = *c;
	if (!in)
		return rt_error(c, RT_MEMORY, "no memory");
	for (int i = 0; i < from->ninput; i++) {
		in[i] = from->input[i];
		in[i].feed = RT_SAMPLES;
		in[i].file = NULL;
	}
	p.io[RT_TRAIN] = (RtIo){ .input = in, .ninput = from->ninput };
	p.data.format = RT_NPY;
	view.program = &p;
	int code = set_open(&view, s, folder);
	free(in);
	return code;
}

/* Fetches this rank's shard of an input, sample by sample. */
typedef struct Fetch { const Set *s; const RtInput *in; int column; int64_t first, width; unsigned char *to;
	Wrong *wrong; } Fetch;

static void fetch_row(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fetch *f = arg;
	size_t elem = rt_width(f->in->t.type);
	while (n > 0 && !f->wrong->code) {
		int64_t j = f->first + there / f->width, from = there % f->width,
			k = n < f->width - from ? n : f->width - from;
		set_fetch(f->s, f->in, f->column, j < f->s->n ? j : f->s->n - 1, from, k,
			f->to + (size_t)here * elem, f->wrong);
		here += k;
		there += k;
		n -= k;
	}
}

/* Files that are read and written, a batch after the other. */
typedef struct Files { Set s; struct Out *out; unsigned char *host; int64_t batch; } Files;

/* After bad data on any rank, zeros take the place of inputs: other ranks wait for what is computed from them. */
static int load(Ctx *c, void *arg)
{
	const Files *files = arg;
	const RtIo *p = &c->program->io[RT_INFER];
	Wrong w = { .code = (int)c->vote.code };
	int code = 0;
	for (int i = 0; i < p->ninput && !code; i++) {
		const RtInput *in = &p->input[i];
		size_t bytes = rt_bytes(c, &in->t);
		Fetch f = { .s = &files->s, .in = in, .column = i, .first = c->micro * files->batch,
			.width = rt_sample_elements(&in->t), .wrong = &w };
		f.to = rt_host(c, rt_address(c, &in->t), bytes);
		if (!w.code)
			rt_rows(c, &in->t, fetch_row, &f);
		if (w.code && !c->vote.code)
			code = rt_verdict_bad(c, rt_error(c, w.code, "%s", w.text));
		if (w.code)
			memset(f.to, 0, bytes);
		if (!code)
			code = rt_put(c, rt_address(c, &in->t), bytes);
	}
	return code;
}

/* An output file: rank 0 writes its header, every rank the rows that it is the first to hold. */
typedef struct Out { int fd; bool bad; size_t head; const RtTensor *t; int64_t first, samples, batch;
	const unsigned char *from; } Out;

static int create(Ctx *c, const char *folder, const RtTensor *t, int64_t samples, int64_t batch, Out *o)
{
	char name[RT_NPY_NAME], path[4096], head[RT_NPY_HEAD];
	int64_t dim[RT_AXES];
	for (int a = 0; a < t->naxis; a++)
		dim[a] = !a && t->dim[0] == batch ? samples : t->dim[a];
	*o = (Out){ .fd = -1, .head = rt_npy_head(head, t->type, t->naxis, dim), .t = t, .samples = samples,
		.batch = batch };
	rt_npy_name(name, t->name);
	if (snprintf(path, sizeof path, "%s/%s.npy", folder, name) < (int)sizeof path)
		o->fd = open(path, O_WRONLY | O_CLOEXEC | (c->rank ? 0 : O_CREAT | O_TRUNC), 0666);
	if (o->fd >= 0 && (c->rank || pwrite(o->fd, head, o->head, 0) == (ssize_t)o->head))
		return 0;
	return rt_error(c, RT_DATA, "cannot write %s: %s", path, strerror(errno));
}

/* Repeated samples are skipped in an output with an axis of samples; an output without one is written once. */
static void store_row(void *arg, int64_t here, int64_t there, int64_t n)
{
	Out *o = arg;
	bool samples = o->t->naxis && o->t->dim[0] == o->batch;
	int64_t width = rt_sample_elements(o->t), left = (o->samples - o->first) * width - there;
	size_t elem = rt_width(o->t->type);
	n = samples && n > left ? left : n;
	there += samples ? o->first * width : 0;
	if (n > 0 && !o->bad)
		o->bad = pwrite(o->fd, o->from + (size_t)here * elem, (size_t)n * elem,
			(off_t)(o->head + (size_t)there * elem)) != (ssize_t)((size_t)n * elem);
}

static int store(Ctx *c, Out *o, unsigned char *host, int64_t first)
{
	if (!rt_first_on(c->program, c->rank, o->t))
		return 0;
	int code = rt_get(c, host, rt_address(c, o->t), rt_bytes(c, o->t));
	o->first = first;
	o->from = host;
	if (!code)
		rt_rows(c, o->t, store_row, o);
	if (!code && o->bad)
		code = rt_error(c, RT_DATA, "cannot write %s: %s", o->t->name, strerror(errno));
	return code;
}

static int store_all(Ctx *c, const int *output, int n, void *arg)
{
	const Files *f = arg;
	int code = (int)c->vote.code;
	for (int i = 0; i < n && !code; i++)
		code = store(c, &f->out[output[i]], f->host, c->micro * f->batch);
	return code ? rt_verdict_bad(c, code) : 0;
}

/* Rank 0 creates the files, the others open them. */
static int create_all(Ctx *c, const char *folder, int64_t samples, int64_t batch, Out *o)
{
	const RtIo *p = &c->program->io[RT_INFER];
	int code = 0;
	for (int turn = 0; turn < 2 && !code; turn++) {
		for (int i = 0; i < p->noutput && !code && turn == (c->rank > 0); i++)
			code = create(c, folder, &p->output[i], samples, batch, &o[i]);
		code = (int)rt_worst(c, (uint32_t)code);
	}
	return code;
}

int rt_infer_files(Ctx *c, const char *folder)
{
	const RtIo *p = &c->program->io[RT_INFER];
	Out o[OUTPUTS];
	size_t most = 1;
	int64_t batch = p->ninput && p->input[0].t.naxis ? p->input[0].t.dim[0] : 0;
	Files f = { .out = o, .batch = batch };
	if (!p->noutput || p->noutput > OUTPUTS)
		return rt_error(c, RT_PLAN, "this program has no inference");
	for (int i = 0; i < p->ninput; i++)
		if (!p->input[i].t.naxis || p->input[i].t.dim[0] != batch)
			return rt_error(c, RT_PLAN, "%s has no axis of samples", p->input[i].t.name);
	for (int i = 0; i < p->noutput; i++) {
		o[i].fd = -1;
		most = rt_bytes(c, &p->output[i]) > most ? rt_bytes(c, &p->output[i]) : most;
	}
	int code = open_inputs(c, folder, &f.s);
	code = (int)rt_worst(c, (uint32_t)code);
	if (!code)
		code = create_all(c, folder, f.s.n, batch, o);
	if (!code && !(f.host = malloc(most)))
		code = rt_error(c, RT_MEMORY, "no memory");
	if (!code)
		code = rt_do_batches(c, RT_INFER, (f.s.n + batch - 1) / batch,
			&(RtBatches){ .load = load, .take = store_all, .arg = &f });
	for (int i = 0; i < p->noutput; i++)
		if (o[i].fd >= 0 && close(o[i].fd) && !code)
			code = rt_error(c, RT_DATA, "cannot write %s: %s", p->output[i].name, strerror(errno));
	if (!code && c->rank == 0)
		printf("%" PRId64 " samples\n", f.s.n);
	free(f.host);
	set_close(&f.s);
	return code;
}
