/* Resuming.  Rank 0 finds the newest checkpoint, reads it completely and compares every checksum of its manifest; so
 * does one rank of each other machine.  Then each rank reads the rows of its own shards; the checkpoint may come from
 * another plan. */
#include "save.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Check { const unsigned char *from; size_t elem; uint32_t crc; } Check;

static void check_run(void *arg, int64_t here, int64_t there, int64_t n)
{
	Check *k = arg;
	(void)here;
	k->crc = rt_crc32c(k->crc, k->from + (size_t)there * k->elem, (size_t)n * k->elem);
}

/* Reads one more run of [at,len,at,len,...].  Returns NULL, or the error as text. */
static const char *read_runs(RtJson *j, FormAxis *x, int64_t dim)
{
	int64_t end = 0;
	for (rt_json_open(j, '['); rt_json_more(j, '[');) {
		int64_t at = rt_json_int(j), len = rt_json_more(j, '[') ? rt_json_int(j) : -1;
		FormRun *more = realloc(x->run, (size_t)(x->n + 1) * sizeof *more);
		if (!more)
			return "does not fit into memory";
		x->run = more;
		if (at < end || len < 1 || at > dim || len > dim - at)
			return "has a shard outside of it";
		x->run[x->n++] = (FormRun){ at, len };
		x->len += len;
		end = at + len;
	}
	return NULL;
}

static const char *read_shard(RtJson *j, const RtEntry *e, FormShard *p, int64_t *crc)
{
	char key[32];
	const char *why = NULL;
	for (rt_json_open(j, '{'); !why && rt_json_more(j, '{');) {
		rt_json_key(j, key, sizeof key);
		if (!strcmp(key, "crc")) {
			*crc = rt_json_int(j);
			continue;
		}
		int a = 0;
		for (rt_json_open(j, '['); !why && rt_json_more(j, '['); a++)
			why = a < e->naxis ? read_runs(j, &p->axis[a], e->dim[a])
				: "has shards with another number of axes";
		if (!why && !j->bad && a != e->naxis)
			why = "has shards with another number of axes";
	}
	return why;
}

/* Checks a shard {"axes":[[at,len,..],..],"crc":N} of a tensor.  Returns NULL, or the error as text. */
static const char *check_shard(RtJson *j, const RtSafe *s, const RtEntry *e, int64_t *elements)
{
	FormShard shard = { .naxis = e->naxis };
	int64_t crc = -1;
	const char *why = read_shard(j, e, &shard, &crc);
	Check k = { s->data + e->from, rt_width(e->type), 0 };
	if (!why && !j->bad) {
		rt_shard_rows(&shard, e->dim, check_run, &k);
		*elements += form_elements(&shard);
		why = crc == (int64_t)k.crc ? NULL : "is damaged: its checksum differs";
	}
	form_shard_free(&shard);
	return why;
}

static int check_tensors(Ctx *c, RtJson *j, RtSafe *s, const char *path, int *count)
{
	for (rt_json_open(j, '['); rt_json_more(j, '[');) {
		char key[32], name[RT_NAME] = "";
		int64_t n = 0, all = 1;
		const RtEntry *e = NULL;
		for (rt_json_open(j, '{'); rt_json_more(j, '{');) {
			rt_json_key(j, key, sizeof key);
			if (!strcmp(key, "name")) {
				rt_json_string(j, name, sizeof name);
				e = rt_safe_find(s, name);
				if (!j->bad && !e)
					return rt_error(c, RT_CHECKPOINT, "%s: %s is missing", path, rt_shown(name));
				continue;
			}
			for (rt_json_open(j, '['); rt_json_more(j, '[') && e;) {
				const char *why = check_shard(j, s, e, &n);
				if (why)
					return rt_error(c, RT_CHECKPOINT, "%s: %s %s", path, rt_shown(name), why);
			}
			j->bad |= !e;
		}
		for (int a = 0; e && a < e->naxis; a++)
			all *= e->dim[a];
		if (!j->bad && n != all)
			return rt_error(c, RT_CHECKPOINT, "%s: shards of %s are missing", path, rt_shown(name));
		++*count;
	}
	return 0;
}

