/* --tensorboard=DIR: event files for TensorBoard.
 *
 * A file is a sequence of records: length (u64), its checksum, that many bytes, their checksum; a checksum is a masked
 * crc32c.  The bytes are a protobuf Event: time, step, and a summary of tags with a number each.  Tags are the names
 * of the numbers; those of an evaluation are held_out/NAME.  A resumed run writes a new file; a session event in it
 * invalidates later steps in earlier files.
 *
 *   u64 length | u32 crc(length) | Event | u32 crc(Event)
 *   Event { 1: double time, 2: step, and 3: "brain.Event:2", 5: Summary or 7: SessionLog }
 *   Summary { 1: Value { 1: tag, 2: float } ... }          SessionLog { 1: START } */
#include "save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 4096, HEAD = 12, TAG = 1200 };
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
typedef struct Bytes { unsigned char at[ROOM]; size_t n; } Bytes;
static const char stem[] = "events.out.tfevents.";

static void put(Bytes *b, const void *p, size_t n)
{
	memcpy(b->at + b->n, p, n);
	b->n += n;
}

static void put_varint(Bytes *b, uint64_t v)
{
	for (; v > 127; v >>= 7)
		b->at[b->n++] = (unsigned char)(v | 128);
	b->at[b->n++] = (unsigned char)v;
}

static void put_key(Bytes *b, unsigned field, unsigned wire)
{
	put_varint(b, field << 3 | wire);
}

static void put_bytes(Bytes *b, unsigned field, const void *p, size_t n)
{
	put_key(b, field, BYTES);
	put_varint(b, n);
	put(b, p, n);
}

static uint32_t masked(const void *p, size_t n)
{
	uint32_t crc = rt_crc32c(0, p, n);
	return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* An event with time and step; a step of 0 is omitted, as usual in protobuf. */
static void begin(Bytes *b, int64_t step)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
	b->n = HEAD;
	put_key(b, 1, FIXED64);
	put(b, &seconds, sizeof seconds);
	if (step) {
		put_key(b, 2, VARINT);
		put_varint(b, (uint64_t)step);
	}
}

/* Writes the record in one call: a killed run leaves complete records. */
static void end(RtReport *r, Bytes *b)
{
	uint64_t bytes = b->n - HEAD;
	uint32_t of_bytes = masked(&bytes, sizeof bytes), of_event = masked(b->at + HEAD, bytes);
	memcpy(b->at, &bytes, sizeof bytes);
	memcpy(b->at + 8, &of_bytes, sizeof of_bytes);
	put(b, &of_event, sizeof of_event);
	ssize_t n = write(r->events - 1, b->at, b->n);
	if (n == (ssize_t)b->n || r->events_lost)
		return;
	r->events_lost = true;
	fprintf(stderr, "warning: cannot write to %s: %s; training continues without it\n", r->events_to,
		n < 0 ? strerror(errno) : "no room");
}

/* Creates all folders of the path. */
static int make_folders(const char *path)
{
	char prefix[RT_PATH];
	size_t n = strlen(path);
	if (n >= sizeof prefix) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i])
			continue;
		memcpy(prefix, path, i);
		prefix[i] = 0;
		if (mkdir(prefix, 0777) && errno != EEXIST)
			return -1;
	}
	return 0;
}

/* Readers sort the files of a folder by name, which begins with a time: it must be later than that of every existing
 * file, even if a run is resumed within a second or the clock was set back. */
static int64_t time_of_file(const char *dir)
{
	int64_t t = (int64_t)time(NULL);
	DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));)
		if (!strncmp(e->d_name, stem, sizeof stem - 1)) {
			long long then = strtoll(e->d_name + sizeof stem - 1, NULL, 10);
			t = then >= t && then < INT32_MAX ? then + 1 : t;
		}
	if (d)
		closedir(d);
	return t;
}

static int events_open(Ctx *c, RtReport *r)
{
	char host[256] = "host", path[RT_PATH];
	Bytes b;
	if (!r->events_to)
		return 0;
	if (make_folders(r->events_to))
		return rt_error(c, RT_USAGE, "cannot make %s: %s", r->events_to, strerror(errno));
	gethostname(host, sizeof host - 1);
	for (char *p = host; *p; p++)
		*p = *p == '/' ? '-' : *p;
	if (snprintf(path, sizeof path, "%s/%s%010" PRId64 ".%s.%d.0", r->events_to, stem, time_of_file(r->events_to),
		    host, (int)getpid()) >= (int)sizeof path)
		return rt_error(c, RT_USAGE, "the path %s is too long", r->events_to);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return rt_error(c, RT_USAGE, "cannot write %s: %s", path, strerror(errno));
	r->events = 1 + fd;
	begin(&b, 0);
	put_bytes(&b, 3, "brain.Event:2", 13);
	end(r, &b);
	if (r->append && r->steps > c->step) {
		/* Not c->step: evaluations after that many steps stay valid, and the loss of this step will be the
		 * same. */
		begin(&b, c->step + 1);
		put_bytes(&b, 7, "\10\1", 2);
		end(r, &b);
	}
	return 0;
}

static void put_number(Bytes *b, const RtRecord *rec, const RtNumber *n)
{
	const char *before = rec->eval ? "held_out/" : "";
	float value = (float)n->value;
	size_t first = strlen(before), rest = strlen(n->name) < TAG ? strlen(n->name) : TAG;
	put_key(b, 1, BYTES);
	put_varint(b, (first + rest > 127 ? 4u : 3u) + first + rest + sizeof value);
	put_key(b, 1, BYTES);
	put_varint(b, first + rest);
	put(b, before, first);
	put(b, n->name, rest);
	put_key(b, 2, FIXED32);
	put(b, &value, sizeof value);
}

/* As many numbers per event as fit. */
static void events_take(const Ctx *c, RtReport *r, const RtRecord *rec)
{
	Bytes b, summary;
	(void)c;
	for (int i = 0; i < rec->n && r->events;) {
		summary.n = 0;
		while (i < rec->n && summary.n < ROOM - TAG - 64)
			if (rt_is_curve(rec->number[i++].name))
				put_number(&summary, rec, &rec->number[i - 1]);
		if (!summary.n)
			break;
		begin(&b, rec->step);
		put_bytes(&b, 5, summary.at, summary.n);
		end(r, &b);
	}
}

static void events_close(const Ctx *c, RtReport *r, int code)
{
	(void)c, (void)code;
	if (r->events && close(r->events - 1) && !r->events_lost)
		fprintf(stderr, "warning: cannot write to %s: %s\n", r->events_to, strerror(errno));
	r->events = 0;
}

const RtSink rt_sink_events = { events_open, events_take, events_close };
