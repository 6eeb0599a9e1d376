/* The main of a fuzz program where libFuzzer is not linked: each FILE, or each file in a FOLDER, is one input.
 * `build/asan/fuzz-text tests/fuzz/corpus/text crash-1234` replays a corpus and a finding. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int inputs;

static void replay(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(2);
	}
	if (S_ISDIR(st.st_mode)) {
		DIR *d = opendir(path);
		for (struct dirent *e; d && (e = readdir(d));) {
			char inner[4096];
			snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
			if (e->d_name[0] != '.')
				replay(inner);
		}
		if (d)
			closedir(d);
		return;
	}
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(st.st_size ? (size_t)st.st_size : 1);
	if (!f || !data)
		exit(2);
	size_t n = fread(data, 1, (size_t)st.st_size, f);
	fclose(f);
	fprintf(stderr, "%s\n", path);          /* the last line before a crash names the input */
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	inputs++;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%d inputs\n", inputs);
	return inputs == 0;
}
