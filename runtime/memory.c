/* The memory of a rank, as the plan has it and as it was.  Everything that a rank needs is known before step 0: the slab, its
 * window, the scratch of kernels, two buffers of data, the snapshot of checkpoints, and what any process of ours has: its
 * stacks and the data of libc. */
#include "run.h"

#include <stdio.h>

static size_t pages(size_t n)
{
	return (n + 4095) / 4096 * 4096;
}

size_t rt_memory_planned(const Ctx *c, bool checkpoint)
{
	const RtProgram *p = c->program;
	size_t threads = (size_t)c->nthread;
	return pages(p->slab_bytes) + pages(p->window_bytes) + pages(p->work_shared) + threads * pages(p->work_each) + pages(2 * rt_data_bytes(c)) +
	       (checkpoint ? pages(rt_snapshot_bytes(p)) : 0) + RT_BASE + threads * RT_STACK;
}

/* The peak of this process less what of it is files: 0 where /proc does not tell. */
size_t rt_memory_measured(void)
{
	char line[128];
	unsigned long long peak = 0, file = 0, v;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "VmHWM: %llu", &v) == 1)
			peak = v;
		if (sscanf(line, "RssFile: %llu", &v) == 1)
			file = v;
	}
	if (f)
		fclose(f);
	return peak > file ? (size_t)(peak - file) * 1024 : 0;
}
