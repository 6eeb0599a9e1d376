/* Text that grows. */
#include "target/target.h"

#include <stdlib.h>
#include <string.h>

void text_raw(Text *t, const char *s, size_t n)
{
	if (t->n + n + 1 > t->cap) {
		size_t cap = (t->n + n + 1) * 2;
		char *grown = arena_alloc(&arena_process, cap);
		if (t->n)
			memcpy(grown, t->s, t->n);
		t->s = grown;
		t->cap = cap;
	}
	memcpy(t->s + t->n, s, n);
	t->n += n;
	t->s[t->n] = 0;
}

bool text_ends(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);
	return n > k && !strcmp(s + n - k, end);
}

void text_add(Text *t, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		die("out of memory");
	text_raw(t, s, (size_t)n);
	free(s);
}
