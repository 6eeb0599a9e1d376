/* Copies with strides, of elements of 1, 4 or 8 bytes.  The axes are first merged into one list with the strides of
 * both arrays.  Then a run that is dense in both arrays is copied at once; a transposition goes tile by tile, so that
 * cache lines of both arrays are used fully; anything else is one loop. */
#include "kernels.h"
#include "isa.h"

#include <string.h>

enum { TILE = 16 };

typedef struct Move {
	int n;                          /* axes outside the run or tile */
	int64_t len[RT_AXES], to[RT_AXES], from[RT_AXES];
	int64_t a, ato, afrom;          /* the axis that is dense in from; length 1: no tile */
	int64_t b, bto, bfrom;          /* the innermost axis */
	unsigned char *y;
	const unsigned char *x;
} Move;

/* The offsets of run i in both arrays. */
static void begin(const Move *m, int64_t i, int64_t *to, int64_t *from)
{
	*to = *from = 0;
	for (int a = m->n - 1; a >= 0; a--) {
		*to += i % m->len[a] * m->to[a];
		*from += i % m->len[a] * m->from[a];
		i /= m->len[a];
	}
}

#define COPY(name, T) \
	K_LOOP void run_##name(const Move *m, T *restrict y, const T *restrict x) \
	{ \
		if (m->bto == 1 && m->bfrom == 1) \
			memcpy(y, x, (size_t)m->b * sizeof *y); \
		else if (m->bto == 1 && m->bfrom == 0) \
			for (int64_t j = 0; j < m->b; j++) \
				y[j] = x[0]; \
		else \
			for (int64_t j = 0; j < m->b; j++) \
				y[j * m->bto] = x[j * m->bfrom]; \
	} \
	K_LOOP void tiles_##name(const Move *m, T *restrict y, const T *restrict x) \
	{ \
		for (int64_t i = 0; i < m->a; i += TILE) \
			for (int64_t j = 0; j < m->b; j += TILE) { \
				int64_t ni = m->a - i < TILE ? m->a - i : TILE, \
					nj = m->b - j < TILE ? m->b - j : TILE; \
				T *to = y + i * m->ato + j * m->bto; \
				const T *from = x + i + j * m->bfrom; \
				for (int64_t p = 0; p < ni; p++) \
					for (int64_t q = 0; q < nj; q++) \
						to[p * m->ato + q * m->bto] = from[p + q * m->bfrom]; \
			} \
	} \
	static void body_##name(void *arg, int64_t lo, int64_t hi, int thread) \
	{ \
		const Move *m = arg; \
		(void)thread; \
		for (int64_t i = lo; i < hi; i++) { \
			int64_t to, from; \
			begin(m, i, &to, &from); \
			T *y = (T *)(void *)m->y + to; \
			const T *x = (const T *)(const void *)m->x + from; \
			if (m->a > 1) \
				tiles_##name(m, y, x); \
			else \
				run_##name(m, y, x); \
		} \
	}
COPY(8, uint8_t)
COPY(32, uint32_t)
COPY(64, uint64_t)

/* The axes of both arrays in one list, neighbours joined where both allow it. */
static void list_axes(Move *m, const KLoops *to, const KLoops *from)
{
	for (int a = 0; a < to->n; a++) {
		int64_t len = to->len[a], s = to->stride[a], t = from->stride[a];
		if (m->n && m->to[m->n - 1] == len * s && m->from[m->n - 1] == len * t) {
			m->len[m->n - 1] *= len;
		} else {
			m->len[m->n++] = len;
		}
		m->to[m->n - 1] = s;
		m->from[m->n - 1] = t;
	}
}

static void drop(Move *m, int axis)
{
	for (int a = axis; a + 1 < m->n; a++)
		m->len[a] = m->len[a + 1], m->to[a] = m->to[a + 1], m->from[a] = m->from[a + 1];
	m->n--;
}

static void move(Ctx *c, int64_t width, void *y, const void *x, const KLoops *to, const KLoops *from)
{
	Move m = { .a = 1, .b = 1, .bto = 1, .bfrom = 1, .y = y, .x = x };
	list_axes(&m, to, from);
	if (m.n) {
		int last = m.n - 1;
		m.b = m.len[last], m.bto = m.to[last], m.bfrom = m.from[last];
		m.n--;
		for (int a = 0; a < m.n && m.bfrom != 1 && m.bfrom != 0; a++)
			if (m.from[a] == 1 && m.a == 1) {
				m.a = m.len[a], m.ato = m.to[a];
				drop(&m, a);
			}
	}
	int64_t runs = 1, each = m.a * m.b;
	for (int a = 0; a < m.n; a++)
		runs *= m.len[a];
	rt_parallel(c, each ? runs : 0, 1 + 32768 / (each + 1),
		width == 1 ? body_8 : width == 4 ? body_32 : body_64, &m);
}

int k_copy(Ctx *c, void *y, const void *x, int64_t offset, KLoops l, int64_t width)
{
	KLoops to = l;
	int64_t n = 1;
	for (int a = l.n - 1; a >= 0; a--) {
		to.stride[a] = n;
		n *= l.len[a];
	}
	move(c, width, y, (const unsigned char *)x + offset * width, &to, &l);
	return 0;
}

int k_move(Ctx *c, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from, int64_t width)
{
	move(c, width, (unsigned char *)y + yoffset * width, (const unsigned char *)x + xoffset * width, &to, &from);
	return 0;
}

static void zero(void *arg, int64_t lo, int64_t hi, int thread)
{
	(void)thread;
	memset((char *)arg + lo, 0, (size_t)(hi - lo));
}

int k_zero(Ctx *c, void *y, int64_t bytes)
{
	rt_parallel(c, bytes, 1 << 18, zero, y);
	return 0;
}

int k_keep(Ctx *c, void *y, const void *x, int64_t bytes, bool mine)
{
	if (!mine)
		return k_zero(c, y, bytes);
	return y == x ? 0 : k_copy(c, y, x, 0, (KLoops){ 1, { bytes }, { 1 } }, 1);
}
