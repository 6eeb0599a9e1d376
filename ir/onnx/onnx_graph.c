/* The graphs and functions of an .onnx file, with their nodes and values.
 *
 * A graph is read in the order of the text syntax, whatever the order in the file: inputs, outputs, initialisers, value
 * infos, nodes.  So names are found as the text parser finds them, and a value that a node of an inner graph captures
 * is known before that node is read. */
#include "onnx.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Nodes. */

static void node_names(OnnxReader *r, Node *n, const WireField *f)
{
	Name name = wire_name(&r->w, f);
	Loc loc = onnx_at(r, f);

	if (f->num == 1) {
		int k = n->nin;

		arena_push(r->w.arena, n->inloc, k, loc);
		node_in(n, *name ? graph_value(n->graph, name, loc) : NULL);
	} else {
		Value *v = *name ? graph_value_here(n->graph, name, loc) : NULL;

		if (v && !v->def && !v->input && !v->init)
			v->loc = loc;
		node_out(n, v);
	}
}

/* Name and operator first, so that messages about the rest can name them. */
static void node(OnnxReader *r, const WireField *field, Graph *g)
{
	Node *n = graph_node(g, NULL, name_of(""), onnx_at(r, field));
	WireMsg m = wire_msg(&r->w, &message_node, field, &n->unknown);
	int src = r->src->nnode;
	WireField f;

	if (++r->nodes > limits.nodes && !r->w.bad) {
		fail_at(EXIT_LIMIT, n->loc, "more than %lld nodes (--max-nodes)", (long long)limits.nodes);
		r->w.bad = true;
	}
	if (!wire_enter(&r->w, field->p))
		return;
	arena_push(r->src->arena, r->src->node, r->src->nnode,
		((struct SrcNode){ .off = n->loc.off, .end = n->loc.off + field->n, .index = g->nnode - 1,
			.op = n->op, .name = n->name }));
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 1:
		case 2: name_ahead((const char *)f.p, f.n); break;
		case 3: n->name = wire_name(&r->w, &f); break;
		case 4: n->op = wire_name(&r->w, &f); break;
		case 6: n->doc = wire_text(&r->w, &f); break;
		case 7: n->domain = wire_name(&r->w, &f); break;
		case 8: n->overload = f.n ? wire_name(&r->w, &f) : NULL; break;
		case 9: onnx_entry(r, &f, &n->meta, &n->nmeta); break;
		}
	}
	r->src->node[src].op = n->op;
	r->src->node[src].name = n->name;
	onnx_annots(r, n->meta, &n->nmeta, ON_NODE, &n->annot);
	n->from = onnx_take(n->meta, &n->nmeta, KEY_FROM);
	n->from = n->from && *n->from ? n->from : NULL;
	WireMsg again = wire_again(&m);
	while (wire_next(&again, &f)) {
		if (f.num <= 2)
			node_names(r, n, &f);
		else if (f.num == 5)
			arena_push(r->w.arena, n->attr, n->nattr, onnx_attribute(r, &f, g));
	}
	onnx_shards(r, &n->unknown, 10, n);
	onnx_unique_attrs(r, n->attr, n->nattr);
	if (!*n->op && !r->w.bad) {
		err_at(n->loc, "a node has no operator");
		r->w.bad = true;
	}
	r->w.depth--;
}

/* Graphs. */

typedef struct Fields { WireField *f; int n; } Fields;

static void into(OnnxReader *r, Value *v, Pair *meta, int *nmeta)
{
	Name name = onnx_take(meta, nmeta, KEY_INTO);

	if (name && v->into && v->into->name != name)
		err_at(v->loc, "%s is given the memory of two values, %s and %s", v->name, v->into->name, name);
	else if (name)
		v->into = graph_value(v->graph, name, (Loc){ .file = r->w.file, .len = 1 });
}

