/* --weights: tensors of a safetensors file, or of a folder in the layout of Hugging Face, under the names of the model.
 *
 * A folder has model.safetensors, or model.safetensors.index.json, which says which file has which tensor, and these
 * files; or it is a checkpoint, or a folder of checkpoints.  Rules FROM=TO map names of tensors: each * of FROM matches
 * any characters, as few as possible, and replaces the * of TO in order; the first matching rule applies, and an empty
 * TO skips the tensor.
 *
 * All parameters, frozen parameters and statistics must be there; optimizer state may be missing.  Other floating types
 * are converted: bf16 and fp16 exactly, double is rounded to nearest.  Missing and unused tensors are reported. */
#include "comm.h"
#include "save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SHARDS = 4096, SHOWN = 20, FEW = 3, LONGEST = 8 * RT_NAME };

struct RtItem {
	const RtEntry *e;
	const unsigned char *data;      /* its first byte */
	char *name;                     /* after the rules */
	bool used;
};
typedef struct RtItem Item;

/* ---- names ---- */

void rt_unescape(char *to, size_t room, const char *name)
{
	size_t n = 0;
	while (*name && n + 1 < room) {
		unsigned byte;
		if (name[0] == '\\' && name[1] == 'x' && sscanf(name + 2, "%2X", &byte) == 1) {
			to[n++] = (char)byte;
			name += 4;
		} else {
			to[n++] = *name++;
		}
	}
	to[n] = 0;
}

/* The text that each star of a pattern matches in a name; all but the last match as little as possible. */
enum { STARS = 8 };
typedef struct Star { const char *at; size_t n; } Star;

static bool matches(const char *p, const char *end, const char *name, Star *star)
{
	for (; p < end && *p != '*'; p++)
		if (*p != *name++)
			return false;
	if (p == end)
		return !*name;
	for (p++;; p++) {
		const char *next = memchr(p, '*', (size_t)(end - p));
		size_t rest = strlen(name), n = (size_t)((next ? next : end) - p);
		const char *tail = rest >= n && !memcmp(name + rest - n, p, n) ? name + rest - n : NULL;
		const char *at = next ? memmem(name, rest, p, n) : tail;
		if (!at)
			return false;
		*star++ = (Star){ name, (size_t)(at - name) };
		if (!next)
			return true;
		name = at + n;
		p = next;
	}
}

/* The name after one rule of len characters; NULL: the rule does not match. */
static char *by_rule(const char *rule, size_t len, const char *name, char *to, size_t room)
{
	const char *equal = memchr(rule, '=', len), *end = rule + len;
	Star star[STARS];
	size_t n = 0;
	int k = 0;
	if (!matches(rule, equal, name, star))
		return NULL;
	for (const char *p = equal + 1; p < end; p++) {
		Star one = *p == '*' ? star[k++] : (Star){ p, 1 };
		if (n + one.n + 1 > room)
			return NULL;
		memcpy(to + n, one.at, one.n);
		n += one.n;
	}
	to[n] = 0;
	return to;
}

static int stars(const char *s, size_t n)
{
	int k = 0;
	for (size_t i = 0; i < n; i++)
		k += s[i] == '*';
	return k;
}

const char *rt_map_wrong(const char *rules)
{
	for (const char *r = rules; *r; r += strcspn(r, ",") + (r[strcspn(r, ",")] == ',')) {
		size_t len = strcspn(r, ","), from = strcspn(r, "=");
		if (from >= len || !from || memchr(r + from + 1, '=', len - from - 1))
			return "rules are FROM=TO, separated by commas";
		if (stars(r, from) > STARS)
			return "a rule has too many *";
		if (from + 1 < len && stars(r + from + 1, len - from - 1) > stars(r, from))
			return "TO has more * than FROM";
	}
	return *rules ? NULL : "there is no rule";
}

/* The name after all rules; "": the tensor is skipped. */
static const char *mapped(const char *rules, const char *name, char *to, size_t room)
{
	for (const char *r = rules ? rules : ""; *r;) {
		size_t len = strcspn(r, ",");
		if (by_rule(r, len, name, to, room))
			return to;
		r += len + (r[len] == ',');
	}
	return name;
}