static int check_model(Ctx *c, RtSafe *s, const char *path)
{
	char is[256], want[256];
	for (int i = 0; i < c->program->nkept; i++) {
		const RtTensor *t = &c->program->kept[i].t;
		const RtEntry *e = rt_is_saved(&c->program->kept[i]) ? rt_safe_find(s, t->name) : NULL;
		if (c->program->kept[i].keep == RT_FROZEN && !e)
			return rt_error(c, RT_CHECKPOINT, "%s has no %s, which is frozen: programs of an earlier "
				"sbpcc did not save frozen parameters; --weights=%s/state.safetensors "
				"--weights-partial starts from its trained parameters", path, t->name, path);
		if (rt_is_saved(&c->program->kept[i]) && !e)
			return rt_error(c, RT_CHECKPOINT, "%s is of another model: it has no %s", path, t->name);
		if (e && !rt_safe_fits(e, t))
			return rt_error(c, RT_CHECKPOINT, "%s is of another model: %s is %s there and %s here",
				path, t->name, rt_shape_text(is, sizeof is, e->type, e->naxis, e->dim),
				rt_shape_text(want, sizeof want, t->type, t->naxis, t->dim));
	}
	return 0;
}

static int check_header(Ctx *c, const RtResume *r, const RtSafe *s, int64_t header)
{
	if (header != (int64_t)rt_crc32c(0, s->file.data, (size_t)(s->data - s->file.data)))
		return rt_error(c, RT_CHECKPOINT, "%s: the header of its tensors is damaged", r->path);
	return 0;
}

/* The manifest ends with a checksum of all bytes before it; manifests of format 1 have none. */
static bool manifest_intact(const RtFile *m, const char *format)
{
	char end[32];
	size_t n = (size_t)snprintf(end, sizeof end, RT_MANIFEST_END, (uint32_t)0);
	if (!strcmp(format, "sbpcc checkpoint 1"))
		return true;
	if (m->bytes < n)
		return false;
	n = m->bytes - n;
	snprintf(end, sizeof end, RT_MANIFEST_END, rt_crc32c(0, m->data, n));
	return !memcmp(m->data + n, end, m->bytes - n);
}

static int check_format(Ctx *c, const RtResume *r, const RtFile *m, const char *format)
{
	if (strncmp(format, "sbpcc checkpoint", 16))
		return rt_error(c, RT_CHECKPOINT, "%s: its manifest is damaged", r->path);
	if (strcmp(format, "sbpcc checkpoint 1") && strcmp(format, RT_CHECKPOINT_FORMAT))
		return rt_error(c, RT_CHECKPOINT,
			"%s is an \"%s\"; this program reads up to \"" RT_CHECKPOINT_FORMAT "\"", r->path, format);
	return manifest_intact(m, format) ? 0
		: rt_error(c, RT_CHECKPOINT, "%s: its manifest is damaged: its checksum differs", r->path);
}

/* The name of the folder must match the step in the manifest. */
static int check_step(Ctx *c, const RtResume *r)
{
	const char *name = strrchr(r->path, '/');
	int64_t step = rt_step_of(name ? name + 1 : r->path);
	if (step >= 0 && step != r->step)
		return rt_error(c, RT_CHECKPOINT, "%s: its manifest is of step %" PRId64, r->path, r->step);
	return 0;
}

/* s NULL: tensors are skipped. */
static int read_manifest(Ctx *c, RtResume *r, const RtFile *m, RtSafe *s)
{
	RtJson j = { (const char *)m->data, (const char *)m->data + m->bytes, false };
	char key[32], text[64], format[64] = "";
	int64_t header = -1, seed = 0;
	int count = 0, code = 0;
	r->step = -1;
	r->manifest = rt_crc32c(0, m->data, m->bytes);
	for (rt_json_open(&j, '{'); !code && rt_json_more(&j, '{');) {
		rt_json_key(&j, key, sizeof key);
		if (!strcmp(key, "format")) {
			rt_json_string(&j, format, sizeof format);
			code = check_format(c, r, m, format);
		} else if (!strcmp(key, "step"))
			r->step = rt_json_int(&j);
		else if (!strcmp(key, "seed"))
			seed = rt_json_int(&j);
		else if (!strcmp(key, "header"))
			header = rt_json_int(&j);
		else if (!strcmp(key, "data")) {
			rt_json_string(&j, text, sizeof text);
			r->data = strtoull(text, NULL, 16);
		} else if (!strcmp(key, "tensors") && s)
			code = check_tensors(c, &j, s, r->path, &count);
		else
			rt_json_skip(&j);
	}
	r->seed = (uint64_t)seed;
	bool ends = !j.bad && j.end - j.at <= 1 && (j.at == j.end || *j.at == '\n');
	if (!code && (!ends || !*format || r->step < 0 || (s && count != s->n)))
		code = rt_error(c, RT_CHECKPOINT, "%s: its manifest is damaged%s", r->path, j.bad ||
			ends ? "" : ": something follows its end");
	code = code ? code : check_step(c, r);
	return code || !s ? code : check_header(c, r, s, header);
}

