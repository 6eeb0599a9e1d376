/* Observes single actions: when they run (--trace), how long they take (--profile), and which one first produces a
 * value that is not finite.  Without any of these the walk does not call this file.
 *
 * Events are kept in memory until the end, at most a million; then ranks write one file in turn. */
#include "comm.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

enum { EVENTS = 1 << 20 };

/* An action; a transfer in flight, from its first attempt to its end; of a pipeline: a task, a wait for a queue, a
 * piece that was transferred.  Each kind is on a row: tasks contain their actions and waits. */
typedef enum { ACTION, LANE, TASK, WAIT, PIECE } EventKind;
static const int row_of[] = { [ACTION] = 0, [LANE] = 1, [TASK] = 0, [WAIT] = 0, [PIECE] = 2 };
typedef struct Event { double from, to; const RtAction *at; const char *name; int id; EventKind kind; } Event;
typedef struct Total { const RtAction *at; const char *name; double seconds; int64_t runs; } Total;

typedef struct Watch {
	RtWatch calls;
	const char *trace;
	bool check;
	double begin, from;
	Event *event; int nevent;
	Total *total; int ntotal;
} Watch;

static Watch *watch(const Ctx *c)
{
	return (Watch *)c->watch;
}

size_t rt_watch_bytes(const Ctx *c)
{
	return c->watch ? (size_t)watch(c)->nevent * sizeof(Event) : 0;
}

static const char *value_name(const Ctx *c)
{
	return c->values ? rt_about(c, c->values[0]).name : "";
}

static bool finite_all(Ctx *c, int value)
{
	RtValue v = rt_about(c, value);
	const float *p = rt_value(c, value);
	if (v.type != RT_F32 || c->device)
		return true;
	for (int64_t i = 0; i < v.bytes / 4; i++)
		if (!isfinite(p[i]))
			return false;
	return true;
}

static void before(Ctx *c)
{
	watch(c)->from = rt_seconds();
}

static int after(Ctx *c)
{
	Watch *w = watch(c);
	double now = rt_seconds();
	if (w->event && w->nevent < EVENTS)
		w->event[w->nevent++] = (Event){ .from = w->from - w->begin, .to = now - w->begin, .at = c->at,
			.name = value_name(c), .id = c->id };
	if (w->total && c->kind == RT_TRAIN && c->id < w->ntotal) {
		Total *t = &w->total[c->id];
		t->at = c->at;
		t->name = value_name(c);
		t->seconds += now - w->from;
		t->runs++;
	}
	for (int i = 0; w->check && i < c->at->nmake; i++)
		if (!finite_all(c, c->values[i])) {
			rt_error(c, RT_NUMERIC, "%s is the first value of this step that is not finite",
				rt_about(c, c->values[i]).name);
			w->check = false;       /* the walk continues: other ranks wait for the values of this one */
		}
	return 0;
}

static void moved(Ctx *c, double from, double to)
{
	Watch *w = watch(c);
	if (w->event && w->nevent < EVENTS && c->at)
		w->event[w->nevent++] = (Event){ .from = from - w->begin, .to = to - w->begin, .at = c->at,
			.name = value_name(c), .id = c->id, .kind = LANE };
}

static void add_event(Watch *w, EventKind kind, const char *name, int micro, double from, double to)
{
	if (w->event && w->nevent < EVENTS)
		w->event[w->nevent++] = (Event){ .from = from - w->begin, .to = to - w->begin, .name = name,
			.id = micro, .kind = kind };
}

static void ran(Ctx *c, const RtActor *a, int micro, double since)
{
	add_event(watch(c), TASK, a->name, micro, since, rt_seconds());
}

static void waited(Ctx *c, const RtEnd *e, double since)
{
	add_event(watch(c), WAIT, e->queue->name, (int)c->micro, since, rt_seconds());
}

static void arrived(Ctx *c, const RtEnd *e, uint64_t k)
{
	size_t slot = k % (uint64_t)e->queue->copies;
	add_event(watch(c), PIECE, e->queue->name, (int)c->micro, e->from[slot], e->to[slot]);
}

/* True if all kept values are finite; else reports one that is not, parameters before optimizer state. */
static bool finite_kept(Ctx *c)
{
	for (int keep = RT_PARAMETER; keep <= RT_STATE; keep++)
		for (int i = 0; i < c->program->nkept; i++)
			if ((int)c->program->kept[i].keep == keep && !finite_all(c, i)) {
				rt_error(c, RT_NUMERIC, "%s has not been finite since the previous step",
					c->program->kept[i].t.name);
				return false;
			}
	return true;
}

