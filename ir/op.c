/* The operator table: rows of ops/ *.c and definitions of ops/ *.ir, found by domain, name and opset version.
 *
 * Three kinds of entry share one struct.  A core operator is a row with a shape rule and a meaning (expression or
 * eval).  A definition is a function in the language: its row has only a schema and .def.  A composite has both: it
 * stays one node through the passes, and its definition says what it means.  Passes ask the row, never the name.
 *
 * The rows in the sources are constant; op_init copies them once, so that the parsed schema, definition and gradient
 * can be attached. */
#include "ops/ops.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern const char *const ops_text[], *const ops_text_name[];
extern const int nops_text;

static const Op *const sources[] = {
	ops_pointwise, ops_movement, ops_tile, ops_cut, ops_index, ops_reduce, ops_shape, ops_matmul, ops_conv, ops_pool, ops_norm, ops_loss,
	ops_attention, ops_recurrent, ops_steps, ops_resize, ops_sample, ops_spectral, ops_random, ops_quant, ops_einsum, ops_state, ops_detect, ops_misc,
	ops_optimizer, ops_boxing,
};

bool control_is(const Node *);                          /* control.c */
bool sequence_is(const Node *);  /* sequence.c */

typedef struct Entry { Op **op; int n; } Entry;         /* all versions of one operator */

static Op **table;
static int ntable;
static Map by_name;                                     /* "domain:Op" -> Entry */
static Model *library;                                  /* holds the definitions */

/* One word of a .sig or .attrs text; blanks are skipped before it.  Quoted text and brackets are kept whole. */
static const char *word(const char **p, size_t *len)
{
	while (**p == ' ')
		++*p;
	const char *start = *p;
	bool quoted = false;
	for (int depth = 0; **p && (quoted || depth || **p != ' '); ++*p) {
		quoted ^= **p == '"';
		depth += !quoted && **p == '[';
		depth -= !quoted && **p == ']';
	}
	*len = (size_t)(*p - start);
	return start;
}

static Operand read_operand(const char *w, size_t len)
{
	Operand o = { 0 };

	if (w[len - 1] == '?' || w[len - 1] == '*' || w[len - 1] == '+') {
		o.optional = w[len - 1] != '+';
		o.variadic = w[len - 1] != '?';
		len--;
	}
	const char *colon = memchr(w, ':', len);
	o.name = name_n(w, colon ? (size_t)(colon - w) : len);
	o.type = colon ? name_n(colon + 1, len - (size_t)(colon - w) - 1) : name_of("T");
	return o;
}

static const struct { const char *name; AttrType type; } attr_types[] = {
	{ "int", AT_INT }, { "float", AT_FLOAT }, { "string", AT_STRING }, { "ints", AT_INTS }, { "floats", AT_FLOATS },
	{ "strings", AT_STRINGS }, { "tensor", AT_TENSOR }, { "graph", AT_GRAPH }, { "type", AT_TYPE }, { "sparse_tensor", AT_SPARSE },
};

static void read_value(Attr *a, const char *v, size_t len)
{
	char text[128];

	if (len >= sizeof text)
		die("attribute default too long: %.*s", (int)len, v);
	memcpy(text, v, len);
	text[len] = 0;
	switch (a->type) {
	case AT_INT: a->u.i = strtoll(text, NULL, 10); break;
	case AT_FLOAT: a->u.f = strtof(text, NULL); break;
	case AT_STRING: a->u.s = name_n(v + 1, len - 2); break;
	case AT_INTS:
		for (char *p = text + 1; *p && *p != ']';) {
			arena_push(&process, a->u.is, a->n, strtoll(p, &p, 10));
			p += strspn(p, ", ");
		}
		break;
	case AT_STRINGS:
		for (char *p = strchr(text, '"'); p; p = strchr(p, '"')) {
			char *end = strchr(p + 1, '"');

			arena_push(&process, a->u.ss, a->n, name_n(p + 1, (size_t)(end - p) - 1));
			p = end + 1;
		}
		break;
	default: die("no defaults of this attribute type: %s", text);
	}
}

