/* plans MODEL...: no two live values overlap in the plan of any of these models, on 1 and on 3 ranks.
 *
 * This does not look at lives or at the planner's own notion of them.  It plays the list of actions over a map of the
 * memory, in which every unit of 16 bytes knows the value that was last written there, and reads check that all units of
 * an operand still hold it.  The plan is also compared with the bytes that are alive at the busiest action. */
#include "compiler.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT = 16 };

typedef struct Memory { const Slot **unit[2]; int64_t n[2]; } Memory;

static int64_t units(int64_t bytes)
{
	return (bytes + UNIT - 1) / UNIT;
}

/* The value whose bytes a slot shows. */
static const Slot *shown(const Slot *s)
{
	while (s->view)
		s = s->view;
	return s;
}

static int put(Memory *m, const Slot *s)
{
	if (s->offset < 0 || s->offset % UNIT || s->offset / UNIT + units(s->bytes) > m->n[s->window])
		return -1;
	for (int64_t i = 0; i < units(s->bytes); i++)
		m->unit[s->window][s->offset / UNIT + i] = shown(s);
	return 0;
}

static const Slot *stranger(const Memory *m, const Slot *s)
{
	for (int64_t i = 0; i < units(s->bytes); i++) {
		const Slot *in = m->unit[s->window][s->offset / UNIT + i];
		if (in != shown(s))
			return in ? in : s;
	}
	return NULL;
}

static int play(const Plan *p, const Role *r, const char **why)
{
	Memory m = { .n = { units(p->layout.slab), units(p->layout.window) } };
	static char text[256];
	int bad = 0;
	*why = text;
	for (int k = 0; k < 2; k++)
		m.unit[k] = calloc((size_t)m.n[k] + 1, sizeof *m.unit[k]);
	for (int i = 0; i < p->nslot && !bad; i++) {
		const Slot *s = p->slot[i];
		if (s && !s->view && s->v->init && put(&m, s))
			bad = snprintf(text, sizeof text, "%s lies outside", s->v->name);
	}
	for (int turn = 0; turn < 2; turn++)            /* the second step finds what the first has left */
		for (int i = 0; i < r->nstep && !bad; i++) {
			const Action *a = &r->step[i];
			for (int k = 0; k < a->ntake && !bad; k++) {
				const Slot *s = a->take[k], *in = s ? stranger(&m, s) : NULL;
				bool over = a->kind == ACT_FINISH && in && a->make[k] && in == shown(a->make[k]);       /* its own result, made in place since the start */
				if (in && !over && !(turn && shown(s)->v->init && in->v->into == shown(s)->v))
					bad = snprintf(text, sizeof text, "action %d reads %s where %s lies", i, s->v->name, in == s ? "nothing" : in->v->name);
			}
			for (int k = 0; k < a->nmake && !bad && a->kind == ACT_FINISH; k++)
				if (a->make[k] && stranger(&m, a->make[k]))
					bad = snprintf(text, sizeof text, "something is laid over %s before action %d has finished it", a->make[k]->v->name, i);
			for (int k = 0; k < a->nmake && !bad; k++)
				if (a->make[k] && put(&m, a->make[k]))
					bad = snprintf(text, sizeof text, "action %d makes %s outside", i, a->make[k]->v->name);
		}
	for (int k = 0; k < 2; k++)
		free(m.unit[k]);
	return bad;
}

static const char *base(const char *path)
{
	const char *s = strrchr(path, '/');
	return s ? s + 1 : path;
}

static int test(const char *path, int ranks)
{
	opt.ranks = ranks;
	opt.stop_after = "prove";
	Model *m = model_read(path);
	const char *why = "does not compile";
	int bad = !m || parse_train("data: points(classes: 2)", m) || annot_resolve(m) || verify_graph(m->graph, 0);
	if (!bad) {
		train_bind_batch(m);
		bad = passes_run(m);
	}
	for (int i = 0; !bad && i < m->plan->nrole; i++)
		bad = play(m->plan, &m->plan->role[i], &why);
	const Layout *l = bad ? NULL : &m->plan->layout;
	printf("%s %s-on-%d-rank%s%s%s\n", bad ? "not ok" : "ok", base(path), ranks, ranks == 1 ? "" : "s", bad ? ": " : "", bad ? why : "");
	if (l)
		printf("# %s on %d: %" PRId64 " bytes, at least %" PRId64 " alive at once\n", base(path), ranks, l->slab + l->window, l->bound);
	diag_finish();
	model_free(m);
	return 0;
}

int main(int argc, char **argv)
{
	op_init();
	for (int i = 1; i < argc; i++) {
		test(argv[i], 1);
		test(argv[i], 3);
	}
	return 0;
}
