/* Memory by lifetime: objects are allocated one by one and freed all together.
 *
 * Blocks grow to 1 MiB; larger objects get a block of their own.  Under the address sanitizer every object has its
 * own block, so that a read past the end or after arena_free is seen. */
#include "ir.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define OWN_BLOCKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OWN_BLOCKS 1
#endif
#endif
#ifndef OWN_BLOCKS
#define OWN_BLOCKS 0
#endif

struct ArenaBlock {
	struct ArenaBlock *next;
	size_t used, cap;
	_Alignas(16) char mem[];
};

Arena process;

static struct ArenaBlock *block(size_t cap)
{
	struct ArenaBlock *b = malloc(sizeof *b + cap);

	if (!b) {
		fprintf(stderr, "sbpcc: error: out of memory (%zu bytes asked for)\n", cap);
		exit(EXIT_ENV);
	}
	b->used = 0;
	b->cap = cap;
	return b;
}

void *arena_alloc(Arena *a, size_t bytes)
{
	struct ArenaBlock *b = a->head;
	size_t need = bytes;

	if (bytes > SIZE_MAX / 2)
		die("arena_alloc of %zu bytes", bytes);
	if (!OWN_BLOCKS)
		need = (bytes + 15) & ~(size_t)15;
	a->bytes += need;
	if (OWN_BLOCKS || !b || b->cap - b->used < need) {
		size_t cap = b && !OWN_BLOCKS ? b->cap * 2 : 4096;

		if (cap > 1 << 20)
			cap = 1 << 20;
		if (OWN_BLOCKS || cap < need)
			cap = need;
		b = block(cap);
		if (a->head && cap == need && a->head->cap - a->head->used > 64 && !OWN_BLOCKS) {
			b->next = a->head->next;      /* a large object: the open block stays open */
			a->head->next = b;
		} else {
			b->next = a->head;
			a->head = b;
		}
	}
	void *p = b->mem + b->used;
	b->used += need;
	return memset(p, 0, bytes);
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	char *s = arena_alloc(a, (size_t)n + 1);
	vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(ap);
	va_end(again);
	return s;
}

/* Room for one more item: the capacity of a list of n is n rounded up to a power of two, at least 4. */
void *arena_grow(Arena *a, void *list, int n, size_t itembytes)
{
	if (n != 0 && (n < 4 || (n & (n - 1)) != 0))
		return list;
	void *more = arena_alloc(a, itembytes * (size_t)(n < 4 ? 4 : 2 * n));
	if (n)
		memcpy(more, list, itembytes * (size_t)n);
	return more;
}

void arena_free(Arena *a)
{
	for (struct ArenaBlock *b = a->head, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	*a = (Arena){ 0 };
}
