/* The language: models as graphs, knowing operators and nothing of machines.  Folders, each may use those above it:
 *
 *   base/    memory, names, files, messages           tensor/  element types, dimensions, types, constants
 *   annot/   annotations                              graph/   models, graphs, nodes, values
 *   files/   tensors in files of their own            wire/    the protobuf wire format and ONNX's messages
 *   table/   rows of operators and what they say      apply/   rows applied to a graph: shapes, definitions, gradients, values
 *   ops/     the rows                                 text/    text -> model -> text
 *   onnx/    .onnx -> model -> .onnx                  .        what needs all of them
 */
#ifndef SBPCC_IR_H
#define SBPCC_IR_H

#include "apply/apply.h"
#include "onnx/onnx.h"
#include "text/text.h"

/* language.c */
void language_init(void);                                    /* fills the operator table; once */

/* read.c */
Model *read_model(const char *path);                         /* text or binary, by content; NULL after explaining */

/* verify.c: what passes have established as facts; those of the compiler's own passes begin at FACT_NEXT (compiler.h). */
enum { FACT_BOUND = 1 /* bind_graph */, FACT_SHAPES = 2 /* infer_graph */, FACT_NEXT = 1 << 8 };
int verify_model(Model *);                                   /* after reading: operator sets, functions, every graph; -1 after err_at */
int verify_graph(Graph *, uint32_t facts);                   /* SSA, order, scopes, row bound, shapes: -1 after err_at */


/* resolve.c: annotations that need the whole model. */
int  resolve_run(Model *);                                 /* meshes known, patterns of @pin applied, typed decode checked */
bool resolve_pins(Model *, const char *name);                  /* before any pass: @pin may speak of this name */

/* objective.c: losses and metrics that annotations ask for by name, as nodes. */
enum { METRICS_MAX = 16 };
typedef enum { METRIC_MEAN, METRIC_EXP, METRIC_ROOT } MetricHow;       /* what is made of sum / count */
typedef struct Metric {
	Name name;
	MetricHow how;
	bool own;                       /* false: of the loss, sum and count too */
	Value *sum, *count;             /* outputs of this graph; NULL: it has none.  No count: sum has one element, and counts once */
	const Arg *call;
} Metric;
int     objective_add(Model *);                              /* before resolve_run, and not again; -1 after explaining */
Metric *objective_metrics(const Model *, int *n);            /* of a model, or of another program of it, in order */

/* evaluate.c */
int evaluate_files(Model *, const char *indir, const char *outdir);              /* --eval */

#endif
