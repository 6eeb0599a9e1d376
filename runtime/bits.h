/* The bits of a float, and back; half precision as float. */
#ifndef BITS_H
#define BITS_H

#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) float rt_from_bits(uint32_t i)
{
	float f;
	memcpy(&f, &i, sizeof f);
	return f;
}

static inline __attribute__((always_inline)) uint32_t rt_bits(float f)
{
	uint32_t i;
	memcpy(&i, &f, sizeof i);
	return i;
}

/* Half precision: 1 sign bit, 5 of the exponent, 10 of the fraction; every such number is a float. */
static inline float rt_from_half(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3FF;
	if (exponent == 0) {
		float f = (float)fraction * 0x1p-24f;
		return sign ? -f : f;
	}
	return rt_from_bits(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

#endif
