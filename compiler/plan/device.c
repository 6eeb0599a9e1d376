/* The performance of devices and links as a few numbers, each on a line of a file (--machine=FILE) or of a preset:
 *
 *   flops 8e10              float operations a second of one rank, in products of float
 *   half 8e10               the same in products of half precision
 *   bytes 1e10              bytes a second that one rank reads and writes in its own memory
 *   cache 2e6 8e10          a value of at most so many bytes is read and written at so many bytes a second, because
 *                           its producer has left it in the cache
 *   start 1e-7              seconds before an operator or a copy begins
 *   cores 8                 cores of one computer; more ranks than that share them.  Without it each rank has a core
 *   turn 1e-5               seconds by which each rank that shares a core delays a transfer: a rank that waits sleeps,
 *                           so that others run, and must be woken
 *   memory 16e9             bytes that one rank may use; without it there is no limit
 *   link 8 3e-6 2e11        between ranks of one group of 8 consecutive ones: seconds before the first byte of a
 *                           transfer, bytes a second
 *   link * 1e-5 2e10        between all others
 *   axis 0 1e-5 2e10        the same between ranks along an axis of the mesh, whatever their numbers
 *   overlap 0.8             the fraction of the transfers of parameters and gradients that computation hides.  With a
 *                           line `cores` it holds where each rank has a spare core for them, and in proportion where
 *                           fewer are spare
 *
 * They are achieved rates, not peak rates.  A plan depends on them, so they are never measured during compilation:
 * --probe measures this computer once and writes such a file. */
#include "plan/plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

Device device;

/* GPUs: seven tenths of the peak rates of tensor cores, memory and links.  A rank on a CPU copies with the core that it
 * computes with, so no transfer is hidden. */
static const struct { const char *name, *text; } presets[] = {
	{ "cpu",
		"flops 6e10\nhalf 6e10\nbytes 1e10\nstart 5e-7\n"
		"link * 1e-5 5e9\noverlap 0\n" },
	{ "a100x8",
		"flops 1.1e14\nhalf 2.2e14\nbytes 1.4e12\nstart 4e-6\nmemory 76e9\n"
		"link 8 5e-6 2.1e11\nlink * 1.2e-5 1.8e10\noverlap 0.8\n" },
	{ "h100x8",
		"flops 3.4e14\nhalf 6.9e14\nbytes 2.3e12\nstart 4e-6\nmemory 76e9\n"
		"link 8 5e-6 3.1e11\nlink * 1.2e-5 3.5e10\noverlap 0.8\n" },
};
enum { NPRESET = sizeof presets / sizeof presets[0] };

/* ---- reading ---- */

typedef struct Word { const char *s; Loc loc; } Word;
typedef struct Level { double ranks; double latency, bytes; } Level;     /* ranks: of a group; INFINITY: all */
typedef struct Read {
	uint32_t file;
	Word word[5]; int n;            /* of the line that is being read; one more than any line has */
	Level level[8]; int nlevel;
	bool given[MESH_DIMS];          /* by axis: a line `axis` is given */
	Device *f;
} Read;

static int real(const Word *w, double least, double most, double *out)
{
	char *end;
	errno = 0;
	double v = strtod(w->s, &end);
	if (end == w->s || *end || !isfinite(v) || v < least || v > most) {
		err_at(w->loc, "%s is no number from %g to %g", w->s, least, most);
		return -1;
	}
	*out = v;
	return 0;
}

static int words(const Read *r, int n)
{
	if (r->n == n + 1)
		return 0;
	err_at(r->word[0].loc, "%s takes %d number%s", r->word[0].s, n, n == 1 ? "" : "s");
	return -1;
}

static int read_link(Read *r)
{
	double ranks = INFINITY;
	if (words(r, 3) || (strcmp(r->word[1].s, "*") && real(&r->word[1], 1, RANKS_MAX, &ranks)))
		return -1;
	if (r->nlevel == 8) {
		err_at(r->word[0].loc, "at most 8 kinds of links");
		return -1;
	}
	Level *l = &r->level[r->nlevel++];
	l->ranks = ranks;
	return real(&r->word[2], 0, 1e3, &l->latency) || real(&r->word[3], 1, 1e18, &l->bytes);
}

static int read_axis(Read *r)
{
	double axis;
	if (words(r, 3) || real(&r->word[1], 0, MESH_DIMS - 1, &axis))
		return -1;
	int k = (int)axis;
	r->given[k] = true;
	return real(&r->word[2], 0, 1e3, &r->f->axis[k].latency) || real(&r->word[3], 1, 1e18, &r->f->axis[k].bytes);
}

static int read_cache(Read *r)
{
	if (words(r, 2))
		return -1;
	return real(&r->word[1], 0, 1e24, &r->f->small) || real(&r->word[2], 1, 1e24, &r->f->cached) ? -1 : 0;
}