/* "axis:int=-1 perm:ints to:int!" */
static void read_attrs(Schema *s, const char *text)
{
	size_t len;
	const char *w;

	for (int n = 0; text && (w = word(&text, &len), len); n++) {
		const char *colon = memchr(w, ':', len), *eq = memchr(w, '=', len);
		bool required = w[len - 1] == '!' && !eq;
		size_t typelen = (size_t)((eq ? eq : w + len - required) - colon) - 1;
		Attr a = { .name = name_n(w, (size_t)(colon - w)) };

		for (size_t i = 0; i < sizeof attr_types / sizeof *attr_types; i++)
			if (strlen(attr_types[i].name) == typelen && !memcmp(attr_types[i].name, colon + 1, typelen))
				a.type = attr_types[i].type;
		if (!a.type)
			die("attribute type in \"%s\"", w);
		if (eq)
			read_value(&a, eq + 1, len - (size_t)(eq - w) - 1);
		arena_push(&process, s->attr, s->nattr, a);
		s->hasdefault = arena_grow(&process, s->hasdefault, n, sizeof(bool));
		s->required = arena_grow(&process, s->required, n, sizeof(bool));
		s->hasdefault[n] = eq != NULL;
		s->required[n] = required;
	}
}

static Schema *row_schema(const Op *op)
{
	Schema *s = arena_new(&process, Schema);
	const char *p = op->sig ? op->sig : "->", *w;
	bool results = false;
	size_t len;

	while (w = word(&p, &len), len) {
		if (w[0] == '-' && len == 2)
			results = true;
		else if (results)
			arena_push(&process, s->out, s->nout, read_operand(w, len));
		else
			arena_push(&process, s->in, s->nin, read_operand(w, len));
	}
	read_attrs(s, op->attrs);
	return s;
}

static Schema *definition_schema(const Function *f)
{
	Schema *s = arena_new(&process, Schema);

	for (int i = 0; i < f->body->nin; i++)
		arena_push(&process, s->in, s->nin, ((Operand){ .name = f->body->in[i]->name, .type = name_of("?"), .optional = true }));
	for (int i = 0; i < f->body->nout; i++)
		arena_push(&process, s->out, s->nout, ((Operand){ .name = f->body->out[i]->name, .type = name_of("?") }));
	for (int i = 0; i < f->nattr; i++) {
		arena_push(&process, s->attr, s->nattr, f->attr[i]);
		s->hasdefault = arena_grow(&process, s->hasdefault, i, sizeof(bool));
		s->required = arena_grow(&process, s->required, i, sizeof(bool));
		s->hasdefault[i] = !f->attr[i].absent;
	}
	return s;
}

static Entry *entry(Name domain, Name op, bool make)
{
	Name key = name_fmt("%s:%s", domain, op);
	Entry *e = map_get(&by_name, key);

	if (!e && make)
		map_put(&by_name, key, e = arena_new(&process, Entry));
	return e;
}

static Op *add(const Op *row)
{
	Op *op = arena_new(&process, Op);
	Entry *e = entry(name_of(row->domain ? row->domain : ""), name_of(row->name), true);

	for (int i = 0; i < e->n; i++)
		if (e->op[i]->since == row->since)
			die("two rows of %s since version %d", row->name, row->since);
	*op = *row;
	arena_push(&process, e->op, e->n, op);
	arena_push(&process, table, ntable, op);
	return op;
}

/* A definition belongs to the composite of its name and versions, or becomes a row of its own. */
static void add_definition(Function *f)
{
	Entry *e = entry(f->domain, f->name, true);

	for (int i = 0; i < e->n; i++)
		if (e->op[i]->composite && e->op[i]->since == f->since) {
			e->op[i]->def = f;
			return;
		}
	Op *op = add(&(Op){ .name = f->name, .domain = f->domain, .since = f->since, .until = f->until });
	op->def = f;
	op->schema = definition_schema(f);
}

/* What we wrote ourselves is read without the user's caps; returns those. */
static Limits own_caps(void)
{
	Limits caps = limits;

	limits.name_bytes = limits.file_bytes = limits.nodes = limits.depth = limits.elements = INT32_MAX;
	return caps;
}

void op_init(void)
{
	if (ntable)
		return;
	map_init(&by_name, &process);
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		for (const Op *row = sources[i]; row->name; row++)
			add(row)->schema = row_schema(row);
	library = model_new();
	Limits caps = own_caps();
	for (int i = 0; i < nops_text; i++)
		if (parse_library(file_memory(ops_text_name[i], ops_text[i], strlen(ops_text[i])), library) < 0)
			die("the definitions in %s do not parse", ops_text_name[i]);
	limits = caps;
	for (int i = 0; i < library->nfunction; i++)
		add_definition(library->function[i]);
}

const Op *op_find(Name domain, Name name, int64_t version)
{
	op_init();
	if (!strcmp(domain, "ai.onnx"))
		domain = name_of("");
	const Entry *e = entry(domain, name, false);
	const Op *best = NULL;
	if (version <= 0)
		version = INT_MAX;
	for (int i = 0; e && i < e->n; i++) {
		const Op *op = e->op[i];

		if (op->since <= version && (!op->until || version <= op->until || (version == INT_MAX && !op->until)) &&
		    (!best || op->since > best->since))
			best = op;
	}
	return best;
}

