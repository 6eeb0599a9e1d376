/* From a logical graph to one program per role: the data structures of the back half, one section per file.
 *
 * A Plan hangs on the model.  Passes fill it from the top: meshes and the SBP of every value (plan, also written as
 * annotations, so that a dump holds them), transfers as nodes (boxing), what each rank holds of each value (project), the
 * list of actions (schedule), offsets (memplan).  prove reads all of it; emit prints it. */
#ifndef SBPCC_COMPILER_H
#define SBPCC_COMPILER_H

#include "emit/emit.h"

/* main.c: options.  One table gives --help, parsing and opt. */
typedef enum { FLAG, TEXT, NUMBER, BYTES, FUNCTION } OptKind;
typedef struct Option {
	const char *name, *arg;         /* arg NULL: takes none; "[X]": may have one */
	OptKind kind;
	void *to;
	int (*set)(const char *);       /* FUNCTION */
	int64_t low, high;              /* NUMBER, BYTES */
	const char *help;
} Option;

/* manual.c: the options as text (""), as a manual page ("man"), as completion for bash ("bash"); -1: another kind. */
int manual_print(const Option *, int n, const char *kind);

/* passes.c: the passes in order, and what each needs, gives and spoils. */
typedef struct Pass {
	const char *name;
	int (*run)(Graph *);
	uint32_t needs, gives, drops;
	bool once;                      /* not run again on a dump in which it is done: it would see its own work, or later passes' */
	const char *does;
} Pass;

int  passes_run(Model *);           /* 0, or -1 after explaining */
int  passes_from(Model *, const char *name);     /* the rest of them, from that one on */
void passes_list(FILE *);
bool passes_known(const char *name);
int  passes_bind(Graph *);

/* trials.c: runs of the passes in child processes, for what they measure. */
void trials_recompute(Model *);     /* starts one without @recompute, if there is any */
int  trials_plan(Model *);          /* starts those on fewer ranks; finds a limit with which the program fits; -1 after explaining */
void trials_report(const Plan *);   /* warns of what does not pay, when the program is written */

/* explain.c */
void explain(const Model *, const char *what);
void explain_read(Model *, const char *what);                /* before any pass: whether an annotation may speak of it */

#endif
