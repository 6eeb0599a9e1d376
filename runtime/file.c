/* Files that are mapped and only read, and the checksum of bytes on the disk. */
#include "save.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int64_t rt_file_time(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

int rt_file_open(Ctx *c, int code, const char *path, RtFile *f)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), why = 0;
	*f = (RtFile){ 0 };
	if (fd < 0 || fstat(fd, &st))
		why = errno;
	else if (S_ISDIR(st.st_mode))
		why = EISDIR;
	if (!why && !S_ISREG(st.st_mode)) {
		close(fd);
		return rt_error(c, code, "%s is not a regular file", path);
	}
	if (!why && st.st_size) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED)
			why = errno;
		else
			*f = (RtFile){ .data = p, .bytes = (size_t)st.st_size, .time = rt_file_time(&st) };
	}
	if (fd >= 0)
		close(fd);
	return why ? rt_error(c, code, "cannot read %s: %s", path, strerror(why)) : 0;
}

void rt_file_close(RtFile *f)
{
	if (f->bytes)
		munmap((void *)(uintptr_t)f->data, f->bytes);
	*f = (RtFile){ 0 };
}

/* Castagnoli's polynomial, reflected, four bits at a time. */
static uint32_t crc_plain(uint32_t r, const unsigned char *p, size_t n)
{
	static const uint32_t table[16] = {
		0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
		0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
	};
	for (; n; n--) {
		r ^= *p++;
		r = r >> 4 ^ table[r & 15];
		r = r >> 4 ^ table[r & 15];
	}
	return r;
}

#if defined __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc_fast(uint32_t crc, const unsigned char *p, size_t n)
{
	uint64_t r = crc, w;
	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, 8);
		r = __builtin_ia32_crc32di(r, w);
	}
	for (; n; n--)
		r = __builtin_ia32_crc32qi((uint32_t)r, *p++);
	return (uint32_t)r;
}
#endif

uint32_t rt_crc32c(uint32_t crc, const void *data, size_t n)
{
	const unsigned char *p = data;
	uint32_t r = ~crc;
#if defined __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc_fast(r, p, n);
#endif
	return ~crc_plain(r, p, n);
}
