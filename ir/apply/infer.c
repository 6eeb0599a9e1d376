/* Types and shapes of every value, and which values are constant, in one walk in order.
 *
 * For a node, the schema is checked (operands given, attributes known, types agreeing through the variables of
 * .sig), then the row's shape rule runs, then its result is compared with what the user declared.  A node whose
 * operands are all constants is evaluated at once when its results are small: they become constants for the nodes
 * that follow, which is how the shape arithmetic of exporters disappears.  Parameters (value->param) are never
 * constants. */
#include "apply.h"

#include <ctype.h>
#include <string.h>

/* The class of a type variable: "T1" -> 'T'; 0 for a fixed type. */
static char var_class(Name type)
{
	return isupper((unsigned char)type[0]) && (!type[1] || isdigit((unsigned char)type[1])) ? type[0] : 0;
}

static bool in_class(char c, DType t)
{
	switch (c) {
	case 'T': return true;
	case 'N': return dtype_is_float(t) || dtype_is_int(t);
	case 'F': return dtype_is_float(t);
	case 'I': return t == DT_INT32 || t == DT_INT64;
	case 'B': return t == DT_BOOL;
	default: die("type class %c", c);
	}
}

static const char *class_text(char c)
{
	return c == 'N'   ? "a number"
	       : c == 'F' ? "a floating type"
	       : c == 'I' ? "int32 or int64"
	       : c == 'B' ? "bool"
	                  : "a tensor";
}

typedef struct Bind { Name var; DType type; int operand; } Bind;

static int check_operand(Node *n, int i, const Operand *o, Bind *bind, int *nbind)
{
	const Type *t = operand_type(n, i);
	char c = var_class(o->type);

	if (!t || o->type[0] == '?')
		return 0;
	if (t->kind != TY_TENSOR) {
		err_at(operand_loc(n, i), "%s takes tensors, but %s is %s", n->op, n->in[i]->name, type_text(t));
		return -1;
	}
	if (t->elem == DT_STRING || t->elem == DT_COMPLEX64 || t->elem == DT_COMPLEX128) {
		err_at(operand_loc(n, i),
			"%s of %s is not supported (%s): tensors hold numbers and bools; turn it into them before the "
			"model",
			n->op, dtype_name(t->elem), n->in[i]->name);
		return -1;
	}
	if (!c) {
		if (strcmp(dtype_name(t->elem), o->type)) {
			err_at(operand_loc(n, i), "%s: operand %s must be %s, but %s is %s", n->op, o->name, o->type,
				n->in[i]->name, type_text(t));
			return -1;
		}
		return 0;
	}
	if (!in_class(c, t->elem)) {
		err_at(operand_loc(n, i), "%s: operand %s must be %s, but %s is %s", n->op, o->name, class_text(c),
			n->in[i]->name, type_text(t));
		return -1;
	}
	for (int k = 0; k < *nbind; k++)
		if (bind[k].var == o->type) {
			if (bind[k].type == t->elem)
				return 0;
			int j = bind[k].operand;
			err_at(operand_loc(n, i), "%s cannot mix %s and %s: %s is %s, %s is %s", n->op,
				dtype_name(bind[k].type), dtype_name(t->elem), n->in[j]->name,
				type_text(n->in[j]->type), n->in[i]->name, type_text(t));
			return -1;
		}
	if (*nbind < 16)
		bind[(*nbind)++] = (Bind){ o->type, t->elem, i };
	return 0;
}

