/* Which blocks of a chain are computed again, so that the chain fits into a limit of memory (Rotor's shape, Herrmann et
 * al., arXiv 1911.13214, with the blocks as they are given).
 *
 * The backward pass goes through the chain from its end.  While it is in a block, the values that earlier blocks keep
 * are in memory.  A block that is not computed again keeps `kept` and `out`.  A segment of consecutive blocks that is
 * computed again keeps the `out` of its last block; while the backward pass is in it, `again` of all its blocks is in
 * memory.
 *
 *   blocks       0    1    2    3    4    5          1 2 and 3 4 are segments
 *   kept         all  .    out  .    out  all
 *
 * Dynamic programming from the first block on: of the choices up to a block, those are remembered that no other beats
 * in seconds and bytes.  Where they are more than POINTS, one of each range of bytes remains. */
#include "solve/solve.h"

#include <math.h>
#include <stdlib.h>

enum { POINTS = 256, LONGEST = 16 };     /* LONGEST: blocks of a segment */

typedef struct Point { double bytes, seconds; int from, point; bool again; } Point;     /* from: first block */
typedef struct Front { Point *p; int n; } Front;

static int by_bytes(const void *a, const void *b)
{
	const Point *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? -1 : 1;
	return x->from != y->from ? y->from - x->from : x->point - y->point;
}

static void prune(Front *f, double limit)
{
	int n = 0;
	if (!f->n)
		return;
	qsort(f->p, (size_t)f->n, sizeof *f->p, by_bytes);
	for (int i = 0; i < f->n; i++)
		if (!n || f->p[i].seconds < f->p[n - 1].seconds)
			f->p[n++] = f->p[i];
	f->n = n;
	if (n <= POINTS)
		return;
	n = 0;
	for (int i = 0; i < f->n; i++) {
		bool same = n && floor(f->p[i].bytes / limit * POINTS) == floor(f->p[n - 1].bytes / limit * POINTS);
		f->p[same && i + 1 < f->n ? n - 1 : n++] = f->p[i];
	}
	f->n = n;
}

/* Points behind block `last` whose last segment begins at block `first`. */
static void extend(const Front *before, Front *to, double limit, const Point *more, double peak, Arena *a)
{
	for (int i = 0; i < before->n; i++) {
		const Point *p = &before->p[i];
		if (p->bytes + peak > limit)
			break;
		arena_push(a, to->p, to->n, ((Point){ .bytes = p->bytes + more->bytes,
			.seconds = p->seconds + more->seconds, .from = more->from, .point = i, .again = more->again }));
	}
}

static void add_block(const ChainBlock *b, int last, Front *front, double limit, Arena *a)
{
	const ChainBlock *x = &b[last];
	Front *to = &front[last + 1];
	if (x->pin != CHAIN_AGAIN)
		extend(&front[last], to, limit, &(Point){ .bytes = x->kept + x->out, .from = last },
			x->kept + x->out + x->work, a);
	double seconds = 0, again = 0, work = 0;
	for (int i = last; i >= 0 && i > last - LONGEST && b[i].pin != CHAIN_KEEP; i--) {
		seconds += b[i].seconds;
		again += b[i].again;
		work = fmax(work, b[i].work);
		extend(&front[i], to, limit, &(Point){ .bytes = x->out, .seconds = seconds, .from = i, .again = true },
			fmax(again + work, x->out), a);
		if (b[i].first)
			break;
	}
	prune(to, limit);
}

bool chain_solve(const ChainBlock *b, int n, double limit, Arena *a, ChainResult *r)
{
	Front *front = arena_array(a, Front, n + 1);
	arena_push(a, front[0].p, front[0].n, ((Point){ 0 }));
	for (int i = 0; i < n; i++)
		add_block(b, i, front, limit, a);
	*r = (ChainResult){ .segment = arena_array(a, int, n + 1) };
	if (!front[n].n)
		return false;
	int at = front[n].n - 1, segments = 0;
	r->seconds = front[n].p[at].seconds;
	r->bytes = front[n].p[at].bytes;
	for (int end = n; end > 0;) {
		const Point *p = &front[end].p[at];
		segments += p->again;
		for (int i = p->from; i < end; i++)
			r->segment[i] = p->again ? segments : 0;
		end = p->from;
		at = p->point;
	}
	return true;
}

double chain_peak(const ChainBlock *b, int n, const int *segment)
{
	double most = 0, bytes = 0;
	for (int i = 0; i < n;) {
		double again = 0, work = 0;
		int end = i + 1;
		while (segment[i] && end < n && segment[end] == segment[i])
			end++;
		for (int k = i; k < end; k++) {
			again += segment[i] ? b[k].again : b[k].kept + b[k].out;
			work = fmax(work, b[k].work);
		}
		most = fmax(most, bytes + fmax(again + work, segment[i] ? b[end - 1].out : 0));
		bytes += segment[i] ? b[end - 1].out : again;
		i = end;
	}
	return most;
}
