/* Attributes of a node, with the defaults of its row. */
#include "table.h"

#include <string.h>

static const Attr *schema_attr(const Node *n, const char *name, AttrType type)
{
	const Attr *a = node_attr(n, name);
	const Schema *s = n->row ? n->row->schema : NULL;

	if (a && a->type == type)
		return a;
	if (a)
		return NULL;                    /* of another type */
	for (int i = 0; s && i < s->nattr; i++)
		if (!strcmp(s->attr[i].name, name))
			return (s->hasdefault && s->hasdefault[i]) || s->attr[i].type == type ? &s->attr[i] : NULL;
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
