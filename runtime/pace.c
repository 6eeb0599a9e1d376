/* RT_PACE=FILE: for tests and benchmarks of schedules.  Blocks do not compute; each lasts as long as FILE says, asleep,
 * so that more ranks than processors work at the same time.  Waits, transfers, loading and saving are real.
 *
 * A line of the file is the name of a block and its seconds: "F1 0.020".  A block that is not listed takes no time. */
#include "comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct RtPace { int n; struct { char name[32]; double seconds; } block[]; } RtPace;

static int read_lines(Ctx *c, FILE *f, const char *path)
{
	char line[128];
	for (int at = 1; fgets(line, sizeof line, f); at++) {
		int n = c->pace ? c->pace->n : 0;
		RtPace *more = realloc(c->pace, sizeof *more + (size_t)(n + 1) * sizeof more->block[0]);
		if (!more)
			return rt_error(c, RT_MEMORY, "no memory for %s", path);
		c->pace = more;
		more->n = n + 1;
		if (sscanf(line, "%31s %lf", more->block[n].name, &more->block[n].seconds) != 2 ||
			!(more->block[n].seconds >= 0))
			return rt_error(c, RT_USAGE, "%s:%d: not the name of a block and its seconds", path, at);
	}
	return c->pace ? 0 : rt_error(c, RT_USAGE, "%s, which RT_PACE names, is empty", path);
}

int rt_pace_open(Ctx *c)
{
	const char *path = getenv("RT_PACE");
	FILE *f = path ? fopen(path, "r") : NULL;
	if (!path)
		return 0;
	if (!f)
		return rt_error(c, RT_USAGE, "cannot read %s, which RT_PACE names: %s", path, strerror(errno));
	int code = read_lines(c, f, path);
	fclose(f);
	if (!code && c->rank == 0)
		fprintf(stderr, "blocks sleep as %s says, and compute nothing\n", path);
	return code;
}

void rt_pace_close(Ctx *c)
{
	free(c->pace);
	c->pace = NULL;
}

void rt_pace(const Ctx *c, const RtActor *a, double since)
{
	for (int i = 0; i < c->pace->n; i++) {
		double left = since + c->pace->block[i].seconds - rt_seconds();
		struct timespec t = { .tv_sec = (time_t)left, .tv_nsec = (long)(1e9 * (left - (double)(time_t)left)) };
		if (strcmp(c->pace->block[i].name, a->name) || left <= 0)
			continue;
		while (nanosleep(&t, &t) && errno == EINTR)
			;
	}
}
