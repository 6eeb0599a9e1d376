/* Checkpoints: DIR/step-00000812 holds state.safetensors, every parameter and state as a logical tensor, and
 * manifest.json, which holds the number of steps done, the seed, a checksum of the data set, a checksum of every shard,
 * and at its end a checksum of itself.
 *
 * Each rank writes the shards that it is the first to hold, from its own snapshot, in its own thread, while training
 * continues: no rank needs the shards of another.  Because files hold logical tensors, a checkpoint loads under any
 * plan.
 *
 *   rank 0     creates DIR/.saving, with the header of the file
 *   all        take a snapshot; the thread writes into the file and syncs; ranks other than 0 write their lines of the
 *              manifest beside it
 *   all        check between later steps whether all have written
 *   rank 0     its thread assembles the manifest, syncs, renames the folder, and removes the oldest checkpoints
 *
 * A save that is due while another is being written is skipped. */
#include "comm.h"
#include "save.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAILURES = 3 };

/* The request to the thread, and its result. */
typedef enum { IDLE, WRITTEN, FAILED, WRITE, COMMIT } State;

struct RtSaver {
	Ctx *c;
	const char *dir;
	int64_t keep;
	uint64_t data;                          /* checksum of the data set */
	char *head; size_t nhead;               /* of the safetensors file, its length in front */
	unsigned char *snapshot; size_t bytes;
	char *lines; size_t nlines;               /* the lines of the manifest about shards of this rank: the number of
	                                         * the tensor, the shard */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool started, stop;
	State state;
	bool flying;                            /* a save is in flight: not yet known whether all ranks have written */
	int64_t step;                           /* of the snapshot that is being written */
	int failed;                             /* saves in a row that failed */
	int why;                                /* errno of the last of them */
	int64_t skipped;
	_Atomic int64_t last;                   /* step of the last checkpoint written */
	int lock_file;                          /* locks the folder against other runs while it is open */
};
typedef struct RtSaver RtSaver;

static size_t bytes_on(const RtProgram *p, int rank, const RtTensor *t)
{
	return (size_t)rt_elements_on(p, rank, t) * rt_width(t->type);
}

size_t rt_snapshot_bytes(const RtProgram *p)
{
	size_t most = 0;
	for (int r = 0; r < p->nrank; r++) {
		size_t n = 0;
		for (int i = 0; i < p->nkept; i++)
			n += rt_is_saved(&p->kept[i]) ? rt_round_up(bytes_on(p, r, &p->kept[i].t), RT_LINE) : 0;
		most = n > most ? n : most;
	}
	return most;
}

/* ---- writing ---- */

static void *grow(char **text, size_t *n, size_t more)
{
	char *s = realloc(*text, *n + more + 1);
	if (s)
		*text = s;
	return s;
}

