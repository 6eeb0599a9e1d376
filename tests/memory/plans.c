/* plans MODEL...: no two live values overlap in the plan of any of these models, on 1 and on 3 ranks.
 *
 * The list of actions is played over a map of the memory (play.h).  The plan is also compared with the bytes that are
 * alive at the busiest action. */
#include "play.h"

#include <inttypes.h>
#include <string.h>

static const char *base(const char *path)
{
	const char *s = strrchr(path, '/');
	return s ? s + 1 : path;
}

static int test(const char *path, int ranks)
{
	opt.ranks = ranks;
	opt.stop_after = "prove";
	Model *m = read_model(path);
	char why[256] = "does not compile";
	int bad = !m || parse_train("data: points(classes: 2)", m) || resolve_run(m) || verify_graph(m->graph, 0);
	if (!bad) {
		train_bind_batch(m);
		bad = passes_run(m);
	}
	for (int i = 0; !bad && i < m->plan->nrole; i++)
		bad = play(m->plan, &m->plan->role[i], why, sizeof why);
	const Layout *l = bad ? NULL : &m->plan->layout;
	printf("%s %s-on-%d-rank%s%s%s\n", bad ? "not ok" : "ok", base(path), ranks, ranks == 1 ? "" : "s",
		bad ? ": " : "", bad ? why : "");
	if (l)
		printf("# %s on %d: %" PRId64 " bytes, at least %" PRId64 " alive at once\n", base(path), ranks,
			l->slab + l->window, l->bound);
	diag_finish();
	model_free(m);
	return 0;
}

int main(int argc, char **argv)
{
	language_init();
	for (int i = 1; i < argc; i++) {
		test(argv[i], 1);
		test(argv[i], 3);
	}
	return 0;
}
