/* The memory of a rank, as the plan has it and as it was.  Everything that a rank needs is known before step 0: the slab, its
 * window, the scratch of kernels, two buffers of data, the snapshot of checkpoints, and what any process of ours has: its
 * stacks, the data of libc, and tables of transfers.  What a rank reads of its peers' windows and snapshots is theirs: counted once, by the owner. */
#include "run.h"

#include <stdio.h>
#include <string.h>

static size_t pages(size_t n)
{
	return (n + 4095) / 4096 * 4096;
}

/* What a rank knows of transfers. */
static size_t tables(const RtProgram *p)
{
	size_t n = RT_SIGNALS + (size_t)p->nform * RT_PART;
	for (int i = 0; i < p->nmove; i++)
		n += RT_ROUTE + (size_t)form_group(&p->form[p->move[i].from - 1], &p->form[p->move[i].to - 1]) * RT_PEERS;
	return p->nrank > 1 ? pages(n) : 0;
}

size_t rt_memory_planned(const Ctx *c, bool checkpoint)
{
	const RtProgram *p = c->program;
	size_t threads = (size_t)c->nthread, lane = p->nrank > 1 && !c->device;
	return pages(p->slab_bytes) + pages(p->window_bytes) + pages(p->work_shared) + threads * pages(p->work_each) + pages(2 * rt_data_bytes(c)) +
	       (checkpoint ? pages(rt_snapshot_bytes(p)) + RT_SAVER : 0) + RT_BASE + (threads + lane) * RT_STACK + tables(p) + pages(rt_data_tables(c));
}

static unsigned long long mapped_of_peers(const Ctx *c)
{
	char line[512];
	unsigned long begin, end;
	unsigned long long sum = 0, v;
	bool theirs = false;
	FILE *f = fopen("/proc/self/smaps", "r");
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%lx", &begin, &end) == 2)
			theirs = c->comm->theirs && c->comm->theirs(c, (const void *)begin);
		if (theirs && sscanf(line, "Rss: %llu", &v) == 1)
			sum += v;
	}
	if (f)
		fclose(f);
	return sum;
}

/* The peak of this process less what of it is files, or peers': 0 where /proc does not tell. */
size_t rt_memory_measured(const Ctx *c, size_t *peers)
{
	*peers = (size_t)mapped_of_peers(c) * 1024;
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
	file += *peers / 1024;
	return peak > file ? (size_t)(peak - file) * 1024 : 0;
}
