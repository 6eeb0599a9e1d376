/* Preloaded into a trainer: what it does to files goes wrong at one operation.  FAULT_AT=N names the operation, counted
 * from 1 over all that change files; FAULT says what happens:
 *
 *   EIO, ENOSPC, EDQUOT   it fails; with FAULT_ON=1 so do all that follow
 *   short                 of a write half is done
 *   cut                   the power goes: files that were written and not synced are empty, and the process is gone
 *   slow                  this and all that follow take a tenth of a second
 *   count                 nothing; the number of operations is written to the file FAULT_TO */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
enum { OPEN = 64 };

static int done;
static int fds[OPEN], nfd;              /* written, not synced */

static void remember(int fd)
{
	for (int i = 0; i < nfd; i++)
		if (fds[i] == fd)
			return;
	if (nfd < OPEN)
		fds[nfd++] = fd;
}

static void forget(int fd)
{
	for (int i = 0; i < nfd; i++)
		if (fds[i] == fd)
			fds[i--] = fds[--nfd];
}

static void cut(void)
{
	for (int i = 0; i < nfd; i++)
		if (ftruncate(fds[i], 0))
			fprintf(stderr, "cannot cut a file\n");
	kill(getppid(), SIGKILL);
	kill(getpid(), SIGKILL);
	pause();
}

/* 0: it is to be done; else the error.  -1: a half of it is to be done. */
static int next(void)
{
	const char *how = getenv("FAULT"), *at = getenv("FAULT_AT"), *to = getenv("FAULT_TO");
	int n = ++done;
	if (!how)
		return 0;
	if (!strcmp(how, "count")) {
		FILE *f = to ? fopen(to, "w") : NULL;
		if (f)
			fprintf(f, "%d\n", n), fclose(f);
		return 0;
	}
	if (n != atoi(at) && !(n > atoi(at) && (getenv("FAULT_ON") || !strcmp(how, "slow"))))
		return 0;
	if (!strcmp(how, "cut"))
		cut();
	if (!strcmp(how, "slow"))
		nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	static const struct { const char *name; int error; } faults[] = {
		{ "EIO", EIO }, { "ENOSPC", ENOSPC }, { "EDQUOT", EDQUOT }, { "short", -1 },
	};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		if (!strcmp(how, faults[i].name))
			return faults[i].error;
	return 0;
}

static int failed(int why)
{
	errno = why;
	return -1;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	int why = next();
	remember(fd);
	if (why > 0)
		return failed(why);
	return REAL(pwrite)(fd, data, why < 0 && n > 1 ? n / 2 : n, at);
}

int fsync(int fd)
{
	int why = next();
	if (why > 0)
		return failed(why);
	forget(fd);
	return REAL(fsync)(fd);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	int why = flags & O_CREAT ? next() : 0;
	return why > 0 ? failed(why) : REAL(openat)(dir, path, flags, mode);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
	int why = next();
	return why > 0 ? failed(why) : REAL(mkdirat)(dir, path, mode);
}

int unlinkat(int dir, const char *path, int flags)
{
	int why = next();
	return why > 0 ? failed(why) : REAL(unlinkat)(dir, path, flags);
}

int renameat(int from, const char *old, int to, const char *new)
{
	int why = next();
	return why > 0 ? failed(why) : REAL(renameat)(from, old, to, new);
}
