/* --dump DIR: the values of one step, for inspection and for comparison with other programs.
 *
 * Before the step all kept values are written to DIR/kept; after each action its results, inputs included, to DIR/step,
 * DIR/eval or DIR/infer, before a later action reuses their memory.  NAME.npy is the logical tensor: ranks write their
 * shards into one file.  The terms of a partial value have a file each, NAME.rank2.npy, of the first rank that has the
 * term.  NAME.micro1.npy is of the second micro-batch.  The gradient of parameter w is w.grad, even if it has another
 * name in memory.  In a file name / is \x2F. */
#include "save.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Out { int fd; bool bad; size_t head, width; const unsigned char *from; } Out;

static void put_row(void *arg, int64_t here, int64_t there, int64_t n)
{
	Out *o = arg;
	if (!o->bad)
		o->bad = rt_write_at(o->fd, o->from + (size_t)here * o->width, (size_t)n * o->width,
			o->head + (size_t)there * o->width);
}

static int folder(const Ctx *c, const char *path)
{
	return mkdir(path, 0777) && errno != EEXIST
		? rt_error(c, RT_DATA, "cannot make %s: %s", path, strerror(errno)) : 0;
}

/* Writes the rows of a shard into the file of its tensor; shard NULL: the full file. */
static int write_file(const char *path, RtType type, int naxis, const int64_t *dim, const FormShard *shard,
	const void *data)
{
	char head[RT_NPY_HEAD];
	int64_t count = 1;
	for (int a = 0; a < naxis; a++)
		count *= dim[a];
	Out o = { .fd = open(path, O_WRONLY | O_CREAT, 0666), .head = rt_npy_head(head, type, naxis, dim),
		.width = rt_width(type), .from = data };
	if (o.fd < 0)
		return -1;
	o.bad = rt_write_at(o.fd, head, o.head, 0) || ftruncate(o.fd, (off_t)(o.head + (size_t)count * o.width));
	if (shard)
		rt_shard_rows(shard, dim, put_row, &o);
	else
		put_row(&o, 0, 0, count);
	return close(o.fd) || o.bad ? -1 : 0;
}

static bool partial(const Form *f)
{
	bool any = false;
	for (int k = 0; k < f->ndim; k++)
		any |= f->cut[k].kind == FORM_P && f->mesh[k] > 1;
	return any;
}

typedef struct Value { const char *name; RtType type; const Form *form; const void *data; } Value;

/* path: of the file without its suffix; shard: the shard of this rank. */
static int write_held(Ctx *c, const char *path, const Value *v, const FormShard *shard)
{
	int64_t len[FORM_AXES] = { 0 };
	size_t bytes = (size_t)form_elements(shard) * rt_width(v->type);
	char to[RT_PATH + 32];
	const void *host;
	int code = rt_view(c, v->data, bytes, &host);
	bool term = partial(v->form);
	for (int a = 0; a < shard->naxis; a++)
		len[a] = shard->axis[a].len;
	if (term)
		snprintf(to, sizeof to, "%s.rank%d.npy", path, c->rank);
	else
		snprintf(to, sizeof to, "%s.npy", path);
	if (!code && write_file(to, v->type, shard->naxis, term ? len : v->form->dim, term ? NULL : shard, host))
		code = rt_error(c, RT_DATA, "cannot write %s: %s", to, strerror(errno));
	return code;
}

static int write_value(Ctx *c, const char *folder, int micro, Value v)
{
	char file[RT_NPY_NAME], path[RT_PATH], turn[32] = "";
	FormShard shard;
	rt_npy_name(file, v.name);
	if (micro >= 0)
		snprintf(turn, sizeof turn, ".micro%d", micro);
	if (snprintf(path, sizeof path, "%s/%s/%s%s", c->dump, folder, file, turn) >= (int)sizeof path)
		return rt_error(c, RT_USAGE, "the name of the folder for --dump is too long");
	if (!rt_form_first(v.form, c->rank, true))
		return 0;               /* another rank writes it */
	if (form_shard(v.form, form_index(v.form, c->rank), &shard))
		return rt_error(c, RT_MEMORY, "no memory");
	int code = write_held(c, path, &v, &shard);
	form_shard_free(&shard);
	return code;
}

static const char *const programs[RT_PROGRAMS] = { [RT_TRAIN] = "step", [RT_EVAL] = "eval", [RT_INFER] = "infer" };

static int kept(Ctx *c, const char *folder, int micro, const RtTensor *t)
{
	Form f = rt_form_of(c->program, t);
	return write_value(c, folder, micro, (Value){ t->name, t->type, &f, rt_address(c, t) });
}

static int gradients(Ctx *c, int value)
{
	const RtProgram *p = c->program;
	int code = 0;
	for (int k = 0; k < *p->ngradient && !code; k++) {
		const RtGradient *g = &p->gradient[k];
		if (g->value == value)
			code = write_value(c, programs[RT_TRAIN], -1,
				(Value){ g->name, g->type, &p->shape[g->shape], rt_value(c, value) });
	}
	return code;
}

static int results(Ctx *c, int micro)
{
	const RtProgram *p = c->program;
	int code = rt_sync(c);
	if (c->at->kind == RT_START)    /* its results are ready when the transfer is finished */
		return code;
	for (int i = 0; i < c->at->nmake && !code; i++) {
		int k = c->values[i];
		if (k < p->nkept) {
			code = kept(c, programs[c->kind], micro, &p->kept[k].t);
		} else {
			const RtValue *v = &p->value[k - p->nkept];
			code = write_value(c, programs[c->kind], micro,
				(Value){ v->name, v->type, &p->shape[p->shape_of[k - p->nkept]], rt_value(c, k) });
		}
		if (!code && c->kind == RT_TRAIN)
			code = gradients(c, k);
	}
	return code;
}

int rt_dump_begin(Ctx *c, const char *dir)
{
	static const char *const sub[] = { "", "/kept", "/step", "/eval", "/infer" };
	char path[RT_PATH];
	int code = 0;
	c->dump = dir;
	c->after = results;
	for (size_t i = 0; i < sizeof sub / sizeof sub[0] && !code; i++)
		code = snprintf(path, sizeof path, "%s%s", dir, sub[i]) < (int)sizeof path ? folder(c, path)
			: rt_error(c, RT_USAGE, "the name of the folder for --dump is too long");
	for (int i = 0; i < c->program->nkept && !code; i++) {
		code = kept(c, "kept", -1, &c->program->kept[i].t);
		if (!code && c->program->kept[i].keep == RT_CONSTANT)
			code = gradients(c, i);
	}
	return code;
}
