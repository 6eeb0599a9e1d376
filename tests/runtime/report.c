/* report plot FILE: a run of a million steps with one spike and one dip through the sink of --plot, whose picture must
 * be small and show both.
 * report events DIR: reads all event files of a folder in the order of their names, checks every length and checksum
 * with code of its own and every field, and prints "FILE TAG STEP VALUE" for each number, files counted from 0, and
 * "FILE start STEP" for the event of a session. */
#include "comm.h"
#include "save.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void fail(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	exit(1);
}

static unsigned char *slurp(const char *path, size_t *n)
{
	struct stat st;
	FILE *f = fopen(path, "rb");
	if (!f || fstat(fileno(f), &st))
		fail("not ok: cannot read %s", path);
	unsigned char *p = malloc((size_t)st.st_size + 1);
	*n = fread(p, 1, (size_t)st.st_size, f);
	p[*n] = 0;
	fclose(f);
	return p;
}

/* ---- events ---- */

static uint32_t crc(const unsigned char *p, size_t n)
{
	uint32_t r = 0xFFFFFFFF;
	for (; n; n--) {
		r ^= *p++;
		for (int k = 0; k < 8; k++)
			r = r >> 1 ^ (r & 1 ? 0x82F63B78 : 0);
	}
	r = ~r;
	return ((r >> 15) | (r << 17)) + 0xA282EAD8;
}

/* A field: its number, wire type, and its bytes or its number. */
typedef struct Field { unsigned id, wire; uint64_t v; const unsigned char *p; size_t n; } Field;

static uint64_t varint(const unsigned char **p, const unsigned char *end)
{
	uint64_t v = 0;
	for (int shift = 0; shift < 64; shift += 7) {
		if (*p == end)
			fail("not ok: a number is cut off");
		v |= (uint64_t)(**p & 127) << shift;
		if (!(*(*p)++ & 128))
			return v;
	}
	fail("not ok: a number of more than ten bytes");
	return 0;
}

static bool next_field(const unsigned char **p, const unsigned char *end, Field *f)
{
	if (*p == end)
		return false;
	uint64_t key = varint(p, end);
	*f = (Field){ .id = (unsigned)(key >> 3), .wire = key & 7 };
	if (f->wire == 0) {
		f->v = varint(p, end);
		return true;
	}
	f->n = f->wire == 1 ? 8 : f->wire == 5 ? 4 : f->wire == 2 ? (size_t)varint(p, end) : SIZE_MAX;
	if (f->n > (size_t)(end - *p))
		fail("not ok: field %u of wire type %u is beyond the end", f->id, f->wire);
	f->p = *p;
	*p += f->n;
	return true;
}

static void summary(int file, int64_t step, const unsigned char *p, const unsigned char *end)
{
	Field v, f;
	while (next_field(&p, end, &v)) {
		float number = NAN;
		Field tag = { 0 };
		if (v.id != 1 || v.wire != 2)
			fail("not ok: a summary has field %u", v.id);
		for (const unsigned char *q = v.p; next_field(&q, v.p + v.n, &f);)
			if (f.id == 1 && f.wire == 2)
				tag = f;
			else if (f.id == 2 && f.wire == 5)
				memcpy(&number, f.p, 4);
			else
				fail("not ok: a value has field %u", f.id);
		printf("%d %.*s %" PRId64 " %.9g\n", file, (int)tag.n, (const char *)tag.p, step, (double)number);
	}
}

static void event(int file, const unsigned char *p, const unsigned char *end, bool first, double *last)
{
	Field f, what = { 0 };
	double time = 0;
	int64_t step = 0;
	while (next_field(&p, end, &f))
		if (f.id == 1 && f.wire == 1)
			memcpy(&time, f.p, 8);
		else if (f.id == 2 && f.wire == 0)
			step = (int64_t)f.v;
		else if ((f.id == 3 || f.id == 5 || f.id == 7) && f.wire == 2)
			what = f;
		else
			fail("not ok: an event has field %u of wire type %u", f.id, f.wire);
	if (time < 1.6e9 || time < *last)
		fail("not ok: an event of time %g after %g", time, *last);
	*last = time;
	if (first != (what.id == 3) || (first && (what.n != 13 || memcmp(what.p, "brain.Event:2", 13))))
		fail("not ok: the first event, and only that, is the version");
	if (what.id == 5)
		summary(file, step, what.p, what.p + what.n);
	else if (what.id == 7 && what.n == 2 && what.p[0] == 8 && what.p[1] == 1)
		printf("%d start %" PRId64 "\n", file, step);
	else if (!first)
		fail("not ok: an event without a meaning");
}

