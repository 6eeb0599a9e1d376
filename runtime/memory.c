/* The memory of a rank, as the plan has it and as it was.  Everything that a rank needs is known before step 0: the slab, its
 * window, the scratch of kernels, two buffers of data, the snapshot of checkpoints, and what any process of ours has: its
 * stacks and the data of libc. */
#include "run.h"

#include <stdio.h>
#include <string.h>

static size_t pages(size_t n)
{
	return (n + 4095) / 4096 * 4096;
}

static size_t part_bytes(const RtProgram *p, int part)
{
	size_t n = 0;
	for (int i = 0; i < p->part[part].ninput; i++) {
		const RtTensor *t = &p->part[part].input[i].t;
		size_t bytes = rt_width(t->type);
		for (int a = 0; a < t->rank; a++)
			bytes *= (size_t)t->dim[a];
		n += bytes;
	}
	return n;
}

size_t rt_memory_planned(const RtProgram *p, int threads, bool checkpoint)
{
	size_t data = part_bytes(p, RT_TRAIN) > part_bytes(p, RT_EVAL) ? part_bytes(p, RT_TRAIN) : part_bytes(p, RT_EVAL);
	return pages(p->slab_bytes) + pages(p->window_bytes) + pages(p->work_shared) + (size_t)threads * pages(p->work_each) + pages(2 * data) +
	       (checkpoint ? pages(rt_snapshot_bytes(p)) : 0) + RT_BASE + (size_t)threads * RT_STACK;
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
