/* A data set: the files that the model or the command line names, in order, as one Column of samples per
 * input.
 *
 * Paths are files, folders or patterns such as shards/0*.bin, which stand for the matching files, sorted by their
 * bytes.  If a folder is given instead of the path of the model, files are looked up in it by the last component of
 * their names.  Shapes are checked when the set is opened, values when they are fetched. */
#include "data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST = 32768 };          /* files: each is mapped */

static void *grow(void *p, int n, int *room, size_t size)
{
	if (n < *room)
		return p;
	void *q = realloc(p, (size_t)(*room ? 2 * *room : 4) * size);
	if (q)
		*room = *room ? 2 * *room : 4;
	return q;
}

int set_add_file(Ctx *c, Set *s, char *path, RtFile **f)
{
	RtFile *file = s->nfile < MOST ? grow(s->file, s->nfile, &s->room, sizeof *file) : NULL;
	if (!file) {
		free(path);
		return s->nfile == MOST ? rt_error(c, RT_DATA, "a data set of more than %d files", MOST)
		                        : rt_error(c, RT_MEMORY, "no memory");
	}
	s->file = file;
	*f = &file[s->nfile];
	int code = rt_file_open(c, RT_DATA, path, *f);
	if (code) {
		free(path);
		return code;
	}
	(*f)->path = path;
	s->nfile++;
	return 0;
}

/* Consecutive runs with the same stride become one. */
int set_add_run(Ctx *c, Column *col, const unsigned char *data, int file, int64_t n, int64_t stride)
{
	Run *last = col->nrun ? &col->run[col->nrun - 1] : NULL;
	if (last && last->file == file && n == 1 && !stride) {
		int64_t step = data - (last->data + (last->n - 1) * last->stride);
		if (step > 0 && (last->n == 1 || step == last->stride)) {
			last->stride = step;
			last->n++;
			col->n++;
			return 0;
		}
	}
	Run *run = grow(col->run, col->nrun, &col->room, sizeof *run);
	if (!run)
		return rt_error(c, RT_MEMORY, "no memory");
	col->run = run;
	run[col->nrun++] = (Run){ .data = data, .file = file, .first = col->n, .n = n, .stride = stride };
	col->n += n;
	return 0;
}

/* A file holds samples along its first axis, or one sample.  Its other axes must match the declared shape; axes of
 * length 1 are ignored. */
int set_take_array(Ctx *c, Set *s, int input, const char *what, RtType type, bool big, int naxis, const int64_t *dim,
	const unsigned char *data, size_t bytes, bool samples)
{
	const RtInput *in = &c->program->io[RT_TRAIN].input[input];
	const RtData *d = &c->program->data;
	Column *col = &s->column[input];
	char is[256], want[256];
	int64_t n = samples && naxis ? dim[0] : 1, count = 1;
	int a = samples, b = 1;
	for (;; a++, b++) {
		while (a < naxis && dim[a] == 1)
			a++;
		while (b < in->t.naxis && in->t.dim[b] == 1)
			b++;
		if (a >= naxis || b >= in->t.naxis || dim[a] != in->t.dim[b])
			break;
		count *= dim[a];
	}
	if (a < naxis || b < in->t.naxis || (samples && naxis < 1))
		return rt_error(c, RT_DATA, "%s is %s; %s needs samples of %s", what,
			rt_shape_text(is, sizeof is, type, naxis, dim), in->t.name,
			rt_shape_text(want, sizeof want, in->t.type, in->t.naxis - 1, in->t.dim + 1));
	int64_t w = (int64_t)rt_width(type), need;
	if (__builtin_mul_overflow(count * w, n, &need) || (size_t)need != bytes)
		return rt_error(c, RT_DATA, "%s has %zu bytes of elements; its shape %s needs %" PRId64, what, bytes,
			rt_shape_text(is, sizeof is, type, naxis, dim), need);
	if (col->nrun && (col->type != type || col->big != big))
		return rt_error(c, RT_DATA, "%s holds %s%s; %s before it holds %s%s", what, rt_type_name(type),
			big ? " of the other byte order" : "", s->file[col->run[col->nrun - 1].file].path,
			rt_type_name(col->type), col->big ? " of the other byte order" : "");
	bool images = d->format == RT_IDX && type == RT_U8;
	col->type = type;
	col->big = big;
	col->count = count;
	col->scale = d->scale != 0 ? d->scale : images ? 1 / 255.0f : 1;
	col->mean = d->mean;
	col->dev = d->dev != 0 ? d->dev : 1;
	return set_add_run(c, col, data, s->nfile - 1, n, samples ? count * w : 0);
}

