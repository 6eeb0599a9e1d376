/* Orders as words, see words.h.
 *
 * Memory in use on a rank changes with its tasks alone: F adds what is kept for B, B frees it but for what W needs, W
 * frees the rest.  So the peak of a rank follows from its word, whatever the seconds. */
#include "lanes/words.h"

#include <string.h>

static const BlockKind kinds[LETTERS] = { BLOCK_F, BLOCK_B, BLOCK_W, BLOCK_BW };

static int *lines(const Words *w, Arena *a, int stage, bool forward, bool out)
{
	const Pipeline *p = w->p;
	int n = 0, *list = arena_array(a, int, p->nhop + 1);
	for (int h = 0; h < p->nhop; h++)
		if ((out ? p->hop[h].from : p->hop[h].to) == stage)
			list[n++] = 2 * h + !forward;
	list[n] = -1;
	return list;
}

static void letters(Words *w, Arena *a)
{
	const Pipeline *p = w->p;
	int *none = arena_array(a, int, 1);
	none[0] = -1;
	for (int s = 0; s < p->nstage; s++) {
		const PipeStage *g = &p->stage[s];
		int l = s * LETTERS;
		double seconds[LETTERS] = { g->f, g->b, g->w, g->b + g->w };
		int64_t bytes[LETTERS] = { g->kept, g->kept_w - g->kept, -g->kept_w, -g->kept };
		int *fin = lines(w, a, s, true, false), *fout = lines(w, a, s, true, true);
		int *bin = lines(w, a, s, false, true), *bout = lines(w, a, s, false, false);
		int *need[LETTERS] = { fin, bin, none, bin }, *send[LETTERS] = { fout, bout, none, bout };
		for (int k = 0; k < LETTERS; k++) {
			w->seconds[l + k] = seconds[k];
			w->bytes[l + k] = bytes[k];
			w->rank[l + k] = g->rank;
			w->need[l + k] = need[k];
			w->send[l + k] = send[k];
			w->counter[l + k] = l + (k == LETTER_BW ? LETTER_B : k);
		}
		w->update[g->rank] += g->update;
		w->load[g->rank] += p->micros * (g->f + g->b + g->w) + g->update;
		w->room[g->rank] -= g->fixed;
	}
}

static void scratch(Words *w, Arena *a)
{
	Pass *s = &w->pass;
	s->begin = arena_array(a, double, w->nclock);
	s->end = arena_array(a, double, w->nclock);
	s->first = arena_array(a, double, w->nrank);
	s->origin = arena_array(a, int, w->nclock);
	s->at = arena_array(a, int, w->nrank);
	s->stack = arena_array(a, int, 2 * w->nrank + 1);
	s->count = arena_array(a, int, w->nletter);
	s->sent = arena_array(a, int, w->nline + 1);
	s->wait = arena_array(a, bool, w->nline + 1);
	s->message = arena_array(a, LineMessage, (size_t)w->nline * (size_t)w->micros + 1);
	s->start = arena_array(a, double *, w->nrank);
	s->micro = arena_array(a, int *, w->nrank);
	int *n = arena_array(a, int, w->nrank);
	for (int i = 0; i < w->p->nstage; i++)
		n[w->p->stage[i].rank] += 3 * w->micros;
	for (int r = 0; r < w->nrank; r++) {
		s->start[r] = arena_array(a, double, n[r] + 1);
		s->micro[r] = arena_array(a, int, n[r] + 1);
	}
	w->x = arena_array(a, double, w->nclock);
	w->newx = arena_array(a, double, w->nclock);
	w->length = arena_array(a, double, w->nclock);
	w->parent = arena_array(a, int, w->nclock);
	w->mark = arena_array(a, int, w->nclock);
}

void words_begin(const Pipeline *p, Arena *a, Words *w)
{
	*w = (Words){ .p = p, .nrank = p->nrank, .nletter = p->nstage * LETTERS, .micros = p->micros };
	w->nline = 2 * p->nhop;
	w->nclock = w->nrank + w->nline;
	w->ntask = 3 * p->nstage * p->micros;
	w->seconds = arena_array(a, double, w->nletter);
	w->bytes = arena_array(a, int64_t, w->nletter);
	w->rank = arena_array(a, int, w->nletter);
	w->counter = arena_array(a, int, w->nletter);
	w->need = arena_array(a, int *, w->nletter);
	w->send = arena_array(a, int *, w->nletter);
	w->line = arena_array(a, Line, w->nline + 1);
	w->update = arena_array(a, double, w->nrank);
	w->load = arena_array(a, double, w->nclock);
	w->room = arena_array(a, int64_t, w->nrank);
	for (int r = 0; r < w->nrank; r++)
		w->room[r] = p->limit ? p->limit[r] : INT64_MAX / 2;
	for (int h = 0; h < p->nhop; h++) {
		const PipeHop *hop = &p->hop[h];
		int from = p->stage[hop->from].rank, to = p->stage[hop->to].rank;
		double latency = from == to ? 0 : hop->latency, busy = from == to ? 0 : hop->busy;
		w->line[2 * h] = (Line){ from, to, latency, busy };
		w->line[2 * h + 1] = (Line){ to, from, latency, busy };
		w->load[w->nrank + 2 * h] = w->load[w->nrank + 2 * h + 1] = p->micros * busy;
	}
	letters(w, a);
	scratch(w, a);
}

