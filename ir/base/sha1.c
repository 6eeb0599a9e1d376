/* SHA-1 (FIPS 180-4, section 6.1), which ONNX uses for the checksum of external data.  It detects damaged files; it is
 * no protection against files that were made to have the same checksum. */
#include "base.h"

#include <string.h>

static uint32_t rotate(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void block(uint32_t h[5], const uint8_t *p)
{
	static const uint32_t k[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (int t = 0; t < 80; t++)
		if (t < 16)
			w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 | (uint32_t)p[4 * t + 2] << 8 |
			       p[4 * t + 3];
		else
			w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (int t = 0; t < 80; t++) {
		uint32_t f = t < 20 ? (b & c) | (~b & d) : t >= 40 && t < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
		uint32_t next = rotate(a, 5) + f + e + k[t / 20] + w[t];

		e = d, d = c, c = rotate(b, 30), b = a, a = next;
	}
	h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

void sha1_text(const void *data, size_t bytes, char text[41])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	const uint8_t *p = data;
	uint8_t last[128] = { 0 };
	size_t whole = bytes / 64 * 64, rest = bytes - whole, n = rest < 56 ? 64 : 128;

	for (size_t i = 0; i < whole; i += 64)
		block(h, p + i);
	if (rest)
		memcpy(last, p + whole, rest);
	last[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		last[n - 1 - (size_t)i] = (uint8_t)((uint64_t)bytes * 8 >> (8 * i));
	for (size_t i = 0; i < n; i += 64)
		block(h, last + i);
	for (int i = 0; i < 5; i++)
		snprintf(text + 8 * i, 9, "%08x", h[i]);
}
