/* The table of input files: mapped, or text that is in memory. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static SrcFile **files;
static int nfile;

SrcFile *file_of(uint32_t f)
{
	return f && f <= (uint32_t)nfile ? files[f - 1] : NULL;
}

uint32_t file_memory(const char *path, const void *data, size_t bytes)
{
	SrcFile *f = arena_new(&arena_process, SrcFile);

	f->path = name_of(path);
	f->data = data;
	f->bytes = bytes;
	f->arena = &arena_process;
	arena_push(&arena_process, files, nfile, f);
	return (uint32_t)nfile;
}

uint32_t file_open(const char *path, ExitCode *why)
{
	struct stat st;
	const char *p = diag_escape(&arena_process, path, strlen(path));
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	*why = EXIT_ENV;
	if (fd < 0 || fstat(fd, &st) < 0) {
		fail_at(EXIT_ENV, (Loc){ 0 }, "cannot read %s: %s", p, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		fail_at(EXIT_ENV, (Loc){ 0 }, "cannot read %s: it is %s", p,
			S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
	} else if (st.st_size > limits.onnx_bytes) {
		*why = EXIT_LIMIT;
		fail_at(EXIT_LIMIT, (Loc){ 0 }, "%s has %lld bytes, more than --max-onnx-bytes=%lld", p,
			(long long)st.st_size, (long long)limits.onnx_bytes);
	} else {
		void *map = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : (void *)"";

		if (map == MAP_FAILED) {
			fail_at(EXIT_ENV, (Loc){ 0 }, "cannot map %s: %s", p, strerror(errno));
		} else {
			close(fd);
			*why = EXIT_OK;
			arena_input(st.st_size);
			return file_memory(path, map, (size_t)st.st_size);
		}
	}
	if (fd >= 0)
		close(fd);
	return 0;
}