/* All inputs must have equally many samples; checked after each path, so that the message names the wrong file. */
static int same_counts(Ctx *c, Set *s)
{
	const Column *first = NULL;
	for (int i = 0; i < s->ncolumn; i++) {
		const Column *col = &s->column[i];
		if (!col->nrun)
			continue;
		if (first && first->n != col->n)
			return rt_error(c, RT_DATA, "%s: %" PRId64 " samples of %s, %" PRId64 " of %s up to %s",
				s->file[col->run[col->nrun - 1].file].path, col->n,
				c->program->io[RT_TRAIN].input[i].t.name, first->n,
				c->program->io[RT_TRAIN].input[first - s->column].t.name,
				s->file[first->run[first->nrun - 1].file].path);
		first = first ? first : col;
	}
	s->n = first ? first->n : 0;
	return 0;
}

static int count_samples(Ctx *c, Set *s)
{
	int code = same_counts(c, s);
	for (int i = 0; i < s->ncolumn && !code; i++) {
		const Column *col = &s->column[i];
		if (!col->stream)
			continue;
		s->n = (col->n - 1) / col->count;
		if (s->n < 1)
			code = rt_error(c, RT_DATA, "%s%s has %" PRId64 " tokens; one sample needs %" PRId64,
				s->file[0].path, s->nfile > 1 ? " with the files after it" : "", col->n,
				col->count + 1);
	}
	if (!code && !s->n)
		code = rt_error(c, RT_DATA, "%s: the data set has no samples", s->nfile ? s->file[0].path : "data");
	return code;
}

