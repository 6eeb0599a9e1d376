/* Arguments of annotations. */
#include "annot.h"

#include <string.h>

Arg *arg_find(const Arg *arg, int n, const char *param)
{
	for (int i = 0; i < n; i++)
		if (arg[i].param && !strcmp(arg[i].param, param))
			return (Arg *)&arg[i];
	return NULL;
}

bool arg_same(const Arg *a, const Arg *b)
{
	if (a->kind != b->kind || a->s != b->s || a->i != b->i || a->j != b->j || a->narg != b->narg)
		return false;
	for (int i = 0; i < a->narg; i++)
		if (!arg_same(&a->arg[i], &b->arg[i]))
			return false;
	return true;
}

bool arg_flag(const Arg *arg, int n, const char *param)
{
	const Arg *a = arg_find(arg, n, param);

	return a && !(a->s && !strcmp(a->s, "false"));
}
