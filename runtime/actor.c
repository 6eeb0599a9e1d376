/* Walks a schedule.  One list per rank, in the order that the compiler proved free of deadlock. */
#include "rt.h"

#include <stdarg.h>
#include <stdio.h>

int rt_error(const Ctx *c, int code, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "rank %d step %lld action %s: %s\n", c->rank, (long long)c->step, c->at ? c->at->id : "start", text);
	return code;
}

int rt_walk(Ctx *c, const RtAction *list, int n)
{
	for (int i = 0; i < n; i++) {
		c->at = &list[i];
		int code = list[i].run(c);
		if (code)
			return code;
	}
	c->at = NULL;
	return 0;
}
