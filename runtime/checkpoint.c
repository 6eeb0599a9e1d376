/* Checkpoints: DIR/step-00000812 holds state.safetensors, every parameter and state as a whole tensor, and manifest.json, which
 * has the number of steps done, the seed, a checksum of the data set and a checksum of every part that a rank held.
 *
 * Saving: each rank copies its values into a snapshot that rank 0 sees; rank 0's thread writes it, while training goes on, into
 * DIR/.saving, syncs, renames, and removes what is older than the last few.  When the thread is still busy the save is left out.
 * Because files hold whole tensors, a checkpoint loads under any plan.
 *
 * Resuming is prepared before any rank starts: the newest checkpoint is read whole and every checksum compared. */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAILURES = 3, PATH = 4096 };

struct RtSaver {
	Ctx *c;
	const char *dir;
	int64_t keep;
	uint64_t data;                  /* checksum of the data set */
	char *head; size_t nhead;       /* of the safetensors file, its length in front */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool started, busy, stop;
	int64_t step;                   /* of the snapshot that is written */
	int failed;                     /* saves in a row that failed */
	int64_t skipped, saved;
};
typedef struct RtSaver RtSaver;

static bool is_saved(const RtKept *k)
{
	return k->keep != RT_CONSTANT;
}

static size_t bytes_on(const RtProgram *p, int rank, const RtTensor *t)
{
	return (size_t)rt_elements_on(p, rank, t) * rt_width(t->type);
}

static size_t aligned(size_t n)
{
	return (n + 63) / 64 * 64;
}

