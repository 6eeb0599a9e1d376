/* every MODEL...: --explain, --explain=NAME of every value, and --set of every symbol to 0, to 1 and to a huge number,
 * over many models: each compiles as far as the proof or is refused in words; nothing crashes, and no sanitizer reports
 * anything.
 *
 * Every run is a process of its own, forked where the table of operators is read already.  By default a third of the
 * models, in turns with what is asked of them; with LONG all of it. */
#include "compiler.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int runs, refused, bad;

/* As main does. */
static Model *compile(const char *path, const char *stop)
{
	Model *m = read_model(path);
	if (!m || dim_check())
		return NULL;
	bool train = annot_find(m->annot, "train") && !options_done(m, "train");
	if ((train && parse_train("data: points(classes: 2)", m)) || resolve_run(m) || verify_graph(m->graph, 0))
		return NULL;
	arena_bound(0);
	train_bind_batch(m);
	opt.stop_after = stop;
	bool failed = passes_run(m);
	if (failed && diag_errors() == 0)
		_exit(EXIT_BUG);
	return failed ? NULL : m;
}

static void explain_all(const char *path, const char *stop)
{
	opt.explain = "";
	Model *m = compile(path, stop);
	for (int i = 0; m && i < m->graph->nvalue; i++)
		explain(m, m->graph->value[i]->name);
}

/* Runs in a child; its exit status is that of sbpcc. */
static void child(const char *path, const char *stop, const char *symbol, int64_t value)
{
	limits.elements = 1 << 20;
	if (symbol) {
		dim_bind(name_of(symbol), value);
		compile(path, stop);
	} else {
		explain_all(path, stop);
	}
	fflush(stdout);
	diag_finish();
	_exit((int)diag_exit());
}

static void try(const char *path, const char *stop, int ranks, const char *symbol, int64_t value)
{
	int status = 0;
	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0)
		exit(1);
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("err", "w", stderr))
			_exit(1);
		diag_out = stderr;
		opt.ranks = ranks;
		child(path, stop, symbol, value);
	}
	waitpid(pid, &status, 0);
	runs++;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	refused += code != 0;
	if (code == EXIT_OK || code == EXIT_INPUT || code == EXIT_NOPLAN || code == EXIT_LIMIT || code == EXIT_ENV)
		return;
	bad++;
	printf("not ok %s: %s%s%s%lld, %d ranks, as far as %s: exit status %d\n", path, symbol ? "--set=" : "--explain",
		symbol ? symbol : "", symbol ? "=" : "",
	       (long long)value, ranks, stop, code);
	fflush(stdout);
	if (system("head -n 12 err | sed 's/^/ /'"))
		exit(1);
}

/* Symbols that stand alone in the types of inputs. */
static int symbols(const char *path, const char **list, int most)
{
	FILE *out = diag_out;
	diag_out = NULL;
	Model *m = read_model(path);
	diag_out = out;
	diag_reset();
	int n = 0;
	for (int i = 0; m && i < m->graph->nin; i++) {
		const Type *t = m->graph->in[i]->type;
		for (int a = 0; t && t->kind == TY_TENSOR && a < t->ndim && n < most; a++) {
			const char *s = dim_symbolic(t->dim[a]) ? dim_text(t->dim[a]) : NULL;
			bool known = !s || strpbrk(s, "*+-/() ");
			for (int k = 0; k < n; k++)
				known |= !strcmp(list[k], s ? s : "");
			if (!known)
				list[n++] = s;
		}
	}
	if (m)
		model_free(m);
	return n;
}

int main(int argc, char **argv)
{
	static const int64_t values[] = { 0, 1, INT64_MAX, (int64_t)1 << 40 };
	bool all = getenv("LONG") && *getenv("LONG");
	language_init();
	for (int i = 1; i < argc; i++) {
		const char *list[8];
		int n = symbols(argv[i], list, 8);
		/* before and after transfers are there, on one rank and on two */
		for (int k = 0; k < 4; k++)
			if (all || (i + k) % 12 == 0)
				try(argv[i], k & 1 ? "boxing" : "prove", 1 + k / 2, NULL, 0);
		for (int s = 0; s < n; s++)
			for (int k = 0; k < 4; k++)
				if (all || (i + s + k) % 8 == 0)
					try(argv[i], "prove", 1 + k % 2, list[s], values[k]);
	}
	printf("%s runs\n# %d runs, of which %d were refused in words\n", bad ? "not ok" : "ok", runs, refused);
	return 0;
}
