/* Models: made, copied, freed as one arena each. */
#include "graph.h"

Model *model_new(void)
{
	Arena own = { 0 };
	Model *m = arena_new(&own, Model);      /* the first object of its own arena */

	m->arena = own;
	return m;
}

void model_free(Model *m)
{
	if (!m)
		return;
	for (int i = 0; i < m->nothers; i++)
		model_free(m->others[i]);
	model_free(m->whole);
	Arena own = m->arena, scratch = m->scratch;

	arena_free(&scratch);
	arena_free(&own);
}

Model *model_copy(const Model *m)
{
	Model *c = model_new();
	c->file = m->file;
	c->ir_version = m->ir_version;
	c->has_ir_version = m->has_ir_version;
	c->from_onnx = m->from_onnx;
	c->opset = m->opset;
	c->nopset = m->nopset;
	c->graph = graph_copy(c, m->graph);
	for (int i = 0; i < c->graph->nvalue; i++)
		c->graph->value[i]->annot = annot_copy(&c->arena, c->graph->value[i]->annot);
	for (int i = 0; i < c->graph->nnode; i++)
		c->graph->node[i]->annot = annot_copy(&c->arena, c->graph->node[i]->annot);
	return c;
}

Function *model_function(const Model *m, const Node *n)
{
	for (int i = 0; m && i < m->nfunction; i++) {
		Function *f = m->function[i];

		if (f->name == n->op && f->domain == n->domain &&
			(f->overload ? f->overload : name_of("")) == (n->overload ? n->overload : name_of("")))
			return f;
	}
	return NULL;
}
