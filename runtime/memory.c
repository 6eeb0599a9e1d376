/* The memory of a rank, planned and measured.  Everything that a rank needs is known before step 0: the slab, its
 * window, the scratch of kernels, two buffers of data, the snapshot of checkpoints, and the overhead of a process:
 * stacks, data of libc, tables of transfers.  Memory of peers that a rank reads is counted once, by its owner.  MPI
 * allocates memory that cannot be planned: what it has taken when all ranks have started is counted separately. */
#include "comm.h"
#include "save.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tables of transfers. */
static size_t tables(const RtProgram *p)
{
	size_t n = RT_SIGNALS + (size_t)p->nform * RT_SHARD;
	for (int i = 0; i < p->nmove; i++)
		n += RT_ROUTE + (size_t)form_group(&p->form[p->move[i].from - 1], &p->form[p->move[i].to - 1]) *
			RT_PEERS;
	for (int i = 0; i < p->nchannel; i++)
		n += (size_t)form_joined(&p->form[p->channel[i].from - 1], &p->form[p->channel[i].to - 1]) * RT_SIGNAL;
	return p->nrank > 1 ? rt_round_up(n, RT_PAGE) : 0;
}

/* The snapshot, and the texts of the manifest. */
static size_t saver(const RtProgram *p)
{
	size_t n = 0;
	for (int i = 0; i < p->nkept; i++)
		n += rt_is_saved(&p->kept[i]);
	return rt_round_up(rt_snapshot_bytes(p), RT_PAGE) + rt_round_up(n * RT_SAVED, RT_PAGE) + RT_SAVER;
}

/* Memory that the compiler cannot plan: for options that read and write files. */
static size_t files(const Ctx *c, const RtReport *r)
{
	size_t writes = (size_t)r->writes + (r->log_to != NULL);
	return rt_plot_bytes(r) + rt_watch_bytes(c) + writes * RT_WRITER +
		(r->reads ? RT_READER + rt_round_up((size_t)c->program->nkept * RT_SAVED, RT_PAGE) : 0);
}

size_t rt_memory_planned(const Ctx *c, const RtReport *r)
{
	const RtProgram *p = c->program;
	size_t threads = (size_t)c->nthread, lane = p->nrank > 1 && !c->device;
	return rt_round_up(rt_slab_bytes(c), RT_PAGE) + rt_round_up(p->window_bytes, RT_PAGE) +
		rt_round_up(p->work_shared, RT_PAGE) + threads * rt_round_up(p->work_each, RT_PAGE) +
		rt_round_up(2 * rt_data_bytes(c), RT_PAGE) + (r->saves ? saver(p) : 0) + files(c, r) +
		RT_BASE + (threads + lane) * RT_STACK + tables(p) + rt_round_up(rt_data_tables(c), RT_PAGE) +
		(c->comm->room ? c->comm->room(c) : 0);
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

/* Bytes in /proc/self/status; 0: unknown. */
typedef struct Status { size_t peak, now, file, shared; } Status;

static Status status(void)
{
	Status s = { 0 };
	const struct { const char *name; size_t *to; } line_of[] = {
		{ "VmHWM:", &s.peak }, { "VmRSS:", &s.now }, { "RssFile:", &s.file }, { "RssShmem:", &s.shared },
	};
	char line[128];
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		for (size_t i = 0; i < sizeof line_of / sizeof *line_of; i++)
			if (!strncmp(line, line_of[i].name, strlen(line_of[i].name)))
				*line_of[i].to = 1024 * (size_t)strtoull(line + strlen(line_of[i].name), NULL, 10);
	if (f)
		fclose(f);
	return s;
}

static size_t less(size_t a, size_t b)
{
	return a > b ? a - b : 0;
}

size_t rt_memory_taken(void)
{
	Status s = status();
	return less(s.now, s.file + s.shared + RT_AT_START);
}

/* The peak of this process without files, memory of peers, and memory of MPI, which includes all shared memory if there
 * is any; 0: /proc is not available. */
size_t rt_memory_measured(const Ctx *c, size_t *peers)
{
	Status s = status();
	*peers = (size_t)mapped_of_peers(c) * 1024;
	size_t now = less(s.peak, s.file + *peers + c->comm->taken + (c->comm->taken ? s.shared : 0));
	return s.peak && now < c->peak ? c->peak : now;
}

/* The peak that the system keeps includes pages of files, which can be subtracted only while they are mapped: so the
 * peak so far is kept here, and that of the system begins anew.  A library leaves the figures of its process alone. */
void rt_memory_closing(Ctx *c)
{
	size_t peers;
	if (!c->rank && !c->error && c->comm)
		c->peak = rt_memory_measured(c, &peers);
}

void rt_memory_closed(Ctx *c)
{
	static const char peak[] = "5";
	int fd = c->rank || c->error ? -1 : open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, peak, 1) < 0)
		c->peak = 0;            /* the peak of the system includes it */
	if (fd >= 0)
		close(fd);
}
