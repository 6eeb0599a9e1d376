/* data FOLDER: writes the digits of FOLDER in every form that trainers read, 600 of them: idx/ npy/ float/ cifar.bin
 * digits.safetensors; and a text as tokens of 8, 16 and 32 bits.  First checks that the order of samples is a
 * permutation, and that random numbers are normal, or uniform, and the same alone and in rows.
 * data FOLDER shards: without the checks; also the digits in pieces: parts/, half-0/ and half-1/, safe/, members/ (for
 * tar), and others/, 70 that none of these has. */
#include "comm.h"
#include "save.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { N = 600, MORE = 70, PIXELS = 64 };

static FILE *create(const char *path)
{
	FILE *f = fopen(path, "wb");
	if (!f) {
		perror(path);
		exit(1);
	}
	return f;
}

static int check_order(void)
{
	static const uint64_t sizes[] = { 1, 2, 3, 4, 5, 16, 17, 1000, 1797, 65536, 100003 };
	for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		uint64_t n = sizes[k], same = 0;
		unsigned char *seen = calloc(n, 1);
		for (uint64_t i = 0; i < n; i++) {
			uint64_t j = rt_shuffle(7, i, n);
			if (j >= n || seen[j]++)
				return printf("not ok permutation: %" PRIu64 " of %" PRIu64 "\n", i, n);
			same += j == rt_shuffle(8, i, n);
		}
		if (n > 100 && same > 20)
			return printf("not ok permutation: two keys agree on %" PRIu64 " of %" PRIu64 "\n", same, n);
		free(seen);
	}
	return !printf("ok permutation\n");
}

static int check_rows(RtIsa isa)
{
	static float row[1000];
	for (uint64_t from = 0; from < 300; from += 13)
		for (int64_t n = 0; n < 700; n += 129) {
			rt_gauss_many(isa, row, 9, from, n, 0.5f, 2);
			for (int64_t i = 0; i < n; i++) {
				float g = 2 * rt_gauss(9, from + (uint64_t)i);
				if (row[i] != 0.5f + g)
					return printf("not ok normal: %" PRId64 " of %" PRId64 " from %" PRIu64 "\n", i,
						n, from);
			}
			rt_unit_many(isa, row, 9, from, n, -1, 2);
			for (int64_t i = 0; i < n; i++) {
				float u = 2 * rt_unit(9, from + (uint64_t)i);
				if (row[i] != u - 1)
					return printf("not ok uniform: %" PRId64 " of %" PRId64 " from %" PRIu64 "\n",
						i, n, from);
			}
		}
	return 0;
}

static bool wide(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("avx2");
#else
	return false;
#endif
}

/* Moments of a million numbers, and how many lie within one, two, three and four deviations. */
static int check_numbers(void)
{
	enum { MANY = 1 << 20 };
	static const double within[] = { 0.6826895, 0.9544997, 0.9973002, 0.9999367 };
	double sum[4] = { 0 }, unit[2] = { 0 }, next = 0, last = 0;
	int near[4] = { 0 };
	for (uint64_t i = 0; i < MANY; i++) {
		double x = (double)rt_gauss(4, i), u = (double)rt_unit(4, i);
		for (int k = 0; k < 4; k++) {
			sum[k] += pow(x, k + 1);
			near[k] += fabs(x) < k + 1;
		}
		next += x * last;
		last = x;
		unit[0] += u;
		unit[1] += u * u;
	}
	bool bad = fabs(sum[0]) > 5000 || fabs(sum[1] / MANY - 1) > 0.007 || fabs(sum[2] / MANY) > 0.02 ||
		fabs(sum[3] / MANY - 3) > 0.05 || fabs(next) > 5000;
	for (int k = 0; k < 4; k++)
		bad |= fabs(near[k] - within[k] * MANY) > 5 * sqrt(MANY * within[k] * (1 - within[k]));
	bad |= fabs(unit[0] / MANY - 0.5) > 0.0015 || fabs(unit[1] / MANY - 1 / 3.0) > 0.0015;
	int ends = 0;                           /* where the number under the root is zero */
	for (uint64_t i = 0; i < 1 << 26; i++)
		if (rt_hash(4, i) >> 32 >= 0xFFFFFF80u || rt_hash(4, i) >> 32 < 0x80) {
			bad |= !isfinite(rt_gauss(4, 2 * i)) || !isfinite(rt_gauss(4, 2 * i + 1));
			ends++;
		}
	bad |= !ends;
	if (bad)
		return printf("not ok normal: moments %g %g %g %g, neighbours %g\n", sum[0] / MANY, sum[1] / MANY,
			sum[2] / MANY, sum[3] / MANY, next / MANY);
	if (check_rows(RT_PLAIN) || (wide() && check_rows(RT_AVX2)))
		return 1;
	return !printf("ok normal\n");
}

static void npy(const char *path, const char *type, const char *shape, const void *data, size_t bytes)
{
	FILE *f = create(path);
	char head[118];
	snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
	fprintf(f, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0, head);
	fwrite(data, 1, bytes, f);
	fclose(f);
}

static void idx(const char *path, int ndim, const void *data, size_t bytes)
{
	static const unsigned char head[3][16] = { { 0, 0, 8, 1, 0, 0, 2, 88 }, { 0 }, { 0, 0, 8, 3, 0, 0, 2, 88, 0, 0,
		0, 8, 0, 0, 0, 8 } };
	FILE *f = create(path);
	fwrite(head[ndim - 1], 1, 4 + 4 * (size_t)ndim, f);
	fwrite(data, 1, bytes, f);
	fclose(f);
}

