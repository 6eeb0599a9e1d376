/* limit PROGRAM ARGUMENT...: runs a compiler on bad input and holds it to what a clean failure may use:
 * 64 MiB plus eight times the input, and two seconds of processor time. Input is every regular file among the
 * arguments, and every file directly inside a directory among them.
 *
 * The exit status is the program's own, 128 + N after signal N, and 99 with a line on stderr when a limit was
 * passed. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WALL_SECONDS = 60, CPU_SECONDS = 2, OVER = 99 };

static pid_t child;

static void too_long(int sig)
{
	(void)sig;
	kill(child, SIGKILL);
}

static long long file_bytes(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return st.st_size;
	if (!S_ISDIR(st.st_mode))
		return 0;
	long long sum = 0;
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		char inner[4096];
		snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
		if (stat(inner, &st) == 0 && S_ISREG(st.st_mode))
			sum += st.st_size;
	}
	if (d)
		closedir(d);
	return sum;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: limit PROGRAM ARGUMENT...\n");
		return OVER;
	}
	long long input = 0;
	for (int i = 2; i < argc; i++)
		input += file_bytes(argv[i]);
	long long cap = (64LL << 20) + 8 * input;

	child = fork();
	if (child == 0) {
		execvp(argv[1], argv + 1);
		fprintf(stderr, "limit: %s: %s\n", argv[1], strerror(errno));
		_exit(127);
	}
	signal(SIGALRM, too_long);
	alarm(WALL_SECONDS);
	int status = 0;
	struct rusage use;
	while (wait4(child, &status, 0, &use) < 0 && errno == EINTR)
		;
	long long rss = use.ru_maxrss * 1024LL;
	long long usec = (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000LL + use.ru_utime.tv_usec +
		use.ru_stime.tv_usec;
	if (rss > cap) {
		fprintf(stderr, "limit: %lld bytes of memory used, %lld allowed for %lld bytes of input\n", rss, cap,
			input);
		return OVER;
	}
	if (usec > CPU_SECONDS * 1000000LL) {
		fprintf(stderr, "limit: %.1f s of processor time used, %d allowed\n", usec / 1e6, CPU_SECONDS);
		return OVER;
	}
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "limit: ended by signal %d\n", WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}