static int check_attrs(Node *n, const Schema *s)
{
	for (int i = 0; i < n->nattr; i++) {
		const Attr *a = &n->attr[i];
		int k = 0;

		while (k < s->nattr && s->attr[k].name != a->name)
			k++;
		if (k == s->nattr && n->shard)
			continue;
		if (k == s->nattr) {
			const char *names[64];
			int nn = 0;

			for (; nn < s->nattr && nn < 63; nn++)
				names[nn] = s->attr[nn].name;
			names[nn] = NULL;
			const char *near = diag_suggest(a->name, names);
			err_at(a->loc.file ? a->loc : n->loc, "%s has no attribute %s%s%s%s", n->op, a->name,
				near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
			return -1;
		}
		if (s->attr[k].type && a->type != s->attr[k].type) {
			bool empty = a->type == AT_UNDEFINED ||
			             ((a->type == AT_INTS || a->type == AT_FLOATS || a->type == AT_STRINGS) &&
					     a->n == 0);

			if (empty)
				continue;
			err_at(a->loc.file ? a->loc : n->loc, "%s: attribute %s must be %s, not %s", n->op, a->name,
				type_attr_name(s->attr[k].type), type_attr_name(a->type));
			return -1;
		}
	}
	for (int k = 0; k < s->nattr; k++)
		if (s->required && s->required[k] && !node_attr(n, s->attr[k].name)) {
			err_at(n->loc, "%s needs the attribute %s", n->op, s->attr[k].name);
			return -1;
		}
	return 0;
}

static int check_schema(Node *n)
{
	const Schema *s = n->row->schema;
	Bind bind[16];
	int nbind = 0, least = 0;
	bool variadic = s->nin && s->in[s->nin - 1].variadic;

	for (int i = 0; i < s->nin; i++)
		if (!s->in[i].optional)
			least = i + 1;
	if (n->nin < least || (n->nin > s->nin && !variadic)) {
		/* trailing operands that are left out do not count */
		int given = n->nin;

		while (given > s->nin && !n->in[given - 1])
			given--;
		if (given < least || (given > s->nin && !variadic)) {
			err_at(n->loc, "%s takes %s%d operand%s, not %d", n->op,
				variadic || least < s->nin ? given < least ? "at least " : "at most " : "",
				given < least ? least : s->nin, (given < least ? least : s->nin) == 1 ? "" : "s",
				given);
			return -1;
		}
	}
	bool outvariadic = s->nout && s->out[s->nout - 1].variadic;
	if (n->nout > s->nout && !outvariadic) {
		err_at(n->loc, "%s gives at most %d result%s, not %d", n->op, s->nout, s->nout == 1 ? "" : "s",
			n->nout);
		return -1;
	}
	for (int i = 0; i < n->nin; i++) {
		const Operand *o = &s->in[i < s->nin ? i : s->nin - 1];

		if (!n->in[i]) {
			if (o->optional)
				continue;
			err_at(n->loc, "%s needs its operand %s", n->op, o->name);
			return -1;
		}
		if (check_operand(n, i, o, bind, &nbind) < 0)
			return -1;
	}
	return check_attrs(n, s);
}

/* A declared type of a result must agree with the inferred one; a declared symbol replaces an unknown dimension. */
static int merge_declared(Node *n, int i, const Type *declared)
{
	Value *v = n->out[i];
	Type *t = v->type;

	if (!t) {
		v->type = (Type *)declared;
		return 0;
	}
	if (declared->kind != TY_TENSOR || t->kind != TY_TENSOR)
		return 0;
	bool clash = declared->elem && t->elem && declared->elem != t->elem;
	clash |= declared->ndim >= 0 && t->ndim >= 0 && declared->ndim != t->ndim;
	for (int k = 0; !clash && declared->ndim >= 0 && k < t->ndim; k++)
		clash |= dim_differ(dim_bound(declared->dim[k]), t->dim[k]);
	if (clash) {
		err_at(v->loc.file ? v->loc : n->loc, "%s is declared %s, but %s gives %s", v->name,
			type_text(declared), n->op, type_text(t));
		return -1;
	}
	if (t->ndim < 0 && declared->ndim >= 0)
		v->type = type_tensor(n->graph->arena, t->elem ? t->elem : declared->elem, declared->ndim,
			declared->dim);
	else
		for (int k = 0; declared->ndim >= 0 && k < t->ndim; k++)
			if (t->dim[k] == DIM_UNKNOWN)
				t->dim[k] = dim_bound(declared->dim[k]);
	return 0;
}

/* Contents that inference knows without a symbol are a constant. */
static bool known_contents(Node *n)
{
	Value *v = n->nout == 1 ? n->out[0] : NULL;

	if (!v || v->data || v->nelem < 0 || !v->type || v->type->ndim < 0 || v->type->ndim > 1 ||
		!dtype_is_int(v->type->elem))
		return v && v->data;
	int64_t count = type_elements(v->type);
	for (int i = 0; i < v->nelem; i++)
		if (!dim_known(v->elem[i]))
			return false;
	if (count != v->nelem)
		return false;
	Tensor *t = tensor_new(n->graph->arena, v->type->elem, v->type->ndim, &count);
	for (int i = 0; i < v->nelem; i++)
		tensor_set_int(t, i, v->elem[i]);
	v->data = t;
	return true;
}

/* The second operand of CastLike gives its type only: it need not be constant. */
static Tensor *type_only(const Node *n, int i)
{
	const Type *t = i == 1 && !*n->domain && !strcmp(n->op, "CastLike") ? operand_type(n, 1) : NULL;

	return t && t->elem ? tensor_new(n->graph->arena, t->elem, 0, NULL) : NULL;
}

/* The contents of a tensor without elements are known. */
static void know_empty(Node *n)
{
	for (int i = 0; i < n->nout && !n->row->moves; i++) {
		Value *v = n->out[i];
		const Type *t = v ? v->type : NULL;

		if (t && !v->data && t->kind == TY_TENSOR && t->elem && t->elem != DT_STRING && type_elements(t) == 0)
			v->data = tensor_new(n->graph->arena, t->elem, t->ndim, t->dim);
	}
}

/* Small results of a node on constants are constants. */
static int propagate(Node *n)
{
	size_t inbytes = 0;
	Tensor *in[64], *out[64] = { 0 };

	if (n->row->random || n->row->moves || n->nin > 64 || n->nout > 64 || n->nout == 0)
		return 0;
	if (known_contents(n))
		return 0;
	for (int i = 0; i < n->nin; i++) {
		in[i] = n->in[i] ? (Tensor *)operand_const(n, i) : NULL;
		if (n->in[i] && !in[i])
			in[i] = type_only(n, i);
		if (n->in[i] && !in[i])
			return 0;
		inbytes += in[i] ? in[i]->bytes : 0;
	}
	size_t most = (size_t)limits.const_bytes;
	if (n->nin && inbytes > most)
		return 0;
	for (int i = 0; i < n->nout; i++) {
		if (!n->out[i])
			continue;
		int64_t e = type_elements(n->out[i]->type);

		if (e < 0 || tensor_bytes(n->out[i]->type->elem, e) > most || !n->out[i]->type->elem)
			return 0;
	}
	if (eval_node(n, in, out, n->graph->arena, false) < 0)
		return -1;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			n->out[i]->data = out[i];
	return 0;
}

int infer_node(Node *n)
{
	const Type *declared[64] = { 0 };

	if (!n->row)
		return 0;
	if (check_schema(n) < 0)
		return -1;
	if (!n->row->shape && n->row->expand)
		return 0;               /* its expansion has shapes */
	if (!n->row->shape)
		die("no shape rule for %s", n->op);
	for (int i = 0; i < n->nout && i < 64; i++)
		if (n->out[i]) {
			declared[i] = n->out[i]->type;
			n->out[i]->type = NULL;
		}
	if (n->row->shape(n) < 0)
		return -1;
	for (int i = 0; i < n->nout; i++) {
		const Type *t = n->out[i] ? n->out[i]->type : NULL;

		for (int k = 0; t && k < t->ndim; k++)
			if (t->dim[k] == DIM_OVERFLOW || type_elements(t) == -2) {
				fail_at(EXIT_INPUT, n->loc, "the shape of %s does not fit in 64 bits: %s",
					n->out[i]->name, type_text(t));
				return -1;
			}
		if (i < 64 && declared[i] && merge_declared(n, i, declared[i]) < 0)
			return -1;
	}
	contents_set(n);
	return 0;
}

/* Types of inputs, with bound symbols replaced. */
static void bind_type(Graph *g, Value *v)
{
	if (!v->type || v->type->ndim <= 0)
		return;
	bool any = false;
	for (int i = 0; i < v->type->ndim; i++)
		any |= dim_bound(v->type->dim[i]) != v->type->dim[i];
	if (!any)
		return;
	Type *t = type_tensor(g->arena, v->type->elem, v->type->ndim, v->type->dim);
	t->kind = v->type->kind;
	t->denote = v->type->denote;
	for (int i = 0; i < t->ndim; i++)
		t->dim[i] = dim_bound(t->dim[i]);
	v->type = t;
}

int infer_values(Graph *g)
{
	for (int i = 0; i < g->nvalue; i++) {
		graph_ahead_value(g->value, i, g->nvalue);
		bind_type(g, g->value[i]);
	}
	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];
		Dim dim[64];

		if (!v->data || v->data->ndim > 64)
			continue;
		for (int k = 0; k < v->data->ndim; k++)
			dim[k] = v->data->dim[k];
		if (!v->type)
			v->type = type_tensor(g->arena, v->data->dtype, v->data->ndim, dim);
	}
	return 0;
}

int infer_step(Node *n)
{
	if (infer_node(n) < 0)
		return -1;
	if (n->row)
		know_empty(n);
	return n->row ? propagate(n) : 0;
}

int infer_graph(Graph *g)
{
	int bad = 0;

	infer_values(g);
	for (int i = 0; i < g->nnode && diag_errors() < limits.errors; i++)
		bad |= infer_step(g->node[i]);
	return bad ? -1 : 0;
}