/* ---- files ---- */

static int add_items(Ctx *c, RtWeights *w, const char *rules, const RtSafe *s)
{
	char to[LONGEST];
	Item *more = realloc(w->item, (size_t)(w->nitem + s->n + 1) * sizeof *more);
	if (!more)
		return rt_error(c, RT_MEMORY, "no memory for the names of weights");
	w->item = more;
	for (int i = 0; i < s->n; i++) {
		const char *name = mapped(rules, s->entry[i].name, to, sizeof to);
		if (!*name)
			continue;
		Item one = { &s->entry[i], s->data + s->entry[i].from, strdup(name), false };
		if (!one.name)
			return rt_error(c, RT_MEMORY, "no memory for the names of weights");
		w->item[w->nitem++] = one;
	}
	return 0;
}

static int open_file(Ctx *c, RtWeights *w, const char *path)
{
	RtSafe *more = realloc(w->file, (size_t)(w->nfile + 1) * sizeof *more);
	if (!more)
		return rt_error(c, RT_MEMORY, "no memory for the files of weights");
	w->file = more;
	int code = rt_safe_open(c, RT_DATA, path, &w->file[w->nfile]);
	w->nfile += !code;
	return code;
}

/* True if name is a file of the folder itself, not a path. */
static bool plain_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

typedef struct Shards { char (*name)[256]; int n; } Shards;

/* The file of this name, opened when it is first named; -1 after an error. */
static int shard(Ctx *c, RtWeights *w, const char *dir, Shards *s, const char *name, int *code)
{
	char path[RT_PATH];
	for (int i = s->n; i-- > 0;)
		if (!strcmp(s->name[i], name))
			return i;
	char(*more)[256] = s->n < SHARDS ? realloc(s->name, (size_t)(s->n + 1) * sizeof *more) : NULL;
	if (!more) {
		*code = rt_error(c, RT_DATA, "%s: its index names more than %d files", dir, s->n);
		return -1;
	}
	s->name = more;
	snprintf(s->name[s->n], sizeof s->name[0], "%s", name);
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
		*code = rt_error(c, RT_DATA, "the path of %s is too long", rt_shown(name));
	else
		*code = open_file(c, w, path);
	return *code ? -1 : s->n++;
}

/* {"metadata":{..},"weight_map":{"NAME":"FILE",..}}: every name must be in its file. */
static int read_index(Ctx *c, RtWeights *w, const char *dir, const RtFile *f)
{
	RtJson j = { (const char *)f->data, (const char *)f->data + f->bytes, false };
	char key[RT_NAME], file[256];
	Shards s = { 0 };
	int code = 0;
	for (rt_json_open(&j, '{'); !code && rt_json_more(&j, '{');) {
		rt_json_key(&j, key, sizeof key);
		if (j.bad || strcmp(key, "weight_map")) {
			rt_json_skip(&j);
			continue;
		}
		for (rt_json_open(&j, '{'); !code && rt_json_more(&j, '{');) {
			rt_json_key(&j, key, sizeof key);
			rt_json_string(&j, file, sizeof file);
			if (j.bad)
				break;
			if (!plain_name(file)) {
				code = rt_error(c, RT_DATA, "%s: its index names %s, which is outside of the folder",
					dir, rt_shown(file));
				break;
			}
			int k = shard(c, w, dir, &s, file, &code);
			if (k >= 0 && !rt_safe_find(&w->file[k], key))
				code = rt_error(c, RT_DATA,
					"%s: its index says that %s is in %s, which does not have it",
					dir, rt_shown(key), rt_shown(file));
		}
	}
	free(s.name);
	if (!code && (j.bad || !w->nfile))
		code = rt_error(c, RT_DATA, "%s: model.safetensors.index.json %s", dir,
			j.bad ? "is damaged" : "names no files");
	return code;
}

