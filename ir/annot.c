/* Annotations. */
#include "ir.h"

#include <string.h>

Annot *annot_find(const Annot *list, const char *name)
{
	for (; list; list = list->next)
		if (!strcmp(list->name, name))
			return (Annot *)list;
	return NULL;
}

Arg *arg_find(const Arg *arg, int n, const char *key)
{
	for (int i = 0; i < n; i++)
		if (arg[i].key && !strcmp(arg[i].key, key))
			return (Arg *)&arg[i];
	return NULL;
}

void annot_add(Annot **list, Annot *a)
{
	while (*list)
		list = &(*list)->next;
	*list = a;
}

int annot_check(const Annot *a, AnnotPlace place)
{
	(void)a;
	(void)place;
	return 0;
}

int annot_resolve(Model *m)
{
	(void)m;
	return 0;
}
