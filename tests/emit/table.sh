# Every row of the table, compiled and run, gives what the evaluator gives.
# seconds: 900
"$BUILD/test-emit-table" make || exit 1
"$SBPCC" model.ir -o tree >log 2>&1 || { echo "not ok compiles: $(head -n 3 log | tr '\n' ' ')"; exit 0; }
# The header names inputs and outputs in the order in which the library takes them.
sed -n 's/^ \*   in\[[0-9]*\]  \([^ ]*\) .*/\1/p' tree/model.h >in.txt
sed -n 's/^ \*   out\[[0-9]*\]  \([^ ]*\) .*/\1/p' tree/model.h >out.txt
cat >feed.c <<'END'
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
enum { MOST = 4096, BYTES = 1 << 16 };
static char name[2][MOST][128];
static void *data[2][MOST];
static size_t bytes[2][MOST];
static int read_names(const char *path, int which, const char *dir)
{
	FILE *f = fopen(path, "r");
	int n = 0;
	while (f && n < MOST && fscanf(f, "%127s", name[which][n]) == 1) {
		char file[300];
		snprintf(file, sizeof file, "%s/%s", dir, name[which][n]);
		FILE *d = fopen(file, "rb");
		data[which][n] = calloc(1, BYTES);
		bytes[which][n] = d ? fread(data[which][n], 1, BYTES, d) : 0;
		if (d)
			fclose(d);
		n++;
	}
	if (f)
		fclose(f);
	return n;
}
int main(void)
{
	read_names("in.txt", 0, "inputs");
	int n = read_names("out.txt", 1, "want");
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < bytes[1][i]; k++)
			((char *)data[1][i])[k] = 0x55;
	sbp_config *config = sbp_config_new();
	sbp_config_threads(config, 1);
	sbp_context *c = sbp_context_new(config);
	if (sbp_infer(c, (const void *const *)data[0], data[1])) {
		fprintf(stderr, "%s\n", sbp_error(c));
		return 1;
	}
	for (int i = 0; i < n; i++) {
		char file[300];
		snprintf(file, sizeof file, "got/%s", name[1][i]);
		FILE *f = fopen(file, "wb");
		if (!f || fwrite(data[1][i], 1, bytes[1][i], f) != bytes[1][i] || fclose(f))
			return 1;
	}
	sbp_context_free(c);
	sbp_config_free(config);
	return 0;
}
END
export flags="-std=c11 -D_GNU_SOURCE -O0 -g1 -Itree -Itree/rt -Itree/kernels -fsanitize=address,undefined -fno-sanitize-recover=all"
mkdir objects
# shellcheck disable=SC2016
find tree -name '*.c' ! -name trainer.c | xargs -P "$JOBS" -I{} sh -c 'gcc $flags -c -o "objects/$(echo {} | tr / _).o" {}' 2>log || { echo "not ok builds: $(head -n 3 log | tr '\n' ' ')"; exit 0; }
# shellcheck disable=SC2086
gcc $flags -o feed feed.c objects/*.o -pthread -lm 2>log || { echo "not ok builds: $(head -n 3 log | tr '\n' ' ')"; exit 0; }
ASAN_OPTIONS=detect_leaks=0 ./feed 2>log || { echo "not ok runs: $(head -n 5 log | tr '\n' ' ')"; exit 0; }
"$BUILD/test-emit-table" compare
