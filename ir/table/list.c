/* --list-ops: the operator table for people.  One line per operator: name, opset range, kind, gradient, signature. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	const Op *x = *(const Op *const *)a, *y = *(const Op *const *)b;
	int c = strcmp(x->domain ? x->domain : "", y->domain ? y->domain : "");
	if (!c)
		c = strcmp(x->name, y->name);
	return c ? c : x->since - y->since;
}

static const char *kind(const Op *o)
{
	if (o->composite)
		return "composite";
	return o->expr || o->eval ? "core" : "defined";
}

static const char *gradient(const Op *o)
{
	if (o->nograd)
		return "none";
	if (o->grad || o->grad_fn)
		return "own";
	return o->def || o->expand ? "by definition" : "missing";
}

int list_ops(FILE *f)
{
	int n = op_count();
	const Op **list = arena_array(&arena_process, const Op *, n + 1);
	for (int i = 0; i < n; i++)
		list[i] = op_at(i);
	qsort(list, (size_t)n, sizeof *list, by_name);
	fprintf(f, "%-36s %-8s %-10s %-14s %s\n", "operator", "opsets", "kind", "gradient",
		"axes that travel together; operands through which P passes");
	for (int i = 0; i < n; i++) {
		const Op *o = list[i];
		const char *name = o->domain && *o->domain ? arena_printf(&arena_process, "%s.%s", o->domain, o->name)
		                                           : o->name;
		const char *until = o->until ? arena_printf(&arena_process, "%d-%d", o->since, o->until)
		                             : arena_printf(&arena_process, "%d-", o->since);
		const char *axes = o->factors                           ? o->factors
		                   : o->factor_fn                       ? "by attributes"
		                   : o->expr || o->eval || o->composite ? "whole"
		                                                        : "by definition";
		fprintf(f, "%-36s %-8s %-10s %-14s %s%s%s\n", name, until, kind(o), gradient(o), axes,
			o->linear ? "; " : "", o->linear ? o->linear : "");
	}
	return fflush(f) ? -1 : 0;
}
