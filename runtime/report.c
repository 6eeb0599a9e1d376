/* Reports of a run.  Rank 0 passes a record of numbers per step and per evaluation to all sinks of the table below,
 * and prints it as a line.
 *
 * A line begins with "step N  loss X"; learning rate, gradient norm, speed and time left follow.  On a terminal the
 * line of the last step stays at the bottom. */
#include "comm.h"
#include "save.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const RtSink *const sinks[] = { &rt_sink_plot, &rt_sink_log, &rt_sink_events };
enum { NSINK = sizeof sinks / sizeof sinks[0] };

void rt_record_add(RtRecord *r, const char *name, double value)
{
	assert(r->n < RT_NUMBERS);
	r->number[r->n++] = (RtNumber){ name, value };
}

double rt_record_get(const RtRecord *r, const char *name)
{
	for (int i = 0; i < r->n; i++)
		if (!strcmp(r->number[i].name, name))
			return r->number[i].value;
	return NAN;
}

/* How a number is printed in a line, and that it is no curve; one that is not listed is printed as NAME 0.1234. */
static const struct Style { const char *name, *before, *after; int digits; bool significant, hidden; } styles[] = {
	{ .name = "loss", .before = "loss ", .after = "", .digits = 7 },
	{ .name = "rate", .before = "rate ", .after = "", .digits = 3, .significant = true },
	{ .name = "norm", .before = "norm ", .after = "", .digits = 3, .significant = true },
	{ .name = "tokens_per_s", .before = "", .after = " tokens/s" },
	{ .name = "samples_per_s", .before = "", .after = " samples/s" },
	{ .name = "seconds", .hidden = true },
	{ .name = "samples", .hidden = true },
};

/* NULL: it is not listed. */
static const struct Style *style_of(const char *name)
{
	for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++)
		if (!strcmp(styles[i].name, name))
			return &styles[i];
	return NULL;
}

bool rt_is_curve(const char *name)
{
	const struct Style *s = style_of(name);
	return !s || !s->hidden;
}

void rt_report_flush(FILE *f, bool *lost, const char *name)
{
	if (fflush(f) == 0 || *lost)
		return;
	*lost = true;
	fprintf(stderr, "warning: cannot write to %s: %s; training continues without it\n", name, strerror(errno));
}

/* Tokens are counted if a sample is a row of tokens. */
static int64_t per_sample(const RtProgram *p)
{
	const RtIo *t = &p->io[RT_TRAIN];
	bool tokens = p->data.format == RT_BYTES || p->data.format == RT_TOKENS16 || p->data.format == RT_TOKENS32;
	for (int i = 0; i < t->ninput && tokens; i++)
		if (t->input[i].feed == RT_SAMPLES && t->input[i].t.naxis == 2)
			return t->input[i].t.dim[1];
	return 1;
}

/* True if a line can be overwritten: not in a file, and not under mpirun, which gives ranks terminals of its own and
 * forwards their output. */
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
	int code = 0;
	r->per_sample = per_sample(c->program);
	r->terminal = on_terminal();
	r->first = c->step;
	r->begin = rt_seconds();
	for (int i = 0; i < NSINK && !code && c->rank == 0; i++)
		code = sinks[i]->open(c, r);
	rt_data_counts(c, &train, &held, &dropped);
	if (!code && c->rank == 0 && dropped && r->trains)
		printf("%" PRId64 " samples, %" PRId64 " steps of %" PRId64 " to an epoch; the remaining %" PRId64
		       " of each epoch are dropped\n",
			train, train / c->program->batch, c->program->batch, dropped);
	return code;
}

/* ---- lines ---- */

static void print_numbers(const RtRecord *rec, const char *between)
{
	for (int i = 0; i < rec->n; i++) {
		const RtNumber *n = &rec->number[i];
		const struct Style *s = style_of(n->name);
		if (!s)
			printf("%s%s %.4f", between, n->name, n->value);
		else if (s->significant)
			printf("%s%s%.*g%s", between, s->before, s->digits, n->value, s->after);
		else if (!s->hidden)
			printf("%s%s%.*f%s", between, s->before, s->digits, n->value, s->after);
	}
}

