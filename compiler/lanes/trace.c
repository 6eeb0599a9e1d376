/* A play as a file for chrome://tracing or ui.perfetto.dev: a process for each role, a thread for each lane, an event
 * for each task with what it waited for, and the bytes in use as a counter. */
#include "lanes/shown.h"

static const char *const lane_name[] = {
	[LANE_COMPUTE] = "compute", [LANE_LOAD] = "load", [LANE_SAVE] = "save", [LANE_SEND] = "send",
	[LANE_RECEIVE] = "receive",
};

/* Names of a model may have any bytes. */
static void put_text(FILE *f, const char *s)
{
	for (const unsigned char *c = (const unsigned char *)s; *c; c++)
		if (*c == '"' || *c == '\\' || *c < ' ' || *c > '~')
			fprintf(f, "\\u%04x", *c);
		else
			putc(*c, f);
}

static void write_task(FILE *f, const LaneNet *n, int r, int lane, const LaneTask *t, const LaneEvent *e)
{
	const LaneRole *role = &n->role[r];
	fputs(",\n{\"name\":\"", f);
	put_text(f, t->act == DO_BLOCK ? role->block[t->id].name : n->channel[t->id].name);
	if (t->micro >= 0)
		fprintf(f, " %d", t->micro);
	fprintf(f, "\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", r, lane, e->start * 1e6,
		(e->end - e->start) * 1e6);
	if (e->start > e->ready) {
		fprintf(f, ",\"args\":{\"waited\":%.3f,\"for\":\"", (e->start - e->ready) * 1e6);
		put_text(f, shown_cause(n, role, e->wait, e->what));
		fputs("\"}", f);
	}
	fputs("}", f);
}

void trace_write(FILE *f, const LaneNet *n, const LanePlay *y)
{
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", f);
	fputs("{\"name\":\"begin\",\"ph\":\"i\",\"ts\":0,\"pid\":0,\"s\":\"g\"}", f);
	for (int r = 0, k = 0; r < n->nrole; r++) {
		const LaneRole *role = &n->role[r];
		fprintf(f, ",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s\"}}", r,
			role->name);
		for (int l = 0; l < role->nlane; l++, k++) {
			const Lane *lane = &role->lane[l];
			bool end = lane->ntask && lane->task[0].act != DO_BLOCK && lane->kind != LANE_COMPUTE;
			fprintf(f, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
				"\"args\":{\"name\":\"%s%s", r, l, lane_name[lane->kind], end ? " " : "");
			put_text(f, end ? n->channel[lane->task[0].id].name : "");
			fputs("\"}}", f);
			for (int i = 0; i < lane->ntask; i++)
				write_task(f, n, r, l, &lane->task[i], &y->event[k][i]);
		}
		for (int i = 0; i < y->nuse[r]; i++)
			fprintf(f, ",\n{\"name\":\"bytes in use\",\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,"
				"\"args\":{\"bytes\":%lld}}", r, y->use[r][i].at * 1e6, (long long)y->use[r][i].bytes);
	}
	fputs("\n]}\n", f);
}