/* Checks one checkpoint, all of it or only its manifest; 0, or RT_CHECKPOINT after rt_error. */
static int check_one(Ctx *c, RtResume *r, bool all)
{
	char path[RT_PATH + 32];
	RtFile m = { 0 };
	RtSafe s = { 0 };
	snprintf(path, sizeof path, "%s/manifest.json", r->path);
	int code = rt_file_open(c, RT_CHECKPOINT, path, &m);
	snprintf(path, sizeof path, "%s/state.safetensors", r->path);
	if (!code && all)
		code = rt_safe_open(c, RT_CHECKPOINT, path, &s);
	if (!code && all)
		code = check_model(c, &s, r->path);
	if (!code)
		code = read_manifest(c, r, &m, all ? &s : NULL);
	rt_memory_closing(c);
	rt_safe_close(&s);
	rt_memory_closed(c);
	rt_file_close(&m);
	return code;
}

static void path_of(RtResume *r, const char *dir, int64_t step)
{
	int n = snprintf(r->path, sizeof r->path, "%s", dir);
	while (r->itself && n > 1 && n < RT_PATH && r->path[n - 1] == '/')
		r->path[--n] = 0;
	if (!r->itself)
		snprintf(r->path, sizeof r->path, "%s/" RT_STEP_FORMAT, dir, step);
}

int rt_resume_find(Ctx *c, const char *dir, bool last_good, RtResume *r)
{
	enum { MANY = 64 };
	int64_t step[MANY] = { 0 };
	struct stat st;
	int n = 0, code = RT_CHECKPOINT;
	snprintf(r->path, sizeof r->path, "%s/manifest.json", dir);
	r->itself = !stat(r->path, &st) || !(n = rt_saved_steps(dir, step, MANY));
	for (int i = 0; i < (r->itself ? 1 : n); i++) {
		path_of(r, dir, step[i]);
		int one = check_one(c, r, true);
		if (!one && (i == 0 || last_good)) {
			if (i)
				fprintf(stderr, "resuming from %s, the last good checkpoint\n", r->path);
			return 0;
		}
		if (!one && c->error)
			return code;
		if (!one) {
			fprintf(stderr, "%s is good: --last-good, or --resume=%s, continues from there\n",
				r->path, r->path);
			return code;
		}
		code = one;
	}
	return code;
}

int rt_resume_at(Ctx *c, const char *dir, bool all, RtResume *r)
{
	path_of(r, dir, r->step);
	return check_one(c, r, all);
}

int rt_resume_load(Ctx *c, const RtResume *r)
{
	char path[RT_PATH + 32];
	RtSafe s;
	snprintf(path, sizeof path, "%s/state.safetensors", r->path);
	int code = rt_safe_open(c, RT_CHECKPOINT, path, &s);
	for (int i = 0; i < c->program->nkept && !code; i++) {
		const RtKept *k = &c->program->kept[i];
		const RtEntry *e = rt_is_saved(k) ? rt_safe_find(&s, k->t.name) : NULL;
		if (e)
			code = rt_take(c, &k->t, e->type, s.data + e->from);
	}
	rt_memory_closing(c);
	rt_safe_close(&s);
	rt_memory_closed(c);
	return code;
}

int rt_resume_other_data(Ctx *c, const RtResume *r)
{
	char path[RT_PATH + 32], key[32];
	const uint32_t *after;
	int n = rt_data_files(c, &after), known = 0, first = -1;
	RtFile m = { 0 };
	snprintf(path, sizeof path, "%s/manifest.json", r->path);
	if (rt_file_open(c, RT_CHECKPOINT, path, &m))
		return RT_DATA;
	RtJson j = { (const char *)m.data, (const char *)m.data + m.bytes, false };
	for (rt_json_open(&j, '{'); rt_json_more(&j, '{');) {
		rt_json_key(&j, key, sizeof key);
		if (strcmp(key, "files")) {
			rt_json_skip(&j);
			continue;
		}
		for (rt_json_open(&j, '['); rt_json_more(&j, '['); known++) {
			int64_t print = rt_json_int(&j);
			if (first < 0 && known < n && print != (int64_t)after[known])
				first = known;
		}
	}
	rt_file_close(&m);
	const char *what = "the data set is not the one that the checkpoint was trained on";
	if (known && first >= 0)
		rt_error(c, RT_DATA,
			"%s: %s differs from file %d of the %d at that time: --changed-data continues with it", what,
			rt_data_file(c, first), first + 1, known);
	else if (known && known != n)
		rt_error(c, RT_DATA, "%s: it has %d files now, %d at that time: --changed-data continues with it",
			what, n, known);
	else
		rt_error(c, RT_DATA, "%s: --changed-data continues with it", what);
	return RT_DATA;
}