/* DIR/state.safetensors of a checkpoint, or of the newest in a folder of them. */
static bool newest(const char *dir, char path[RT_PATH])
{
	int64_t step;
	return rt_saved_steps(dir, &step, 1) &&
	       snprintf(path, RT_PATH, "%s/" RT_STEP_FORMAT "/state.safetensors", dir, step) < RT_PATH;
}

static int open_folder(Ctx *c, RtWeights *w, const char *dir)
{
	static const char *const names[] = { "model.safetensors", "state.safetensors", "model.safetensors.index.json",
		"pytorch_model.bin" };
	char path[RT_PATH];
	struct stat st;
	int i = 0;
	for (; i < 4; i++)
		if (snprintf(path, sizeof path, "%s/%s", dir, names[i]) < (int)sizeof path && !stat(path, &st))
			break;
	if (i < 2 || (i == 4 && newest(dir, path)))
		return open_file(c, w, path);
	if (i == 3)
		return rt_error(c, RT_DATA, "%s has pytorch_model.bin only, which is a Python pickle: save it as "
			"safetensors (save_pretrained, or safetensors.torch.save_file)", dir);
	if (i == 4)
		return rt_error(c, RT_DATA, "%s has neither model.safetensors, nor model.safetensors.index.json, nor "
		                "state.safetensors of a checkpoint", dir);
	RtFile f;
	int code = rt_file_open(c, RT_DATA, path, &f);
	if (code)
		return code;
	if (f.bytes > 100 << 20)
		code = rt_error(c, RT_DATA, "%s is too long for an index", path);
	else
		code = read_index(c, w, dir, &f);
	rt_file_close(&f);
	return code;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const Item *)a)->name, ((const Item *)b)->name);
}

static Item *find(RtWeights *w, const char *name)
{
	Item key = { .name = (char *)(uintptr_t)name };
	return w->nitem ? bsearch(&key, w->item, (size_t)w->nitem, sizeof key, by_name) : NULL;
}

/* By the name of a row: as in the model, or escaped, as in checkpoints. */
static Item *find_row(RtWeights *w, const char *name)
{
	char plain[LONGEST];
	rt_unescape(plain, sizeof plain, name);
	Item *i = find(w, plain);
	return i ? i : find(w, name);
}

/* ---- matching ---- */

static bool converts(RtType from, RtType to)
{
	return from == to || (rt_is_float(from) && (to == RT_F32 || to == RT_F64));
}

static bool same_shape(const RtEntry *e, const RtTensor *t)
{
	bool same = e->naxis == t->naxis;
	for (int a = 0; same && a < e->naxis; a++)
		same = e->dim[a] == t->dim[a];
	return same;
}

static int unfit(Ctx *c, const char *path, const Item *i, const RtTensor *t)
{
	char is[256], want[256];
	const RtEntry *e = i->e;
	const char *name = rt_shown(e->name);
	bool turned = e->naxis == 2 && t->naxis == 2 && e->dim[0] == t->dim[1] && e->dim[1] == t->dim[0];
	rt_shape_text(is, sizeof is, e->type, e->naxis, e->dim);
	rt_shape_text(want, sizeof want, t->type, t->naxis, t->dim);
	if (same_shape(e, t))
		return rt_error(c, RT_DATA,
			"%s: %s is %s; this program needs %s, and only floating types are converted",
			path, name, is, want);
	if (turned)
		return rt_error(c, RT_DATA,
			"%s: %s is %s; this program needs %s, its transpose: PyTorch's Linear keeps [out, in], "
			"MatMul takes [in, out]; transpose it in the file, or say Gemm with transB = 1 in the model",
			path, name, is, want);
	return rt_error(c, RT_DATA,
		"%s: %s is %s; this program needs %s (--weights-map='%s=' --weights-partial leaves it out)",
		path, name, is, want, name);
}

/* The tensor for a row.  An average takes its own, or that of its parameter; a parameter of a program that only infers
 * takes its average, if there is one. */
