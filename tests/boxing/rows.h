/* Walks the rows of a piece: n consecutive elements, at `from` in the shard of the source and at `to` in that of the
 * destination. */
#ifndef TESTS_BOXING_ROWS_H
#define TESTS_BOXING_ROWS_H

#include "form.h"

static void form_rows(const FormPiece *p, void (*row)(void *, int64_t, int64_t, int64_t), void *arg)
{
	int last = p->naxis - 1, at[FORM_AXES] = { 0 };
	int64_t k[FORM_AXES] = { 0 };
	if (!p->elements)
		return;
	if (last < 0) {
		row(arg, 0, 0, 1);
		return;
	}
	for (;;) {
		int64_t from = 0, to = 0;
		for (int a = 0; a < last; a++) {
			from = (from + p->axis[a].meet[at[a]].from + k[a]) * p->from_dim[a + 1];
			to = (to + p->axis[a].meet[at[a]].to + k[a]) * p->to_dim[a + 1];
		}
		for (int i = 0; i < p->axis[last].n; i++)
			row(arg, from + p->axis[last].meet[i].from, to + p->axis[last].meet[i].to,
				p->axis[last].meet[i].len);
		int a = last - 1;
		for (; a >= 0; a--) {
			if (++k[a] < p->axis[a].meet[at[a]].len)
				break;
			k[a] = 0;
			if (++at[a] < p->axis[a].n)
				break;
			at[a] = 0;
		}
		if (a < 0)
			return;
	}
}

#endif