static bool is_folder(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static char *in_folder(const char *folder, const char *name)
{
	const char *last = folder && strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	size_t n = strlen(last) + (folder ? strlen(folder) : 0) + 2;
	char *s = malloc(n);
	if (s)
		snprintf(s, n, "%s%s%s", folder ? folder : "", folder ? "/" : "", last);
	return s;
}

/* Opens every file that matches a pattern; input < 0: files hold all inputs. */
static int open_pattern(Ctx *c, Set *s, char *pattern, int input)
{
	Paths list = { 0 };
	int bad = pattern ? paths_add(&list, pattern) : ENOMEM, code = 0;
	if (bad == ENOENT)
		code = rt_error(c, RT_DATA, "cannot read %s: no file matches", pattern);
	else if (bad)
		code = rt_error(c, RT_MEMORY, "no memory");
	free(pattern);
	for (int i = 0; i < list.n && !code; i++) {
		char *path = list.path[i];
		list.path[i] = NULL;
		code = input < 0 ? format_open(c, s, path) : format_input(c, s, input, path);
		if (!code && input < 0)
			code = same_counts(c, s);
	}
	paths_free(&list);
	return code;
}

/* FOLDER/x.npy; FOLDER/x-*.npy, several files of one array; or the file that the model names for the input, in that
 * folder if there is one. */
static int open_array(Ctx *c, Set *s, int input, const char *folder)
{
	const RtInput *in = &c->program->io[RT_TRAIN].input[input];
	const char *end = c->program->data.format == RT_IDX ? ".idx" : ".npy";
	char plain[RT_PATH], pattern[RT_PATH];
	struct stat st;
	Paths many = { 0 };
	if (in->file)
		return open_pattern(c, s, in_folder(folder, in->file), input);
	int n = snprintf(plain, sizeof plain, "%s/%s%s", folder ? folder : ".", in->t.name, end), k;
	k = snprintf(pattern, sizeof pattern, "%s/", folder ? folder : ".");
	for (const char *p = in->t.name; *p && k < (int)sizeof pattern - 16; p++)
		k += snprintf(pattern + k, sizeof pattern - (size_t)k, "%s%c", strchr("*?[\\", *p) ? "\\" : "", *p);
	if (n < 0 || n >= (int)sizeof plain || k >= (int)sizeof pattern - 16)
		return rt_error(c, RT_DATA, "the path of %s is too long", in->t.name);
	snprintf(pattern + k, sizeof pattern - (size_t)k, "-*%s", end);
	bool one = !stat(plain, &st), several = !paths_add(&many, pattern);
	int code = 0;
	if (one && several)
		code = rt_error(c, RT_DATA, "both %s and %s exist: remove one, or name the file of %s in the model",
			plain, many.path[0], in->t.name);
	paths_free(&many);
	return code ? code : open_pattern(c, s, strdup(several ? pattern : plain), input);
}

static int open_folder(Ctx *c, Set *s, const char *folder)
{
	int code = folder && !is_folder(folder)
		? rt_error(c, RT_DATA, "cannot read %s: it is not a folder", folder) : 0;
	for (int i = 0; i < s->ncolumn && !code; i++)
		if (c->program->io[RT_TRAIN].input[i].feed == RT_SAMPLES)
			code = open_array(c, s, i, folder);
	return code ? code : same_counts(c, s);
}

static int open_folders(Ctx *c, Set *s, const char *pattern)
{
	Paths list = { 0 };
	int bad = paths_add(&list, pattern),
	    code = bad ? rt_error(c, RT_DATA, "cannot read %s: %s", pattern, strerror(bad)) : 0;
	for (int i = 0; i < list.n && !code; i++)
		code = open_folder(c, s, list.path[i]);
	paths_free(&list);
	return code;
}

int set_open(Ctx *c, Set *s, const char *instead)
{
	const RtData *d = &c->program->data;
	int n = c->program->io[RT_TRAIN].ninput, code = 0;
	*s = (Set){ .column = calloc((size_t)n + 1, sizeof *s->column), .ncolumn = n };
	if (!s->column)
		return rt_error(c, RT_MEMORY, "no memory");
	bool arrays = format_has_arrays(d->format), folder = instead && is_folder(instead);
	if (d->format == RT_POINTS || d->format == RT_NO_DATA)
		return instead ? rt_error(c, RT_USAGE, "%s cannot be read: the model generates its samples", instead)
		               : 0;
	if (arrays && instead)
		code = open_folders(c, s, instead);
	else if (instead && !folder)
		code = open_pattern(c, s, strdup(instead), -1);
	else if (arrays && !d->npath)
		code = open_folder(c, s, NULL);
	for (int i = 0; i < d->npath && !code && (!instead || (folder && !arrays)); i++)
		code = arrays ? open_folders(c, s, d->path[i])
		              : open_pattern(c, s, in_folder(instead, d->path[i]), -1);
	return code ? code : count_samples(c, s);
}

void set_close(Set *s)
{
	for (int i = 0; i < s->nfile; i++) {
		free((void *)(uintptr_t)s->file[i].path);
		rt_file_close(&s->file[i]);
	}
	for (int i = 0; i < s->ncolumn; i++)
		free(s->column[i].run);
	free(s->column);
	free(s->file);
	*s = (Set){ 0 };
}

size_t set_bytes(const Set *s)
{
	size_t n = s->nfile > FEW ? (size_t)s->room * sizeof *s->file : 0;
	for (int i = FEW; i < s->nfile; i++)
		n += strlen(s->file[i].path) + 80;      /* includes the lists of paths while the set is opened */
	for (int i = 0; i < s->ncolumn; i++)
		n += s->column[i].nrun > FEW ? (size_t)s->column[i].room * sizeof(Run) : 0;
	return n;
}

/* ---- checksums ---- */

/* Up to a GiB: all bytes; beyond: a few thousand evenly spaced blocks, at least one of each file, and the sizes. */
static uint32_t print_file(uint32_t crc, const RtFile *f, uint64_t total)
{
	enum { BLOCK = 64 << 10, BLOCKS = 4096 };
	uint64_t bytes = f->bytes;
	crc = rt_crc32c(crc, &bytes, sizeof bytes);
	if (total <= 1u << 30 || bytes <= BLOCK)
		return f->bytes ? rt_crc32c(crc, f->data, f->bytes) : crc;
	uint64_t n = (uint64_t)((double)BLOCKS * (double)bytes / (double)total);
	n = n ? n : 1;
	for (uint64_t i = 0; i < n; i++)
		crc = rt_crc32c(crc, f->data + (bytes - BLOCK) / n * i, BLOCK);
	return crc;
}

uint32_t set_print(const Set *s, uint32_t crc, uint32_t *after)
{
	uint64_t total = 0;
	for (int i = 0; i < s->nfile; i++)
		total += s->file[i].bytes;
	for (int i = 0; i < s->nfile; i++) {
		crc = print_file(crc, &s->file[i], total);
		if (after)
			after[i] = crc;
	}
	return crc;
}
