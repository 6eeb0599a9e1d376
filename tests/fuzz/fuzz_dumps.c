/* Edited dumps.  A small model is compiled as far as some pass and printed; then annotations of dumps are added or
 * removed (@into, @done, @fused, @backward, @begin, @update, @again, @sbp, @factors, @opset, @from), and with them
 * placements, stages and shapes.  The result is read as a user's file and compiled as far as the proof.  It may be
 * refused with a message; no input causes an internal error (die).  If it is accepted, the memory of every program is
 * checked once more, independently of the planner (tests/memory/play.h).
 *
 * An input is a model, a pass, ranks, and then edits of four bytes each: what, where, and two for its arguments.  One
 * that begins with a letter, '@' or '<' is itself the text of a dump. */
#include "fuzz.h"
#include "../memory/play.h"

static const char *const models[] = {
	"g (float[4] x) => (float[4] y, float[4] u) <float[4] s = {1, 2, 3, 4}> {\n"
	"  a = Relu(x)\n  b = Add(a, s)\n  c = Identity(a)\n  y = Exp(b)\n  d = Relu(x)\n  u = Mul(c, d)\n}\n",
	"g (float[4, 6] x) => (float[4, 6] y, float[6] m) <float[6, 6] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, "
		"14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,"
	" 31, 32, 33, 34, 35, 36}, int64[2] t = {6, 4}> {\n"
	"  a = MatMul(x, w)\n  b = Transpose<perm = [1, 0]>(a)\n  c = Reshape(b, t)\n  e = Relu(c)\n  d = "
		"Transpose<perm = [1, 0]>(e)\n  y = Softmax(d)\n  m = ReduceMean<keepdims = 0>(y, [0])\n}\n",
	"@train(loss: loss, optimizer: adamw(lr: 0.1), clip: norm(1.0), batch: 4, steps: 5, data: points(classes: 3), "
		"seed: 1)\n"
	"g (float[N, 4] x, int64[N] t) => (float loss) <float[4, 6] w @init(normal), float[6] b @init(zeros), float[6, "
		"3] v @init(normal)> {\n"
	"  h = Gelu(Add(MatMul(x, w), b))\n  loss = SoftmaxCrossEntropyLoss(MatMul(h, v), t)\n}\n",
	"@train(loss: loss, optimizer: sgd(lr: 0.1, momentum: 0.9), batch: 4, microbatch: 2, steps: 5, data: "
		"points(classes: 3), seed: 1)\n"
	"g (float[N, 4] x, int64[N] t) => (float loss) <float[4, 3] w @init(normal), float[4] s @init(ones)> {\n"
	"  loss = SoftmaxCrossEntropyLoss(MatMul(LayerNormalization(x, s), w), t)\n}\n",
	"@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 4, steps: 5, data: points(classes: 3), seed: 1, ema: 0.9)\n"
	"g (float[N, 2, 4, 4] x, int64[N] t) => (float loss)\n"
	"<float[4, 2, 3, 3] w @init(normal), float[4] s @init(ones), float[4] b @init(zeros), float[4] mean = {0, 0, "
		"0, 0}, float[4] var = {1, 1, 1, 1}, float[4, 3] v @init(normal)> {\n"
	"  c = Conv<pads = [1, 1, 1, 1]>(x, w)\n  n = BatchNormalization(c, s, b, mean, var)\n  loss = "
		"SoftmaxCrossEntropyLoss(MatMul(ReduceMean<keepdims = 0>(Relu(n), [2, 3]), v), t)\n}\n",
	"@train(loss: loss, optimizer: lamb(lr: 0.1), precision: fp16, batch: 4, accumulate: 2, steps: 5, data: "
		"points(classes: 5), seed: 1)\n"
	"g (int64[N, 3] x, int64[N, 3] t) => (float loss) <float[5, 4] e @init(normal), float[4, 12] q @init(normal), "
		"int64[2] r = {-1, 5}, int64[1] one = {-1}> {\n"
	"  a = Gather(e, x)\n  k, l, m = Split<axis = -1, num_outputs = 3>(MatMul(a, q)) @recompute\n  o = "
		"Attention<q_num_heads = 2, kv_num_heads = 2, is_causal = 1>(k, l, m)\n"
	"  y = MatMul(Add(a, o), Transpose<perm = [1, 0]>(e))\n  loss = SoftmaxCrossEntropyLoss(Reshape(y, r), "
		"Reshape(t, one))\n}\n",
};
static const char *const stages[] = { "params", "inline", "fold", "train", "micro", "recompute", "lower", "plan",
	"boxing", "project", "fuse", "memplan" };
enum { NMODEL = sizeof models / sizeof models[0], NSTAGE = sizeof stages / sizeof stages[0] };

static Model *read(const char *name, const char *text, size_t n)
{
	Model *m = parse_text(file_memory(name, text, n));
	if (!m && diag_errors() == 0)
		abort();
	if (m && (verify_model(m) || resolve_run(m) || verify_graph(m->graph, 0))) {
		model_free(m);
		return NULL;
	}
	if (m)
		train_bind_batch(m);
	return m;
}

/* ---- edits ---- */

typedef struct Edit { uint8_t what, where, a, b; } Edit;

static void without(Annot **list, const char *name)
{
	while (*list && strcmp((*list)->name, name))
		list = &(*list)->next;
	if (*list)
		*list = (*list)->next;
}

