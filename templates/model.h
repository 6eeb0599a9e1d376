/*{banner*/
/* A model as a library; this file, as it stands, is the template. */
/*}*/
#ifndef sbp_MODEL_H
#define sbp_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined __GNUC__
#pragma GCC visibility push(default)
#endif

/* Functions that return int return 0 or an exit code of the trainer; sbp_error then has the message.  No function
 * prints, ends the process or keeps state outside of a context.  Different threads may use different contexts at the
 * same time; one thread at a time may use a context. */

/* The configuration of a context.  The defaults are those of the program. */
typedef struct sbp_config sbp_config;
sbp_config *sbp_config_new(void); /* NULL: out of memory */
void sbp_config_free(sbp_config *);
void sbp_config_threads(sbp_config *, int threads); /* 0: as many as there are processors */
void sbp_config_seed(sbp_config *, uint32_t seed); /* of initial parameters */
/* Initial weights: a safetensors file, a folder of Hugging Face, or a checkpoint. */
int sbp_config_weights(sbp_config *, const char *path);
int sbp_config_weights_map(sbp_config *, const char *rules); /* as --weights-map: "module.*=*,head.*=" */
/* Not 0: missing tensors are initialized as the model says; else they are an error. */
void sbp_config_weights_partial(sbp_config *, int partial);
int sbp_config_data(sbp_config *, const char *path);
/* Not 0: the data set may differ from that of the checkpoint. */
void sbp_config_changed_data(sbp_config *, int changed);

/* Parameters, optimizer state and all memory that the program needs. */
typedef struct sbp_context sbp_context;
/* NULL: out of memory.  A context that could not be opened fails at each call. */
sbp_context *sbp_context_new(const sbp_config *);
void sbp_context_free(sbp_context *);
const char *sbp_error(const sbp_context *); /* of the last call that failed; "" before */

int64_t sbp_batch(void); /* samples of a step */
int sbp_step(sbp_context *, float *loss); /* one training step on the next batch of the data set */
/*{step*/
/* One training step on the caller's samples, one pointer for each input, in the order of the model. */
/*}*/
int sbp_step_on(sbp_context *, int64_t samples, const void *const *in, float *loss);
int64_t sbp_steps(const sbp_context *); /* steps done, those before a resume included */
double sbp_rate(const sbp_context *); /* the learning rate of the last step; NaN before the first */
int sbp_evaluate(sbp_context *, double *loss); /* the mean loss of the held-out samples */
const char *sbp_metric_name(int i); /* metrics that the model reports, such as "accuracy"; NULL: no more */
double sbp_metric(const sbp_context *, const char *name); /* of the last step or evaluation; NaN: there is none */

/*{infer*/
/* in and out: one pointer for each input and output, in the order of the model. */
/*}*/
int sbp_infer(sbp_context *, const void *const *in, void *const *out);
/* The same for any number of samples, at least 1: they are processed in batches, and the last batch is filled up.  An
 * output without an axis of samples is that of the last batch. */
int sbp_infer_some(sbp_context *, int64_t samples, const void *const *in, void *const *out);

/* Checkpoints, as the trainer writes and reads them: DIR/step-N has all parameters and the optimizer state.  sbp_save
 * waits until it is on disk, removes none, and refuses a folder with checkpoints of another run; sbp_resume takes the
 * newest in DIR, or DIR itself. */
int sbp_save(sbp_context *, const char *dir);
int sbp_resume(sbp_context *, const char *dir);
/* DIR/model.safetensors: parameters or their averages, for PyTorch and sbp_config_weights. */
int sbp_export(sbp_context *, const char *dir);

/* Parameters, frozen parameters, statistics and optimizer state by name, as full tensors in row-major order. */
int sbp_parameters(void);
const char *sbp_parameter(int i, size_t *bytes); /* its name; NULL: there is none */
int sbp_get(sbp_context *, const char *name, void *to, size_t bytes);
int sbp_set(sbp_context *, const char *name, const void *from, size_t bytes);

int sbp_main(int argc, char **argv); /* the trainer: options, steps, reports; returns its exit status */

#if defined __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