/* A type that neither the text syntax nor a Type can express is kept like an unknown field, before those with larger
 * numbers.  A value may be given twice: of such types the last counts, and one that can be expressed counts more. */
static void keep_type(OnnxReader *r, Value *v, const WireField *ty)
{
	enum { TYPE = 2 };
	Blobs *all = &v->unknown, old = *all;

	*all = (Blobs){ 0 };
	for (int i = 0; i < old.n; i++)
		if (old.blob[i].field != TYPE)
			arena_push(r->w.arena, all->blob, all->n, old.blob[i]);
	if (!ty || v->type)
		return;
	Blob kept = { ty->at, (size_t)(ty->p + ty->n - ty->at), TYPE };
	int k = all->n;

	arena_push(r->w.arena, all->blob, all->n, kept);
	for (; k > 0 && all->blob[k - 1].field > TYPE; k--)
		all->blob[k] = all->blob[k - 1];
	all->blob[k] = kept;
}

/* A value of the graph from its ValueInfoProto.  *position: of a parameter among the initialisers, if it is given. */
static Value *value(OnnxReader *r, const WireField *field, Graph *g, int *position)
{
	Blobs unknown = { 0 };
	WireMsg m = wire_msg(&r->w, &message_value, field, &unknown);
	WireField f, ty = { 0 };
	Name name = NULL, doc = NULL;
	Pair *meta = NULL;
	int nmeta = 0;

	*position = INT_MAX;
	if (!wire_enter(&r->w, field->p))
		return NULL;
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 1: name = wire_name(&r->w, &f); break;
		case 2: ty = f; break;
		case 3: doc = wire_text(&r->w, &f); break;
		case 4: onnx_entry(r, &f, &meta, &nmeta); break;
		}
	}
	if (!r->w.bad && (!name || !*name)) {
		err_at(onnx_at(r, field), "a value has no name");
		r->w.bad = true;
	}
	if (r->w.bad)
		return NULL;
	Value *v = graph_value_here(g, name, onnx_at(r, field));
	bool hollow = false;
	Type *t = ty.p ? onnx_type(r, &ty, &hollow) : NULL;
	if (t && v->data) {
		onnx_type_merge(r, v->type, t);         /* the type is that of the data */
		v->declared = true;
	} else if (t) {
		if (v->type)
			onnx_type_merge(r, t, v->type);
		v->type = t;
		v->declared = true;
	}
	Name pos = onnx_take(meta, &nmeta, KEY_INIT);
	if (pos)
		*position = atoi(pos);
	into(r, v, meta, &nmeta);
	onnx_annots(r, meta, &nmeta, ON_VALUE, &v->annot);
	if (doc)
		v->doc = doc;
	for (int i = 0; i < nmeta; i++)
		arena_push(r->w.arena, v->meta, v->nmeta, meta[i]);
	for (int i = 0; i < unknown.n; i++)
		arena_push(r->w.arena, v->unknown.blob, v->unknown.n, unknown.blob[i]);
	if (t || hollow)
		keep_type(r, v, hollow ? &ty : NULL);
	r->w.depth--;
	return v;
}

static void twice(Loc loc, const char *what, const Value *v, Loc first)
{
	err_at(loc, "%s %s stands twice", what, v->name);
	note_at(first, "%s stands here first", v->name);
}

static Type *tensor_type(OnnxReader *r, const Tensor *t)
{
	Dim dim[NDIM_MAX];

	for (int i = 0; i < t->ndim; i++)
		dim[i] = t->dim[i];
	return type_tensor(r->w.arena, t->dtype, t->ndim, dim);
}

