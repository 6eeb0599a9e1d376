/* The folder of checkpoints, DIR: its contents, its lock, and the check that all ranks see the same folder.
 *
 *   DIR/.lock            names the run that uses the folder; every rank of that run holds a lock on it, which the
 *                        system releases when the rank ends in any way
 *   DIR/.saving          a checkpoint that is being written
 *   DIR/step-00000812    a checkpoint
 *
 * A folder holds the checkpoints of one run.  A new run, or one resumed from another folder, refuses a folder with
 * checkpoints. */
#include "comm.h"
#include "save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TOKEN = 17, HOLDER = 160 };      /* bytes: a random number as text; the text of the lock */

/* Seconds to wait until a killed run has ended, or until all ranks see a folder. */
static double grace(void)
{
	return fmin(10, rt_patience());
}

/* ---- contents ---- */

static bool made_by_save(const char *name)
{
	return !strncmp(name, "part-", 5) || !strcmp(name, "manifest.json") || !strcmp(name, "state.safetensors");
}

/* Removes only files that a save creates, the manifest first: without it the rest is not a checkpoint. */
void rt_folder_remove(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), more = fd < 0 ? -1 : dup(fd);
	DIR *d = more < 0 ? NULL : fdopendir(more);
	if (fd >= 0)
		unlinkat(fd, "manifest.json", 0);
	for (struct dirent *e; d && (e = readdir(d)) != NULL;)
		if (made_by_save(e->d_name))
			unlinkat(fd, e->d_name, 0);
	if (d)
		closedir(d);
	if (fd >= 0)
		close(fd);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* The step in the name of a folder; -1: it is not the name of a checkpoint. */
int64_t rt_step_of(const char *name)
{
	char again[RT_STEP_NAME], *end;
	long long v = strncmp(name, "step-", 5) ? -1 : strtoll(name + 5, &end, 10);
	snprintf(again, sizeof again, RT_STEP_FORMAT, (int64_t)v);
	return v >= 0 && !strcmp(again, name) ? v : -1;
}

int rt_saved_steps(const char *dir, int64_t *step, int max)
{
	DIR *d = opendir(dir);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		int64_t v = rt_step_of(e->d_name);
		if (v < 0 || (n == max && v <= step[n - 1]))
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

/* The number of checkpoints after step `after`, and the oldest of them. */
static int64_t count_after(const char *dir, int64_t after, int64_t *oldest)
{
	DIR *d = opendir(dir);
	int64_t n = 0;
	*oldest = INT64_MAX;
	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		int64_t v = rt_step_of(e->d_name);
		n += v > after;
		*oldest = v > after && v < *oldest ? v : *oldest;
	}
	if (d)
		closedir(d);
	return n;
}

bool rt_folder_prune(const char *dir, int64_t after, int64_t keep)
{
	int64_t oldest, n = count_after(dir, after, &oldest);
	int parent = n > keep ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	while (parent >= 0 && n > keep) {
		char name[RT_STEP_NAME];
		int64_t before = n;
		snprintf(name, sizeof name, RT_STEP_FORMAT, oldest);
		rt_folder_remove(parent, name);
		n = count_after(dir, after, &oldest);
		if (n >= before)
			break;          /* it cannot be removed */
	}
	if (parent >= 0)
		close(parent);
	return n <= keep;
}

/* ---- lock ---- */