int op_count(void)
{
	op_init();
	return ntable;
}

const Op *op_at(int i)
{
	return table[i];
}

bool op_index(const Node *n, int operand, int *axis)
{
	const Schema *s = n->row->schema;
	const char *at = n->row->index;
	if (!at || !s || operand >= s->nin || operand >= n->nin)
		return false;
	size_t len = strcspn(at, " ");
	if (strlen(s->in[operand].name) != len || strncmp(s->in[operand].name, at, len))
		return false;
	int64_t a = !strcmp(at + len, " axis") ? attr_int(n, "axis") : strtoll(at + len, NULL, 10);
	*axis = (int)(a < 0 ? a + n->in[0]->type->rank : a);
	return true;
}

/* The index of an operand or result by its name; -1. */
static int named(const Operand *list, int n, const char *name, size_t len)
{
	for (int i = 0; i < n; i++)
		if (strlen(list[i].name) == len && !strncmp(list[i].name, name, len))
			return i;
	return -1;
}

int op_added(const Node *n)
{
	int i = n->row->added ? named(n->row->schema->in, n->row->schema->nin, n->row->added, strlen(n->row->added)) : -1;
	return i >= 0 && i < n->nin && n->in[i] ? i : -1;
}

bool op_origin(const Node *n, bool *out, int *at, int *axis)
{
	const Schema *s = n->row->schema;
	const char *text = n->row->origin;
	if (!text)
		return false;
	size_t len = strcspn(text, " ");
	*at = named(s->in, s->nin, text, len);
	*out = *at < 0;
	if (*out)
		*at = named(s->out, s->nout, text, len);
	if (*at < 0)
		die("%s: .origin names nothing of .sig", n->row->name);
	const Value *v = *out ? n->out[*at] : n->in[*at];
	int64_t a = !strcmp(text + len, " axis") ? attr_int(n, "axis") : strtoll(text + len, NULL, 10);
	*axis = !strcmp(text + len, " *") ? -1 : (int)(a < 0 ? a + v->type->rank : a);
	return true;
}

Function *op_gradient(const Op *op)
{
	Op *own = (Op *)op;     /* rows live in our own table: see op_init */

	if (!op->gradient && op->grad) {
		Limits caps = own_caps();
		own->gradient = parse_grad(op, op->grad);
		limits = caps;
	}
	return op->gradient;
}

int64_t opset_version(const Model *m, Name domain)
{
	for (int i = 0; i < m->nopset; i++)
		if (m->opset[i].domain == domain || (!*domain && !strcmp(m->opset[i].domain, "ai.onnx")))
			return m->opset[i].version;
	return -1;
}

static bool is_call(const Graph *g, const Node *n)
{
	for (int i = 0; i < g->model->nfunction; i++)
		if (g->model->function[i]->name == n->op && g->model->function[i]->domain == n->domain)
			return true;
	return false;
}

