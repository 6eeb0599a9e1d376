/* The order of samples, and a thread that reads them ahead.
 *
 * Training takes the samples of an epoch in an order that depends on (seed, epoch) only: position p is sample f(p),
 * where f is a keyed permutation that is computed on demand, never stored.  Step s takes positions from s * batch on;
 * an incomplete batch at the end of an epoch is dropped.  The last fraction of a set, or a separate set, may be held
 * out: evaluation takes these samples in their stored order.
 *
 * A rank fetches only the rows that it holds.  While a step runs, the thread fills the other of two buffers. */
#include "comm.h"
#include "data.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef struct Buffer { unsigned char *at; bool full; Wrong wrong; } Buffer;

typedef struct RtLoader RtLoader;
struct RtLoader {
	Set set, apart;                 /* apart: a separate set for evaluations */
	uint32_t *after;                /* by file: the checksum of all files up to it; NULL: not computed yet */
	Ctx view;                       /* a copy for the thread: program and rank, never the step */
	int64_t train, held;            /* samples */
	Buffer buffer[2];
	size_t bytes;                   /* of one */
	unsigned char *memory;
	pthread_t thread;
	bool running, stop;
	int64_t next, due;              /* the loads that the thread fills, and that the walk takes next */
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* ---- order ---- */

/* A permutation of 0 .. n - 1: a Feistel network of four rounds over the next even power of two, walked until the
 * result is in range. */
uint64_t rt_shuffle(uint64_t key, uint64_t i, uint64_t n)
{
	unsigned half = 1;
	while (half < 31 && (uint64_t)1 << 2 * half < n)
		half++;
	uint64_t mask = ((uint64_t)1 << half) - 1;
	do {
		uint64_t l = i >> half, r = i & mask;
		for (uint64_t k = 0; k < 4; k++) {
			uint64_t t = l ^ (rt_hash(key + k, r) & mask);
			l = r;
			r = t;
		}
		i = l << half | r;
	} while (i >= n);
	return i;
}

void rt_data_counts(const Ctx *c, int64_t *train, int64_t *held, int64_t *dropped)
{
	*train = c->data ? c->data->train : 0;
	*held = c->data ? c->data->held : 0;
	*dropped = *train ? *train % c->program->batch : 0;
}

/* Sample j of a step. */
static int64_t sample_of(const RtLoader *d, int64_t step, int64_t j)
{
	const RtProgram *p = d->view.program;
	if (!d->train)
		return step * p->batch + j;
	int64_t steps = d->train / p->batch, epoch = step / steps, i = step % steps * p->batch + j;
	return p->data.in_order ? i
		: (int64_t)rt_shuffle(rt_hash(d->view.seed, (uint64_t)epoch), (uint64_t)i, (uint64_t)d->train);
}

/* ---- one input ---- */

/* step < 0: held-out samples from `first` on; those beyond the end repeat the last. */
typedef struct Fetch { const RtLoader *d; const RtInput *in; int column; int64_t step, first, width; unsigned char *to;
	Wrong *wrong; } Fetch;

static void fetch_run(void *arg, int64_t here, int64_t there, int64_t n)
{
	const Fetch *f = arg;
	size_t elem = rt_width(f->in->t.type);
	while (n > 0 && !f->wrong->code) {
		int64_t j = f->first + there / f->width, from = there % f->width,
			k = n < f->width - from ? n : f->width - from;
		int64_t held = j < f->d->held ? j : f->d->held - 1;
		const Set *set = f->step < 0 && f->d->apart.n ? &f->d->apart : &f->d->set;
		int64_t sample = f->step >= 0 ? sample_of(f->d, f->step, j) : !f->d->held ? j : set == &f->d->apart
			? held : f->d->train + held;
		void *to = f->to + (size_t)here * elem;
		if (f->d->view.program->data.format == RT_POINTS)
			points_fetch(&f->d->view, f->in, f->width, sample, from, k, to);
		else
			set_fetch(set, f->in, f->column, sample, from, k, to, f->wrong);
		here += k;
		there += k;
		n -= k;
	}
}

static void fetch_input(const RtLoader *d, const RtInput *in, int64_t step, int64_t first, void *to, Wrong *w)
{
	const RtIo *t = &d->view.program->io[RT_TRAIN];
	Fetch f = { .d = d, .in = in, .step = step, .first = first, .width = rt_sample_elements(&in->t),
		.to = to, .wrong = w };
	while (f.column < t->ninput && strcmp(t->input[f.column].t.name, in->t.name))
		f.column++;
	rt_rows(&d->view, &in->t, fetch_run, &f);
}

static size_t program_bytes(const Ctx *c, RtProgramKind kind)
{
	const RtIo *p = &c->program->io[kind];
	size_t n = 0;
	for (int i = 0; i < p->ninput; i++)
		n += p->input[i].feed == RT_SAMPLES ? rt_round_up(rt_bytes(c, &p->input[i].t), RT_LINE) : 0;
	return n;
}

size_t rt_data_bytes(const Ctx *c)
{
	size_t step = program_bytes(c, RT_TRAIN), eval = program_bytes(c, RT_EVAL);
	return step > eval ? step : eval;
}

/* ---- ahead ---- */

static int64_t micros(const RtProgram *p)
{
	return p->microbatches > 1 ? p->microbatches : 1;
}

/* All samples of a program, one input after the other.  step < 0: held-out samples from `first` on. */
static void fill_program(const RtLoader *d, RtProgramKind kind, Buffer *b, int64_t step, int64_t first)
{
	const RtIo *p = &d->view.program->io[kind];
	size_t at = 0;
	b->wrong.code = 0;
	for (int i = 0; i < p->ninput; i++)
		if (p->input[i].feed == RT_SAMPLES) {
			fetch_input(d, &p->input[i], step, first, b->at + at, &b->wrong);
			at += rt_round_up(rt_bytes(&d->view, &p->input[i].t), RT_LINE);
		}
}

/* Load l is micro-batch l mod M of step l / M. */
static void fill(const RtLoader *d, Buffer *b, int64_t load)
{
	int64_t m = micros(d->view.program);
	fill_program(d, RT_TRAIN, b, load / m, load % m * (d->view.program->batch / m));
}

static void *ahead(void *arg)
{
	RtLoader *d = arg;
	rt_touch_stack();
	pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		Buffer *b = &d->buffer[d->next & 1];
		int64_t load = d->next;
		if (b->full) {
			pthread_cond_wait(&d->changed, &d->lock);
			continue;
		}
		pthread_mutex_unlock(&d->lock);
		fill(d, b, load);
		pthread_mutex_lock(&d->lock);
		b->full = true;
		d->next++;
		pthread_cond_broadcast(&d->changed);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static int open_sets(Ctx *c, RtLoader *d, const char *path, RtWanted wanted)
{
	const RtData *from = &c->program->data;
	bool own = wanted == RT_ALL || from->held;      /* evaluations use a separate set */
	int code = own && wanted != RT_SAMPLES_TO_TRAIN ? 0 : set_open(c, &d->set, path);
	if (!code && own)
		code = set_open(c, &d->apart, wanted == RT_ALL ? path : from->held);
	if (code || from->format == RT_POINTS || from->format == RT_NO_DATA)
		return code;
	d->held = own ? d->apart.n : (int64_t)((double)d->set.n * from->validation);
	d->train = d->set.n - (own ? 0 : d->held);
	if (wanted == RT_SAMPLES_TO_TRAIN && d->train < c->program->batch)
		return rt_error(c, RT_DATA,
			"%s: the data set has %" PRId64 " samples to train on; one step takes %" PRId64,
			d->set.file[0].path, d->train, c->program->batch);
	if (wanted == RT_HELD_OUT && !d->held && from->validation > 0)
		return rt_error(c, RT_DATA, "%s: of %" PRId64 " samples validation: %g holds out none",
			d->set.file[0].path, d->set.n, from->validation);
	return 0;
}

int rt_data_open(Ctx *c, const char *path, int64_t step, RtWanted wanted)
{
	RtLoader *d = calloc(1, sizeof *d);
	if (!d)
		return rt_error(c, RT_MEMORY, "no memory");
	c->data = d;
	d->view = *c;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	int code = open_sets(c, d, path, wanted);
	if (code)
		return code;
	d->bytes = rt_data_bytes(c);
	if (!d->bytes)
		return 0;
	void *p = mmap(NULL, 2 * d->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return rt_error(c, RT_MEMORY, "cannot map two buffers of %zu bytes for data", d->bytes);
	d->memory = d->buffer[0].at = p;
	d->buffer[1].at = d->memory + d->bytes;
	return wanted == RT_SAMPLES_TO_TRAIN ? rt_data_go_on(c, step) : 0;
}

int rt_data_go_on(Ctx *c, int64_t step)
{
	RtLoader *d = c->data;
	if (!d || !d->memory || d->running)
		return 0;
	d->next = d->due = step * micros(c->program);
	d->buffer[0].full = d->buffer[1].full = d->stop = false;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	d->running = !pthread_create(&d->thread, &attr, ahead, d);
	pthread_attr_destroy(&attr);
	return d->running ? 0 : rt_error(c, RT_MEMORY, "cannot start the thread that reads data");
}

void rt_data_pause(Ctx *c)
{
	RtLoader *d = c->data;
	if (!d || !d->running)
		return;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	d->running = false;
}

void rt_data_close(Ctx *c)
{
	RtLoader *d = c->data;
	if (!d)
		return;
	rt_data_pause(c);
	if (d->memory)
		munmap(d->memory, 2 * d->bytes);
	set_close(&d->set);
	set_close(&d->apart);
	free(d->after);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->changed);
	free(d);
	c->data = NULL;
}

uint64_t rt_data_print(const Ctx *c)
{
	RtLoader *d = c->data;
	if (!d)
		return 0;
	if (!d->after)
		d->after = calloc((size_t)(d->set.nfile + d->apart.nfile) + 1, sizeof *d->after);
	uint32_t crc = set_print(&d->set, 0, d->after);
	crc = set_print(&d->apart, crc, d->after ? d->after + d->set.nfile : NULL);
	return (uint64_t)(d->set.nfile ? d->set.n : d->apart.n) << 32 ^ crc;
}

int rt_data_files(const Ctx *c, const uint32_t **after)
{
	*after = c->data ? c->data->after : NULL;
	return *after ? c->data->set.nfile + c->data->apart.nfile : 0;
}

static RtFile *file_at(const RtLoader *d, int i)
{
	return i < d->set.nfile ? &d->set.file[i] : &d->apart.file[i - d->set.nfile];
}

const char *rt_data_file(const Ctx *c, int i)
{
	return file_at(c->data, i)->path;
}

const char *rt_data_mapped(const Ctx *c, const void *at)
{
	const RtLoader *d = c->data;
	for (int i = 0; d && i < d->set.nfile + d->apart.nfile; i++)
		if ((uintptr_t)at - (uintptr_t)file_at(d, i)->data < file_at(d, i)->bytes)
			return file_at(d, i)->path;
	return NULL;
}

/* If the modification time differs, the bytes decide. */
static int changed_file(Ctx *c, RtLoader *d)
{
	int n = d->set.nfile + d->apart.nfile;
	bool touched = false;
	struct stat st;
	for (int i = 0; i < n && d->after; i++) {
		RtFile *f = file_at(d, i);
		bool other = !stat(f->path, &st) && f->bytes && rt_file_time(&st) != f->time;
		touched |= other;
		f->time = other ? rt_file_time(&st) : f->time;
	}
	uint32_t *now = touched ? malloc((size_t)n * sizeof *now) : NULL;
	if (!now)
		return 0;
	set_print(&d->apart, set_print(&d->set, 0, now), now + d->set.nfile);
	int i = 0, code = 0;
	while (i < n && now[i] == d->after[i])
		i++;
	if (i < n)
		code = rt_error(c, RT_DATA, "%s was changed while it was read", file_at(d, i)->path);
	free(now);
	return code;
}

int rt_data_same(Ctx *c)
{
	return (int)rt_agree(c, (uint32_t)(c->data && c->rank == 0 ? changed_file(c, c->data) : 0));
}

size_t rt_data_tables(const Ctx *c)
{
	return c->data ? set_bytes(&c->data->set) + set_bytes(&c->data->apart) : 0;
}

/* ---- loads ---- */

static int put(Ctx *c, const RtInput *in, const unsigned char *from)
{
	size_t bytes = rt_bytes(c, &in->t);
	void *to = rt_address(c, &in->t);
	memcpy(rt_host(c, to, bytes), from, bytes);
	return rt_put(c, to, bytes);
}

static Buffer *wait_for(RtLoader *d, int64_t load)
{
	pthread_mutex_lock(&d->lock);
	while (d->next <= load)
		pthread_cond_wait(&d->changed, &d->lock);
	pthread_mutex_unlock(&d->lock);
	return &d->buffer[load & 1];
}

static void give_back(RtLoader *d, Buffer *b)
{
	pthread_mutex_lock(&d->lock);
	b->full = false;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

/* Indices must be in range: kernels rely on it. */
int rt_check_range(Ctx *c, const RtInput *in, const void *from)
{
	int64_t n = rt_elements(c, &in->t);
	bool wide = in->t.type == RT_I64;
	for (int64_t i = 0; i < n && in->range && (wide || in->t.type == RT_I32); i++) {
		int64_t v = wide ? ((const int64_t *)from)[i] : ((const int32_t *)from)[i];
		if (v < 0 || v >= in->range)
			return rt_error(c, RT_DATA,
				"element %" PRId64 " of %s is %" PRId64 ", not one of 0 .. %" PRId64, i, in->t.name, v,
				in->range - 1);
	}
	return 0;
}

/* Samples from the caller of the library, all micro-batches one after the other. */
static int load_given(Ctx *c)
{
	const RtIo *p = &c->program->io[RT_TRAIN];
	int code = 0;
	for (int i = 0, k = 0; i < p->ninput && !code; i++) {
		const RtInput *in = &p->input[i];
		const unsigned char *from = in->feed == RT_STEP ? (const unsigned char *)&c->step
			: (const unsigned char *)&c->micro;
		if (in->feed == RT_SAMPLES) {
			from = (const unsigned char *)c->given[k++] + (size_t)c->micro * rt_bytes(c, &in->t);
			code = rt_check_range(c, in, from);
		}
		if (!code)
			code = put(c, in, from);
	}
	return code;
}

/* Samples of one batch of an evaluation. */
static int64_t eval_batch(const Ctx *c)
{
	const RtIo *p = &c->program->io[RT_EVAL];
	for (int i = 0; i < p->ninput; i++)
		if (p->input[i].feed == RT_SAMPLES && p->input[i].t.naxis > 0)
			return p->input[i].t.dim[0];
	return 1;
}

/* The first sample of a batch of an evaluation; one after the last batch begins with the last sample. */
static int64_t first_of(const Ctx *c, int64_t batch)
{
	int64_t first = batch * eval_batch(c), held = c->data->held;
	return held && first >= held ? held - 1 : first;
}

int rt_load(Ctx *c)
{
	if (c->given && c->kind == RT_TRAIN)
		return load_given(c);
	RtLoader *d = c->data;
	const RtIo *p = &c->program->io[c->kind];
	int64_t load = c->step * micros(c->program) + c->micro;
	if (c->kind == RT_INFER && c->batches)
		return c->batches->load(c, c->batches->arg);
	if (!d || c->kind == RT_INFER)
		return 0;               /* the caller has written the inputs */
	if (d->running && c->kind == RT_TRAIN && load != d->due)
		rt_data_pause(c);       /* micro-batches in another order than ascending are not read ahead */
	bool ahead = d->running && c->kind == RT_TRAIN;
	Buffer *b = ahead ? wait_for(d, load) : &d->buffer[0];
	size_t at = 0;
	int code = 0;
	if (c->kind == RT_EVAL)
		fill_program(d, RT_EVAL, b, -1, first_of(c, c->micro));
	else if (!ahead)
		fill(d, b, load);
	/* a bad sample on one rank ends the step or evaluation of all, by the verdict; until then, it is zeros */
	if (b->wrong.code && !c->vote.code)
		rt_error(c, b->wrong.code, "%s", b->wrong.text);
	if (c->nrank == 1)
		code = b->wrong.code;
	else if (c->kind == RT_TRAIN)
		rt_verdict_loaded(c, b->wrong.code);
	else
		rt_verdict_bad(c, b->wrong.code);
	if (c->vote.code && b->at)
		memset(b->at, 0, d->bytes);
	if (code)
		return code;
	for (int i = 0; i < p->ninput && !code; i++) {
		if (p->input[i].feed == RT_STEP || p->input[i].feed == RT_MICRO) {
			code = put(c, &p->input[i],
				(const unsigned char *)(p->input[i].feed == RT_STEP ? &c->step : &c->micro));
		} else if (p->input[i].feed == RT_SAMPLES) {
			code = put(c, &p->input[i], b->at + at);
			at += rt_round_up(rt_bytes(c, &p->input[i].t), RT_LINE);
		}
	}
	if (ahead)
		give_back(d, b);
	d->due = load + 1;
	return code;
}

int64_t rt_data_held(Ctx *c, int64_t *samples, int64_t *batch)
{
	rt_data_pause(c);
	*batch = eval_batch(c);
	*samples = c->data && c->data->held ? c->data->held : 0;
	if (!*samples && c->program->data.format == RT_POINTS)
		*samples = *batch;      /* synthetic: any number will do */
	return *samples / *batch + (*samples % *batch ? 2 : 0);
}

int rt_save_loss(Ctx *c, const float *value)
{
	float v = 0;
	int code = rt_get(c, &v, value, sizeof v);
	if (code)
		return code;
	c->loss = (double)v;
	if (!isfinite(v) && !c->again && !c->vote.sent)
		rt_error(c, RT_NUMERIC, "the loss is %g", (double)v);
	if (!isfinite(v))
		c->vote.not_finite = 1;
	return rt_verdict(c);
}

static int number(Ctx *c, double *to, const float *from)
{
	float v = 0;
	int code = rt_get(c, &v, from, sizeof v);
	*to = (double)v;
	return code;
}

static int save_metrics(Ctx *c, const float *const *at)
{
	const RtProgram *p = c->program;
	int code = 0;
	for (int i = 0; i < p->nmetric && !code; i++) {
		c->sums.sum[i] = c->sums.loss;
		c->sums.by[i] = c->sums.count;
		if (!p->metric[i].own)
			continue;
		code = number(c, &c->sums.sum[i], at[0]);
		if (!code)
			code = number(c, &c->sums.by[i], at[1]);
		at += 2;
	}
	return code;
}

int rt_save_step(Ctx *c, const float *loss, const double *rate, const float *norm, const float *const *metrics)
{
	float v;
	int code = rt_save_loss(c, loss);
	c->sums.loss = c->loss;
	c->sums.count = 1;
	if (!code)
		code = save_metrics(c, metrics);
	if (!code && rate)
		code = rt_get(c, &c->rate, rate, sizeof c->rate);
	if (!code && norm && !(code = rt_get(c, &v, norm, sizeof v)))
		c->norm = (double)v;
	return code;
}

int rt_save_eval(Ctx *c, const float *sum, const float *count, const float *const *metrics)
{
	int code = number(c, &c->sums.loss, sum);
	if (!code)
		code = number(c, &c->sums.count, count);
	if (!code)
		code = save_metrics(c, metrics);
	return code || !c->batches ? code : c->batches->take(c, NULL, 0, c->batches->arg);
}

int rt_save_outputs(Ctx *c, const int *output, int n)
{
	int code = rt_sync(c);
	return code || !c->batches ? code : c->batches->take(c, output, n, c->batches->arg);
}

int rt_load_one(Ctx *c, const RtInput *in)
{
	RtLoader d = { .view = *c };
	Wrong w = { 0 };
	void *to = rt_address(c, &in->t);
	if (in->feed == RT_STEP || in->feed == RT_MICRO)
		memcpy(to, in->feed == RT_STEP ? &c->step : &c->micro, sizeof c->step);
	else
		fetch_input(&d, in, c->step, c->micro * (c->program->batch / micros(c->program)), to, &w);
	return w.code;
}
