/* A bucket as one range of bytes: the values of its transfers one after the other, each aligned to a cache line.
 *
 *   value 0        value 1  value 2
 *   |aaaaaaaaaa..|bbb.....|cccccccccccccccccc....|        . is padding: a line is 64 bytes
 *   |       |       |       |       |       |
 *   chunks of an all-reduce may cross the ends of values
 *
 * So many small gradients need as few waits and messages as one large one. */
#include "comm.h"

#include <string.h>

static size_t bytes_of(const Ctx *c, const RtJob *j, int i)
{
	const RtRoute *r = &c->route[j->move[i]];
	return (size_t)r->count * r->elem;
}

size_t rt_bucket_bytes(const Ctx *c, const RtJob *j)
{
	size_t sum = 0;
	for (int i = 0; i < j->n; i++)
		sum += rt_round_up(bytes_of(c, j, i), RT_LINE);
	return sum;
}

int rt_bucket_channel(const Ctx *c, const RtJob *j)
{
	return c->program->move[j->move[0]].channel;
}

/* The next range of lo .. hi - 1 that lies in one value; the first call takes a zero span. */
bool rt_bucket_next(const Ctx *c, const RtJob *j, size_t lo, size_t hi, RtSpan *s)
{
	if (s->bytes) {
		s->begin += rt_round_up(bytes_of(c, j, s->i), RT_LINE);
		s->i++;
	}
	for (; s->i < j->n; s->i++) {
		size_t n = bytes_of(c, j, s->i), from = lo > s->begin ? lo - s->begin : 0,
			to = hi > s->begin ? hi - s->begin : 0;
		to = to < n ? to : n;
		if (from < to) {
			s->from = from;
			s->bytes = to - from;
			s->at = s->begin + from - lo;
			return true;
		}
		s->begin += rt_round_up(n, RT_LINE);
	}
	return false;
}

void rt_bucket_sum(const Ctx *c, const RtJob *j, size_t lo, size_t hi, RtTerm *term, void *arg, unsigned char *to)
{
	for (RtSpan s = { 0 }; rt_bucket_next(c, j, lo, hi, &s);) {
		const RtRoute *r = &c->route[j->move[s.i]];
		const void *from[r->nterm];
		for (int i = 0; i < r->nterm; i++)
			from[i] = term(arg, i, &s);
		rt_route_sum(r, to ? to + s.at : (unsigned char *)j->y[s.i] + s.from, from, r->nterm,
			(int64_t)(s.bytes / r->elem));
	}
}

void rt_bucket_put(const Ctx *c, const RtJob *j, size_t lo, size_t hi, const unsigned char *from)
{
	for (RtSpan s = { 0 }; rt_bucket_next(c, j, lo, hi, &s);)
		memcpy((unsigned char *)j->y[s.i] + s.from, from + s.at, s.bytes);
}

/* The address of these bytes of the operands: in place if one value has them all, else gathered in room. */
const void *rt_bucket_get(const Ctx *c, const RtJob *j, size_t lo, size_t hi, unsigned char *room)
{
	for (RtSpan s = { 0 }; rt_bucket_next(c, j, lo, hi, &s);) {
		const unsigned char *x = (const unsigned char *)j->x[s.i] + s.from;
		if (s.bytes == hi - lo)
			return x;
		memcpy(room + s.at, x, s.bytes);
	}
	return room;
}

bool rt_bucket_in_one(const Ctx *c, const RtJob *j, size_t lo, size_t hi, unsigned char **y)
{
	RtSpan s = { 0 };
	if (!rt_bucket_next(c, j, lo, hi, &s) || s.bytes != hi - lo)
		return false;
	*y = (unsigned char *)j->y[s.i] + s.from;
	return true;
}
