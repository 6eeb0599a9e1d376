/* api.c: one rank as a library.  Functions return exit statuses of the trainer; rt_last_error has the message.
 * library.h, which model.c of a tree includes, calls these. */
#ifndef API_H
#define API_H

#include "rt.h"

typedef struct RtConfig {
	int threads;                    /* 0: as many as there are processors */
	int64_t seed;                   /* -1: that of the program */
	char *weights, *map, *data;     /* copies; NULL: those of the program */
	bool partial, changed_data;     /* as the options of the trainer */
} RtConfig;
typedef struct RtSession RtSession;
RtConfig *rt_config_new(void);                          /* NULL: out of memory */
void rt_config_free(RtConfig *);
int rt_config_path(char **field, const char *path);     /* keeps a copy */
RtSession *rt_open(const RtProgram *, const RtConfig *);        /* config NULL: the defaults.  NULL: out of memory; a
                                                                 * session that failed reports it at each call */
void rt_close(RtSession *);
const char *rt_last_error(const RtSession *);
int rt_step_once(RtSession *, float *loss);
int rt_step_on(RtSession *, int64_t samples, const void *const *in, float *loss);
int64_t rt_steps_done(const RtSession *);
double rt_rate(const RtSession *);                      /* the learning rate of the last step; NAN before the first */
int rt_save_to(RtSession *, const char *dir);
int rt_resume_from(RtSession *, const char *dir);
int rt_export_to(RtSession *, const char *dir);
int rt_evaluate(RtSession *, double *loss);             /* over the held-out samples */
double rt_metric(const RtSession *, const char *name);  /* of the last step or evaluation; NAN: there is none */
int rt_infer_some(RtSession *, int64_t samples, const void *const *in, void *const *out);
int rt_infer(RtSession *, const void *const *in, void *const *out);
int rt_get_parameter(RtSession *, const char *name, void *to, size_t bytes);
int rt_set_parameter(RtSession *, const char *name, const void *from, size_t bytes);
int rt_parameters(const RtProgram *);                   /* how many have a name for users */
const char *rt_parameter(const RtProgram *, int i, size_t *bytes);

/* main.c: the command line, then the steps. */
int rt_main(const RtProgram *, int argc, char **argv);

#endif