static bool same_folder(const char *a, const char *b)
{
	struct stat x, y;
	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* True if the checkpoint lies in dir. */
static bool lies_in(const char *checkpoint, const char *dir)
{
	char parent[RT_PATH + 8];
	snprintf(parent, sizeof parent, "%s/..", checkpoint);
	return same_folder(parent, dir);
}

/* Refuses or removes checkpoints of other runs, and those later than the one that this run was resumed from. */
static int claim(Ctx *c, const char *dir, const RtSaving *s)
{
	int64_t newest, after = s->from && lies_in(s->from->path, dir) ? s->from->step : -1;
	if (!rt_saved_steps(dir, &newest, 1) || newest <= after)
		return 0;
	bool damaged = after >= 0 && s->last_good && !s->from->itself;  /* later ones were checked and skipped */
	if (!s->overwrite && !damaged && after >= 0)
		return rt_error(c, RT_CHECKPOINT, "%s has later checkpoints, up to step %" PRId64
			": --overwrite removes those after step %" PRId64 " and continues from there",
			dir, newest, after);
	if (!s->overwrite && after < 0)
		return rt_error(c, RT_CHECKPOINT, "%s has checkpoints of another run, up to step %" PRId64 ": "
		                "--checkpoint=%s --resume continues it, --overwrite removes them", dir, newest, dir);
	fprintf(stderr, "removing the checkpoints in %s after step %" PRId64 ", up to step %" PRId64 "\n", dir,
	        after < 0 ? 0 : after, newest);
	return rt_folder_prune(dir, after, 0) ? 0 : rt_error(c, RT_CHECKPOINT, "cannot remove checkpoints in %s", dir);
}

static void read_holder(int fd, char text[HOLDER])
{
	ssize_t n = pread(fd, text, HOLDER - 1, 0);
	text[n > 0 ? n : 0] = 0;
	for (char *s = text; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = 0;
}

/* 0, or the errno.  A file system without locks is reported once. */
static int lock(Ctx *c, int fd, int how, const char *dir)
{
	if (!flock(fd, how | LOCK_NB))
		return 0;
	if (errno == EWOULDBLOCK)
		return EWOULDBLOCK;
	if (c->rank == 0 && !c->error)
		fprintf(stderr, "warning: %s cannot be locked (%s): another run may use it at the same time\n", dir,
		        strerror(errno));
	return 0;
}

/* Ranks of a run that was just killed may need some time to end. */
static int lock_first(Ctx *c, int fd, const char *dir)
{
	char holder[HOLDER];
	double patience = grace(), since = rt_seconds();
	while (lock(c, fd, LOCK_EX, dir)) {
		read_holder(fd, holder);
		if (rt_seconds() - since > patience)
			return rt_error(c, RT_CHECKPOINT, "%s is in use by another run: %s", dir,
			                *holder ? holder : "its .lock does not name it");
		usleep(50000);
	}
	return 0;
}

/* Writes who holds the lock, and a random number that identifies this folder. */
static int sign(Ctx *c, int fd, const char *dir, char token[TOKEN])
{
	char text[HOLDER], host[64] = "?", when[32] = "";
	uint64_t random;
	time_t now = time(NULL);
	struct tm tm;
	if (getrandom(&random, sizeof random, 0) != sizeof random)
		random = rt_hash((uint64_t)(1e9 * rt_seconds()), (uint64_t)getpid());
	gethostname(host, sizeof host - 1);
	if (localtime_r(&now, &tm))
		strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(token, TOKEN, "%016" PRIx64, random);
	int n = snprintf(text, sizeof text, "process %ld on %s since %s, run %s\n", (long)getpid(), host, when, token);
	if (ftruncate(fd, 0) || rt_write_at(fd, text, (size_t)n, 0) || fsync(fd))
		return rt_error(c, RT_CHECKPOINT, "cannot write %s/.lock: %s", dir, strerror(errno));
	return 0;
}

static int open_first(Ctx *c, const char *dir, const RtSaving *s, int *fd, char token[TOKEN])
{
	char path[RT_PATH + 8];
	snprintf(path, sizeof path, "%s/.lock", dir);
	if (mkdir(dir, 0777) && errno != EEXIST)
		return rt_error(c, RT_CHECKPOINT, "cannot create %s: %s", dir, strerror(errno));
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (*fd < 0)
		return rt_error(c, RT_CHECKPOINT, "cannot write into %s: %s", dir, strerror(errno));
	int code = lock_first(c, *fd, dir);
	code = code ? code : claim(c, dir, s);
	code = code ? code : sign(c, *fd, dir, token);
	if (!code && lock(c, *fd, LOCK_SH, dir))
		code = rt_error(c, RT_CHECKPOINT, "%s is in use by another run", dir);
	return code;
}

/* Checks that this rank sees what rank 0 wrote; a network file system may need some time to show it. */
static int open_more(Ctx *c, const char *dir, int *fd, const char token[TOKEN])
{
	char path[RT_PATH + 8], holder[HOLDER] = "", host[64] = "?";
	snprintf(path, sizeof path, "%s/.lock", dir);
	gethostname(host, sizeof host - 1);
	for (double since = rt_seconds(); !strstr(holder, token); usleep(50000)) {
		if (*fd >= 0)
			close(*fd);
		*fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		int why = errno;
		if (*fd >= 0)
			read_holder(*fd, holder);
		if (*fd < 0 && why != ENOENT)
			return rt_error(c, RT_CHECKPOINT, "cannot write into %s: %s", dir, strerror(why));
		if (!strstr(holder, token) && rt_seconds() - since > grace())
			return rt_error(c, RT_CHECKPOINT, "%s on %s is not the folder that rank 0 saves into (%s): "
			                "all ranks need one that they share", dir, host,
			                *holder ? "its .lock is of another run" : "the .lock of rank 0 is not there");
	}
	return lock(c, *fd, LOCK_SH, dir) ? rt_error(c, RT_CHECKPOINT, "%s is in use by another run", dir) : 0;
}

int rt_folder_open(Ctx *c, const char *dir, const RtSaving *s, int *fd)
{
	char token[TOKEN] = "";
	*fd = -1;
	int code = (int)rt_worst(c, (uint32_t)(c->rank ? 0 : open_first(c, dir, s, fd, token)));
	if (code)
		return code;
	rt_broadcast(c, 0, token, sizeof token);
	return (int)rt_worst(c, (uint32_t)(c->rank ? open_more(c, dir, fd, token) : 0));
}