static int put(char **text, size_t *n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int put(char **text, size_t *n, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int k = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (k < 0 || !grow(text, n, (size_t)k))
		return -1;
	va_start(ap, fmt);
	vsnprintf(*text + *n, (size_t)k + 1, fmt, ap);
	va_end(ap);
	*n += (size_t)k;
	return 0;
}

/* Names hold no quotes, only backslashes. */
static int put_name(char **text, size_t *n, const char *name)
{
	int bad = put(text, n, "\"");
	for (; *name; name++)
		bad |= put(text, n, *name == '\\' ? "\\\\" : "%c", *name);
	return bad | put(text, n, "\"");
}

static int put_ints(char **text, size_t *n, const int64_t *v, int count)
{
	int bad = put(text, n, "[");
	for (int a = 0; a < count; a++)
		bad |= put(text, n, "%s%" PRId64, a ? "," : "", v[a]);
	return bad | put(text, n, "]");
}

/* The indices of a shard: for each axis its runs, each as start and length. */
static int put_shard(char **text, size_t *n, const FormShard *p)
{
	int bad = put(text, n, "[");
	for (int a = 0; a < p->naxis; a++) {
		bad |= put(text, n, a ? ",[" : "[");
		for (int i = 0; i < p->axis[a].n; i++)
			bad |= put(text, n, "%s%" PRId64 ",%" PRId64, i ? "," : "", p->axis[a].run[i].at,
				p->axis[a].run[i].len);
		bad |= put(text, n, "]");
	}
	return bad | put(text, n, "]");
}

static int make_head(RtSaver *s)
{
	const RtProgram *p = s->c->program;
	uint64_t at = 0;
	int bad = put(&s->head, &s->nhead, "%8s{", "");
	for (int i = 0, any = 0; i < p->nkept; i++) {
		const RtTensor *t = &p->kept[i].t;
		if (!rt_is_saved(&p->kept[i]))
			continue;
		bad |= put(&s->head, &s->nhead, "%s", any++ ? ",\n" : "") | put_name(&s->head, &s->nhead, t->name);
		bad |= put(&s->head, &s->nhead, ":{\"dtype\":\"%s\",\"shape\":", rt_type_name(t->type)) |
			put_ints(&s->head, &s->nhead, t->dim, t->naxis);
		bad |= put(&s->head, &s->nhead, ",\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at,
			at + rt_logical_bytes(t));
		at += rt_logical_bytes(t);
	}
	bad |= put(&s->head, &s->nhead, "}");
	while (s->nhead % 8)
		bad |= put(&s->head, &s->nhead, " ");
	for (int i = 0; i < 8 && !bad; i++)
		s->head[i] = (char)((s->nhead - 8) >> 8 * i);
	return bad;
}

/* Runs that are adjacent both here and in the file are written together. */
typedef struct Write {
	int fd, bad;
	const unsigned char *from;
	uint64_t base;
	size_t elem;
	int64_t here, there, n;
} Write;

static void flush_run(Write *w)
{
	if (w->n && !w->bad)
		w->bad = rt_write_at(w->fd, w->from + (size_t)w->here * w->elem, (size_t)w->n * w->elem,
			w->base + (uint64_t)w->there * w->elem);
	w->n = 0;
}

static void write_run(void *arg, int64_t here, int64_t there, int64_t n)
{
	Write *w = arg;
	if (!w->n || w->here + w->n != here || w->there + w->n != there) {
		flush_run(w);
		w->here = here;
		w->there = there;
	}
	w->n += n;
}

static int write_rows(const FormShard *shard, const RtTensor *t, Write *w)
{
	rt_shard_rows(shard, t->dim, write_run, w);
	flush_run(w);
	return w->bad;
}

int rt_write_shard(const RtProgram *p, int rank, const RtTensor *t, int fd, uint64_t base, const void *from)
{
	Write w = { .fd = fd, .from = from, .base = base, .elem = rt_width(t->type) };
	FormShard shard;
	if (rt_shard_on(p, rank, t, &shard))
		return -1;
	int bad = write_rows(&shard, t, &w);
	form_shard_free(&shard);
	return bad;
}

/* Writes the shard of this rank into the file, and its line of the manifest. */
static int write_shard(RtSaver *s, int number, const RtTensor *t, Write *w)
{
	FormShard shard;
	if (rt_shard_on(s->c->program, s->c->rank, t, &shard))
		return -1;
	int bad = write_rows(&shard, t, w) | put(&s->lines, &s->nlines, "%d {\"axes\":", number) |
		put_shard(&s->lines, &s->nlines, &shard) | put(&s->lines, &s->nlines, ",\"crc\":%" PRIu32 "}\n",
		rt_crc32c(0, w->from, (size_t)form_elements(&shard) * w->elem));
	form_shard_free(&shard);
	return bad;
}

static int write_shards(RtSaver *s, int fd)
{
	const RtProgram *p = s->c->program;
	uint64_t base = s->nhead;
	size_t at = 0;
	int bad = 0;
	for (int i = 0; i < p->nkept && !bad; i++) {
		const RtTensor *t = &p->kept[i].t;
		if (!rt_is_saved(&p->kept[i]))
			continue;
		Write w = { .fd = fd, .from = s->snapshot + at, .base = base, .elem = rt_width(t->type) };
		size_t bytes = bytes_on(p, s->c->rank, t);
		if (bytes && rt_first_on(p, s->c->rank, t))
			bad = write_shard(s, i, t, &w);
		at += rt_round_up(bytes, RT_LINE);
		base += rt_logical_bytes(t);
	}
	return bad;
}

/* Closes a file and preserves errno. */
static void done_with(int fd)
{
	int why = errno;
	if (fd >= 0)
		close(fd);
	errno = why;
}

static int folder(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int open_dir(const RtSaver *s)
{
	return open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Creates DIR/.saving, with the header of the file. */
static int begin(const RtSaver *s)
{
	int parent = open_dir(s), dir = -1, fd = -1;
	if (parent >= 0) {
		rt_folder_remove(parent, ".saving");
		if (!mkdirat(parent, ".saving", 0777))
			dir = folder(parent, ".saving");
	}
	if (dir >= 0)
		fd = openat(dir, "state.safetensors", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int bad = fd < 0 || rt_write_at(fd, s->head, s->nhead, 0);
	done_with(fd);
	done_with(dir);
	done_with(parent);
	return bad;
}

/* Writes a file of the folder and syncs it. */
static int write_file(int dir, const char *name, const char *text, size_t n)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int bad = fd < 0 || rt_write_at(fd, text, n, 0) || fsync(fd);
	done_with(fd);
	return bad;
}

static int write_mine(RtSaver *s)
{
	char name[32];
	int parent = open_dir(s), dir = parent < 0 ? -1 : folder(parent, ".saving");
	int fd = dir < 0 ? -1 : openat(dir, "state.safetensors", O_WRONLY | O_CLOEXEC);
	s->nlines = 0;
	int bad = fd < 0 || put(&s->lines, &s->nlines, "%s", "") || write_shards(s, fd) || fsync(fd);
	snprintf(name, sizeof name, "part-%05d", s->c->rank);
	if (!bad && s->c->rank)
		bad = write_file(dir, name, s->lines, s->nlines) || fsync(dir);
	done_with(fd);
	done_with(dir);
	done_with(parent);
	return bad;
}

/* The lines that a rank wrote, zero-terminated; NULL: they cannot be read. */
static char *read_lines(int dir, int rank)
{
	char name[32];
	struct stat st;
	snprintf(name, sizeof name, "part-%05d", rank);
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 || fstat(fd, &st) ? NULL : calloc(1, (size_t)st.st_size + 1);
	for (size_t at = 0; text && at < (size_t)st.st_size;) {
		ssize_t k = pread(fd, text + at, (size_t)st.st_size - at, (off_t)at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			free(text);
			text = NULL;
			errno = k ? errno : EIO;
			break;
		}
		at += (size_t)k;
	}
	done_with(fd);
	return text;
}

/* The shards of all ranks, tensor by tensor: the lines of a rank are in the order of tensors. */
static int put_tensors(const RtProgram *p, char **line, char **text, size_t *n)
{
	int bad = 0;
	for (int i = 0, any = 0; i < p->nkept && !bad; i++) {
		if (!rt_is_saved(&p->kept[i]))
			continue;
		bad |= put(text, n, any++ ? ",\n{\"name\":" : "\n{\"name\":") | put_name(text, n, p->kept[i].t.name) |
			put(text, n, ",\"parts\":[");
		for (int r = 0, parts = 0; r < p->nrank && !bad; r++) {
			char *json;
			if (!*line[r] || strtol(line[r], &json, 10) != i)
				continue;
			size_t len = strcspn(++json, "\n");
			bad = put(text, n, "%s%.*s", parts++ ? "," : "", (int)len, json);
			line[r] = json + len + (json[len] == '\n');
		}
		bad |= put(text, n, "]}");
	}
	return bad;
}

/* The checksum of the data after each of its files. */
static int put_files(const Ctx *c, char **text, size_t *n)
{
	const uint32_t *after;
	int count = rt_data_files(c, &after), bad = put(text, n, ",\n\"files\":[");
	for (int i = 0; i < count && !bad; i++)
		bad = put(text, n, "%s%" PRIu32, i ? "," : "", after[i]);
	return bad || put(text, n, "]");
}

static int put_manifest(const RtSaver *s, int dir, char **text, size_t *n)
{
	const RtProgram *p = s->c->program;
	char **lines = calloc((size_t)p->nrank, sizeof *lines), **line = calloc((size_t)p->nrank, sizeof *line);
	int bad = !lines || !line;
	for (int r = 0; r < p->nrank && !bad; r++) {
		line[r] = r == s->c->rank ? s->lines : (lines[r] = read_lines(dir, r));
		bad = !line[r];
	}
	bad = bad || put(text, n, "{\"format\":\"" RT_CHECKPOINT_FORMAT "\",\"step\":%" PRId64
		",\"seed\":%" PRIu64 ",\"plan\":\"%016" PRIx64 "\",\"data\":\"%016" PRIx64 "\",\"header\":%" PRIu32,
		s->step, s->c->seed, p->hash, s->data, rt_crc32c(0, s->head, s->nhead)) || put_files(s->c, text, n) ||
		put(text, n, ",\n\"tensors\":[") || put_tensors(p, line, text, n) || put(text, n, "\n]");
	bad = bad || put(text, n, RT_MANIFEST_END, rt_crc32c(0, *text, *n));
	int why = errno;
	for (int r = 0; lines && r < p->nrank; r++)
		free(lines[r]);
	free(lines);
	free(line);
	errno = why;
	return bad;
}

/* All ranks have written: the save becomes a checkpoint. */
static int commit(RtSaver *s)
{
	char name[64], *text = NULL;
	size_t n = 0;
	int parent = open_dir(s), dir = parent < 0 ? -1 : folder(parent, ".saving");
	int bad = dir < 0 || put_manifest(s, dir, &text, &n) || write_file(dir, "manifest.json", text, n);
	for (int r = 1; r < s->c->nrank && !bad; r++) {
		snprintf(name, sizeof name, "part-%05d", r);
		bad = unlinkat(dir, name, 0);
	}
	bad = bad || fsync(dir);
	snprintf(name, sizeof name, RT_STEP_FORMAT, s->step);
	if (!bad) {
		rt_folder_remove(parent, name);
		bad = renameat(parent, ".saving", parent, name) || fsync(parent);
	}
	if (!bad) {
		s->last = s->step;
		rt_folder_prune(s->dir, -1, s->keep);
	}
	int why = errno;
	free(text);
	errno = why;
	done_with(dir);
	done_with(parent);
	return bad;
}

/* Removes a failed save. */
static void discard(const RtSaver *s)
{
	int parent = open_dir(s), why = errno;
	if (parent >= 0)
		rt_folder_remove(parent, ".saving");
	errno = why;
	done_with(parent);
}

static void warn(RtSaver *s)
{
	s->why = errno;
	if (!s->c->error)
		fprintf(stderr, "warning: the checkpoint of step %" PRId64 " was not written to %s: %s; training "
			"continues, the last good one is kept\n", s->step, s->dir, strerror(errno));
}

/* Performs one request to the thread and returns the new state.  A single rank need not wait for others. */
static State work(RtSaver *s, State what)
{
	bool alone = s->c->nrank == 1;
	int bad = what == WRITE && ((alone && begin(s)) || write_mine(s));
	if (!bad && (what == COMMIT || alone))
		bad = commit(s);
	if (bad)
		warn(s);
	if (bad && (alone || what == COMMIT))
		discard(s);
	return bad ? FAILED : what == WRITE && !alone ? WRITTEN : IDLE;
}

static void *writer(void *arg)
{
	RtSaver *s = arg;
	rt_touch_stack();
	for (;;) {
		pthread_mutex_lock(&s->lock);
		while (s->state < WRITE && !s->stop)
			pthread_cond_wait(&s->changed, &s->lock);
		State what = s->state;
		pthread_mutex_unlock(&s->lock);
		if (what < WRITE)
			return NULL;
		State now = work(s, what);
		pthread_mutex_lock(&s->lock);
		s->state = now;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
	}
}

static void set_state(RtSaver *s, State what)
{
	pthread_mutex_lock(&s->lock);
	s->state = what;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* The state of the thread; wait: until it is idle. */
static State look(RtSaver *s, bool wait)
{
	pthread_mutex_lock(&s->lock);
	while (wait && s->state >= WRITE)
		pthread_cond_wait(&s->changed, &s->lock);
	State now = s->state;
	pthread_mutex_unlock(&s->lock);
	return now;
}

int rt_saver_open(Ctx *c, const RtSaving *saving)
{
	RtSaver *s = calloc(1, sizeof *s);
	if (!s)
		return rt_error(c, RT_MEMORY, "no memory");
	*s = (RtSaver){ .c = c, .dir = saving->dir, .keep = saving->keep, .data = saving->data, .last = -1,
		.lock_file = -1 };
	c->saver = s;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->bytes = rt_snapshot_bytes(c->program);
	s->snapshot = s->bytes
		? mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
	if (s->snapshot == MAP_FAILED) {
		s->snapshot = NULL;
		return rt_error(c, RT_MEMORY, "cannot map %zu bytes for checkpoints: %s", s->bytes, strerror(errno));
	}
	if (make_head(s))
		return rt_error(c, RT_MEMORY, "no memory");
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	s->started = !pthread_create(&s->thread, &attr, writer, s);
	pthread_attr_destroy(&attr);
	return s->started ? rt_folder_open(c, s->dir, saving, &s->lock_file)
		: rt_error(c, RT_MEMORY, "cannot start the thread that writes checkpoints");
}

void rt_saver_close(Ctx *c)
{
	RtSaver *s = c->saver;
	if (!s)
		return;
	if (s->started) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	if (s->skipped && !c->rank)
		fprintf(stderr,
			"%" PRId64 " checkpoints were skipped, because the previous one was still being written\n",
			s->skipped);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	if (s->snapshot)
		munmap(s->snapshot, s->bytes);
	if (s->lock_file >= 0)
		close(s->lock_file);
	free(s->head);
	free(s->lines);
	free(s);
	c->saver = NULL;
}

static int too_often(Ctx *c, const RtSaver *s, bool last)
{
	if (s->failed >= FAILURES || (last && s->failed))
		return rt_error(c, RT_CHECKPOINT, "%d checkpoint%s in a row could not be written to %s: %s", s->failed,
			s->failed == 1 ? "" : "s", s->dir, strerror(s->why));
	return 0;
}

/* Completes the save in flight; wait: until it is over.  false: it is still being written. */
static bool over(Ctx *c, RtSaver *s, bool wait)
{
	State now = look(s, wait);
	if (!s->flying && c->nrank > 1)
		now = c->rank ? IDLE : now;     /* only rank 0 commits */
	now = (State)rt_worst(c, now);
	if (now >= WRITE)
		return false;
	if (now == WRITTEN) {
		s->flying = false;
		if (!c->rank)
			set_state(s, COMMIT);
		return wait && over(c, s, true);
	}
	if (s->flying && !c->rank)
		discard(s);
	s->failed = now == FAILED ? s->failed + 1 : s->step ? 0 : s->failed;
	s->flying = false;
	s->step = 0;
	set_state(s, IDLE);
	return true;
}

static int snapshot(Ctx *c, RtSaver *s)
{
	unsigned char *to = s->snapshot;
	int code = 0;
	for (int i = 0; i < c->program->nkept && !code; i++) {
		const RtTensor *t = &c->program->kept[i].t;
		if (!rt_is_saved(&c->program->kept[i]))
			continue;
		size_t bytes = rt_bytes(c, t);
		code = rt_get(c, to, rt_address(c, t), bytes);
		to += rt_round_up(bytes, RT_LINE);
	}
	return code;
}

/* Rank 0 prepares a save if several ranks write into the file. */
static int prepare(Ctx *c, RtSaver *s)
{
	int bad = c->nrank > 1 && !c->rank && begin(s);
	if (bad) {
		warn(s);
		discard(s);
	}
	return (int)rt_worst(c, bad ? 1 : 0);
}

int64_t rt_saved_last(const Ctx *c)
{
	return c->saver ? c->saver->last : -1;
}

void rt_save_look(Ctx *c)
{
	if (c->saver && c->saver->flying)
		over(c, c->saver, false);
}

int rt_save(Ctx *c, int64_t done, bool last)
{
	RtSaver *s = c->saver;
	if (!over(c, s, last)) {
		s->skipped++;
		return 0;
	}
	int code = too_often(c, s, false);
	if (code)
		return code;
	s->step = done;
	if (prepare(c, s)) {
		s->failed++;
		s->step = 0;
		return last ? too_often(c, s, true) : 0;
	}
	code = (int)rt_worst(c, (uint32_t)snapshot(c, s));
	if (code)
		return code;
	s->flying = c->nrank > 1;
	set_state(s, WRITE);
	if (!last)
		return 0;
	over(c, s, true);
	return too_often(c, s, true);
}
