/* Memory by lifetime: objects are allocated one by one and freed all together.
 *
 * Blocks grow with the arena, from 4 KiB to 32 MiB; a large object gets a block of its own.  From 2 MiB on a block
 * is mapped on a boundary of 2 MiB and asks for huge pages: a model of 100,000 nodes is 150 MiB that every pass
 * walks, and with small pages a third of that time went into page faults and the TLB.  Blocks from 64 KiB on are
 * cut from such pages, too: each pass has an arena of its own, which grows through all sizes.  Under the address
 * sanitizer every object has its own block, so that a read past its end or after arena_free is detected.
 *
 * Freed blocks are kept for reuse, of those from 2 MiB on up to 64 MiB: a page that the kernel has to find and
 * clear costs several times as much as clearing one that is mapped. */
#include "base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

enum { SMALL = 4 << 10, CUT = 64 << 10, ALONE = 256 << 10, HUGE_PAGE = 2 << 20, LARGE = 32 << 20, SPARE = 64 << 20 };

struct ArenaBlock {
	struct ArenaBlock *next, *prev;
	size_t used;
	size_t cap : 63, clean : 1;     /* clean: zero pages, as the kernel gave them */
	_Alignas(16) char mem[];
};

Arena arena_process;

/* The block of an object that has one to itself, and its size with its head. */
static struct ArenaBlock *own_block(void *p)
{
	return (struct ArenaBlock *)(void *)((char *)p - offsetof(struct ArenaBlock, mem));
}

static size_t whole(const struct ArenaBlock *b)
{
	return sizeof *b + b->cap;
}

static bool mapped(size_t bytes)
{
	return !OWN_BLOCKS && bytes >= HUGE_PAGE;
}

static bool cut(size_t bytes)
{
	return !OWN_BLOCKS && bytes >= CUT && bytes < HUGE_PAGE;
}

/* Zeroed pages that begin on a boundary of a huge page. */
static void *map_pages(size_t bytes)
{
	size_t room = bytes + HUGE_PAGE;
	char *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	size_t skip = -(uintptr_t)p & (HUGE_PAGE - 1), end = skip + ((bytes + 4095) & ~(size_t)4095);
	if (skip)
		munmap(p, skip);
	if (end < room)
		munmap(p + end, room - end);
	madvise(p + skip, bytes & ~(size_t)(HUGE_PAGE - 1), MADV_HUGEPAGE);
	return p + skip;
}

static int64_t held, allowed;

void arena_bound(int64_t bytes)
{
	allowed = bytes;
}

/* Eight times the input; the mapped file counts as one of the eight. */
void arena_input(int64_t bytes)
{
	if (allowed && !limits.memory)
		allowed += 7 * bytes;
}

void arena_charge(int64_t bytes)
{
	held += bytes;
	if (!allowed || held <= allowed)
		return;
	arena_bound(0);                 /* the message allocates, too */
	fail_at(EXIT_LIMIT, (Loc){ 0 }, "reading this takes more memory than %s (--max-memory)",
		limits.memory ? "is allowed" : "64 MiB and eight times the input");
	diag_finish();
	exit(diag_exit());
}

static struct ArenaBlock *spare;        /* free blocks: mapped ones, and pieces of huge pages */
static size_t spared;                   /* bytes of the mapped ones */

static struct ArenaBlock *unchain(struct ArenaBlock **at)
{
	struct ArenaBlock *b = *at;
	*at = b->next;
	spared -= mapped(whole(b)) ? whole(b) : 0;
	return b;
}

/* Merges adjacent pieces of a huge page. */
static bool joins(const struct ArenaBlock *a, const struct ArenaBlock *b)
{
	return cut(whole(a)) && cut(whole(b)) && (const char *)a + whole(a) == (const char *)b &&
	       (uintptr_t)b % HUGE_PAGE != 0;
}

static void put_spare(struct ArenaBlock *b)
{
	for (struct ArenaBlock **at = &spare; *at;) {
		bool before = joins(*at, b), behind = joins(b, *at);
		if (!before && !behind) {
			at = &(*at)->next;
			continue;
		}
		struct ArenaBlock *x = unchain(at), *first = before ? x : b;
		first->cap += whole(before ? b : x);
		first->clean = false;
		b = first;
	}
	b->next = spare;
	spare = b;
	spared += mapped(whole(b)) ? whole(b) : 0;
}

/* The smallest free block that is large enough; of blocks that cannot be cut, none twice as large. */
static struct ArenaBlock *take_spare(size_t bytes)
{
	struct ArenaBlock **best = NULL;
	for (struct ArenaBlock **b = &spare; *b; b = &(*b)->next) {
		size_t have = whole(*b);
		if (have >= bytes && (cut(bytes) ? have <= HUGE_PAGE : have / 2 <= bytes) &&
			(!best || have < whole(*best)))
			best = b;
	}
	return best ? unchain(best) : NULL;
}