/* What PyTorch calls otherwise, upper and lower case being one. */
static const struct { const char *torch, *onnx; } torch_names[] = {
	{ "linear", "Gemm<transB = 1>, or MatMul and Add" }, { "addmm", "Gemm" }, { "bilinear", "Einsum" },
	{ "mm", "MatMul" }, { "bmm", "MatMul" }, { "conv1d", "Conv" }, { "conv2d", "Conv" }, { "conv3d", "Conv" },
	{ "convtranspose1d", "ConvTranspose" }, { "convtranspose2d", "ConvTranspose" }, { "convtranspose3d", "ConvTranspose" },
	{ "batchnorm", "BatchNormalization" }, { "batchnorm1d", "BatchNormalization" }, { "batchnorm2d", "BatchNormalization" },
	{ "batchnorm3d", "BatchNormalization" }, { "layernorm", "LayerNormalization" }, { "groupnorm", "GroupNormalization" },
	{ "rmsnorm", "RMSNormalization" }, { "instancenorm1d", "InstanceNormalization" }, { "instancenorm2d", "InstanceNormalization" },
	{ "maxpool1d", "MaxPool" }, { "maxpool2d", "MaxPool" }, { "maxpool3d", "MaxPool" }, { "avgpool1d", "AveragePool" },
	{ "avgpool2d", "AveragePool" }, { "avgpool3d", "AveragePool" }, { "adaptiveavgpool2d", "GlobalAveragePool" },
	{ "adaptivemaxpool2d", "GlobalMaxPool" }, { "embedding", "Gather" }, { "embeddingbag", "Gather and ReduceSum" },
	{ "index_select", "Gather" }, { "crossentropyloss", "SoftmaxCrossEntropyLoss" }, { "cross_entropy", "SoftmaxCrossEntropyLoss" },
	{ "nllloss", "NegativeLogLikelihoodLoss" }, { "nll_loss", "NegativeLogLikelihoodLoss" },
	{ "mseloss", "ReduceMean(Pow(Sub(x, y), 2))" }, { "mse_loss", "ReduceMean(Pow(Sub(x, y), 2))" },
	{ "l1loss", "ReduceMean(Abs(Sub(x, y)))" }, { "silu", "Swish" }, { "relu6", "Clip(x, 0, 6)" }, { "view", "Reshape" },
	{ "permute", "Transpose" }, { "cat", "Concat" }, { "stack", "Unsqueeze and Concat" }, { "chunk", "Split" }, { "repeat", "Tile" },
	{ "masked_fill", "Where" }, { "sum", "ReduceSum" }, { "mean", "ReduceMean" }, { "amax", "ReduceMax" }, { "amin", "ReduceMin" },
	{ "prod", "ReduceProd" }, { "scaled_dot_product_attention", "Attention" }, { "multiheadattention", "Attention" },
	{ "interpolate", "Resize" }, { "upsample", "Resize" }, { "arange", "Range" }, { "zeros", "ConstantOfShape" },
	{ "ones", "ConstantOfShape" }, { "full", "ConstantOfShape" }, { "pixelshuffle", "DepthToSpace" }, { "rsqrt", "Reciprocal(Sqrt(x))" },
	{ "square", "Mul(x, x)" }, { "clamp", "Clip" }, { "fmod", "Mod<fmod = 1>" }, { "log1p", "Log(Add(x, 1))" }, { "subtract", "Sub" },
	{ "multiply", "Mul" }, { "divide", "Div" }, { "to", "Cast" },
};

static const char *torch_name(Name op)
{
	for (size_t i = 0; i < sizeof torch_names / sizeof *torch_names; i++)
		if (!strcasecmp(torch_names[i].torch, op))
			return torch_names[i].onnx;
	return NULL;
}

/* What is near the name of an operator that users may write; nothing after many, because every name of the table is held against it. */
static const char *near_op(Name op)
{
	const char *names[512];
	int n = 0;

	if (diag_errors() >= limits.errors)
		return NULL;
	for (int k = 0; k < ntable && n < 511; k++)
		if (!table[k]->domain || !*table[k]->domain)
			names[n++] = table[k]->name;
	names[n] = NULL;
	return suggest(op, names);
}

/* Nodes without an operator of ours: all of them, those of one name under one error. */
static void report(Node **missing, int n, Arena *tmp)
{
	struct { int next, last, count; } *of = arena_alloc(tmp, sizeof *of * (size_t)n);     /* last, count: of the first of a name */
	Map first;
	bool unknown = false;

	map_init(&first, tmp);
	for (int i = 0; i < n; i++) {
		Name full = *missing[i]->domain ? name_fmt("%s.%s", missing[i]->domain, missing[i]->op) : missing[i]->op;
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
		bool other = entry(m->domain, m->op, false);
		const char *torch = other || *m->domain ? NULL : torch_name(m->op), *near = other || torch ? NULL : near_op(m->op);
		const char *meant = torch ? name_fmt("; in ONNX it is %s", torch) : near ? name_fmt("; did you mean %s?", near) : "";
		err_at(m->loc, "operator %s%s%s is not supported%s (%d node%s)%s", m->domain, *m->domain ? "." : "", m->op,
		       other ? " in this opset version" : "", of[i].count, of[i].count == 1 ? "" : "s", meant);
		unknown |= !*meant;
		for (int j = of[i].next; j; j = of[j].next)
			note_at(missing[j]->loc, "also here, making %s", missing[j]->nout && missing[j]->out[0] ? missing[j]->out[0]->name : "nothing");
	}
	if (unknown)
		note_at((Loc){ 0 }, "an operator can be defined in the model, as a function of operators that are supported (LANGUAGE.md, section 4.5)");
	diag_whole(false);
}

typedef struct Missing { Node **node; int n; Arena *arena; } Missing;

