/* The memory of a rank on the CPU: one private slab, and its part of the window that peers read. */
#include "rt.h"

#include <string.h>
#include <sys/mman.h>

int rt_device_open(Ctx *c, unsigned char *window)
{
	size_t bytes = c->program->slab_bytes;
	c->window = window;
	c->slab = NULL;
	if (!bytes)
		return 0;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return rt_error(c, RT_MEMORY, "cannot map a slab of %zu bytes", bytes);
	c->slab = p;
	return 0;
}

void rt_device_close(Ctx *c)
{
	if (c->slab)
		munmap(c->slab, c->program->slab_bytes);
	c->slab = NULL;
}

void *rt_host(Ctx *c, void *value, size_t bytes)
{
	(void)c;
	(void)bytes;
	return value;
}

int rt_put(Ctx *c, void *value, size_t bytes)
{
	(void)c;
	(void)value;
	(void)bytes;
	return 0;
}

int rt_get(Ctx *c, void *host, const void *value, size_t bytes)
{
	(void)c;
	memcpy(host, value, bytes);
	return 0;
}

int rt_sync(Ctx *c)
{
	(void)c;
	return 0;
}