int rt_watch_open(Ctx *c, const char *trace, bool profile, bool check)
{
	Watch *w = calloc(1, sizeof *w);
	if (!w)
		return rt_error(c, RT_MEMORY, "no memory");
	c->watch = &w->calls;
	w->calls = (RtWatch){ .before = before, .after = after, .moved = moved };
	if (c->queues) {
		w->calls.ran = ran;
		w->calls.waited = waited;
		w->calls.arrived = arrived;
	}
	w->trace = trace;
	w->check = check && finite_kept(c);
	w->begin = rt_seconds();
	const RtSchedule *s = c->program->role[c->role]->schedule[RT_TRAIN];
	w->ntotal = profile && s ? s->nactions : 0;
	w->total = profile ? calloc((size_t)w->ntotal + 1, sizeof *w->total) : NULL;
	w->event = trace ? malloc(EVENTS * sizeof *w->event) : NULL;
	return (profile && !w->total) || (trace && !w->event) ? rt_error(c, RT_MEMORY, "no memory for a trace") : 0;
}

/* ---- trace ---- */

static void put_name(FILE *f, const char *s)
{
	for (; *s; s++)
		fprintf(f, *s == '\\' ? "\\\\" : "%c", *s);
}

/* "F1 2", "wait for x6 2": with the micro-batch. */
static void put_task(FILE *f, const Ctx *c, const Event *e)
{
	static const char *const cat[] = { [TASK] = "task", [WAIT] = "wait", [PIECE] = "transfer" };
	fprintf(f, "{\"name\":\"%s", e->kind == WAIT ? "wait for " : "");
	put_name(f, e->name);
	if (e->id >= 0)
		fprintf(f, " %d", e->id);
	fprintf(f, "\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d},\n", cat[e->kind],
		1e6 * e->from, 1e6 * (e->to - e->from), c->rank, row_of[e->kind]);
}

static int write_trace(Ctx *c, const Watch *w)
{
	int bad = 0;
	for (int r = 0; r < c->nrank; r++) {
		c->comm->barrier(c);
		FILE *f = r == c->rank ? fopen(w->trace, r ? "a" : "w") : NULL;
		if (r != c->rank)
			continue;
		if (!f) {
			bad = errno;
			continue;
		}
		fputs(r ? "" : "[\n", f);
		for (int i = 0; i < w->nevent; i++) {
			const Event *e = &w->event[i];
			if (e->kind > LANE) {
				put_task(f, c, e);
				continue;
			}
			bool moves = e->kind == LANE || e->at->kind == RT_COLLECTIVE || e->at->kind == RT_START ||
				e->at->kind == RT_FINISH;
			fprintf(f, "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,"
				"\"tid\":%d,\"args\":{\"action\":\"a%d\",\"value\":\"",
				e->at->op, moves ? "transfer" : "compute", 1e6 * e->from, 1e6 * (e->to - e->from),
				c->rank, row_of[e->kind], e->id);
			put_name(f, e->name);
			fprintf(f, "\"}},\n");
		}
		fprintf(f, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}%s\n",
			c->rank, c->rank, r == c->nrank - 1 ? "\n]" : ",");
		bad = fclose(f) ? errno : 0;
	}
	c->comm->barrier(c);
	if (w->nevent == EVENTS && c->rank == 0)
		fprintf(stderr, "the trace holds the first %d actions only\n", EVENTS);
	return bad ? rt_error(c, RT_USAGE, "cannot write %s: %s", w->trace, strerror(bad)) : 0;
}

/* ---- profile ---- */

/* Multiply-adds in registers, of the full vector width. */
enum { CHAINS = 12 };

static float peak_plain(int64_t n)
{
	float x[4 * CHAINS], s = 0;
	for (int i = 0; i < 4 * CHAINS; i++)
		x[i] = (float)i;
	for (int64_t k = 0; k < n; k++)
		for (int i = 0; i < 4 * CHAINS; i++)
			x[i] = x[i] * 0.999f + 1e-7f;
	for (int i = 0; i < 4 * CHAINS; i++)
		s += x[i];
	return s;
}