static void piece(const char *dir, const char *image_name, const char *label_name, const unsigned char *image,
	const int64_t *number, int from, int to)
{
	char path[300], shape[64];
	snprintf(path, sizeof path, "%s/%s", dir, image_name);
	snprintf(shape, sizeof shape, "%d, 8, 8", to - from);
	if (image)
		npy(path, "|u1", shape, image + from * PIXELS, (size_t)(to - from) * PIXELS);
	snprintf(path, sizeof path, "%s/%s", dir, label_name);
	snprintf(shape, sizeof shape, "%d,", to - from);
	if (number)
		npy(path, "<i8", shape, number + from, (size_t)(to - from) * sizeof *number);
}

static void safe(const char *path, const unsigned char *image, const int64_t *number, int from, int to)
{
	char text[256];
	int k = to - from;
	uint64_t n = (uint64_t)snprintf(text, sizeof text,
		"{\"image\":{\"dtype\":\"U8\",\"shape\":[%d,8,8],\"data_offsets\":[0,%d]},"
		"\"label\":{\"dtype\":\"I64\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}",
		k, k * PIXELS, k, k * PIXELS, k * (PIXELS + 8));
	FILE *f = create(path);
	fwrite(&n, 1, 8, f);
	fwrite(text, 1, n, f);
	fwrite(image + from * PIXELS, 1, (size_t)k * PIXELS, f);
	fwrite(number + from, 8, (size_t)k, f);
	fclose(f);
}

/* Pieces of images and of labels end at other samples. */
static void shards(const unsigned char *image, const unsigned char *label, const int64_t *number)
{
	static const char *const dirs[] = { "parts", "half-0", "half-1", "safe", "members", "others" };
	char path[64];
	for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++)
		mkdir(dirs[i], 0777);
	piece("parts", "image-10.npy", "", image, NULL, 0, 250);
	piece("parts", "image-9.npy", "", image, NULL, 250, N);
	piece("parts", "", "label-a.npy", NULL, number, 0, 1);
	piece("parts", "", "label-b.npy", NULL, number, 1, N);
	piece("half-0", "image.npy", "label.npy", image, number, 0, 333);
	piece("half-1", "image.npy", "label.npy", image, number, 333, N);
	piece("others", "image.npy", "label.npy", image, number, N, N + MORE);
	safe("safe/a.safetensors", image, number, 0, 7);
	safe("safe/b.safetensors", image, number, 7, N);
	for (int i = 0; i < N; i++) {
		snprintf(path, sizeof path, "members/%03d.image.npy", i);
		npy(path, "|u1", "8, 8", image + i * PIXELS, PIXELS);
		snprintf(path, sizeof path, "members/%03d.label.bin", i);
		FILE *f = create(path);
		fwrite(&label[i], 1, 1, f);
		fclose(f);
	}
}

static void tokens(void)
{
	FILE *one = create("text"), *two = create("text.16"), *four = create("text.32");
	for (unsigned i = 0; i < 20000; i++) {
		unsigned char c[4] = { (unsigned char)("the quick brown fox "[i % 20] ^ (i / 20 % 7 == 0)), 0, 0, 0 };
		fwrite(c, 1, 1, one);
		fwrite(c, 1, 2, two);
		fwrite(c, 1, 4, four);
	}
	fclose(one);
	fclose(two);
	fclose(four);
}

int main(int argc, char **argv)
{
	static unsigned char image[(N + MORE) * PIXELS], label[N + MORE], head[16];
	static float wide[N * PIXELS];
	static int64_t number[N + MORE];
	char path[4096];
	if (argc < 2 || (argc < 3 && (check_numbers() || check_order())))
		return argc < 2 ? 2 : 0;
	snprintf(path, sizeof path, "%s/image.idx", argv[1]);
	FILE *f = fopen(path, "rb");
	snprintf(path, sizeof path, "%s/label.idx", argv[1]);
	FILE *g = fopen(path, "rb");
	if (!f || !g || fread(head, 1, 16, f) != 16 || fread(image, 1, sizeof image, f) != sizeof image ||
		fread(head, 1, 8, g) != 8 || fread(label, 1, sizeof label, g) != sizeof label)
		return 1;
	fclose(f);
	fclose(g);
	for (int i = 0; i < N * PIXELS; i++)
		wide[i] = (float)((double)image[i] * (double)(1 / 255.0f));
	for (int i = 0; i < N + MORE; i++)
		number[i] = label[i];
	mkdir("idx", 0777);
	mkdir("npy", 0777);
	mkdir("float", 0777);
	idx("idx/image.idx", 3, image, N * PIXELS);
	idx("idx/label.idx", 1, label, N);
	npy("npy/image.npy", "|u1", "600, 8, 8", image, N * PIXELS);
	npy("npy/label.npy", "<i8", "600,", number, N * sizeof *number);
	npy("float/image.npy", "<f4", "600, 1, 8, 8", wide, sizeof wide);
	npy("float/label.npy", "|u1", "600,", label, N);
	f = create("cifar.bin");
	for (int i = 0; i < N; i++) {
		fwrite(&label[i], 1, 1, f);
		fwrite(image + i * PIXELS, 1, PIXELS, f);
	}
	fclose(f);
	safe("digits.safetensors", image, number, 0, N);
	if (argc > 2)
		shards(image, label, number);
	tokens();
	return 0;
}
