/* Binds every node to its row of the table.  Nodes without one are reported together, with names that ONNX may have for
 * them. */
#include "apply.h"

#include <string.h>
#include <strings.h>

static bool is_call(const Graph *g, const Node *n)
{
	for (int i = 0; i < g->model->nfunction; i++)
		if (g->model->function[i]->name == n->op && g->model->function[i]->domain == n->domain)
			return true;
	return false;
}

/* Operators that PyTorch calls by another name; case is ignored. */
static const struct { const char *torch, *onnx; } torch_names[] = {
	{ "linear", "Gemm<transB = 1>, or MatMul and Add" }, { "addmm", "Gemm" }, { "bilinear", "Einsum" },
	{ "mm", "MatMul" }, { "bmm", "MatMul" }, { "conv1d", "Conv" }, { "conv2d", "Conv" }, { "conv3d", "Conv" },
	{ "convtranspose1d", "ConvTranspose" }, { "convtranspose2d", "ConvTranspose" },
	{ "convtranspose3d", "ConvTranspose" }, { "batchnorm", "BatchNormalization" },
	{ "batchnorm1d", "BatchNormalization" }, { "batchnorm2d", "BatchNormalization" },
	{ "batchnorm3d", "BatchNormalization" }, { "layernorm", "LayerNormalization" },
	{ "groupnorm", "GroupNormalization" }, { "rmsnorm", "RMSNormalization" },
	{ "instancenorm1d", "InstanceNormalization" }, { "instancenorm2d", "InstanceNormalization" },
	{ "maxpool1d", "MaxPool" }, { "maxpool2d", "MaxPool" }, { "maxpool3d", "MaxPool" },
	{ "avgpool1d", "AveragePool" }, { "avgpool2d", "AveragePool" }, { "avgpool3d", "AveragePool" },
	{ "adaptiveavgpool2d", "GlobalAveragePool" }, { "adaptivemaxpool2d", "GlobalMaxPool" },
	{ "embedding", "Gather" }, { "embeddingbag", "Gather and ReduceSum" }, { "index_select", "Gather" },
	{ "crossentropyloss", "SoftmaxCrossEntropyLoss" }, { "cross_entropy", "SoftmaxCrossEntropyLoss" },
	{ "nllloss", "NegativeLogLikelihoodLoss" }, { "nll_loss", "NegativeLogLikelihoodLoss" },
	{ "mseloss", "ReduceMean(Pow(Sub(x, y), 2))" }, { "mse_loss", "ReduceMean(Pow(Sub(x, y), 2))" },
	{ "l1loss", "ReduceMean(Abs(Sub(x, y)))" }, { "silu", "Swish" }, { "relu6", "Clip(x, 0, 6)" },
	{ "view", "Reshape" }, { "permute", "Transpose" }, { "cat", "Concat" }, { "stack", "Unsqueeze and Concat" },
	{ "chunk", "Split" }, { "repeat", "Tile" }, { "masked_fill", "Where" }, { "sum", "ReduceSum" },
	{ "mean", "ReduceMean" }, { "amax", "ReduceMax" }, { "amin", "ReduceMin" }, { "prod", "ReduceProd" },
	{ "scaled_dot_product_attention", "Attention" }, { "multiheadattention", "Attention" },
	{ "interpolate", "Resize" }, { "upsample", "Resize" }, { "arange", "Range" }, { "zeros", "ConstantOfShape" },
	{ "ones", "ConstantOfShape" }, { "full", "ConstantOfShape" }, { "pixelshuffle", "DepthToSpace" },
	{ "rsqrt", "Reciprocal(Sqrt(x))" }, { "square", "Mul(x, x)" }, { "clamp", "Clip" },
	{ "fmod", "Mod<fmod = 1>" }, { "log1p", "Log(Add(x, 1))" }, { "subtract", "Sub" }, { "multiply", "Mul" },
	{ "divide", "Div" }, { "to", "Cast" },
};

static const char *torch_name(Name op)
{
	for (size_t i = 0; i < sizeof torch_names / sizeof *torch_names; i++)
		if (!strcasecmp(torch_names[i].torch, op))
			return torch_names[i].onnx;
	return NULL;
}

