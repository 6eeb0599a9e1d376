/* --eval: operands and results in files. */
#include "ir.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static Tensor *read_first(Arena *a, const char *dir, int position, Name name, const char **path)
{
	const char *try[3] = {
		arena_printf(a, "%s/input_%d.pb", dir, position),
		arena_printf(a, "%s/input_%d.npy", dir, position),
		arena_printf(a, "%s/%s.npy", dir, name),
	};
	for (int i = position < 0 ? 2 : 0; i < 3; i++) {
		if (i == 2 && (strchr(name, '/') || access(try[i], F_OK) != 0))
			continue;
		if (access(try[i], F_OK) != 0)
			continue;
		*path = try[i];
		return i == 0 ? onnx_tensor_file(try[i], a) : npy_read(try[i], a);
	}
	*path = NULL;
	return NULL;
}

/* .npy has no bfloat16 and no 8-bit floats: a file may hold their bits as unsigned integers. */
static void take_bits(const Value *v, Tensor *t)
{
	DType want = v->type && v->type->kind == TY_TENSOR ? v->type->elem : DT_UNDEFINED;
	if (dtype_is_float(want) && ((dtype_bits(want) == 16 && t->dtype == DT_UINT16) ||
					    (dtype_bits(want) == 8 && t->dtype == DT_UINT8)))
		t->dtype = want;
}

/* Symbols of the declared shape take the sizes that the file has. */
static void bind_dims(const Type *want, const Tensor *t)
{
	for (int i = 0; want && i < want->ndim && want->ndim == t->ndim; i++) {
		Dim d = dim_bound(want->dim[i]);
		const char *s = dim_symbolic(d) ? dim_text(d) : "";
		if (*s && !strpbrk(s, "*+-/() "))
			dim_bind(name_of(s), t->dim[i]);
	}
}

static int check_input(const Value *v, const Tensor *t, const char *path)
{
	const Type *want = v->type;
	Arena tmp = { 0 };
	int bad = 0;
	if (!want || want->kind != TY_TENSOR)
		return 0;
	const char *have = type_text(type_tensor(&tmp, t->dtype, t->ndim, t->dim));
	if ((want->elem && want->elem != t->dtype) || (want->ndim >= 0 && want->ndim != t->ndim))
		bad = -1;
	for (int i = 0; !bad && i < want->ndim; i++)
		if (dim_differ(dim_bound(want->dim[i]), t->dim[i]))
			bad = -1;
	if (bad)
		err_at(v->loc, "input %s is declared %s, but %s holds %s", v->name, type_text(want), path,
			have);
	arena_free(&tmp);
	return bad;
}

/* Parameters and other initialisers may be given too, by name. */
static int read_params(Graph *g, const char *dir, Arena *a)
{
	int bad = 0;
	for (int i = 0; i < g->ninit && !bad; i++) {
		Value *v = g->init[i];
		const char *path;
		if (v->input)
			continue;
		Tensor *t = read_first(a, dir, -1, v->name, &path);
		if (!t && path)
			bad = -1;
		if (!t)
			continue;
		take_bits(v, t);
		bad = check_input(v, t, path);
		v->data = t;
	}
	return bad;
}

static int read_inputs(Graph *g, const char *dir, Tensor **in, Arena *a)
{
	const char **path = arena_array(a, const char *, g->nin + 1);
	int position = 0, bad = 0;
	for (int i = 0; i < g->nin; i++) {
		Value *v = g->in[i];
		if (v->type && v->type->kind != TY_TENSOR) {
			err_at(v->loc, "input %s is %s: only tensors are evaluated", v->name,
				type_text(v->type));
			bad = -1;
			continue;
		}
		in[i] = read_first(a, dir, v->init ? -1 : position++, v->name, &path[i]);
		if (!in[i] && path[i])
			bad = -1;
		else if (!in[i] && !v->init) {
			fail_at(EXIT_ENV, v->loc,
				"input %s is missing: there is neither %s/input_%d.pb nor .npy nor %s/%s.npy",
				v->name, dir, position - 1, dir, v->name);
			bad = -1;
		}
		if (in[i]) {
			take_bits(v, in[i]);
			bind_dims(v->type, in[i]);
		}
	}
	for (int i = 0; i < g->nin && !bad; i++)
		if (in[i])
			bad = check_input(g->in[i], in[i], path[i]);
	return bad;
}

/* .npy has no type for small floats and 4-bit integers: they are written in the next type that holds them. */
static Tensor *for_npy(const Value *v, Tensor *t, Arena *a)
{
	DType to = t->dtype;
	if (t->dtype == DT_BFLOAT16 || (dtype_is_float(t->dtype) && dtype_bits(t->dtype) <= 8))
		to = DT_FLOAT;
	else if (t->dtype == DT_INT4 || t->dtype == DT_INT2)
		to = DT_INT8;
	else if (t->dtype == DT_UINT4 || t->dtype == DT_UINT2)
		to = DT_UINT8;
	if (to == t->dtype)
		return t;
	fprintf(stderr, "note: output %s is %s, written as %s\n", diag_escape(a, v->name, strlen(v->name)),
		dtype_name(t->dtype), dtype_name(to));
	Tensor *w = tensor_new(a, to, t->ndim, t->dim);
	for (int64_t i = 0; i < tensor_elements(t); i++)
		tensor_set(w, i, tensor_get(t, i));
	return w;
}

static int write_outputs(Graph *g, const char *dir, Tensor **out, Arena *a)
{
	if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
		fail_at(EXIT_ENV, (Loc){ 0 }, "%s cannot be made: %s", dir, strerror(errno));
		return -1;
	}
	for (int i = 0; i < g->nout; i++)
		if (npy_write(arena_printf(a, "%s/output_%d.npy", dir, i), for_npy(g->out[i], out[i], a)))
			return -1;
	return 0;
}

int evaluate_files(Model *m, const char *indir, const char *outdir)
{
	Graph *g = m->graph;
	Arena mem = { 0 };
	Tensor **in = arena_array(&mem, Tensor *, g->nin + 1),
	       **out = arena_array(&mem, Tensor *, g->nout + 1);
	int bad = bind_graph(g, true) || graph_sort(g) || read_inputs(g, indir, in, &mem) ||
	          read_params(g, indir, &mem);
	if (!bad && sequence_any(g))
		bad = inline_run(g);
	if (!bad)
		bad = eval_graph(g, in, out, &mem, (EvalOpts){ 0 });
	if (!bad)
		bad = write_outputs(g, outdir, out, &mem);
	arena_free(&mem);
	return bad;
}
