/* bench-npy FILE f4|i8 HIGH DIM...: writes an array for bench/steps: numbers in (-1, 1), or integers below HIGH. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	FILE *f = fopen(argv[1], "wb");
	if (!f)
		return 1;
	char head[256], dims[128] = "";
	int64_t n = 1;
	uint64_t s = 88172645463325252u, high = strtoull(argv[3], NULL, 10);
	for (int i = 4; i < argc; i++) {
		n *= atoll(argv[i]);
		snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%lld, ", atoll(argv[i]));
	}
	int len = snprintf(head, sizeof head, "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }", argv[2],
		dims);
	while ((10 + len + 1) % 64)
		head[len++] = ' ';
	head[len++] = '\n';
	fwrite("\x93NUMPY\x01\x00", 1, 8, f);
	fputc(len & 255, f);
	fputc(len >> 8, f);
	fwrite(head, 1, (size_t)len, f);
	for (int64_t i = 0; i < n; i++) {
		s ^= s << 13, s ^= s >> 7, s ^= s << 17;
		float x = (float)(s >> 40) * 0x1p-23f - 1;
		uint64_t k = s % (high ? high : 1);
		fwrite(argv[2][0] == 'f' ? (void *)&x : (void *)&k, argv[2][0] == 'f' ? sizeof x : sizeof k, 1, f);
	}
	return fclose(f) != 0;
}
