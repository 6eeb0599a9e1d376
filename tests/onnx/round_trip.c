/* round_trip [--refused-is-bad] FILE-OR-FOLDER...: every .onnx and .ir file is read, written as .onnx, read back, and
 * must then print as before; written once more it must give the same bytes.  Prints one line per folder or file
 * given. */
#include "ir.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int good, refused, wrong;

static char *printed(const Model *m, size_t *n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, n);

	print_model(f, m);
	fclose(f);
	return text;
}

static char *written(const Model *m, size_t *n)
{
	char *bytes = NULL;
	FILE *f = open_memstream(&bytes, n);

	if (onnx_write(f, m))
		wrong++;
	fclose(f);
	return bytes;
}

static void differ(const char *path, const char *what)
{
	printf("# %s: %s\n", path, what);
	wrong++;
}

/* The first line in which two texts differ. */
static void show(const char *a, const char *b)
{
	const char *la = a, *lb = b;

	while (*a && *a == *b) {
		if (*a == '\n')
			la = a + 1, lb = b + 1;
		a++, b++;
	}
	printf("#   before: %.*s\n#   after:  %.*s\n", (int)strcspn(la, "\n"), la, (int)strcspn(lb, "\n"), lb);
}

/* References to data inside of the file give its place there, which may change. */
static void without_offsets(char *text)
{
	char *to = text;

	for (const char *p = text; *p;) {
		if (!strncmp(p, "offset: \"", 9))
			p += 9 + strspn(p + 9, "0123456789");
		*to++ = *p++;
	}
	*to = 0;
}

static bool has_sparse(const char *bytes, size_t n)
{
	Model *m = onnx_read(file_memory("m.onnx", bytes, n));
	bool found = false;

	for (int i = 0; i < m->graph->ninit; i++)
		found |= m->graph->init[i]->data && m->graph->init[i]->data->sparse;
	for (int i = 0; i < m->graph->nnode; i++)
		for (int k = 0; k < m->graph->node[i]->nattr; k++)
			found |= m->graph->node[i]->attr[k].type == AT_TENSOR && !m->graph->node[i]->attr[k].ref &&
				m->graph->node[i]->attr[k].u.t->sparse;
	model_free(m);
	return found;
}

/* The text says all that the file does: read and written it gives the same bytes.  Sparse tensors are dense in text,
 * and large data is a reference to the file. */
static void text_trip(const char *path, const char *text, const char *bytes, size_t n)
{
	size_t m;

	if (strstr(text, "[location: ") || has_sparse(bytes, n))
		return;
	Model *model = parse_text(file_memory(path, text, strlen(text)));
	if (!model) {
		differ(path, "what was printed is not read");
		return;
	}
	char *again = written(model, &m);
	if (n != m || memcmp(bytes, again, n))
		differ(path, "through text it becomes another file");
	free(again);
	model_free(model);
}

static void trip(const char *path)
{
	size_t na, nb, nx, ny;

	diag_reset();
	Model *m = read_model(path);
	if (!m) {
		refused++;
		return;
	}
	char *a = printed(m, &na), *x = written(m, &nx);
	text_trip(path, a, x, nx);
	/* The same path: data that is printed as a reference to a file names it. */
	Model *back = onnx_read(file_memory(path, x, nx));
	if (!back || extdata_load_all(back) || verify_model(back)) {
		differ(path, "what was written is not read");
	} else {
		char *b = printed(back, &nb), *y = written(back, &ny);

		without_offsets(a);
		without_offsets(b);
		if (strcmp(a, b)) {
			differ(path, "it prints differently");
			show(a, b);
		} else if (nx != ny || memcmp(x, y, nx)) {
			differ(path, "written again it differs");
		} else {
			good++;
		}
		free(b);
		free(y);
	}
	free(a);
	model_free(m);
	if (back)
		model_free(back);
}

static bool ends(const char *s, const char *with)
{
	return strlen(s) > strlen(with) && !strcmp(s + strlen(s) - strlen(with), with);
}

static void walk(const char *path)
{
	struct stat st;
	struct dirent **list;
	int n;

	if (stat(path, &st))
		return;
	if (!S_ISDIR(st.st_mode)) {
		if (ends(path, ".onnx") || ends(path, ".ir"))
			trip(path);
		return;
	}
	if ((n = scandir(path, &list, NULL, alphasort)) < 0)
		return;
	for (int i = 0; i < n; i++) {
		char *inner = NULL;

		if (list[i]->d_name[0] != '.' && asprintf(&inner, "%s/%s", path, list[i]->d_name) > 0)
			walk(inner);
		free(inner);
		free(list[i]);
	}
	free(list);
}

int main(int argc, char **argv)
{
	bool strict = argc > 1 && !strcmp(argv[1], "--refused-is-bad");

	diag_out = strict ? stderr : NULL;
	for (int i = 1 + strict; i < argc; i++) {
		const char *slash = strrchr(argv[i], '/');

		good = refused = wrong = 0;
		walk(argv[i]);
		if (!good && !wrong && !refused)
			continue;
		if (wrong || (strict && refused))
			printf("not ok %s: %d of %d files, %d refused\n", slash ? slash + 1 : argv[i], wrong,
				good + refused + wrong, refused);
		else
			printf("ok %s\n# %d files, %d refused\n", slash ? slash + 1 : argv[i], good, refused);
	}
	return 0;
}
