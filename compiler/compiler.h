/* From a logical graph to one program per role: the files directly in compiler/, one section per file.
 *
 * A model has a Plan, which passes fill in turn: meshes and the SBP of every value (plan; also written as
 * annotations, so that a dump has them), transfers as nodes (boxing), shards (project), lists of actions
 * (schedule), offsets (memplan).  prove checks all of it, and emit prints it. */
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

/* passes.c: the passes in order, with the facts that each needs, gives and drops. */
typedef struct Pass {
	const char *name;
	int (*run)(Graph *);
	uint32_t needs, gives, drops;
	bool once;                      /* skipped on a dump in which it is done: it would see its own results */
	const char *does;
} Pass;

int  passes_run(Model *);           /* 0, or -1 after explaining */
int  passes_from(Model *, const char *name);     /* the rest of them, from that one on */
void passes_list(FILE *);
bool passes_known(const char *name);

/* trials.c: runs of the passes in child processes, which return measurements. */
int  trials_micro_batches(Model *); /* chooses the number of a pipeline's, if none is given; -1 after explaining */
int  trials_stages(Model *);        /* decides by what loads the model is cut into stages; -1 after explaining */
/* starts one without @recompute, if there is any; chooses what else is recomputed; -1 after explaining */
int  trials_recompute(Model *);
int  trials_plan(Model *);          /* starts those on fewer ranks; finds a limit that fits; -1 after explaining */
void trials_report(const Plan *);   /* after the program is written: warns of ranks and @recompute that do not pay */

/* explain.c */
void explain(const Model *, const char *what);
void explain_read(Model *, const char *what);                /* before any pass: whether an annotation may name it */

#endif