static void time_left(double seconds)
{
	int64_t s = (int64_t)(seconds + 0.5);
	if (s >= 3600)
		printf("%" PRId64 ":%02" PRId64 ":%02" PRId64 " left", s / 3600, s / 60 % 60, s % 60);
	else
		printf("%" PRId64 ":%02" PRId64 " left", s / 60, s % 60);
}

static void print_line(RtReport *r, const RtRecord *rec)
{
	bool line = rec->eval || rec->step % r->every == 0 || rec->step == r->steps - 1;
	if (r->lost || (!line && !r->terminal))
		return;
	printf("%s", r->terminal ? "\r" : "");
	if (rec->eval) {
		printf("%.0f %ssamples%s%s", rt_record_get(rec, "samples"), r->set ? "" : "held-out ",
			r->set ? " of " : "", r->set ? r->set : "");
		print_numbers(rec, ", ");
	} else {
		printf("step %6" PRId64, rec->step);
		print_numbers(rec, "  ");
		printf("  ");
		time_left(rt_record_get(rec, "seconds") / (double)(rec->step + 1 - r->first) *
			  (double)(r->steps - rec->step - 1));
	}
	printf("%s%s", r->terminal ? "\033[K" : "", line ? "\n" : "");
	rt_report_flush(stdout, &r->lost, "standard output");
}

/* ---- records ---- */

void rt_report(const Ctx *c, RtReport *r, const RtRecord *rec)
{
	for (int i = 0; i < NSINK; i++)
		sinks[i]->take(c, r, rec);
	print_line(r, rec);
}

static double speed(const Ctx *c, const RtReport *r, int64_t done, double seconds)
{
	return (double)(done * c->program->batch * r->per_sample) / (seconds > 0 ? seconds : 1e-9);
}

void rt_report_step(const Ctx *c, RtReport *r)
{
	RtRecord rec = { .step = c->step };
	double t = rt_seconds() - r->begin;
	rt_record_add(&rec, "loss", c->loss);
	rt_record_metrics(&rec, c->program, &c->sums);
	if (!isnan(c->rate))
		rt_record_add(&rec, "rate", c->rate);
	if (!isnan(c->norm))
		rt_record_add(&rec, "norm", c->norm);
	rt_record_add(
		&rec, r->per_sample > 1 ? "tokens_per_s" : "samples_per_s", speed(c, r, c->step + 1 - r->first, t));
	rt_record_add(&rec, "seconds", t);
	rt_report(c, r, &rec);
}

/* Reports a rank for which the others waited much longer than it did for them. */
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
	size_t peers, measured = rt_memory_measured(c, &peers),
		      planned = rt_memory_planned(c, r);
	for (int i = 0; i < NSINK; i++)
		sinks[i]->close(c, r, code);
	if (code || done <= 0)
		return;
	name_slow(c, t);
	printf("%" PRId64 " steps, %.1f %s/s\n", done, speed(c, r, done, t), r->per_sample > 1 ? "tokens" : "samples");
	if (measured)
		printf("memory of rank 0: %zu bytes planned, %zu measured", planned, measured);
	if (measured && c->comm->taken)
		printf(", plus %zu taken by MPI before, which the plan does not include", c->comm->taken);
	if (measured && c->nrank > 1 && c->comm->theirs)
		printf(", plus %zu mapped from other ranks, which they count", peers);
	printf(measured ? "\n" : "");
}

void rt_report_saved(const RtReport *r, const Ctx *c, int code, const char *dir)
{
	int64_t saved = rt_saved_last(c);
	const char *line = r->terminal ? "\r\033[K" : "";
	if (code == RT_STOPPED)
		printf("%sstopped by a signal after step %" PRId64 "%s", line, c->step,
			saved < 0 ? "; nothing was saved\n" : "; --resume continues\n");
	if (saved >= 0)
		printf("%ssaved %s/step-%08" PRId64 "\n", line, dir, saved);
	fflush(stdout);
}
