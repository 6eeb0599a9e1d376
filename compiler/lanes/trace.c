/* A play as a file for chrome://tracing or ui.perfetto.dev: a process for each role, a thread for each lane, an event
 * for each task with what it waited for, and the bytes in use as a counter. */
#include "lanes/lanes.h"

static const char *const lane_name[] = {
	[LANE_COMPUTE] = "compute", [LANE_LOAD] = "load", [LANE_SAVE] = "save", [LANE_SEND] = "send",
	[LANE_RECEIVE] = "receive",
};

static const char *waited(const LaneNet *n, const LaneRole *role, const LaneEvent *e)
{
	switch (e->wait) {
	case WAIT_PIECE: return name_fmt("a piece of %s", role->reg[e->what].name);
	case WAIT_ROOM: return name_fmt("room in %s", role->reg[e->what].name);
	case WAIT_PEER: return name_fmt("the other end of %s", n->channel[e->what].name);
	case WAIT_MEET: return name_fmt("the meeting %s", n->meet[e->what].name);
	default: return "nothing";
	}
}

static void write_task(FILE *f, const LaneNet *n, int r, int lane, const LaneTask *t, const LaneEvent *e)
{
	const LaneRole *role = &n->role[r];
	const char *name = t->act == DO_BLOCK ? role->block[t->id].name : n->channel[t->id].name;
	fprintf(f, ",\n{\"name\":\"%s", name);
	if (t->micro >= 0)
		fprintf(f, " %d", t->micro);
	fprintf(f, "\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", r, lane, e->start * 1e6,
		(e->end - e->start) * 1e6);
	if (e->start > e->ready)
		fprintf(f, ",\"args\":{\"waited\":%.3f,\"for\":\"%s\"}", (e->start - e->ready) * 1e6,
			waited(n, role, e));
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
				"\"args\":{\"name\":\"%s%s%s\"}}", r, l, lane_name[lane->kind], end ? " " : "",
				end ? n->channel[lane->task[0].id].name : "");
			for (int i = 0; i < lane->ntask; i++)
				write_task(f, n, r, l, &lane->task[i], &y->event[k][i]);
		}
		for (int i = 0; i < y->nuse[r]; i++)
			fprintf(f, ",\n{\"name\":\"bytes in use\",\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,"
				"\"args\":{\"bytes\":%lld}}", r, y->use[r][i].at * 1e6, (long long)y->use[r][i].bytes);
	}
	fputs("\n]}\n", f);
}
