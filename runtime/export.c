/* --export: DIR/model.safetensors, for PyTorch, the safetensors package and --weights: every parameter under its name
 * in the model (its average, if the model has ema), frozen parameters and running statistics, but no optimizer state.
 *
 * As with checkpoints, each rank writes the shards that it is the first to hold.  The file is renamed to its final name
 * when it is complete. */
#include "comm.h"
#include "save.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char part_name[] = ".model.safetensors.part", name[] = "model.safetensors";

static bool exported(const RtKept *v)
{
	return v->keep == RT_PARAMETER || v->keep == RT_FROZEN || v->keep == RT_STATISTIC;
}

/* The tensor that is written for a row: its average, if there is one. */
static const RtTensor *source(const RtProgram *p, const RtKept *v)
{
	for (int i = 0; i < p->nkept && p->ema; i++)
		if (rt_averaged(p, &p->kept[i]) == v)
			return &p->kept[i].t;
	return &v->t;
}

static void print_name(FILE *f, const char *escaped)
{
	char text[8 * RT_NAME];
	rt_unescape(text, sizeof text, escaped);
	fputc('"', f);
	for (const char *s = text; *s; s++)
		fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : (unsigned char)*s < 32 ? "\\u%04x" : "%c", *s);
	fputc('"', f);
}

/* The header, its length first; NULL: no memory. */
static char *make_head(const RtProgram *p, size_t *n)
{
	char *text = NULL;
	uint64_t at = 0;
	FILE *f = open_memstream(&text, n);
	if (!f)
		return NULL;
	fprintf(f, "%8s{\"__metadata__\":{\"format\":\"pt\"}", "");
	for (int i = 0; i < p->nkept; i++) {
		const RtTensor *t = &p->kept[i].t;
		if (!exported(&p->kept[i]))
			continue;
		fputs(",\n", f);
		print_name(f, t->name);
		fprintf(f, ":{\"dtype\":\"%s\",\"shape\":[", rt_type_name(t->type));
		for (int a = 0; a < t->naxis; a++)
			fprintf(f, "%s%" PRId64, a ? "," : "", t->dim[a]);
		fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + rt_logical_bytes(t));
		at += rt_logical_bytes(t);
	}
	fputc('}', f);
	fflush(f);
	fprintf(f, "%*s", (int)((8 - *n % 8) % 8), "");
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	for (int i = 0; i < 8; i++)
		text[i] = (char)((*n - 8) >> 8 * i);
	return text;
}

static int failed(Ctx *c, const char *dir)
{
	return rt_error(c, RT_CHECKPOINT, "cannot write %s/%s: %s", dir, name, strerror(errno));
}

/* The shards of this rank, one tensor at a time. */
static int write_mine(Ctx *c, const char *dir, int fd, size_t base)
{
	const RtProgram *p = c->program;
	int code = 0;
	for (int i = 0; i < p->nkept && !code; i++) {
		if (!exported(&p->kept[i]))
			continue;
		const RtTensor *t = source(p, &p->kept[i]);
		size_t bytes = rt_bytes(c, t);
		const void *host;
		if (bytes && rt_first_on(p, c->rank, t)) {
			code = rt_view(c, rt_address(c, t), bytes, &host);
			if (!code && rt_write_shard(p, c->rank, t, fd, base, host))
				code = failed(c, dir);
		}
		base += rt_logical_bytes(t);
	}
	return code || !fsync(fd) ? code : failed(c, dir);
}

static int begin(Ctx *c, const char *dir, const char *path, const char *head, size_t n)
{
	if (mkdir(dir, 0777) && errno != EEXIST)
		return rt_error(c, RT_CHECKPOINT, "cannot create %s: %s", dir, strerror(errno));
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int code = fd < 0 || rt_write_at(fd, head, n, 0) ? failed(c, dir) : 0;
	if (fd >= 0 && close(fd) && !code)
		code = failed(c, dir);
	return code;
}

static int end(Ctx *c, const char *dir, const char *path)
{
	char to[RT_PATH];
	snprintf(to, sizeof to, "%s/%s", dir, name);
	int code = rename(path, to) ? failed(c, dir) : 0, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	return code;
}

int rt_export(Ctx *c, const char *dir)
{
	char path[RT_PATH];
	size_t n = 0;
	bool fits = snprintf(path, sizeof path, "%s/%s", dir, part_name) < (int)sizeof path;
	char *head = fits ? make_head(c->program, &n) : NULL;
	int code = head ? 0 : rt_error(c, RT_MEMORY, fits ? "no memory" : "the path %s is too long", dir);
	if (!code && !c->rank)
		code = begin(c, dir, path, head, n);
	code = (int)rt_worst(c, (uint32_t)code);
	int fd = code ? -1 : open(path, O_WRONLY | O_CLOEXEC);
	if (!code)
		code = fd < 0 ? failed(c, dir) : write_mine(c, dir, fd, n);
	if (fd >= 0 && close(fd) && !code)
		code = failed(c, dir);
	code = (int)rt_worst(c, (uint32_t)code);
	if (!c->rank && !code)
		code = end(c, dir, path);
	if (!c->rank && code)
		unlink(path);
	if (!c->rank && !code && !c->error)
		printf("exported to %s/%s\n", dir, name);
	free(head);
	return (int)rt_worst(c, (uint32_t)code);
}
