/* bench-frontend [--runs N] [NODES...]: time to read, verify and fold generated ONNX files.
 * bench-frontend --write FILE NODES: writes such a file and stops.
 *
 * Every run is a separate process, so that peak memory is that of one run and no run warms up the heap of the next; the
 * smallest time of all runs counts.  It is processor time of one thread, with the file in memory, so other work on the
 * machine is not counted.  The operator table is set up before the clock starts: it is the same for any model. */
#include "compiler.h"
#include "gpt_onnx.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GOAL_NODES = 4000, GOAL_MS = 20 };

typedef struct Run { double read, verify, fold; int nodes; bool good; } Run;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static Run measure(const char *path)
{
	Run r = { 0 };
	double start = now();
	Model *m = read_model(path);
	double read = now();
	if (!m || resolve_run(m) || verify_graph(m->graph, 0))
		return r;
	double verified = now();
	opt.stop_after = "fold";
	if (passes_run(m))
		return r;
	double folded = now();
	return (Run){ .read = read - start, .verify = verified - read, .fold = folded - verified,
		.nodes = m->graph->nnode, .good = true };
}

static Run in_child(const char *path, long *peak_kib)
{
	int fd[2];
	Run r = { 0 };
	struct rusage use;
	if (pipe(fd))
		return r;
	pid_t pid = fork();
	if (pid == 0) {
		r = measure(path);
		_exit(write(fd[1], &r, sizeof r) != sizeof r);
	}
	close(fd[1]);
	if (pid < 0 || read(fd[0], &r, sizeof r) != sizeof r)
		r.good = false;
	close(fd[0]);
	if (pid > 0)
		wait4(pid, NULL, 0, &use);
	if (r.good && use.ru_maxrss > *peak_kib)
		*peak_kib = use.ru_maxrss;
	return r;
}

static double total(const Run *r)
{
	return r->read + r->verify + r->fold;
}

/* One line of the table; *first is the time per node in the first line. */
static int bench(int nodes, int runs, double *first)
{
	char path[] = "/tmp/bench-frontend-XXXXXX";
	int fd = mkstemp(path);
	long peak = 0;
	struct stat st;
	Run best = { 0 };
	if (fd < 0)
		return -1;
	int made = gpt_onnx(path, nodes);
	for (int i = 0; made > 0 && i < runs; i++) {
		Run r = in_child(path, &peak);
		if (r.good && (!best.good || total(&r) < total(&best)))
			best = r;
	}
	if (fstat(fd, &st))
		st.st_size = 0;
	close(fd);
	unlink(path);
	if (made < 0 || !best.good) {
		printf("%8d nodes: failed\n", nodes);
		return -1;
	}
	double each = total(&best) / made;
	*first = *first > 0 ? *first : each;
	printf("%8d %9.1f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.1f %9d\n",
		made, (double)st.st_size / 1e6, best.read, best.verify,
		best.fold, total(&best), 1e3 * each, each / *first, (double)peak / 1024, best.nodes);
	if (nodes == GOAL_NODES)
		printf("         %d nodes in at most %d ms: %s\n", nodes, GOAL_MS,
			total(&best) <= GOAL_MS ? "met" : "MISSED");
	return 0;
}

int main(int argc, char **argv)
{
	int runs = 7, sizes[16] = { GOAL_NODES, 16000, 100000, 400000 }, n = 4, given = 0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--write") && i + 2 < argc)
			return gpt_onnx(argv[i + 1], atoi(argv[i + 2])) < 0;
		if (!strcmp(argv[i], "--runs") && i + 1 < argc)
			runs = atoi(argv[++i]);
		else if (given < 16 && atoi(argv[i]) > 0)
			sizes[given++] = atoi(argv[i]);
		else
			return fprintf(stderr, "usage: bench-frontend [--runs N] [NODES...] | --write FILE NODES\n"), 2;
	}
	if (given)
		n = given;
	double start = now(), first = 0;
	language_init();
	printf("operator table: %.1f ms, once per program\n", now() - start);
	puts("   nodes        MB   read ms verify ms   fold ms  total ms   us/node   ratio*  peak MiB      left");
	for (int i = 0; i < n; i++)
		if (bench(sizes[i], runs, &first))
			return 1;
	puts("         * time per node, against the first line: 1 is linear; above 16,000 nodes the model has left the "
		"cache");
	return 0;
}
