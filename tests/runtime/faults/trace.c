/* trace FILE: reads a trace as Chrome's format has it and prints "RANK SPANS OVERLAPS" for each process: how many spans
 * it has, and how many of them begin before the one before has ended.  Exit status 1: it is no JSON, or a span lacks
 * something. */
#include "comm.h"
#include "save.h"

#include <string.h>

enum { RANKS = 64 };

typedef struct Rank { int spans, overlaps; double end; bool named; } Rank;

/* Numbers in a trace have a point. */
static double number(RtJson *j)
{
	char text[64] = "";
	int n = 0;
	while (j->at < j->end && n < 63 && strchr("+-.0123456789eE", *j->at))
		text[n++] = *j->at++;
	double v = 0;
	j->bad |= sscanf(text, "%lf", &v) != 1;
	return v;
}

static bool event(RtJson *j, Rank *rank)
{
	char key[32], text[256] = "", phase = 0;
	double from = -1, last = -1;
	int64_t pid = -1, tid = -1;
	bool name = false;
	for (rt_json_open(j, '{'); rt_json_more(j, '{');) {
		rt_json_key(j, key, sizeof key);
		if (!strcmp(key, "ph"))
			phase = rt_json_string(j, text, sizeof text) == 1 ? *text : 0;
		else if (!strcmp(key, "ts"))
			from = number(j);
		else if (!strcmp(key, "dur"))
			last = number(j);
		else if (!strcmp(key, "pid"))
			pid = rt_json_int(j);
		else if (!strcmp(key, "tid"))
			tid = rt_json_int(j);
		else if (!strcmp(key, "name"))
			name = rt_json_string(j, text, sizeof text) > 0;
		else
			rt_json_skip(j);
	}
	if (j->bad || pid < 0 || pid >= RANKS || !name)
		return false;
	Rank *r = &rank[pid];
	if (phase == 'M')
		return r->named = true;
	if (phase != 'X' || from < 0 || last < 0 || tid < 0)
		return false;
	r->overlaps += from < r->end - 0.002;   /* microseconds, in thousandths */
	r->end = from + last;
	r->spans++;
	return true;
}

int main(int argc, char **argv)
{
	static Rank rank[RANKS];
	Ctx c = { 0 };
	RtFile f;
	if (argc < 2 || rt_file_open(&c, 1, argv[1], &f))
		return 2;
	RtJson j = { (const char *)f.data, (const char *)f.data + f.bytes, false };
	int n = 0;
	for (rt_json_open(&j, '['); rt_json_more(&j, '['); n++)
		if (!event(&j, rank)) {
			printf("event %d is not right\n", n);
			return 1;
		}
	while (j.at < j.end && strchr(" \n\t\r", *j.at))
		j.at++;
	if (j.bad || j.at != j.end) {
		printf("no JSON after event %d\n", n);
		return 1;
	}
	for (int r = 0; r < RANKS; r++)
		if (rank[r].spans)
			printf("%d %d %d%s\n", r, rank[r].spans, rank[r].overlaps,
				rank[r].named ? "" : " without a name");
	rt_file_close(&f);
	return 0;
}
