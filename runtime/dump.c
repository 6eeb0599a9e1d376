/* --dump DIR: what one step computes, for looking at and for comparing with other programs.
 *
 * Before the step everything that lives from step to step is written to DIR/kept; right after each action its results, inputs
 * included, to DIR/step, DIR/eval or DIR/infer, before a later action takes their memory.  A file is NAME.npy, one axis, with the bytes as
 * a rank holds them: NAME.rank2.npy where there are several, NAME.micro1.npy for the second micro-batch.  In a file name / is \x2F. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int write_all(const char *path, RtType type, const void *data, size_t bytes)
{
	char head[RT_NPY_HEAD];
	size_t n = rt_npy_head(head, type, 1, (int64_t[]){ (int64_t)(bytes / rt_width(type)) });
	FILE *f = fopen(path, "wb");
	if (!f)
		return -1;
	bool bad = fwrite(head, 1, n, f) != n || fwrite(data, 1, bytes, f) != bytes;
	return fclose(f) || bad ? -1 : 0;
}

static int folder(const Ctx *c, const char *path)
{
	return mkdir(path, 0777) && errno != EEXIST ? rt_error(c, RT_DATA, "cannot make %s: %s", path, strerror(errno)) : 0;
}

static int write_value(Ctx *c, const char *part, const char *name, int micro, RtType type, const void *value, size_t bytes)
{
	char file[RT_NPY_NAME], path[4096], rank[32] = "", turn[32] = "";
	rt_npy_name(file, name);
	if (c->nrank > 1)
		snprintf(rank, sizeof rank, ".rank%d", c->rank);
	if (micro >= 0)
		snprintf(turn, sizeof turn, ".micro%d", micro);
	if (snprintf(path, sizeof path, "%s/%s/%s%s%s.npy", c->dump, part, file, turn, rank) >= (int)sizeof path)
		return rt_error(c, RT_USAGE, "the name of the folder for --dump is too long");
	void *host = malloc(bytes + 1);
	if (!host)
		return rt_error(c, RT_MEMORY, "no memory for %zu bytes of %s", bytes, name);
	int code = rt_get(c, host, value, bytes);
	if (!code && write_all(path, type, host, bytes))
		code = rt_error(c, RT_DATA, "cannot write %s: %s", path, strerror(errno));
	free(host);
	return code;
}

static const char *const parts[RT_PARTS] = { [RT_TRAIN] = "step", [RT_EVAL] = "eval", [RT_INFER] = "infer" };

static int results(Ctx *c, int micro)
{
	int code = rt_sync(c);
	for (int i = 0; i < c->at->nmake && !code; i++) {
		RtValue v = rt_about(c, c->values[i]);
		code = write_value(c, parts[c->part], v.name, micro, v.type, rt_value(c, c->values[i]), (size_t)v.bytes);
	}
	return code;
}

int rt_dump_begin(Ctx *c, const char *dir)
{
	static const char *const sub[] = { "", "/kept", "/step", "/eval", "/infer" };
	char path[4096];
	int code = 0;
	c->dump = dir;
	c->after = results;
	for (size_t i = 0; i < sizeof sub / sizeof sub[0] && !code; i++)
		code = snprintf(path, sizeof path, "%s%s", dir, sub[i]) < (int)sizeof path ? folder(c, path) : rt_error(c, RT_USAGE, "the name of the folder for --dump is too long");
	for (int i = 0; i < c->program->nkept && !code; i++) {
		const RtTensor *t = &c->program->kept[i].t;
		code = write_value(c, "kept", t->name, -1, t->type, rt_place(c, t), rt_bytes(c, t));
	}
	return code;
}