size_t rt_snapshot_bytes(const RtProgram *p)
{
	size_t most = 0;
	for (int r = 0; r < p->nrank; r++) {
		size_t n = 0;
		for (int i = 0; i < p->nkept; i++)
			n += is_saved(&p->kept[i]) ? aligned(bytes_on(p, r, &p->kept[i].t)) : 0;
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

/* The indices of a part: for each axis the runs that it holds, each as where it begins and its length. */
static int put_part(char **text, size_t *n, const FormPart *p)
{
	int bad = put(text, n, "[");
	for (int a = 0; a < p->naxis; a++) {
		bad |= put(text, n, a ? ",[" : "[");
		for (int i = 0; i < p->axis[a].n; i++)
			bad |= put(text, n, "%s%" PRId64 ",%" PRId64, i ? "," : "", p->axis[a].run[i].at, p->axis[a].run[i].len);
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
		if (!is_saved(&p->kept[i]))
			continue;
		bad |= put(&s->head, &s->nhead, "%s", any++ ? ",\n" : "") | put_name(&s->head, &s->nhead, t->name);
		bad |= put(&s->head, &s->nhead, ":{\"dtype\":\"%s\",\"shape\":", rt_type_name(t->type)) | put_ints(&s->head, &s->nhead, t->dim, t->rank);
		bad |= put(&s->head, &s->nhead, ",\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + rt_whole_bytes(t));
		at += rt_whole_bytes(t);
	}
	bad |= put(&s->head, &s->nhead, "}");
	while (s->nhead % 8)
		bad |= put(&s->head, &s->nhead, " ");
	for (int i = 0; i < 8 && !bad; i++)
		s->head[i] = (char)((s->nhead - 8) >> 8 * i);
	return bad;
}

static int write_at(int fd, const void *data, size_t n, uint64_t at)
{
	while (n) {
		ssize_t k = pwrite(fd, data, n, (off_t)at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			errno = k ? errno : ENOSPC;
			return -1;
		}
		data = (const char *)data + k;
		at += (uint64_t)k;
		n -= (size_t)k;
	}
	return 0;
}

/* Runs that meet here and in the file are written together. */
typedef struct Write { int fd, bad; const unsigned char *from; uint64_t base; size_t elem; int64_t here, there, n; } Write;

static void flush_run(Write *w)
{
	if (w->n && !w->bad)
		w->bad = write_at(w->fd, w->from + (size_t)w->here * w->elem, (size_t)w->n * w->elem, w->base + (uint64_t)w->there * w->elem);
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

/* What rank r holds of a tensor, into the file and into the manifest. */
static int write_part(const RtProgram *p, int r, const RtTensor *t, Write *w, char **text, size_t *n)
{
	FormPart part;
	if (rt_part_on(p, r, t, &part))
		return -1;
	rt_part_rows(&part, t->dim, write_run, w);
	flush_run(w);
	int bad = w->bad | put(text, n, "{\"axes\":") | put_part(text, n, &part) |
	          put(text, n, ",\"crc\":%" PRIu32 "}", rt_crc32c(0, w->from, (size_t)form_elements(&part) * w->elem));
	form_part_free(&part);
	return bad;
}

/* The tensors, and what the manifest says of them. */
static int write_tensors(const RtSaver *s, int fd, char **text, size_t *n)
{
	const RtProgram *p = s->c->program;
	size_t offset[p->nrank];
	uint64_t base = s->nhead;
	int bad = write_at(fd, s->head, s->nhead, 0);
	memset(offset, 0, sizeof offset);
	for (int i = 0, any = 0; i < p->nkept && !bad; i++) {
		const RtTensor *t = &p->kept[i].t;
		if (!is_saved(&p->kept[i]))
			continue;
		bad |= put(text, n, any++ ? ",\n{\"name\":" : "\n{\"name\":") | put_name(text, n, t->name) | put(text, n, ",\"parts\":[");
		for (int r = 0, parts = 0; r < p->nrank && !bad; r++) {
			Write w = { .fd = fd, .from = (unsigned char *)rt_snapshot(s->c, r) + offset[r], .base = base, .elem = rt_width(t->type) };
			size_t bytes = bytes_on(p, r, t);
			offset[r] += aligned(bytes);
			if (bytes && rt_first_on(p, r, t))
				bad = put(text, n, parts++ ? "," : "") | write_part(p, r, t, &w, text, n);
		}
		bad |= put(text, n, "]}");
		base += rt_whole_bytes(t);
	}
	return bad;
}

static int write_manifest(const RtSaver *s, int dir, const char *text)
{
	int fd = openat(dir, "manifest.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return -1;
	char head[512];
	int n = snprintf(head, sizeof head, "{\"format\":\"sbpcc checkpoint 1\",\"step\":%" PRId64 ",\"seed\":%" PRIu64 ",\"plan\":\"%016" PRIx64 "\",\"data\":\"%016" PRIx64
	                 "\",\"header\":%" PRIu32 ",\n\"tensors\":[", s->step, s->c->seed, s->c->program->hash, s->data, rt_crc32c(0, s->head, s->nhead));
	size_t len = strlen(text);
	int bad = write_at(fd, head, (size_t)n, 0) || write_at(fd, text, len, (uint64_t)n) || write_at(fd, "\n]}\n", 4, (uint64_t)n + len) || fsync(fd);
	int why = errno;
	close(fd);
	errno = why;
	return bad;
}

static void remove_folder(int parent, const char *name)
{
	static const char *const files[] = { "manifest.json", "state.safetensors" };
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (int i = 0; i < 2 && fd >= 0; i++)
		unlinkat(fd, files[i], 0);
	if (fd >= 0)
		close(fd);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* Steps of the checkpoints in a folder, the newest first; at most max. */
static int list_steps(const char *dir, int64_t *step, int max)
{
	DIR *d = opendir(dir);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		char *end;
		long long v = strncmp(e->d_name, "step-", 5) ? -1 : strtoll(e->d_name + 5, &end, 10);
		if (v < 0 || *end || !e->d_name[5])
			continue;
		if (n == max && v <= step[n - 1])
			continue;
		int k = n < max ? n++ : n - 1;
		for (; k > 0 && step[k - 1] < v; k--)
			step[k] = step[k - 1];
		step[k] = v;
	}
	if (d)
		closedir(d);
	return n;
}

static void prune(const RtSaver *s, int parent)
{
	enum { MANY = 4096 };
	static int64_t step[MANY];
	int n = list_steps(s->dir, step, MANY);
	for (int i = 0, kept = 0; i < n; i++) {
		char name[64];
		snprintf(name, sizeof name, "step-%08" PRId64, step[i]);
		if (step[i] <= s->step && kept++ >= s->keep)
			remove_folder(parent, name);
	}
}

static int write_all(const RtSaver *s, int parent)
{
	char name[64], *text = NULL;
	size_t n = 0;
	remove_folder(parent, ".saving");
	if (mkdirat(parent, ".saving", 0777))
		return -1;
	int dir = openat(parent, ".saving", O_RDONLY | O_DIRECTORY | O_CLOEXEC), bad = dir < 0;
	int fd = bad ? -1 : openat(dir, "state.safetensors", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	bad = fd < 0 || put(&text, &n, "%s", "") || write_tensors(s, fd, &text, &n) || fsync(fd) || write_manifest(s, dir, text) || fsync(dir);
	snprintf(name, sizeof name, "step-%08" PRId64, s->step);
	if (!bad) {
		remove_folder(parent, name);
		bad = renameat(parent, ".saving", parent, name) || fsync(parent);
	}
	int why = errno;
	free(text);
	if (fd >= 0)
		close(fd);
	if (dir >= 0)
		close(dir);
	if (bad)
		remove_folder(parent, ".saving");
	errno = why;
	return bad;
}

static void write_one(RtSaver *s)
{
	int parent = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), bad = parent < 0 || write_all(s, parent);
	if (bad)
		fprintf(stderr, "warning: the checkpoint of step %" PRId64 " was not written to %s: %s; training goes on, the last good one stays\n", s->step, s->dir, strerror(errno));
	else
		prune(s, parent);
	if (parent >= 0)
		close(parent);
	pthread_mutex_lock(&s->lock);
	s->failed = bad ? s->failed + 1 : 0;
	s->saved += !bad;
	s->busy = false;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void *writer(void *arg)
{
	RtSaver *s = arg;
	rt_touch_stack();
	for (;;) {
		pthread_mutex_lock(&s->lock);
		while (!s->busy && !s->stop)
			pthread_cond_wait(&s->changed, &s->lock);
		bool work = s->busy;
		pthread_mutex_unlock(&s->lock);
		if (!work)
			return NULL;
		write_one(s);
	}
}

int rt_saver_open(Ctx *c, const char *dir, int64_t keep)
{
	RtSaver *s = calloc(1, sizeof *s);
	if (!s)
		return rt_error(c, RT_MEMORY, "no memory");
	*s = (RtSaver){ .c = c, .dir = dir, .keep = keep };
	c->saver = s;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	if (c->rank)
		return 0;
	s->data = rt_data_print(c);
	if (mkdir(dir, 0777) && errno != EEXIST)
		return rt_error(c, RT_CHECKPOINT, "cannot create %s: %s", dir, strerror(errno));
	if (access(dir, W_OK | X_OK))
		return rt_error(c, RT_CHECKPOINT, "cannot write into %s: %s", dir, strerror(errno));
	if (make_head(s))
		return rt_error(c, RT_MEMORY, "no memory");
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	s->started = !pthread_create(&s->thread, &attr, writer, s);
	pthread_attr_destroy(&attr);
	return s->started ? 0 : rt_error(c, RT_MEMORY, "cannot start the thread that writes checkpoints");
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
	if (s->skipped)
		fprintf(stderr, "%" PRId64 " checkpoints were left out, because the one before was still being written\n", s->skipped);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s->head);
	free(s);
	c->saver = NULL;
}

/* Until the thread has nothing to do; whether it failed too often. */
static bool idle(RtSaver *s, bool wait)
{
	pthread_mutex_lock(&s->lock);
	while (wait && s->busy)
		pthread_cond_wait(&s->changed, &s->lock);
	bool free_now = !s->busy;
	pthread_mutex_unlock(&s->lock);
	return free_now;
}

static int too_often(Ctx *c, RtSaver *s, bool last)
{
	pthread_mutex_lock(&s->lock);
	int failed = s->failed;
	pthread_mutex_unlock(&s->lock);
	if (failed >= FAILURES || (last && failed))
		return rt_error(c, RT_CHECKPOINT, "%d checkpoints in a row could not be written", failed);
	return 0;
}

static int snapshot(Ctx *c)
{
	unsigned char *to = rt_snapshot(c, c->rank);
	int code = 0;
	for (int i = 0; i < c->program->nkept && !code; i++) {
		const RtTensor *t = &c->program->kept[i].t;
		if (!is_saved(&c->program->kept[i]))
			continue;
		size_t bytes = rt_bytes(c, t);
		code = rt_get(c, to, rt_place(c, t), bytes);
		to += aligned(bytes);
	}
	return code;
}

int rt_save(Ctx *c, int64_t done, bool last)
{
	RtSaver *s = c->saver;
	bool mine = c->rank == 0;
	if (mine && too_often(c, s, false))
		return RT_CHECKPOINT;
	if (!rt_agree(c, mine && idle(s, last))) {
		s->skipped += mine;
		return 0;
	}
	int code = snapshot(c);
	c->comm->barrier(c);
	if (code || !mine)
		return last ? (rt_agree(c, 0), code) : code;
	pthread_mutex_lock(&s->lock);
	s->step = done;
	s->busy = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (!last)
		return 0;
	idle(s, true);
	rt_agree(c, 0);
	return too_often(c, s, true);
}

/* ---- reading ---- */

typedef struct Check { const unsigned char *from; size_t elem; uint32_t crc; } Check;

static void check_run(void *arg, int64_t here, int64_t there, int64_t n)
{
	Check *k = arg;
	(void)here;
	k->crc = rt_crc32c(k->crc, k->from + (size_t)there * k->elem, (size_t)n * k->elem);
}

/* [at,len,at,len,...]: one more run; what is wrong with it, or NULL. */
static const char *read_runs(RtJson *j, FormAxis *x, int64_t dim)
{
	int64_t end = 0;
	for (rt_json_open(j, '['); rt_json_more(j, '[');) {
		int64_t at = rt_json_int(j), len = rt_json_more(j, '[') ? rt_json_int(j) : -1;
		FormRun *more = realloc(x->run, (size_t)(x->n + 1) * sizeof *more);
		if (!more)
			return "does not fit into memory";
		x->run = more;
		if (at < end || len < 1 || at > dim || len > dim - at)
			return "has a part outside of it";
		x->run[x->n++] = (FormRun){ at, len };
		x->len += len;
		end = at + len;
	}
	return NULL;
}

static const char *read_part(RtJson *j, const RtEntry *e, FormPart *p, int64_t *crc)
{
	char key[32];
	const char *why = NULL;
	for (rt_json_open(j, '{'); !why && rt_json_more(j, '{');) {
		rt_json_key(j, key, sizeof key);
		if (!strcmp(key, "crc")) {
			*crc = rt_json_int(j);
			continue;
		}
		int a = 0;
		for (rt_json_open(j, '['); !why && rt_json_more(j, '['); a++)
			why = a < e->rank ? read_runs(j, &p->axis[a], e->dim[a]) : "has parts of another rank";
		if (!why && !j->bad && a != e->rank)
			why = "has parts of another rank";
	}
	return why;
}

/* {"axes":[[at,len,..],..],"crc":N} of a tensor.  NULL: it is whole; else what is wrong. */
static const char *check_part(RtJson *j, const RtSafe *s, const RtEntry *e, int64_t *elements)
{
	FormPart part = { .naxis = e->rank };
	int64_t crc = -1;
	const char *why = read_part(j, e, &part, &crc);
	Check k = { s->data + e->from, rt_width(e->type), 0 };
	if (!why && !j->bad) {
		rt_part_rows(&part, e->dim, check_run, &k);
		*elements += form_elements(&part);
		why = crc == (int64_t)k.crc ? NULL : "is damaged: its checksum differs";
	}
	form_part_free(&part);
	return why;
}

static int check_tensors(Ctx *c, RtJson *j, RtSafe *s, const char *path, int *count)
{
	for (rt_json_open(j, '['); rt_json_more(j, '[');) {
		char key[32], name[RT_NAME] = "";
		int64_t n = 0, all = 1;
		const RtEntry *e = NULL;
		for (rt_json_open(j, '{'); rt_json_more(j, '{');) {
			rt_json_key(j, key, sizeof key);
			if (!strcmp(key, "name")) {
				rt_json_string(j, name, sizeof name);
				e = rt_safe_find(s, name);
				if (!j->bad && !e)
					return rt_error(c, RT_CHECKPOINT, "%s: %s is missing", path, name);
				continue;
			}
			for (rt_json_open(j, '['); rt_json_more(j, '[') && e;) {
				const char *why = check_part(j, s, e, &n);
				if (why)
					return rt_error(c, RT_CHECKPOINT, "%s: %s %s", path, name, why);
			}
			j->bad |= !e;
		}
		for (int a = 0; e && a < e->rank; a++)
			all *= e->dim[a];
		if (!j->bad && n != all)
			return rt_error(c, RT_CHECKPOINT, "%s: parts of %s are missing", path, name);
		++*count;
	}
	return 0;
}

static int check_model(Ctx *c, RtSafe *s, const char *path)
{
	char is[256], want[256];
	for (int i = 0; i < c->program->nkept; i++) {
		const RtTensor *t = &c->program->kept[i].t;
		const RtEntry *e = is_saved(&c->program->kept[i]) ? rt_safe_find(s, t->name) : NULL;
		if (is_saved(&c->program->kept[i]) && !e)
			return rt_error(c, RT_CHECKPOINT, "%s is of another model: it has no %s", path, t->name);
		if (e && !rt_safe_fits(e, t))
			return rt_error(c, RT_CHECKPOINT, "%s is of another model: %s is %s there and %s here", path, t->name, rt_shape_text(is, sizeof is, e->type, e->rank, e->dim),
			                rt_shape_text(want, sizeof want, t->type, t->rank, t->dim));
	}
	return 0;
}

static int read_manifest(Ctx *c, RtResume *r, RtFile *m, RtSafe *s)
{
	RtJson j = { (const char *)m->data, (const char *)m->data + m->bytes, false };
	char key[32], text[64];
	int64_t header = -1, seed = 0;
	int count = 0, code = 0;
	r->step = -1;
	for (rt_json_open(&j, '{'); !code && rt_json_more(&j, '{');) {
		rt_json_key(&j, key, sizeof key);
		if (!strcmp(key, "step"))
			r->step = rt_json_int(&j);
		else if (!strcmp(key, "seed"))
			seed = rt_json_int(&j);
		else if (!strcmp(key, "header"))
			header = rt_json_int(&j);
		else if (!strcmp(key, "data")) {
			rt_json_string(&j, text, sizeof text);
			r->data = strtoull(text, NULL, 16);
		} else if (!strcmp(key, "tensors"))
			code = check_tensors(c, &j, s, r->path, &count);
		else
			rt_json_skip(&j);
	}
	r->seed = (uint64_t)seed;
	if (!code && (j.bad || r->step < 0 || count != s->n))
		code = rt_error(c, RT_CHECKPOINT, "%s: its manifest is damaged", r->path);
	if (!code && header != (int64_t)rt_crc32c(0, s->file.data, (size_t)(s->data - s->file.data)))
		code = rt_error(c, RT_CHECKPOINT, "%s: the header of its tensors is damaged", r->path);
	return code;
}

/* Reads all of one checkpoint; 0, or RT_CHECKPOINT after saying what is wrong with it. */
static int check_one(Ctx *c, RtResume *r)
{
	char path[PATH + 32];
	RtFile m = { 0 };
	RtSafe s = { 0 };
	snprintf(path, sizeof path, "%s/manifest.json", r->path);
	int code = rt_file_open(c, RT_CHECKPOINT, path, &m);
	snprintf(path, sizeof path, "%s/state.safetensors", r->path);
	if (!code)
		code = rt_safe_open(c, RT_CHECKPOINT, path, &s);
	if (!code)
		code = check_model(c, &s, r->path);
	if (!code)
		code = read_manifest(c, r, &m, &s);
	rt_safe_close(&s);
	rt_file_close(&m);
	return code;
}

int rt_resume_find(const RtProgram *p, const char *dir, bool last_good, RtResume *r)
{
	enum { MANY = 64 };
	Ctx c = { .program = p, .nrank = p->nrank };
	int64_t step[MANY];
	struct stat st;
	int n = 0, code = RT_CHECKPOINT;
	snprintf(r->path, sizeof r->path, "%s/manifest.json", dir);
	bool itself = !stat(r->path, &st) || !(n = list_steps(dir, step, MANY));
	for (int i = 0; i < (itself ? 1 : n); i++) {
		if (itself)
			snprintf(r->path, sizeof r->path, "%s", dir);
		else
			snprintf(r->path, sizeof r->path, "%s/step-%08" PRId64, dir, step[i]);
		int one = check_one(&c, r);
		if (!one && (i == 0 || last_good)) {
			if (i)
				fprintf(stderr, "resuming from %s, the last good checkpoint\n", r->path);
			return 0;
		}
		if (!one) {
			fprintf(stderr, "%s is good: --last-good, or --resume=%s, goes on from there\n", r->path, r->path);
			return code;
		}
		code = one;
	}
	return code;
}

int rt_resume_load(Ctx *c, const RtResume *r)
{
	char path[PATH + 32];
	RtSafe s;
	snprintf(path, sizeof path, "%s/state.safetensors", r->path);
	int code = rt_safe_open(c, RT_CHECKPOINT, path, &s);
	for (int i = 0; i < c->program->nkept && !code; i++) {
		RtKept k = c->program->kept[i];
		const RtEntry *e = is_saved(&k) ? rt_safe_find(&s, k.t.name) : NULL;
		k.start = RT_DATA_FILE;
		if (e)
			code = rt_start(c, &k, s.data + e->from);
	}
	rt_safe_close(&s);
	return code;
}
