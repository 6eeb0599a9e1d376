/* --log=FILE: a line of JSON per record, and lines at the start and end of a run.  A number that is not finite is
 * null. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A killed run may leave an incomplete line. */
static bool ends_with_a_line(const char *path)
{
	FILE *f = fopen(path, "r");
	bool whole = !f || fseek(f, -1, SEEK_END) || fgetc(f) == '\n';
	if (f)
		fclose(f);
	return whole;
}

static int log_open(Ctx *c, RtReport *r)
{
	int64_t train, held, dropped;
	if (!r->log_to)
		return 0;
	bool whole = r->append ? ends_with_a_line(r->log_to) : true;
	r->log = fopen(r->log_to, r->append ? "a" : "w");
	if (!r->log)
		return rt_error(c, RT_USAGE, "cannot write %s: %s", r->log_to, strerror(errno));
	if (!whole)
		fputc('\n', r->log);
	rt_data_counts(c, &train, &held, &dropped);
	fprintf(r->log,
		"{\"event\":\"start\",\"step\":%" PRId64 ",\"steps\":%" PRId64 ",\"batch\":%" PRId64
		",\"samples\":%" PRId64 ",\"held_out\":%" PRId64 ",\"dropped_per_epoch\":%" PRId64
		",\"seed\":%" PRIu64 ",\"ranks\":%d,\"threads\":%d}\n",
		c->step, r->steps, c->program->batch, train, held, dropped, c->seed, c->nrank, c->nthread);
	return 0;
}

static void log_take(const Ctx *c, RtReport *r, const RtRecord *rec)
{
	(void)c;
	if (!r->log)
		return;
	fprintf(r->log, "{%s\"step\":%" PRId64, rec->eval ? "\"event\":\"eval\"," : "", rec->step);
	for (int i = 0; i < rec->n; i++) {
		fputs(",\"", r->log);
		for (const char *p = rec->number[i].name; *p; p++)
			fprintf(r->log, "%s%c", *p == '"' || *p == '\\' ? "\\" : "", *p);
		if (isfinite(rec->number[i].value))
			fprintf(r->log, "\":%.9g", rec->number[i].value);
		else
			fputs("\":null", r->log);
	}
	fprintf(r->log, "}\n");
	rt_report_flush(r->log, &r->log_lost, r->log_to);
}

static void log_close(const Ctx *c, RtReport *r, int code)
{
	if (!r->log)
		return;
	fprintf(r->log, "{\"event\":\"end\",\"step\":%" PRId64 ",\"status\":%d}\n", c->step, code);
	rt_report_flush(r->log, &r->log_lost, r->log_to);
	fclose(r->log);
	r->log = NULL;
}

const RtSink rt_sink_log = { log_open, log_take, log_close };