#if defined __x86_64__
__attribute__((target("avx2,fma"))) static float peak_avx2(int64_t n)
{
	__m256 x[CHAINS], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-7f), s = b;
	for (int i = 0; i < CHAINS; i++)
		x[i] = _mm256_set1_ps((float)i);
	for (int64_t k = 0; k < n; k++) {
#pragma GCC unroll 12
		for (int i = 0; i < CHAINS; i++)
			x[i] = _mm256_fmadd_ps(x[i], a, b);
	}
	for (int i = 0; i < CHAINS; i++)
		s = _mm256_add_ps(s, x[i]);
	return _mm256_cvtss_f32(s);
}

__attribute__((target("avx512f"))) static float peak_avx512(int64_t n)
{
	__m512 x[CHAINS], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-7f), s = b;
	for (int i = 0; i < CHAINS; i++)
		x[i] = _mm512_set1_ps((float)i);
	for (int64_t k = 0; k < n; k++) {
#pragma GCC unroll 12
		for (int i = 0; i < CHAINS; i++)
			x[i] = _mm512_fmadd_ps(x[i], a, b);
	}
	for (int i = 0; i < CHAINS; i++)
		s = _mm512_add_ps(s, x[i]);
	return _mm512_cvtss_f32(s);
}
#endif

typedef struct Run { RtIsa isa; int64_t n; volatile float sink; } Run;

static void run_peak(void *arg, int64_t lo, int64_t hi, int thread)
{
	Run *r = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
#if defined __x86_64__
		r->sink = r->isa == RT_AVX512 ? peak_avx512(r->n) : r->isa == RT_AVX2 ? peak_avx2(r->n)
			: peak_plain(r->n);
#else
		r->sink = peak_plain(r->n);
#endif
	}
}

/* Floating-point operations per second of all threads of this rank, measured: the best of several runs. */
static double measure_peak(Ctx *c)
{
	Run r = { c->isa, 100000, 0 };
	int lanes = c->isa == RT_AVX512 ? 16 : c->isa == RT_AVX2 ? 8 : 4;
	double best = 0;
	for (int i = 0; i < 20; i++) {
		double t = rt_seconds();
		rt_parallel(c, 4 * c->nthread, 1, run_peak, &r);
		t = rt_seconds() - t;
		double rate = 2.0 * (double)(CHAINS * lanes) * (double)r.n * 4 * c->nthread / t;
		best = rate > best ? rate : best;
	}
	return best;
}

static int slower(const void *a, const void *b)
{
	const Total *x = a, *y = b;
	return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

static void print_profile(Ctx *c, Watch *w)
{
	double all = 0, peak = measure_peak(c), flops = 0;
	for (int i = 0; i < w->ntotal; i++) {
		all += w->total[i].seconds;
		flops += w->total[i].at ? w->total[i].at->flops * (double)w->total[i].runs : 0;
	}
	qsort(w->total, (size_t)w->ntotal, sizeof *w->total, slower);
	printf("\nprofile of rank 0: %.3f s in actions, %.2f GFLOP/s, %.1f %% of a peak of %.1f GFLOP/s (%d thread%s, "
		"measured)\n", all, 1e-9 * flops / (all > 0 ? all : 1), 100 * flops / (all > 0 ? all : 1) / peak,
		1e-9 * peak, c->nthread, c->nthread == 1 ? "" : "s");
	printf("%10s %7s %10s %10s %7s  %s\n", "seconds", "share", "us each", "GFLOP/s", "peak", "node");
	for (int i = 0; i < w->ntotal && w->total[i].at; i++) {
		const Total *t = &w->total[i];
		double rate = t->seconds > 0 ? t->at->flops * (double)t->runs / t->seconds : 0;
		printf("%10.4f %6.1f%% %10.1f %10.2f %6.1f%%  %s %s\n",
			t->seconds, 100 * t->seconds / (all > 0 ? all : 1), 1e6 * t->seconds / (double)t->runs,
			1e-9 * rate, 100 * rate / peak, t->at->op, t->name);
	}
}

int rt_watch_close(Ctx *c)
{
	Watch *w = watch(c);
	int code = 0;
	if (!w)
		return 0;
	if (w->event)
		code = write_trace(c, w);
	if (w->total && c->rank == 0)
		print_profile(c, w);
	free(w->event);
	free(w->total);
	free(w);
	c->watch = NULL;
	return code;
}
