# Every row of the operator table, compiled and run, gives the result of the evaluator.
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
int main(int argc, char **argv)
{
	const char *to = argc > 2 ? argv[2] : "got";
	read_names("in.txt", 0, "inputs");
	int n = read_names("out.txt", 1, "want");
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < bytes[1][i]; k++)
			((char *)data[1][i])[k] = 0x55;
	sbp_config *config = sbp_config_new();
	sbp_config_threads(config, argc > 1 ? atoi(argv[1]) : 1);
	sbp_context *c = sbp_context_new(config);
	if (sbp_infer(c, (const void *const *)data[0], data[1])) {
		fprintf(stderr, "%s\n", sbp_error(c));
		return 1;
	}
	for (int i = 0; i < n; i++) {
		char file[300];
		snprintf(file, sizeof file, "%s/%s", to, name[1][i]);
		FILE *f = fopen(file, "wb");
		if (!f || fwrite(data[1][i], 1, bytes[1][i], f) != bytes[1][i] || fclose(f))
			return 1;
	}
	sbp_context_free(c);
	sbp_config_free(config);
	return 0;
}
END
# Every loop is split as finely as threads can split it: one thread and two give the same bits, and no two threads
# race.
build() { # name, flags
	export flags="-std=c11 -D_GNU_SOURCE -O0 -g1 -DRT_CUT_ALL=1 -Itree -Itree/rt -Itree/kernels $2" to=$1
	mkdir "$1"
	# shellcheck disable=SC2016
	find tree -name '*.c' ! -name trainer.c ! -name '*mpi*.c' | xargs -P "$JOBS" -I{} sh -c 'gcc $flags -c -o "$to/$(echo {} | tr / _).o" {}' 2>log &&
		gcc $flags -o "feed-$1" feed.c "$1"/*.o -pthread -lm 2>log || { echo "not ok builds: $(head -n 3 log | tr '\n' ' ')"; exit 0; }
}
build asan "-fsanitize=address,undefined -fno-sanitize-recover=all"
build tsan -fsanitize=thread
export ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=halt_on_error=1:exitcode=66
./feed-asan 1 got 2>log || { echo "not ok runs: $(head -n 5 log | tr '\n' ' ')"; exit 0; }
mkdir two tsan-two
./feed-asan 2 two 2>log && diff -rq got two >log 2>&1 && echo "ok two-threads" || { echo "not ok two-threads: other bits than with one" && sed 's/^/ /' log; }
./feed-tsan 2 tsan-two >log 2>&1 && echo "ok threads-apart" || { echo "not ok threads-apart: two threads meet" && sed 's/^/ /' log; }
"$BUILD/test-emit-table" compare