static void read_events(int file, const char *path)
{
	size_t n, at = 0;
	double last = 0;
	unsigned char *p = slurp(path, &n);
	for (bool first = true; at < n; first = false) {
		uint64_t bytes;
		uint32_t a, b;
		if (n - at < 12)
			fail("not ok: %s ends within a length", path);
		memcpy(&bytes, p + at, 8);
		memcpy(&a, p + at + 8, 4);
		if (a != crc(p + at, 8))
			fail("not ok: %s, byte %zu: the checksum of a length", path, at);
		if (n - at - 12 < bytes || n - at - 12 - bytes < 4)
			fail("not ok: %s ends within a record", path);
		memcpy(&b, p + at + 12 + bytes, 4);
		if (b != crc(p + at + 12, bytes))
			fail("not ok: %s, byte %zu: the checksum of an event", path, at);
		event(file, p + at + 12, p + at + 12 + bytes, first, &last);
		at += 16 + bytes;
	}
	free(p);
}

static int wanted(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int events(const char *dir)
{
	struct dirent **list;
	int n = scandir(dir, &list, wanted, alphasort);
	char path[4096];
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, list[i]->d_name);
		if (!strstr(list[i]->d_name, ".tfevents."))
			fail("not ok: TensorBoard passes over %s", path);
		read_events(i, path);
		free(list[i]);
	}
	free(list);
	return n < 1;
}

/* ---- a picture ---- */

/* Where strokes and lines of the first panel reach: the least and the greatest y after M, L and V. */
static void reach(const char *s, double *top, double *bottom)
{
	*top = 1e9;
	*bottom = 0;
	for (const char *end = strstr(s, "<text class=\"h\""); s && s < end && (s = strstr(s, " d=\"")) && s < end;) {
		bool curve = strncmp(s - 3, "\"g\"", 3) && strncmp(s - 3, "\"a\"", 3);
		for (s += 4; *s != '"'; s++) {
			double x, y = strtod(s + 1, NULL);
			if (!curve || !strchr("MLV", *s) || (*s != 'V' && sscanf(s + 1, "%lf %lf", &x, &y) != 2))
				continue;
			*top = y < *top ? y : *top;
			*bottom = y > *bottom ? y : *bottom;
		}
	}
}

static int plot(const char *path)
{
	enum { STEPS = 1000000 };
	RtProgram program = { .batch = 8 };
	Ctx c = { .program = &program };
	RtReport r = { .plot_to = path, .steps = STEPS };
	if (rt_sink_plot.open(&c, &r))
		return 1;
	for (c.step = 0; c.step < STEPS; c.step++) {
		RtRecord rec = { .step = c.step };
		double noise = 0.1 * (double)(rt_hash(1, (uint64_t)c.step) % 1000) / 1000;
		rt_record_add(&rec, "loss", c.step == 654321 ? 90 : c.step == 123457 ? 0.011 : 1 + noise + 5 *
			exp(-1e-5 * (double)c.step));
		rt_record_add(&rec, "a<b&\"c\"", 0.5);
		rt_record_add(&rec, "seconds", 1);
		rt_sink_plot.take(&c, &r, &rec);
	}
	rt_sink_plot.close(&c, &r, 0);
	size_t n;
	double top, bottom;
	char *s = (char *)slurp(path, &n);
	reach(s, &top, &bottom);
	/* The panel is 240 high from y = 60 on, with a margin of 1/22 above and below what the numbers reach. */
	if (top < 60 || top > 60 + 240 / 22.0 + 1.5 || bottom > 300 || bottom < 300 - 240 / 22.0 - 1.5)
		fail("not ok spikes: curves reach from %g to %g, not over the panel", top, bottom);
	if (n > 200000)
		fail("not ok size: %zu bytes", n);
	if (strstr(s, "a<b") || !strstr(s, "a&#60;b&#38;&#34;c&#34;") || strstr(s, "seconds") ||
		!strstr(s, "(logarithmic)") || !strstr(s, ">800k</text>"))
		fail("not ok text: names or numbers are not as they should be");
	free(s);
	return !printf("ok million-steps\n");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	return !strcmp(argv[1], "plot") ? plot(argv[2]) : events(argv[2]);
}