static void initialiser(OnnxReader *r, const WireField *f, Graph *g)
{
	Tensor *t = f->num == 15 ? onnx_sparse(r, f) : onnx_tensor(r, f);

	if (r->w.bad)
		return;
	if (!t->name || !*t->name) {
		err_at(t->loc, "an initialiser has no name");
		r->w.bad = true;
		return;
	}
	Value *v = graph_value_here(g, t->name, t->loc);
	Type *own = tensor_type(r, t);
	if (v->init) {
		twice(t->loc, "initialiser", v, v->data ? v->data->loc : v->loc);
		r->w.bad = true;
		return;
	}
	bool differ = v->type && (v->type->kind != TY_TENSOR || v->type->elem != own->elem ||
					 (v->type->ndim >= 0 && v->type->ndim != own->ndim));
	for (int i = 0; v->type && !differ && i < v->type->ndim; i++)
		differ = dim_differ(v->type->dim[i], own->dim[i]);
	if (differ) {
		err_at(t->loc, "%s is declared as %s but its data is %s", v->name, type_text(v->type), type_text(own));
		note_at(v->loc, "%s is declared here", v->name);
		r->w.bad = true;
		return;
	}
	if (!v->input) {
		into(r, v, t->meta, &t->nmeta);
		onnx_annots(r, t->meta, &t->nmeta, ON_VALUE, &v->annot);
		v->doc = t->doc;
		v->meta = t->meta;
		v->nmeta = t->nmeta;
		t->doc = NULL;
		t->meta = NULL;
		t->nmeta = 0;
	}
	if (v->type)
		onnx_type_merge(r, own, v->type);
	v->type = own;
	v->data = t;
	v->init = true;
	v->param = annot_find(v->annot, "init") != NULL;
	arena_push(r->w.arena, g->init, g->ninit, v);
}

/* Inputs that are parameters with an @init and no data go back to their positions among the initialisers. */
static void parameters(OnnxReader *r, Graph *g, Value **param, const int *position, int n)
{
	Value **old = g->init;
	int nold = g->ninit, k = 0;

	if (!n)
		return;
	g->init = NULL;
	g->ninit = 0;
	for (int i = 0; i < n; i++) {
		while (k < nold && g->ninit < position[i])
			arena_push(r->w.arena, g->init, g->ninit, old[k++]);
		arena_push(r->w.arena, g->init, g->ninit, param[i]);
	}
	while (k < nold)
		arena_push(r->w.arena, g->init, g->ninit, old[k++]);
}

static bool is_tensor(OnnxReader *r, const Value *param, Loc loc)
{
	if (param->type && param->type->kind == TY_TENSOR && param->type->elem != DT_UNDEFINED)
		return true;
	err_at(loc, "%s is a parameter by @init, but has no tensor type", param->name);
	r->w.bad = true;
	return false;
}

static void graph_values(OnnxReader *r, Graph *g, const Fields *in, const Fields *out, const Fields *init,
	const Fields *info)
{
	Value **param = NULL;
	int *position = NULL, nparam = 0, pos;
	Value *v;

	for (int i = 0; i < in->n && !r->w.bad; i++) {
		if (!(v = value(r, &in->f[i], g, &pos)))
			return;
		if (v->input || v->init) {
			twice(onnx_at(r, &in->f[i]), "input", v, v->loc);
			r->w.bad = true;
			return;
		}
		if (annot_find(v->annot, "init")) {
			int k = nparam;

			if (!is_tensor(r, v, onnx_at(r, &in->f[i])))
				return;
			v->init = v->param = true;
			arena_push(r->w.arena, position, k, pos);
			arena_push(r->w.arena, param, nparam, v);
			continue;
		}
		v->input = true;
		arena_push(r->w.arena, g->in, g->nin, v);
	}
	for (int i = 0; i < out->n && !r->w.bad; i++) {
		if (!(v = value(r, &out->f[i], g, &pos)))
			return;
		v->output = true;
		arena_push(r->w.arena, g->out, g->nout, v);
	}
	for (int i = 0; i < init->n && !r->w.bad; i++)
		initialiser(r, &init->f[i], g);
	for (int i = 0; i < info->n && !r->w.bad; i++)
		value(r, &info->f[i], g, &pos);
	for (int i = 0; i < nparam && !r->w.bad; i++)
		/* again: an output or a value_info may have changed its type */
		is_tensor(r, param[i], param[i]->loc);
	parameters(r, g, param, position, nparam);
}