static Item *item_of(RtWeights *w, const RtProgram *p, const RtKept *v)
{
	char name[RT_NAME];
	const RtKept *of = rt_averaged(p, v);
	bool alone = p->ema && !p->role[0]->schedule[RT_TRAIN] && v->keep == RT_PARAMETER;
	Item *i = NULL;
	if (alone && snprintf(name, sizeof name, "%s.ema", v->t.name) < (int)sizeof name)
		i = find_row(w, name);
	i = i ? i : find_row(w, v->t.name);
	return i || !of ? i : find_row(w, of->t.name);
}

static bool needed(const RtWeights *w, const RtKept *v)
{
	/* written beside the program: short tensors are in the program itself */
	if (w->ours)
		return v->start == RT_DATA_FILE;
	return v->keep == RT_PARAMETER || v->keep == RT_FROZEN || v->keep == RT_STATISTIC;
}

/* ---- report ---- */

/* The first names, few for an error and more for a separate line, and their number. */
typedef struct List { char few[320], most[SHOWN * 260]; int count; } List;

static void add(List *l, const char *name)
{
	const char *s = rt_shown(name);
	if (l->count < SHOWN)
		strcat(strcat(l->most, *l->most ? ", " : ""), s);
	if (l->count < FEW && strlen(s) < 100)
		strcat(strcat(l->few, *l->few ? ", " : ""), s);
	l->count++;
}

static const char *more(const List *l, int listed)
{
	static _Thread_local char text[48];
	*text = 0;
	if (l->count > listed)
		snprintf(text, sizeof text, ", and %d more", l->count - listed);
	return text;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);
	return n > k + 1 && name[n - k - 1] == '.' && !strcmp(name + n - k, end);
}

/* Suggests a rule that would find a missing row; "": none. */
static const char *advice(const RtWeights *w, const char *missing, char *to, size_t room)
{
	for (int i = 0; i < w->nitem; i++) {
		const char *name = w->item[i].name;
		if (!w->item[i].used && ends_in(name, missing)) {
			int prefix = (int)(strlen(name) - strlen(missing));
			snprintf(to, room, "; --weights-map='%.*s*=*' maps %s", prefix, rt_shown(name), rt_shown(name));
			return to;
		}
		if (!w->item[i].used && ends_in(missing, name)) {
			int prefix = (int)(strlen(missing) - strlen(name));
			snprintf(to, room, "; --weights-map='*=%.*s*' maps %s", prefix, missing, rt_shown(name));
			return to;
		}
	}
	return "";
}

/* True if it is optimizer state of a loaded parameter: w.m of w. */
static bool of_optimizer(RtWeights *w, const char *name)
{
	char owner[LONGEST];
	snprintf(owner, sizeof owner, "%s", name);
	char *dot = strrchr(owner, '.');
	if (!dot)
		return false;
	*dot = 0;
	const Item *i = find(w, owner);
	return i && i->used;
}

static int report(Ctx *c, RtWeights *w, const RtFrom *from, const List *missing, const char *first, int loaded,
                  int all)
{
	List spare = { 0 };
	char rule[LONGEST] = "";
	int state = 0;
	for (int i = 0; i < w->nitem; i++) {
		bool theirs = !w->item[i].used && of_optimizer(w, w->item[i].name);
		state += theirs;
		if (!w->item[i].used && !theirs)
			add(&spare, w->item[i].e->name);
	}
	bool say = !c->rank && !c->error;
	if (say)
		fprintf(stderr, "weights: %d of %d loaded from %s\n", loaded, all, from->path);
	if (say && missing->count)
		fprintf(stderr, "weights: missing: %s%s\n", missing->most, more(missing, SHOWN));
	if (say && spare.count)
		fprintf(stderr, "weights: not used: %s%s\n", spare.most, more(&spare, SHOWN));
	if (say && state)
		fprintf(stderr, "weights: not used: the state of an optimizer, %d tensors\n", state);
	bool none = !loaded && all, lacks = missing->count && !from->partial;
	if ((none || lacks) && !c->rank)
		rt_error(c, RT_DATA, "%s has %s%s%s%s%s", from->path,
			none ? "nothing that this program needs: " : "no ",
			missing->few, more(missing, FEW), advice(w, first, rule, sizeof rule),
			none ? "" : "; --weights-partial initializes missing tensors as the model says");
	return none || lacks ? RT_DATA : 0;
}

