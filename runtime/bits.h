/* The bits of a float, and back. */
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

#endif