static void graph_nodes(OnnxReader *r, const WireMsg *msg, uint32_t num, Graph *g)
{
	WireMsg m = wire_again(msg);
	WireField f;

	while (wire_next(&m, &f))
		if (f.num == num)
			node(r, &f, g);
}

Graph *onnx_graph(OnnxReader *r, const WireField *field, Graph *outer)
{
	Graph *g = graph_new(r->m, outer, name_of(""));
	WireMsg m = wire_msg(&r->w, &message_graph, field, &g->unknown);
	Fields in = { 0 }, out = { 0 }, init = { 0 }, info = { 0 };
	Arena tmp = { 0 };
	WireField f;

	g->loc = onnx_at(r, field);
	if (!wire_enter(&r->w, field->p))
		return g;
	while (wire_next(&m, &f)) {
		Fields *list = f.num == 11                 ? &in
		               : f.num == 12               ? &out
		               : f.num == 13               ? &info
		               : f.num == 5 || f.num == 15 ? &init
		                                           : NULL;

		if (list)
			arena_push(&tmp, list->f, list->n, f);
		else if (f.num == 2)
			g->name = wire_name(&r->w, &f);
		else if (f.num == 10)
			g->doc = wire_text(&r->w, &f);
		else if (f.num == 16)
			onnx_entry(r, &f, &g->meta, &g->nmeta);
	}
	onnx_annots(r, g->meta, &g->nmeta, ON_GRAPH, &g->annot);
	graph_values(r, g, &in, &out, &init, &info);
	graph_nodes(r, &m, 1, g);
	r->w.depth--;
	arena_free(&tmp);
	return g;
}

/* Functions. */

static void function_names(OnnxReader *r, Function *fn, const WireField *f)
{
	Graph *g = fn->body;
	Name name = wire_name(&r->w, f);
	Loc loc = onnx_at(r, f);

	if (f->num == 6) {
		arena_push(r->w.arena, fn->attr, fn->nattr, ((Attr){ .name = name, .absent = true, .loc = loc }));
		return;
	}
	Value *v = graph_value_here(g, name, loc);
	if (f->num == 4 && v->input && !r->w.bad) {
		twice(loc, "input", v, v->loc);
		r->w.bad = true;
	}
	if (f->num == 4) {
		v->input = true;
		arena_push(r->w.arena, g->in, g->nin, v);
	} else {
		v->output = true;
		arena_push(r->w.arena, g->out, g->nout, v);
	}
}

/* Properties that ONNX has for a graph but not for the body of a function. */
static void body_metadata(OnnxReader *r, Function *fn)
{
	size_t n = strlen(KEY_BODY);
	int keep = 0;

	onnx_annots(r, fn->meta, &fn->nmeta, ON_GRAPH, &fn->body->annot);
	onnx_annots(r, fn->meta, &fn->nmeta, ON_FUNCTION, &fn->annot);
	const Annot *op = annot_find(fn->annot, "op");
	const Arg *since = op ? arg_find(op->arg, op->narg, "since") : NULL,
		  *until = op ? arg_find(op->arg, op->narg, "until") : NULL;
	fn->since = since ? (int)since->i : 1;
	fn->until = until ? (int)until->i : 0;
	fn->body->doc = onnx_take(fn->meta, &fn->nmeta, KEY_DOC);
	for (int i = 0; i < fn->nmeta; i++) {
		Pair p = fn->meta[i];

		if (p.plain || strncmp(p.key, KEY_BODY, n)) {
			fn->meta[keep++] = p;
			continue;
		}
		p.key = name_of(p.key + n);
		arena_push(r->w.arena, fn->body->meta, fn->body->nmeta, p);
	}
	fn->nmeta = keep;
}

