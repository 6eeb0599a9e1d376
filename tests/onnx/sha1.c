/* SHA-1 against the examples of FIPS 180-4, and around the length where the padding needs a block of its own. */
#include "ir.h"

#include <stdlib.h>
#include <string.h>

static void check(const char *what, const void *data, size_t n, const char *want)
{
	char got[41];

	sha1_text(data, n, got);
	if (strcmp(got, want))
		printf("not ok %s: %s, not %s\n", what, got, want);
	else
		printf("ok %s\n", what);
}

int main(void)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	char *many = malloc(1000000);

	memset(many, 'a', 1000000);
	check("nothing", "", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	check("abc", "abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
	check("two blocks", two, 56, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	check("55 bytes", many, 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
	check("63 bytes", many, 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
	check("64 bytes", many, 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
	check("a million", many, 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
	free(many);
	return 0;
}
