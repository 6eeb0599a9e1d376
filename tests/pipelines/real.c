/* real ONE OTHER: how far two runs of a model are apart.  Each is a folder with dump (of --dump) and state.safetensors
 * (of a checkpoint).  It prints "gradients G of N, weights W" and where: the largest distance of a parameter's
 * gradient, and of a saved tensor, as a part of its norm; 0 if all bits are equal.  A norm counts as at least 1/1000 of
 * the largest one, because some gradients, such as that of the bias of keys, are 0 but for rounding.  A gradient whose
 * terms on the ranks are never added (clipping multiplies terms) is their sum.  If OTHER lacks a tensor, has it in
 * another shape, or a number is not finite, the exit status is 1. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct File { char *bytes; long n; } File;
typedef struct Far { char name[256]; double far, norm; int equal; } Far;
typedef struct Fars { Far row[1000]; int n; } Fars;

static int read_all(const char *path, File *f)
{
	FILE *in = fopen(path, "rb");
	*f = (File){ 0 };
	if (!in)
		return -1;
	if (fseek(in, 0, SEEK_END) || (f->n = ftell(in)) < 10 || fseek(in, 0, SEEK_SET) ||
		!(f->bytes = calloc(1, (size_t)f->n + 1)) || fread(f->bytes, 1, (size_t)f->n, in) != (size_t)f->n) {
		printf("cannot read %s\n", path);
		exit(1);
	}
	return fclose(in);
}

static void refuse(const char *name, const char *why)
{
	printf("%s %s\n", name, why);
	exit(1);
}

/* Of two tensors of float. */
static void compare(Fars *f, const char *name, const char *a, const char *b, long bytes)
{
	Far *x = &f->row[f->n++];
	if (f->n == (int)(sizeof f->row / sizeof f->row[0]))
		refuse(name, "is one tensor too many");
	*x = (Far){ .equal = !memcmp(a, b, (size_t)bytes) };
	snprintf(x->name, sizeof x->name, "%s", name);
	for (long i = 0; i + 4 <= bytes; i += 4) {
		float u, v;
		memcpy(&u, a + i, 4);
		memcpy(&v, b + i, 4);
		x->far += ((double)u - v) * ((double)u - v);
		x->norm += (double)u * u;
	}
	x->far = sqrt(x->far);
	x->norm = sqrt(x->norm);
	if (!isfinite(x->far) || !isfinite(x->norm))
		refuse(name, "is not finite");
}

static const Far *farthest(Fars *f, double *part)
{
	const Far *most = NULL;
	double norm = 0;
	for (int i = 0; i < f->n; i++)
		norm = f->row[i].norm > norm ? f->row[i].norm : norm;
	*part = 0;
	for (int i = 0; i < f->n; i++) {
		const Far *x = &f->row[i];
		double d = x->equal ? 0 : x->far / fmax(x->norm, norm / 1000) + 1e-99;
		if (d > *part) {
			*part = d;
			most = x;
		}
	}
	return most;
}

/* Of a file of numpy: two bytes of length behind the first eight. */
static long body_of(const File *f)
{
	long at = 10 + (unsigned char)f->bytes[8] + 256 * (unsigned char)f->bytes[9];
	return at < f->n ? at : f->n;
}

/* The sum of the terms of the ranks in place of the first one; NULL: there are none. */
static char *add_terms(const char *folder, const char *name, File *sum)
{
	char path[4096];
	File term;
	for (int r = 0; r < 64; r++) {
		snprintf(path, sizeof path, "%s/%s.grad.rank%d.npy", folder, name, r);
		if (read_all(path, &term))
			continue;
		if (!sum->bytes)
			*sum = term;
		else if (sum->n != term.n)
			refuse(name, "has terms of several shapes");
		for (long i = body_of(sum); sum->bytes != term.bytes && i + 4 <= sum->n; i += 4) {
			float u, v;
			memcpy(&u, sum->bytes + i, 4);
			memcpy(&v, term.bytes + i, 4);
			u += v;
			memcpy(sum->bytes + i, &u, 4);
		}
		if (sum->bytes != term.bytes)
			free(term.bytes);
	}
	return sum->bytes;
}

static void compare_gradient(Fars *f, char **run, const char *name)
{
	char path[4096], folder[2048];
	File a, b;
	snprintf(path, sizeof path, "%s/dump/step/%s.grad.npy", run[1], name);
	if (read_all(path, &a))
		return;                 /* a running statistic has none */
	snprintf(folder, sizeof folder, "%s/dump/step", run[2]);
	snprintf(path, sizeof path, "%s/%s.grad.npy", folder, name);
	if (read_all(path, &b) && !add_terms(folder, name, &b))
		refuse(name, "has no gradient");
	if (a.n != b.n || memcmp(a.bytes, b.bytes, (size_t)body_of(&a)))
		refuse(name, "has a gradient of another type or shape");
	compare(f, name, a.bytes + body_of(&a), b.bytes + body_of(&a), a.n - body_of(&a));
	free(a.bytes);
	free(b.bytes);
}

static void gradients(Fars *f, char **run)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/dump/kept", run[1]);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		char *end = strstr(e->d_name, ".npy");
		if (!end)
			continue;
		*end = '\0';
		compare_gradient(f, run, e->d_name);
	}
	if (d)
		closedir(d);
	if (!f->n)
		refuse(path, "has no gradients");
}

/* Of files of safetensors: 8 bytes of length, then a line for each tensor with "data_offsets":[from,to]. */
static void weights(Fars *f, char **run)
{
	char path[4096], name[256];
	File file[2];
	unsigned long long head;
	const char *key = "\"data_offsets\":[";
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/state.safetensors", run[1 + i]);
		if (read_all(path, &file[i]))
			refuse(path, "is missing");
	}
	const char *a = file[0].bytes, *b = file[1].bytes;
	memcpy(&head, a, 8);
	if (file[0].n != file[1].n || head > (unsigned long long)file[0].n - 8 || memcmp(a, b, 8 + head))
		refuse(path, "has other tensors");
	for (const char *at = a + 8; (at = strstr(at, key)) && at < a + 8 + head; at++) {
		long from = 0, to = 0, start = 8 + (long)head;
		const char *line = at;
		while (line > a + 8 && *line != '\n')
			line--;
		if (sscanf(line + 1, "\"%255[^\"]", name) != 1 ||
			sscanf(at + strlen(key), "%ld,%ld", &from, &to) != 2 || from < 0 || from > to ||
			to > file[0].n - start)
			refuse(path, "is no file of safetensors");
		compare(f, name, a + start + from, b + start + from, to - from);
	}
	free(file[0].bytes);
	free(file[1].bytes);
}

int main(int argc, char **argv)
{
	static Fars grad, weight;
	double g, w;
	if (argc != 3)
		return 2;
	gradients(&grad, argv);
	weights(&weight, argv);
	const Far *x = farthest(&grad, &g), *y = farthest(&weight, &w);
	printf("gradients %.1e of %d, weights %.1e%s%s%s%s\n", g, grad.n, w, x || y ? " at " : "", x ? x->name : "",
		x && y ? ", " : "", y ? y->name : "");
	return 0;
}
