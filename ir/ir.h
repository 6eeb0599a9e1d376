/* The language: models as graphs of operators; knows nothing of machines.
 *
 * Folders, each may use those above it:
 *   base/    memory by lifetime, names, input files, messages
 *   tensor/  element types, dimensions, types of values, constants
 *   annot/   annotations
 *   graph/   models, graphs, nodes, values
 *   files/   tensors in files of their own: external data, .npy, .safetensors
 *   wire/    protobuf and the messages of onnx.proto
 *   table/   the operator table and what a row says of one node
 *   apply/   the table applied to a graph: shapes, definitions, gradients, values
 *   ops/     the rows in C, the definitions in the language itself
 *   text/    text -> model -> text
 *   onnx/    .onnx -> model -> .onnx
 *   .        what needs all of them: the files below
 *
 * Words, one for each idea:
 *   Model        what one file holds: a Graph, functions, annotations; the programs for training, eval and infer are
 *                each one
 *   Graph        Nodes in topological order over Values in static single assignment
 *   Node         one operator applied to operands, giving results
 *   Value        a result of a node, or an input, a constant or a parameter of a graph; its Type is an element type
 *                and a shape
 *   ndim         the number of axes of a Type, Tensor or mesh (ONNX calls that of a tensor its rank)
 *   Tensor       the contents of a constant
 *   row          an entry of the operator table (struct Op)
 *   factor       axes of operands and results that are split together; an axis may be a product of several
 *   annotation   @name(arguments) on something of a model (struct Annot)
 *   mesh         a named array of devices; a slice of it keeps a range of each axis
 *   placement    the mesh, or the slice of one, that runs a node or holds a value; such fields are named place
 *   SBP          how a value is laid out on its mesh, per axis of the mesh: split S(axis), broadcast B, partial P
 *   form         placement and SBP of a value in numbers, as the runtime reads them (runtime/form.h)
 *   rank         one process of a job
 *   shard        what one rank holds of a value; a shard node computes on shards, the logical node on full values
 *   micro-batch  the samples that go through the model at once; a step adds up the gradients of several, which
 *                together are the whole batch
 *   program      what is run for a step, for eval or for infer
 *   stage        a piece of the model on one coordinate of a pipeline; stages that share ranks are its chunks
 *   role         ranks that run the same code
 *   action       what a rank does at a time: a node, a fused group of nodes, a transfer
 *   block        actions of a stage that always run together (F, B, W, ...); a task is a block for a micro-batch
 *   lane         an ordered list of tasks; computation is one, each end of a channel between roles is another
 *   slot         one copy of a value in the memory of a rank; its lifetime is from the action that makes it to the
 *                last that reads it
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

/* verify.c: what passes have established as facts; those of the compiler's own passes begin at FACT_NEXT
 * (compiler.h). */
enum { FACT_BOUND = 1 /* bind_graph */, FACT_SHAPES = 2 /* infer_graph */, FACT_NEXT = 1 << 8 };
int verify_model(Model *);                                   /* opsets, functions, graphs; -1 after err_at */
int verify_graph(Graph *, uint32_t facts);                   /* SSA, order, scopes, rows, shapes; -1 after err_at */

/* resolve.c: annotations that need the whole model. */
int  resolve_run(Model *);                                   /* checks meshes and arguments, applies patterns of @pin */
bool resolve_pins(Model *, const char *name);                /* before any pass: whether a @pin may name this */

/* objective.c: losses and metrics that annotations ask for by name, as nodes. */
enum { METRICS_MAX = 16 };
typedef enum { METRIC_MEAN, METRIC_EXP, METRIC_ROOT } MetricHow;       /* applied to sum / count */
typedef struct Metric {
	Name name;
	MetricHow how;
	bool own;                       /* false: of the loss, sum and count too */
	Value *sum, *count;             /* outputs of this graph, or NULL; without count, sum has one element */
	const Arg *call;
} Metric;
int     objective_add(Model *);                              /* once, before resolve_run; -1 after err_at */
Metric *objective_metrics(const Model *, int *n);            /* of a model, or of another program of it, in order */

/* evaluate.c */
int evaluate_files(Model *, const char *indir, const char *outdir);              /* --eval */

#endif