/* Finds the tensor for each row, and reports those that do not fit, are missing, or are unused. */
static int match(Ctx *c, RtWeights *w, const RtFrom *from)
{
	const RtProgram *p = c->program;
	List missing = { 0 };
	const char *first = "";
	int loaded = 0, all = 0;
	w->row = calloc((size_t)p->nkept + 1, sizeof *w->row);
	if (!w->row)
		return rt_error(c, RT_MEMORY, "no memory for the names of weights");
	for (int i = 0; i < p->nkept; i++) {
		const RtKept *v = &p->kept[i];
		if (v->keep == RT_CONSTANT && !(w->ours && v->start == RT_DATA_FILE))
			continue;
		Item *one = item_of(w, p, v);
		w->row[i] = one;
		if (one && (!same_shape(one->e, &v->t) || !converts(one->e->type, v->t.type)))
			return c->rank ? RT_DATA : unfit(c, from->path, one, &v->t);
		if (one)
			one->used = true;
		all += needed(w, v);
		loaded += needed(w, v) && one;
		if (needed(w, v) && !one) {
			first = missing.count ? first : v->t.name;
			add(&missing, v->t.name);
		}
	}
	for (int i = 1; i < w->nitem; i++) {
		const Item *a = &w->item[i - 1], *b = &w->item[i];
		if (strcmp(a->name, b->name) || !(a->used || b->used))
			continue;
		return c->rank ? RT_DATA : rt_error(c, RT_DATA, "%s: both %s and %s map to the same name", from->path,
		                                    rt_shown(a->e->name), rt_shown(b->e->name));
	}
	return report(c, w, from, &missing, first, loaded, all);
}

/* Ranks on other machines may use other paths, but the contents must be the same: so all ranks match alike, and rank 0
 * reports the result. */
static int same_files(Ctx *c, const RtWeights *w)
{
	RtFact fact = { "the weights", "" };
	uint64_t bytes = 0;
	uint32_t crc = 0;
	for (int i = 0; i < w->nfile; i++) {
		crc = rt_crc32c(crc, w->file[i].file.data, (size_t)(w->file[i].data - w->file[i].file.data));
		bytes += w->file[i].file.bytes;
	}
	snprintf(fact.value, RT_FACT, "%" PRIu64 " bytes, headers %08" PRIx32, bytes, crc);
	return rt_same(c, 1, &fact);
}

int rt_weights_open(Ctx *c, const RtFrom *from, RtWeights *w)
{
	struct stat st;
	*w = (RtWeights){ 0 };
	bool folder = !stat(from->path, &st) && S_ISDIR(st.st_mode);
	int code = folder ? open_folder(c, w, from->path) : open_file(c, w, from->path);
	code = (int)rt_worst(c, (uint32_t)code);
	if (!code)
		code = same_files(c, w);
	w->ours = w->nfile == 1 && w->file[0].ours;
	for (int i = 0; i < w->nfile && !code; i++)
		code = add_items(c, w, from->map, &w->file[i]);
	if (!code && w->nitem)
		qsort(w->item, (size_t)w->nitem, sizeof *w->item, by_name);
	if (!code)
		code = match(c, w, from);
	if (code)
		rt_weights_close(w);
	return code;
}

bool rt_weights_row(const RtWeights *w, int row, RtType *is, const void **from)
{
	const Item *i = w->row ? w->row[row] : NULL;
	if (i) {
		*is = i->e->type;
		*from = i->data;
	}
	return i != NULL;
}

void rt_weights_close(RtWeights *w)
{
	for (int i = 0; i < w->nitem; i++)
		free(w->item[i].name);
	for (int i = 0; i < w->nfile; i++)
		rt_safe_close(&w->file[i]);
	free(w->item);
	free(w->row);
	free(w->file);
	*w = (RtWeights){ 0 };
}