/* Binds the nodes of a graph and of the graphs inside it; f: the function whose body it is. */
static void bind(Graph *g, const Function *f, Missing *m)
{
	for (int i = 0; i < g->nnode; i++) {
		Node *x = g->node[i];

		ahead_node(g->node, i, g->nnode);
		x->mark = 0;
		const Annot *as = annot_find(x->annot, "opset");
		if (as && as->narg)
			x->version = (int)as->arg[0].i;
		for (int k = 0; f && k < f->nopset && !x->version; k++)
			if (f->opset[k].domain == x->domain)
				x->version = (int)f->opset[k].version;
		if (!x->version) {
			int64_t v = opset_version(g->model, x->domain);

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

int op_bind(Graph *g, bool report_all)
{
	Missing m = { .arena = g->scratch };

	op_init();
	bind(g, NULL, &m);
	for (int i = 0; g == g->model->graph && i < g->model->nfunction; i++)
		bind(g->model->function[i]->body, g->model->function[i], &m);
	if (m.n && report_all)
		report(m.node, m.n, g->scratch);
	return m.n ? -1 : 0;
}

/* ---- what shape rules ask ---- */

static const Attr *schema_attr(const Node *n, const char *name, AttrType type)
{
	const Attr *a = node_attr(n, name);
	const Schema *s = n->row ? n->row->schema : NULL;

	if (a && a->type == type)
		return a;
	for (int i = 0; s && i < s->nattr; i++)
		if (!strcmp(s->attr[i].name, name))
			return a && a->type != type ? NULL : (s->hasdefault && s->hasdefault[i]) || s->attr[i].type == type ? &s->attr[i] : NULL;
	return NULL;
}

int64_t attr_int(const Node *n, const char *name)
{
	const Attr *a = schema_attr(n, name, AT_INT);

	return a ? a->u.i : 0;
}

double attr_float(const Node *n, const char *name)
{
	const Attr *a = schema_attr(n, name, AT_FLOAT);

	return a ? (double)a->u.f : 0;
}

Name attr_str(const Node *n, const char *name)
{
	const Attr *a = schema_attr(n, name, AT_STRING);

	return a && a->u.s ? a->u.s : name_of("");
}

const int64_t *attr_ints(const Node *n, const char *name, int *count)
{
	const Attr *a = schema_attr(n, name, AT_INTS);

	*count = a ? a->n : 0;
	return a ? a->u.is : NULL;
}

int64_t attr_origin(const Node *n, int64_t len, int64_t *among)
{
	const Attr *from = node_attr(n, "origin"), *of = node_attr(n, "among");
	*among = of ? of->u.i : len;
	return from ? from->u.i : 0;
}

bool attr_has(const Node *n, const char *name)
{
	return node_attr(n, name) != NULL;
}

Type *in_type(const Node *n, int i)
{
	return i < n->nin && n->in[i] ? n->in[i]->type : NULL;
}

int in_rank(const Node *n, int i)
{
	const Type *t = in_type(n, i);

	return t && t->kind == TY_TENSOR ? t->rank : -1;
}

DType in_dtype(const Node *n, int i)
{
	const Type *t = in_type(n, i);

	return t && t->kind == TY_TENSOR ? t->elem : DT_UNDEFINED;
}

const Tensor *in_const(const Node *n, int i)
{
	if (i >= n->nin || !n->in[i] || n->in[i]->param || !n->in[i]->data)
		return NULL;
	return tensor_load(n->in[i]->data) < 0 ? NULL : n->in[i]->data;
}

int in_dims(const Node *n, int i, Dim *dim, int max)
{
	const Tensor *t = in_const(n, i);

	if (t) {
		int64_t count = tensor_elements(t);

		if (count > max)
			return -1;
		for (int k = 0; k < count; k++) {
			int64_t v = tensor_int(t, k);

			dim[k] = v < 0 ? DIM_UNKNOWN : v;       /* never a number that looks like a symbol */
		}
		return (int)count;
	}
	if (i >= n->nin || !n->in[i] || n->in[i]->nelem < 0 || n->in[i]->nelem > max)
		return -1;
	for (int k = 0; k < n->in[i]->nelem; k++)
		dim[k] = n->in[i]->elem[k];
	return n->in[i]->nelem;
}

void out_set(Node *n, int i, DType elem, int rank, const Dim *dim)
{
	if (i < n->nout && n->out[i])
		n->out[i]->type = type_tensor(n->graph->arena, elem, rank, dim);
}

Loc in_loc(const Node *n, int i)
{
	return n->inloc && i < n->nin && n->inloc[i].file ? n->inloc[i] : n->loc;
}

int op_axis(Node *n, int64_t axis, int rank, int *out)
{
	if (axis < -rank || axis >= rank) {
		err_at(n->loc, "%s: axis %lld is outside [%d, %d]", n->op, (long long)axis, -rank, rank - 1);
		return -1;
	}
	*out = (int)(axis < 0 ? axis + rank : axis);
	return 0;
}