/* "2 0:7": attribute 2 of those read comes first, then attribute 0, whose type is 7. */
static void attr_order(OnnxReader *r, Function *fn, const char *text)
{
	Attr *old = fn->attr;
	int n = fn->nattr;

	bool *used = arena_array(r->w.arena, bool, n + 1);
	fn->attr = arena_array(r->w.arena, Attr, n + 1);
	fn->nattr = 0;
	while (*text && fn->nattr < n) {
		char *end;
		long i = strtol(text, &end, 10), type = *end == ':' ? strtol(end + 1, &end, 10) : 0;

		if (end == text || i < 0 || i >= n || used[i] || type < 0 || type > AT_TYPES ||
			(type && !old[i].absent))
			break;
		used[i] = true;
		Attr a = old[i];
		if (type)
			a.type = (AttrType)type;
		fn->attr[fn->nattr++] = a;
		text = end + strspn(end, " ");
	}
	if (fn->nattr < n) {
		fn->attr = old;
		fn->nattr = n;
	}
}

/* An attribute that refers to one of the function has its type, unless it states another. */
static void settle_refs(const Function *fn, Graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		for (int j = 0; j < g->node[i]->nattr; j++) {
			Attr *a = &g->node[i]->attr[j];

			for (int k = 0; a->ref && a->type == AT_UNDEFINED && k < fn->nattr; k++)
				if (fn->attr[k].name == a->ref)
					a->type = fn->attr[k].type;
			if (!a->ref && a->type == AT_GRAPH && a->u.g)
				settle_refs(fn, a->u.g);
			for (int k = 0; !a->ref && a->type == AT_GRAPHS && k < a->n; k++)
				settle_refs(fn, a->u.gs[k]);
		}
}

void onnx_function(OnnxReader *r, const WireField *field)
{
	Function *fn = arena_new(r->w.arena, Function);
	WireMsg m = wire_msg(&r->w, &message_function, field, &fn->unknown), again;
	WireField f;
	int pos;

	if (!wire_enter(&r->w, field->p))
		return;
	fn->loc = onnx_at(r, field);
	fn->domain = fn->name = fn->overload = name_of("");
	fn->since = 1;
	fn->body = graph_new(r->m, NULL, fn->name);
	fn->body->loc = fn->loc;
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 1:  fn->name = wire_name(&r->w, &f); break;
		case 8:  fn->doc = wire_text(&r->w, &f); break;
		case 9:  onnx_opset(r, &f, &fn->opset, &fn->nopset); break;
		case 10: fn->domain = wire_name(&r->w, &f); break;
		case 13: fn->overload = wire_name(&r->w, &f); break;
		case 14: onnx_entry(r, &f, &fn->meta, &fn->nmeta); break;
		}
	}
	fn->body->name = fn->name;
	Name header = onnx_take(fn->meta, &fn->nmeta, KEY_HEADER), attrs = onnx_take(fn->meta, &fn->nmeta, KEY_ATTRS);
	body_metadata(r, fn);
	static const uint8_t order[] = { 4, 5, 6, 11, 12 };
	for (size_t i = 0; i < sizeof order; i++)
		for (again = wire_again(&m); wire_next(&again, &f);) {
			if (f.num != order[i])
				continue;
			if (f.num == 11)
				arena_push(r->w.arena, fn->attr, fn->nattr, onnx_attribute(r, &f, fn->body));
			else if (f.num == 12)
				value(r, &f, fn->body, &pos);
			else
				function_names(r, fn, &f);
		}
	onnx_unique_attrs(r, fn->attr, fn->nattr);
	if (attrs && !r->w.bad)
		attr_order(r, fn, attrs);
	graph_nodes(r, &m, 7, fn->body);
	if (!r->w.bad)
		settle_refs(fn, fn->body);
	if (header && !r->w.bad)
		fn->nopset = 0;
	arena_push(r->w.arena, r->m->function, r->m->nfunction, fn);
	r->w.depth--;
}
