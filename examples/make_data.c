/* Makes the data of examples whose data sets are too large to ship, from files that every machine has:
 *
 *   make_data resnet DIGITS FILE    the handwritten digits of DIGITS, twice as large, in one colour on another:
 *                                   records as of CIFAR
 *   make_data bert TEXT DIR         pieces of 16 characters of TEXT, about one in seven masked: .npy
 *   make_data wide_deep DIR         visits drawn by a rule: .npy; prints the least loss that any model can have
 *
 * The same call makes the same bytes. */
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (state >> 20) % below;
}

static void stop(const char *why, const char *name)
{
	fprintf(stderr, "make_data: %s %s\n", why, name);
	exit(1);
}

static unsigned char *read_file(const char *dir, const char *name, size_t *bytes)
{
	char path[4096];
	snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name);
	FILE *f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END))
		stop("cannot read", path);
	*bytes = (size_t)ftell(f);
	rewind(f);
	unsigned char *p = malloc(*bytes + 1);
	if (!p || fread(p, 1, *bytes, f) != *bytes)
		stop("cannot read", path);
	fclose(f);
	return p;
}

static void write_file(const char *path, const char *head, size_t nhead, const void *data, size_t bytes)
{
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(head, 1, nhead, f) != nhead || fwrite(data, 1, bytes, f) != bytes || fclose(f))
		stop("cannot write", path);
}

/* type: '<i8', '<f4' or '|b1' with its size; shape: as Python writes it. */
static void write_npy(const char *dir, const char *name, const char *type, size_t size, const void *data, size_t count,
	const char *shape)
{
	char path[4096], head[192] = "\x93NUMPY\x01";
	int n = 10 + snprintf(head + 10, sizeof head - 10,
		"{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
	for (; n % 64 != 63; n++)
		head[n] = ' ';
	head[n++] = '\n';
	head[8] = (char)(n - 10);
	snprintf(path, sizeof path, "%s/%s.npy", dir, name);
	write_file(path, head, (size_t)n, data, count * size);
}

static void resnet(const char *digits, const char *to)
{
	enum { SIDE = 8, BIG = 2 * SIDE, RECORD = 1 + 3 * BIG * BIG };
	size_t bytes, nlabel;
	unsigned char *image = read_file(digits, "image.idx", &bytes) + 16,
		*label = read_file(digits, "label.idx", &nlabel) + 8;
	size_t n = nlabel - 8;
	if ((bytes - 16) / (SIDE * SIDE) != n)
		stop("not as many images as labels in", digits);
	unsigned char *all = malloc(n * RECORD), *at = all;
	for (size_t i = 0; i < n; i++) {
		*at++ = label[i];
		for (int colour = 0; colour < 3; colour++) {
			int ground = (int)draw(100), ink = 150 + (int)draw(106);
			for (int p = 0; p < BIG * BIG; p++)
				*at++ = (unsigned char)(ground + (ink - ground) *
					image[i * SIDE * SIDE + (size_t)(p / BIG / 2 * SIDE + p % BIG / 2)] / 255);
		}
	}
	write_file(to, "", 0, all, n * RECORD);
}

static void bert(const char *text, const char *dir)
{
	enum { LENGTH = 16, MASK = 0, REST = 1, N = 12000 };
	static int64_t tokens[N][LENGTH], segments[N][LENGTH], labels[N][LENGTH];
	static unsigned char present[N][LENGTH];
	static const char known[] = " abcdefghijklmnopqrstuvwxyz0123456789.,;:()\"'-/\n";
	size_t bytes;
	unsigned char *s = read_file(text, "", &bytes);
	if (bytes < 2 * LENGTH)
		stop("too short a text:", text);
	for (int i = 0; i < N; i++) {
		size_t at = (bytes - LENGTH) / N * (size_t)i, len = LENGTH - draw(5);
		for (size_t j = 0; j < LENGTH; j++) {
			int ch = tolower(s[at + j]);
			const char *k = ch ? strchr(known, ch) : NULL;
			int64_t token = k ? 2 + (k - known) : REST;
			present[i][j] = j < len;
			segments[i][j] = j >= LENGTH / 2;
			bool hidden = j < len && draw(7) == 0;
			labels[i][j] = hidden ? token : -1;
			tokens[i][j] = hidden ? MASK : j < len ? token : REST;
		}
	}
	write_npy(dir, "tokens", "<i8", sizeof **tokens, tokens, (size_t)N * LENGTH, "12000, 16");
	write_npy(dir, "segments", "<i8", sizeof **segments, segments, (size_t)N * LENGTH, "12000, 16");
	write_npy(dir, "labels", "<i8", sizeof **labels, labels, (size_t)N * LENGTH, "12000, 16");
	write_npy(dir, "present", "|b1", 1, present, (size_t)N * LENGTH, "12000, 1, 1, 16");
}

/* The term that a category adds to the log-odds of a click: a fixed number in -1 .. 1. */
static double effect(uint64_t kind, uint64_t k)
{
	uint64_t h = (kind * 1000003 + k + 1) * 0x9E3779B97F4A7C15u;
	h ^= h >> 29;
	return (double)(h * 0xBF58476D1CE4E5B9u >> 11) * 0x1p-52 - 1;
}

static void wide_deep(const char *dir)
{
	enum { N = 40000 };
	static int64_t category[N][4], crossed[N][3];
	static float dense[N][5], clicked[N];
	double least = 0;
	for (int i = 0; i < N; i++) {
		double odds = -0.5;
		for (int k = 0; k < 4; k++) {           /* few categories are common, most are rare */
			double u = (double)draw(1000000) / 1e6;
			category[i][k] = 250 * k + (int64_t)(250 * u * u * u);
			odds += effect((uint64_t)k, (uint64_t)category[i][k]);
		}
		for (int k = 0; k < 3; k++) {
			crossed[i][k] = (category[i][k] * 7 + category[i][k + 1] * 13) % 500;
			odds += effect(9, (uint64_t)crossed[i][k]);
		}
		for (int k = 0; k < 5; k++)
			dense[i][k] = (float)draw(2001) / 1000 - 1;
		odds += 1.5 * (double)(dense[i][0] * dense[i][1]) + (double)dense[i][2];
		double chance = 1 / (1 + exp(-odds));
		clicked[i] = (double)draw(1000000) / 1e6 < chance;
		least -= clicked[i] > 0 ? log(chance) : log(1 - chance);
	}
	write_npy(dir, "category", "<i8", sizeof **category, category, (size_t)N * 4, "40000, 4");
	write_npy(dir, "crossed", "<i8", sizeof **crossed, crossed, (size_t)N * 3, "40000, 3");
	write_npy(dir, "dense", "<f4", sizeof **dense, dense, (size_t)N * 5, "40000, 5");
	write_npy(dir, "clicked", "<f4", sizeof *clicked, clicked, N, "40000, 1");
	printf("loss of the rule that drew the clicks: %.4f\n", least / N);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "resnet"))
		resnet(argv[2], argv[3]);
	else if (argc == 4 && !strcmp(argv[1], "bert"))
		bert(argv[2], argv[3]);
	else if (argc == 3 && !strcmp(argv[1], "wide_deep"))
		wide_deep(argv[2]);
	else
		stop("usage: make_data resnet DIGITS FILE | bert TEXT DIR | wide_deep DIR", "");
	return 0;
}
