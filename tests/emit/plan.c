/* plan FILE: reads plan.json strictly, with the reader of the runtime, and prints it as lines that a script can
 * compare: `memory KEY BYTES`, `value NUMBER NAME AREA OFFSET BYTES PROGRAM`, `action PROGRAM ROLE NAME FROM[ in CALL]
 * KERNEL`.  Numbers of values that actions read and write are in range, and no action reads a value of its program
 * before one has written it. */
#include "comm.h"
#include "save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096, VALUES = 1 << 16 };
static char program_of[VALUES][8];
static bool made[VALUES];
static int nvalue, nkept;

static bool is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

/* A string or null, which is "-". */
static void text(RtJson *j, char *to)
{
	while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\t'))
		j->at++;
	if (j->at < j->end && *j->at == 'n') {
		rt_json_skip(j);
		snprintf(to, ROOM, "-");
		return;
	}
	rt_json_string(j, to, ROOM);
}

static void memory(RtJson *j)
{
	char key[ROOM];
	rt_json_open(j, '{');
	while (rt_json_more(j, '{')) {
		rt_json_key(j, key, sizeof key);
		if (is(key, "busiest"))
			text(j, key);
		else
			printf("memory %s %" PRId64 "\n", key, rt_json_int(j));
	}
}

static void value(RtJson *j)
{
	char key[ROOM], name[ROOM] = "", area[ROOM] = "", program[ROOM] = "", other[ROOM];
	int64_t number = -1, offset = -1, bytes = -1;
	rt_json_open(j, '{');
	while (rt_json_more(j, '{')) {
		rt_json_key(j, key, sizeof key);
		if (is(key, "value") || is(key, "offset") || is(key, "bytes"))
			*(is(key, "value") ? &number : is(key, "offset") ? &offset : &bytes) = rt_json_int(j);
		else if (is(key, "shape") || is(key, "live"))
			rt_json_skip(j);
		else
			text(j, is(key, "name") ? name : is(key, "area") ? area : is(key, "program") ? program : other);
	}
	if (number != nvalue || number >= VALUES)
		exit(printf("not ok numbers: %" PRId64 " after %d values\n", number, nvalue));
	snprintf(program_of[nvalue], sizeof program_of[0], "%.7s", program);
	nkept += is(program, "-");
	nvalue++;
	printf("value %" PRId64 " %s %s %" PRId64 " %" PRId64 " %s\n", number, name, area, offset, bytes, program);
}

static void numbers(RtJson *j, const char *program, const char *action, bool writes)
{
	rt_json_open(j, '[');
	while (rt_json_more(j, '[')) {
		int64_t v = rt_json_int(j);
		if (v < 0 || v >= nvalue || (v >= nkept && !is(program_of[v], program)))
			exit(printf("not ok numbers: %s of %s has value %" PRId64 "\n", action, program, v));
		if (!writes && v >= nkept && !made[v])
			exit(printf("not ok order: %s of %s reads value %" PRId64 ", which nothing made\n", action,
				program, v));
		made[v] |= writes;
	}
}

static void action(RtJson *j, const char *program, int64_t role)
{
	char key[ROOM], name[ROOM] = "", from[ROOM] = "", kernel[ROOM] = "", other[ROOM];
	rt_json_open(j, '{');
	while (rt_json_more(j, '{')) {
		rt_json_key(j, key, sizeof key);
		if (is(key, "reads") || is(key, "writes"))
			numbers(j, program, name, is(key, "writes"));
		else if (is(key, "flops"))
			rt_json_skip(j);
		else
			text(j, is(key, "action") ? name : is(key, "from") ? from : is(key, "kernel") ? kernel : other);
	}
	printf("action %s %" PRId64 " %s %s %s\n", program, role, name, from, kernel);
}

static void program(RtJson *j)
{
	char key[ROOM], name[ROOM] = "";
	int64_t role = -1;
	memset(made, 0, sizeof made);
	rt_json_open(j, '{');
	while (rt_json_more(j, '{')) {
		rt_json_key(j, key, sizeof key);
		if (is(key, "program"))
			text(j, name);
		else if (is(key, "role"))
			role = rt_json_int(j);
		else if (!is(key, "actions"))
			rt_json_skip(j);
		else
			for (rt_json_open(j, '['); rt_json_more(j, '[');)
				action(j, name, role);
	}
}

static char *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *s = NULL;
	size_t room = 1 << 24;
	if (!f || !(s = malloc(room)))
		exit(printf("not ok read: %s\n", path));
	*n = fread(s, 1, room, f);
	fclose(f);
	return s;
}

int main(int argc, char **argv)
{
	char key[ROOM];
	size_t n;
	char *s = slurp(argc > 1 ? argv[1] : "plan.json", &n);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] > 126 || ((unsigned char)s[i] < 32 && s[i] != '\n' && s[i] != '\t'))
			return printf("not ok ascii: byte %zu\n", i);
	RtJson j = { s, s + n, false };
	rt_json_open(&j, '{');
	while (rt_json_more(&j, '{')) {
		rt_json_key(&j, key, sizeof key);
		if (is(key, "memory"))
			memory(&j);
		else if (is(key, "values"))
			for (rt_json_open(&j, '['); rt_json_more(&j, '[');)
				value(&j);
		else if (is(key, "programs"))
			for (rt_json_open(&j, '['); rt_json_more(&j, '[');)
				program(&j);
		else
			rt_json_skip(&j);
	}
	if (j.bad || j.end - j.at != 1 || *j.at != '\n')
		return printf("not ok json: stops being JSON at byte %td of %zu\n", j.at - s, n);
	free(s);
	return 0;
}