static int read_line(Read *r)
{
	Device *f = r->f;
	const struct { const char *name; double *to; double least, most; } one[] = {
		{ "flops", &f->flops, 1, 1e24 }, { "half", &f->half, 1, 1e24 }, { "bytes", &f->bytes, 1, 1e24 },
		{ "start", &f->start, 0, 1 }, { "cores", &f->cores, 1, 1e9 }, { "turn", &f->turn, 0, 1 },
		{ "memory", &f->memory, 0, 1e24 }, { "overlap", &f->overlap, 0, 1 },
	};
	static const char *const names[] = { "flops", "half", "bytes", "start", "cores", "turn", "memory", "overlap",
		"cache", "link", "axis", NULL };
	const Word *w = &r->word[0];
	for (size_t i = 0; i < sizeof one / sizeof one[0]; i++)
		if (!strcmp(w->s, one[i].name))
			return words(r, 1) || real(&r->word[1], one[i].least, one[i].most, one[i].to);
	if (!strcmp(w->s, "cache"))
		return read_cache(r);
	if (!strcmp(w->s, "link"))
		return read_link(r);
	if (!strcmp(w->s, "axis"))
		return read_axis(r);
	diag_unknown(w->loc, "there is no figure", w->s, names);
	return -1;
}

static bool blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static int read_lines(Read *r)
{
	const SrcFile *f = file_of(r->file);
	int bad = 0;
	for (size_t at = 0; at < f->bytes;) {
		size_t end = at;
		while (end < f->bytes && f->data[end] != '\n')
			end++;
		r->n = 0;
		for (size_t i = at; i < end && f->data[i] != '#';) {
			size_t from = i;
			while (i < end && !blank(f->data[i]) && f->data[i] != '#')
				i++;
			if (i > from && r->n < 5)
				r->word[r->n++] = (Word){ name_n((const char *)f->data + from, i - from),
					{ .file = r->file, .len = (uint32_t)(i - from), .off = from } };
			while (i < end && blank(f->data[i]))
				i++;
		}
		bad |= r->n ? read_line(r) : 0;
		at = end + 1;
	}
	return bad ? -1 : 0;
}

/* The links along axis k of the mesh: those of the smallest group that contains all ranks of a line along it. */
static void join(Read *r, const Mesh *m, int k)
{
	int64_t span = m->dim[k];
	for (int i = k + 1; i < m->ndim; i++)
		span *= m->dim[i];
	const Level *best = NULL;
	for (int i = 0; i < r->nlevel; i++) {
		const Level *l = &r->level[i];
		bool contains = l->ranks == INFINITY || (span <= (int64_t)l->ranks && (int64_t)l->ranks % span == 0);
		if (contains && (!best || l->ranks < best->ranks))
			best = l;
	}
	if (best && !r->given[k]) {
		r->f->axis[k].latency = best->latency;
		r->f->axis[k].bytes = best->bytes;
	}
}

/* Another mesh may have more axes: those have the slowest of the links. */
static void fill_up(Device *f, int ndim)
{
	Wire slow = f->axis[0];
	for (int k = 1; k < ndim; k++)
		slow = f->axis[k].bytes < slow.bytes ? f->axis[k] : slow;
	for (int k = ndim; k < MESH_DIMS; k++)
		f->axis[k] = f->axis[k].bytes ? f->axis[k] : slow;
}

/* More ranks than cores take turns, and a rank that waits for another waits until that has a core.  Ranks synchronise
 * so often that three ranks on two cores are as slow as two ranks on one.  Only a core that no rank computes on hides a
 * transfer. */
static void share_cores(Device *f, const Mesh *m)
{
	if (!f->cores)
		return;
	double ranks = fmax(1, ceil(m->nrank / f->cores));
	f->overlap *= fmin(1, fmax(0, f->cores / m->nrank - 1));
	f->flops /= ranks;
	f->half /= ranks;
	f->bytes /= ranks;
	f->cached /= ranks;
	for (int k = 0; k < MESH_DIMS; k++) {
		f->axis[k].latency += ranks > 1 ? ranks * f->turn : 0;
		f->axis[k].bytes /= ranks;
	}
}

double device_through(double bytes)
{
	return bytes / (bytes <= device.small && device.cached > device.bytes ? device.cached : device.bytes);
}

int device_read(const char *from, const Mesh *m)
{
	Read r = { .f = &device };
	ExitCode why;
	device = (Device){ 0 };
	if (!from)
		from = m->cuda ? "a100x8" : "cpu";
	for (int i = 0; i < NPRESET; i++)
		if (!strcmp(from, presets[i].name))
			r.file = file_memory(from, presets[i].text, strlen(presets[i].text));
	if (!r.file)
		r.file = file_open(from, &why);
	if (!r.file || read_lines(&r))
		return -1;
	for (int k = 0; k < m->ndim; k++)
		join(&r, m, k);
	fill_up(&device, m->ndim);
	Loc all = { .file = r.file, .len = 1 };
	if (opt.memory)
		device.memory = (double)opt.memory;
	if (!device.half)
		device.half = device.flops;
	if (!device.flops || !device.bytes) {
		err_at(all, "the machine needs a line `%s`", device.flops ? "bytes N" : "flops N");
		return -1;
	}
	for (int k = 0; k < m->ndim; k++)
		if (m->dim[k] > 1 && !device.axis[k].bytes) {
			err_at(all,
				"no link joins the ranks along axis %d of mesh %s: a line `link * SECONDS "
				"BYTES` does", k, m->name);
			return -1;
		}
	device.nccl = m->cuda && m->nrank > 1 && (opt.out || opt.change.made);
	share_cores(&device, m);
	return 0;
}