/* The rest of b after these bytes becomes a free block. */
static void shorten(struct ArenaBlock *b, size_t bytes)
{
	struct ArenaBlock *rest = (struct ArenaBlock *)(void *)((char *)b + bytes);
	if (whole(b) - bytes < CUT)
		return;
	*rest = (struct ArenaBlock){ .cap = whole(b) - bytes - sizeof *rest, .clean = b->clean };
	b->cap = bytes - sizeof *b;
	put_spare(rest);
}

static struct ArenaBlock *fresh(size_t bytes)
{
	struct ArenaBlock *b = mapped(bytes) ? map_pages(bytes) : malloc(bytes);
	if (!b) {
		fprintf(stderr, "sbpcc: error: out of memory (%zu bytes asked for)\n", bytes);
		exit(EXIT_ENV);
	}
	*b = (struct ArenaBlock){ .cap = bytes - sizeof *b, .clean = mapped(bytes) };
	return b;
}

/* Where every object has a block, as under the sanitizer, heads are not charged: a limit means the same in all
 * builds. */
static size_t head(void)
{
	return OWN_BLOCKS ? sizeof(struct ArenaBlock) : 0;
}

static struct ArenaBlock *block(size_t cap)
{
	size_t bytes = sizeof(struct ArenaBlock) + cap;
	struct ArenaBlock *b = mapped(bytes) || cut(bytes) ? take_spare(bytes) : NULL;
	arena_charge((int64_t)(bytes - head()));
	if (!b)
		b = fresh(cut(bytes) ? HUGE_PAGE : bytes);
	if (cut(bytes))
		shorten(b, (bytes + 15) & ~(size_t)15);
	arena_charge((int64_t)(whole(b) - bytes));
	b->next = b->prev = NULL;
	b->used = 0;
	return b;
}

static void drop(struct ArenaBlock *b)
{
	arena_charge(-(int64_t)(whole(b) - head()));
	if (cut(whole(b)) || (mapped(whole(b)) && spared + whole(b) <= SPARE)) {
		b->clean = false;
		put_spare(b);
	} else if (mapped(whole(b)))
		munmap(b, (whole(b) + 4095) & ~(size_t)4095);
	else
		free(b);
}

/* Puts b in front, or behind the open block, which then stays open. */
static void chain(Arena *a, struct ArenaBlock *b, bool front)
{
	if (a->head && !front) {
		b->next = a->head->next;
		b->prev = a->head;
		a->head->next = b;
	} else {
		b->next = a->head;
		a->head = b;
	}
	if (b->next)
		b->next->prev = b;
}

/* The size of the next block: twice the last one, but above 2 MiB at most an eighth of the arena. */
static size_t next_cap(const Arena *a)
{
	size_t cap = a->head ? 2 * whole(a->head) : SMALL;

	if (cap > HUGE_PAGE && cap > a->bytes / 8)
		cap = a->bytes / 8 < HUGE_PAGE ? HUGE_PAGE : a->bytes / 8 & ~(size_t)(HUGE_PAGE - 1);
	if (cap > LARGE)
		cap = LARGE;
	return cap - sizeof(struct ArenaBlock);
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
	if (OWN_BLOCKS || !b || b->cap - b->used < need || bytes >= ALONE) {
		size_t cap = next_cap(a);
		bool own = OWN_BLOCKS || bytes >= ALONE || need > cap / 4;

		b = block(own ? need : cap);
		chain(a, b, !own);
	}
	void *p = b->mem + b->used;
	b->used += need;
	return b->clean ? p : memset(p, 0, bytes);
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

/* Room for one more item: the capacity of a list of n is n rounded up to a power of two, at least 4 unless the items
 * are large: nearly all nodes have one attribute or none. */
void *arena_grow(Arena *a, void *list, int n, size_t itembytes)
{
	int least = itembytes < 64 ? 4 : 1;

	if (n != 0 && (n < least || (n & (n - 1)) != 0))
		return list;
	void *more = arena_alloc(a, itembytes * (size_t)(n < least ? least : 2 * n));
	if (n)
		memcpy(more, list, itembytes * (size_t)n);
	return more;
}

/* Frees at once an object that has a block of its own, such as the old half of a list that has doubled.  Nothing else
 * may point to it. */
void arena_release(Arena *a, void *p, size_t bytes)
{
	if (!p || (!OWN_BLOCKS && bytes < ALONE))
		return;                 /* smaller objects may share their block */
	struct ArenaBlock *b = own_block(p);

	if (b->prev)
		b->prev->next = b->next;
	else
		a->head = b->next;
	if (b->next)
		b->next->prev = b->prev;
	a->bytes -= b->used;
	drop(b);
}

void arena_free(Arena *a)
{
	for (struct ArenaBlock *b = a->head, *next; b; b = next) {
		next = b->next;
		drop(b);
	}
	*a = (Arena){ 0 };
}
