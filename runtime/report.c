/* What a run tells on its way: a line per step for people, a line of JSON per step for programs, both from rank 0.
 *
 * A line begins with "step N  loss X"; rate of learning, norm of the gradient, speed and time left follow.  On a terminal the
 * line of the step that was done last stays at the bottom. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tokens are counted where a sample is a row of them. */
static int64_t per_sample(const RtProgram *p)
{
	const RtPart *t = &p->part[RT_TRAIN];
	bool tokens = p->data.format == RT_BYTES || p->data.format == RT_TOKENS16 || p->data.format == RT_TOKENS32;
	for (int i = 0; i < t->ninput && tokens; i++)
		if (t->input[i].feed == RT_SAMPLES && t->input[i].t.rank == 2)
			return t->input[i].t.dim[1];
	return 1;
}

/* A line can be written over: not in a file, and not where mpirun gives ranks terminals of its own and passes on what they write. */
static bool on_terminal(void)
{
	static const char *const starter[] = { "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK" };
	const char *term = getenv("TERM");
	for (size_t i = 0; i < sizeof starter / sizeof *starter; i++)
		if (getenv(starter[i]))
			return false;
	return isatty(1) && term && *term && strcmp(term, "dumb");
}

int rt_report_open(Ctx *c, RtReport *r)
{
	int64_t train, held, dropped;
	r->per_sample = per_sample(c->program);
	r->terminal = on_terminal();
	r->first = c->step;
	r->begin = rt_seconds();
	if (c->rank || !r->log_to)
		return 0;
	r->log = fopen(r->log_to, r->append ? "a" : "w");
	if (!r->log)
		return rt_error(c, RT_USAGE, "cannot write %s: %s", r->log_to, strerror(errno));
	rt_data_counts(c, &train, &held, &dropped);
	fprintf(r->log, "{\"event\":\"start\",\"step\":%" PRId64 ",\"steps\":%" PRId64 ",\"batch\":%" PRId64 ",\"samples\":%" PRId64 ",\"held_out\":%" PRId64
	        ",\"dropped_per_epoch\":%" PRId64 ",\"seed\":%" PRIu64 ",\"ranks\":%d,\"threads\":%d}\n", c->step, r->steps, c->program->batch, train, held, dropped, c->seed, c->nrank, c->nthread);
	return 0;
}

/* What was told is on its way.  Training does not end because nobody listens: that it cannot be told is said once. */
static void flush(FILE *f, bool *lost, const char *name)
{
	if (fflush(f) == 0 || *lost)
		return;
	*lost = true;
	fprintf(stderr, "warning: cannot write to %s: %s; training goes on without\n", name, strerror(errno));
}

static void log_number(FILE *f, const char *name, double v)
{
	if (isfinite(v))
		fprintf(f, ",\"%s\":%.9g", name, v);
}

static void time_left(double seconds)
{
	int64_t s = (int64_t)(seconds + 0.5);
	if (s >= 3600)
		printf("%" PRId64 ":%02" PRId64 ":%02" PRId64 " left", s / 3600, s / 60 % 60, s % 60);
	else
		printf("%" PRId64 ":%02" PRId64 " left", s / 60, s % 60);
}

static const char *what(const RtReport *r)
{
	return r->per_sample > 1 ? "tokens" : "samples";
}

void rt_report_step(const Ctx *c, RtReport *r)
{
	double t = rt_seconds() - r->begin;
	int64_t done = c->step + 1 - r->first;
	double speed = (double)(done * c->program->batch * r->per_sample) / (t > 0 ? t : 1e-9);
	if (r->log) {
		fprintf(r->log, "{\"step\":%" PRId64, c->step);
		log_number(r->log, "loss", c->loss);
		log_number(r->log, "rate", c->rate);
		log_number(r->log, "norm", c->norm);
		log_number(r->log, r->per_sample > 1 ? "tokens_per_s" : "samples_per_s", speed);
		log_number(r->log, "seconds", t);
		fprintf(r->log, "}\n");
		flush(r->log, &r->log_lost, r->log_to);
	}
	bool line = c->step % r->every == 0 || c->step == r->steps - 1;
	if (r->lost || (!line && !r->terminal))
		return;
	printf("%sstep %6" PRId64 "  loss %.7f", r->terminal ? "\r" : "", c->step, c->loss);
	if (isfinite(c->rate))
		printf("  rate %.3g", c->rate);
	if (isfinite(c->norm))
		printf("  norm %.3g", c->norm);
	printf("  %.0f %s/s  ", speed, what(r));
	time_left(t / (double)done * (double)(r->steps - c->step - 1));
	printf("%s%s", r->terminal ? "\033[K" : "", line ? "\n" : "");
	flush(stdout, &r->lost, "standard output");
}

void rt_report_eval(const Ctx *c, RtReport *r, int64_t samples, double loss)
{
	if (r->log) {
		fprintf(r->log, "{\"event\":\"eval\",\"step\":%" PRId64 ",\"samples\":%" PRId64, c->step, samples);
		log_number(r->log, "loss", loss);
		fprintf(r->log, "}\n");
		flush(r->log, &r->log_lost, r->log_to);
	}
	printf("%s%" PRId64 " held-out samples, loss %.7f%s\n", r->terminal ? "\r" : "", samples, loss, r->terminal ? "\033[K" : "");
	flush(stdout, &r->lost, "standard output");
}

/* Names a rank for which the others waited much longer than it did for them. */
static void name_slow(const Ctx *c, double t)
{
	int least = 0;
	double sum = 0;
	if (c->nrank < 2 || !c->comm->waited)
		return;
	for (int i = 0; i < c->nrank; i++) {
		least = c->comm->waited(c, i) < c->comm->waited(c, least) ? i : least;
		sum += c->comm->waited(c, i);
	}
	double own = c->comm->waited(c, least), others = (sum - own) / (c->nrank - 1);
	if (others - own > 1 && others - own > 0.2 * t)
		printf("rank %d is slow: the others waited %.1f of %.1f s, it %.1f\n", least, others, t, own);
}

void rt_report_end(const Ctx *c, RtReport *r, int code)
{
	double t = rt_seconds() - r->begin;
	int64_t done = c->step - r->first;
	size_t peers, measured = rt_memory_measured(c, &peers);
	if (r->log) {
		fprintf(r->log, "{\"event\":\"end\",\"step\":%" PRId64 ",\"status\":%d}\n", c->step, code);
		fclose(r->log);
	}
	r->log = NULL;
	if (code || done <= 0)
		return;
	name_slow(c, t);
	printf("%" PRId64 " steps, %.1f %s/s\n", done, (double)(done * c->program->batch * r->per_sample) / (t > 0 ? t : 1e-9), what(r));
	if (measured)
		printf("memory of rank 0: %zu bytes planned, %zu measured", rt_memory_planned(c, r->saves), measured);
	if (measured && c->nrank > 1)
		printf(", and %zu of other ranks mapped, which they count", peers);
	printf(measured ? "\n" : "");
}

void rt_report_saved(const RtReport *r, const Ctx *c, int code, const char *dir)
{
	int64_t saved = rt_saved_last(c);
	const char *line = r->terminal ? "\r\033[K" : "";
	if (code == RT_STOPPED)
		printf("%sstopped by a signal after step %" PRId64 "%s", line, c->step, saved < 0 ? "; nothing was saved\n" : "; --resume goes on\n");
	if (saved >= 0)
		printf("%ssaved %s/step-%08" PRId64 "\n", line, dir, saved);
	fflush(stdout);
}