/* An annotation in the place of one of its name. */
static void say(Model *m, AnnotOn on, Annot **list, const char *name, const char *args)
{
	char *text = arena_printf(&m->arena, "@%s%s%s%s", name, *args ? "(" : "", args, *args ? ")" : "");
	without(list, name);
	parse_annots(file_memory("edit", text, strlen(text)), m, on, list);
}

static const char *entry(int k)
{
	static const char *const list[] = { "B", "S(0)", "S(1)", "P", "P(max)", "S(0/1)", "_" };
	return list[k % 7];
}

static void edit_value(Model *m, Value *v, Value *other, const Edit *e)
{
	char text[80];
	switch (e->what % 5) {
	case 0: v->into = other; break;
	case 1: v->into = NULL; break;
	case 2:
		snprintf(text, sizeof text, e->b & 8 ? "%s, %s" : "%s", entry(e->b), entry(e->b >> 4));
		say(m, ON_VALUE, &v->annot, "sbp", text);
		break;
	case 3:
		snprintf(text, sizeof text, "f%d(%d), [f%d(2), f2(%d)]", e->b & 3, e->b >> 4, e->b & 1, e->b >> 5);
		say(m, ON_VALUE, &v->annot, "factors", text);
		break;
	default:
		if (v->type && v->type->kind == TY_TENSOR && v->type->ndim > 0 && !v->data)
			v->type->dim[e->b % v->type->ndim] = e->b >> 4;
	}
}

static void edit_node(Model *m, Node *n, const Edit *e)
{
	static const char *const plain[] = { "begin", "update", "again", "recompute", "frozen" };
	char text[80];
	switch (e->what % 9) {
	case 0: case 1: say(m, ON_NODE, &n->annot, plain[e->a % 5], ""); break;
	case 2: without(&n->annot, plain[e->a % 5]); break;
	case 3: say(m, ON_NODE, &n->annot, "backward", e->a & 1 ? "B" : "W"); break;
	case 4:
		snprintf(text, sizeof text, "%d", 1 + e->a % 8);
		say(m, ON_NODE, &n->annot, "fused", text);
		break;
	case 5:
		snprintf(text, sizeof text, "%d", 1 + e->a % 24);
		say(m, ON_NODE, &n->annot, "opset", text);
		break;
	case 6:
		snprintf(text, sizeof text, "%d", e->a % 3);
		say(m, ON_NODE, &n->annot, "stage", text);
		break;
	case 7:
		snprintf(text, sizeof text, "%s -> %s", entry(e->a), entry(e->b));
		say(m, ON_NODE, &n->annot, "sbp", text);
		break;
	default: n->from = "edited.ir:1:1"; break;
	}
}

static void apply(Model *m, const Edit *e)
{
	Model *in = m->nothers && e->what & 64 ? m->others[e->where % m->nothers] : m;
	Graph *g = in->graph;
	if (e->what < 16)
		without(&m->annot, "done");
	else if (e->what < 24)
		say(m, ON_MODEL, &m->annot, "done", stages[e->a % NSTAGE]);
	else if (e->what & 1 && g->nvalue)
		edit_value(in, g->value[e->where % g->nvalue], g->value[e->a % g->nvalue],
			&(Edit){ e->what >> 1, e->where, e->a, e->b });
	else if (g->nnode)
		edit_node(in, g->node[e->where % g->nnode], &(Edit){ e->what >> 1, e->where, e->a, e->b });
}

/* The text of a dump with edits in it; NULL: there is none. */
static char *edited(const uint8_t *data, size_t n, size_t *bytes)
{
	Model *m = read("model.ir", models[data[0] % NMODEL], strlen(models[data[0] % NMODEL]));
	opt.stop_after = stages[data[1] % NSTAGE];
	if (!m || passes_run(m))
		abort();                /* these compile */
	for (size_t i = 3; i + 4 <= n && i < 3 + 4 * 12; i += 4)
		apply(m, &(Edit){ data[i], data[i + 1], data[i + 2], data[i + 3] });
	char *text = diag_errors() ? NULL : fuzz_print(m, bytes);
	model_free(m);
	return text;
}

/* ---- what is accepted ---- */

static void check(const Model *m)
{
	char why[300];
	for (int i = -1; i < m->nothers; i++) {
		const Plan *p = i < 0 ? m->plan : m->others[i]->plan;
		for (int k = 0; k < p->nrole; k++)
			if (play(p, &p->role[k], why, sizeof why)) {
				fprintf(stderr, "what was proved is wrong: %s\n", why);
				abort();
			}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t bytes = n;
	fuzz_begin();
	limits.elements = 1 << 16;
	limits.nodes = 2000;
	opt.chunks = 0;
	if (n < 3)
		return 0;
	bool text = data[0] == '@' || data[0] == '<' || (data[0] >= 'a' && data[0] <= 'z');
	opt.ranks = text ? 0 : 1 + data[2] % 3;
	char *dump = text ? NULL : edited(data, n, &bytes);
	if (!text && !dump)
		return 0;
	if (getenv("FUZZ_PRINT") && dump)
		fwrite(dump, 1, bytes, stderr);
	diag_reset();
	Model *m = read("dump.ir", text ? (const char *)data : dump, bytes);
	if (m && annot_find(m->annot, "mesh"))
		opt.ranks = 0;          /* the dump says it */
	opt.stop_after = "prove";
	if (m && !passes_run(m))
		check(m);
	else if (diag_errors() == 0)
		abort();                /* refused without a word */
	if (m)
		model_free(m);
	free(dump);
	return 0;
}
