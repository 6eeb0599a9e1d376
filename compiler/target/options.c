/* The options of a run, which main.c sets from one table, and settings that come from an option or from the model. */
#include "target/target.h"

#include <string.h>

Options opt = { .seed = -1, .steps = -1, .solve_seconds = -1, .schedule_seconds = -1 };

/* A dump says which passes are done: @done(inline, train). */
bool options_done(const Model *m, const char *pass)
{
	const Annot *a = annot_find(m->annot, "done");
	for (int i = 0; a && i < a->narg; i++)
		if (a->arg[i].s && !strcmp(a->arg[i].s, pass))
			return true;
	return false;
}

/* A program is written, or simulated: its memory must be exact. */
bool options_program(void) { return opt.out || opt.simulate; }

bool options_any_ranks(const Model *m)
{
	return opt.chunks || annot_find((m->main ? m->main : m)->annot, "any_ranks");
}
