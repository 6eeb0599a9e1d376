/* The memory of a rank on the CPU: a private slab, and its window, which peers read.
 *
 * The slab is aligned to and uses huge pages.  All of it is touched before step 0, so that lack of memory is reported
 * at the start and no step waits for page faults.  The kernel clears each page, so the threads share this work. */
#include "run.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { HUGE = 2 << 20 };

/* Maps more than needed, and unmaps what lies before a multiple of HUGE and after the end. */
static unsigned char *map_aligned(size_t bytes)
{
	unsigned char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	size_t before = (HUGE - (uintptr_t)p % HUGE) % HUGE;
	if (before)
		munmap(p, before);
	munmap(p + before + bytes, HUGE - before);
	return p + before;
}

static size_t slab_bytes(const Ctx *c)
{
	return rt_round_up(rt_slab_bytes(c), RT_PAGE);
}

/* The table of packed weights: nothing is packed yet. */
static int open_packed(Ctx *c)
{
	int most = 0;
	for (int i = 0; i < RT_PROGRAMS; i++)
		most = c->program->io[i].npacked > most ? c->program->io[i].npacked : most;
	for (int i = 0; i < c->program->nkept; i++)
		if (!c->program->kept[i].t.window && c->program->kept[i].t.offset > c->last_kept)
			c->last_kept = c->program->kept[i].t.offset;
	c->changed = 1;
	c->packed = most ? calloc((size_t)most, sizeof *c->packed) : NULL;
	return most && !c->packed ? rt_error(c, RT_MEMORY, "there is no memory for a table of %d weights", most) : 0;
}

int rt_device_open(Ctx *c, unsigned char *window)
{
	size_t bytes = slab_bytes(c);
	c->window = window;
	c->slab = NULL;
	if (open_packed(c))
		return RT_MEMORY;
	if (!bytes)
		return 0;
	c->slab = map_aligned(bytes);
	if (!c->slab)
		return rt_error(c, RT_MEMORY, "cannot map a slab of %zu bytes", bytes);
	if (bytes >= HUGE)
		madvise(c->slab, bytes, MADV_HUGEPAGE);
	return 0;
}

typedef struct Touch { unsigned char *slab; size_t bytes; atomic_bool lacks; } Touch;

/* Huge pages lo .. hi - 1; kernels before 5.14 need a write to each page. */
static void touch(void *arg, int64_t lo, int64_t hi, int thread)
{
	Touch *t = arg;
	size_t from = (size_t)lo * HUGE, to = (size_t)hi * HUGE < t->bytes ? (size_t)hi * HUGE : t->bytes;
	(void)thread;
	if (!madvise(t->slab + from, to - from, MADV_POPULATE_WRITE))
		return;
	if (errno == ENOMEM)
		atomic_store(&t->lacks, true);
	for (size_t at = from; at < to && errno == EINVAL; at += RT_PAGE)
		((volatile unsigned char *)t->slab)[at] = 0;
}

int rt_device_touch(Ctx *c)
{
	Touch t = { .slab = c->slab, .bytes = slab_bytes(c) };
	rt_parallel(c, (int64_t)((t.bytes + HUGE - 1) / HUGE), 1, touch, &t);
	return t.lacks ? rt_error(c, RT_MEMORY, "there is no memory for a slab of %zu bytes", t.bytes) : 0;
}

void rt_device_close(Ctx *c)
{
	if (c->slab)
		munmap(c->slab, slab_bytes(c));
	free(c->packed);
	c->slab = NULL;
	c->packed = NULL;
}

void *rt_host(Ctx *c, void *value, size_t bytes)
{
	(void)c;
	(void)bytes;
	return value;
}

/* The host writes inputs, which are never packed, and kept values, which may be. */
int rt_put(Ctx *c, void *value, size_t bytes)
{
	(void)bytes;
	c->changed += c->slab && (unsigned char *)value >= c->slab && (unsigned char *)value <= c->slab + c->last_kept;
	return 0;
}

int rt_get(Ctx *c, void *host, const void *value, size_t bytes)
{
	(void)c;
	memcpy(host, value, bytes);
	return 0;
}

int rt_view(Ctx *c, const void *value, size_t bytes, const void **host)
{
	(void)c;
	(void)bytes;
	*host = value;
	return 0;
}

int rt_sync(Ctx *c)
{
	(void)c;
	return 0;
}