Word *words_new(const Words *w, Arena *a)
{
	Word *o = arena_array(a, Word, w->nrank);
	int *n = arena_array(a, int, w->nrank);
	for (int s = 0; s < w->p->nstage; s++)
		n[w->p->stage[s].rank] += 3 * w->micros;
	for (int r = 0; r < w->nrank; r++)
		o[r].at = arena_array(a, int, n[r] + 1);
	return o;
}

void words_copy(const Words *w, Word *to, const Word *from)
{
	for (int r = 0; r < w->nrank; r++) {
		to[r].n = from[r].n;
		memcpy(to[r].at, from[r].at, sizeof *to[r].at * (size_t)from[r].n);
	}
}

bool words_step(const Words *w, int *count, int l)
{
	const int *stage = count + l / LETTERS * LETTERS;
	count[l]++;
	switch (l % LETTERS) {
	case LETTER_F: return stage[LETTER_F] <= w->micros;
	case LETTER_W: return stage[LETTER_W] <= stage[LETTER_B];
	default: return stage[LETTER_B] + stage[LETTER_BW] <= stage[LETTER_F];
	}
}

bool words_read(const Words *w, const PipeOrder *o, bool split, Word *to)
{
	int *count = w->pass.count;
	bool ok = true;
	memset(count, 0, sizeof *count * (size_t)w->nletter);
	for (int r = 0; r < w->nrank; r++) {
		to[r].n = 0;
		for (int i = 0; i < o->ntask[r] && ok; i++) {
			const PipeTask *t = &o->task[r][i];
			int k = 0, *stage = count + t->stage * LETTERS;
			while (k < LETTERS && kinds[k] != t->kind)
				k++;
			if (k == LETTERS || w->rank[t->stage * LETTERS] != r)
				return false;
			bool both = split && k == LETTER_BW;
			int l = t->stage * LETTERS + (both ? LETTER_B : k);
			if (k == LETTER_F)
				ok = stage[LETTER_F] == t->micro;
			else if (k != LETTER_W)
				ok = stage[LETTER_B] + stage[LETTER_BW] == t->micro;
			ok = ok && words_step(w, count, l) && (!both || words_step(w, count, l + 1));
			to[r].at[to[r].n++] = l;
			if (both)
				to[r].at[to[r].n++] = l + 1;
		}
	}
	for (int l = 0; l < w->nletter; l += LETTERS)
		ok = ok && count[l + LETTER_B] + count[l + LETTER_BW] == w->micros &&
			count[l + LETTER_W] == count[l + LETTER_B];
	return ok;
}

void words_write(const Words *w, const Word *o, Arena *a, PipeOrder *to)
{
	int *count = w->pass.count, *micro = arena_array(a, int, (size_t)w->nletter * (size_t)w->micros);
	memset(count, 0, sizeof *count * (size_t)w->nletter);
	to->task = arena_array(a, PipeTask *, w->nrank);
	to->ntask = arena_array(a, int, w->nrank);
	for (int r = 0; r < w->nrank; r++) {
		to->ntask[r] = o[r].n;
		to->task[r] = arena_array(a, PipeTask, o[r].n + 1);
		for (int i = 0; i < o[r].n; i++) {
			int l = o[r].at[i], s = l / LETTERS, k = count[l]++;
			const int *stage = count + s * LETTERS;
			if (l % LETTERS == LETTER_W)
				k = micro[s * w->micros + k];   /* that of the k-th B */
			else if (l % LETTERS != LETTER_F)
				k = stage[LETTER_B] + stage[LETTER_BW] - 1;
			if (l % LETTERS == LETTER_B)
				micro[s * w->micros + stage[LETTER_B] - 1] = k;
			to->task[r][i] = (PipeTask){ kinds[l % LETTERS], s, k };
		}
	}
}

int64_t words_peak(const Words *w, const Word *o, int r)
{
	int64_t use = 0, peak = 0;
	for (int i = 0; i < o[r].n; i++) {
		use += w->bytes[o[r].at[i]];
		peak = use > peak ? use : peak;
	}
	return peak;
}