/* The operator whose name is nearest.  NULL after many errors, because each search compares every name of the table. */
static const char *near_op(Name op)
{
	const char *names[512];
	int n = 0;

	if (diag_errors() >= limits.errors)
		return NULL;
	for (int k = 0; k < op_count() && n < 511; k++)
		if (!op_at(k)->domain || !*op_at(k)->domain)
			names[n++] = op_at(k)->name;
	names[n] = NULL;
	return diag_suggest(op, names);
}

/* Reports all nodes whose operator is not supported, those of one operator in one error. */
static void report(Node **missing, int n, Arena *tmp)
{
	/* last, count: set for the first node of a name */
	struct { int next, last, count; } *of = arena_alloc(tmp, sizeof *of * (size_t)n);
	Map first;
	bool unknown = false;

	map_init(&first, tmp);
	for (int i = 0; i < n; i++) {
		Name full = *missing[i]->domain ? name_fmt("%s.%s", missing[i]->domain, missing[i]->op)
		                                : missing[i]->op;
		Node **head = map_get(&first, full);
		int h = head ? (int)(head - missing) : i;

		if (!head)
			map_put(&first, full, &missing[i]);
		else
			of[of[h].last].next = i;
		of[h].last = i;
		of[h].count++;
	}
	diag_whole(true);
	for (int i = 0; i < n; i++) {
		Node *m = missing[i];

		if (!of[i].count)
			continue;
		bool other = op_known(m->domain, m->op);
		const char *torch = other || *m->domain ? NULL : torch_name(m->op),
			   *near = other || torch ? NULL : near_op(m->op);
		const char *meant = torch  ? name_fmt("; in ONNX it is %s", torch)
		                    : near ? name_fmt("; did you mean %s?", near)
		                           : "";
		err_at(m->loc, "operator %s%s%s is not supported%s (%d node%s)%s", m->domain, *m->domain ? "." : "",
			m->op, other ? " in this opset version" : "", of[i].count, of[i].count == 1 ? "" : "s",
			meant);
		unknown |= !*meant;
		for (int j = of[i].next; j; j = of[j].next)
			note_at(missing[j]->loc, "also here, making %s",
				missing[j]->nout && missing[j]->out[0] ? missing[j]->out[0]->name : "nothing");
	}
	if (unknown)
		note_at((Loc){ 0 },
			"an operator can be defined in the model, as a function of operators that are supported "
			"(LANGUAGE.md, section 4.5)");
	diag_whole(false);
}

typedef struct Missing { Node **node; int n; Arena *arena; } Missing;

/* Binds the nodes of a graph and of the graphs inside it; f: the function whose body it is. */
static void bind(Graph *g, const Function *f, Missing *m)
{
	for (int i = 0; i < g->nnode; i++) {
		Node *x = g->node[i];

		graph_ahead(g->node, i, g->nnode);
		x->mark = 0;
		const Annot *as = annot_find(x->annot, "opset");
		if (as && as->narg)
			x->version = (int)as->arg[0].i;
		for (int k = 0; f && k < f->nopset && !x->version; k++)
			if (f->opset[k].domain == x->domain)
				x->version = (int)f->opset[k].version;
		if (!x->version) {
			int64_t v = op_version(g->model, x->domain);

			x->version = v > 0 ? (int)v : 0;
		}
		for (int j = 0; j < x->nattr; j++)
			if (x->attr[j].type == AT_GRAPH && x->attr[j].u.g)
				bind(x->attr[j].u.g, f, m);
		if (x->row || control_is(x) || sequence_is(x) || is_call(g, x))
			continue;
		x->row = op_find(x->domain, x->op, x->version);
		if (!x->row)
			arena_push(m->arena, m->node, m->n, x);
	}
}

int bind_graph(Graph *g, bool report_all)
{
	Missing m = { .arena = g->scratch };

	bind(g, NULL, &m);
	for (int i = 0; g == g->model->graph && i < g->model->nfunction; i++)
		bind(g->model->function[i]->body, g->model->function[i], &m);
	if (m.n && report_all)
		report(m.node, m.n, g->scratch);
	return m.n ? -1 : 0;
}
