/* Bubble rates of 1F1B, ZB-H1 and ZB-H2 in Table 5 of the zero-bubble paper, 12 settings, to four digits, from the
 * profiled times of its Table 6 (table5.csv).  The rate is (span - m (F + B + W)) / span. */
#include "lanes/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Pipeline even(Arena *a, int p, int m, const double ms[4])
{
	Pipeline q = { .nrank = p, .nstage = p, .micros = m, .nhop = p - 1 };
	q.stage = arena_array(a, PipeStage, p);
	q.hop = arena_array(a, PipeHop, p);
	for (int s = 0; s < p; s++) {
		q.stage[s] = (PipeStage){ .rank = s, .f = ms[0] / 1e3, .b = ms[1] / 1e3, .w = ms[2] / 1e3 };
		q.hop[s] = (PipeHop){ .from = s, .to = s + 1, .latency = ms[3] / 1e3 };
	}
	return q;
}

static double bubble(const Pipeline *p, const char *name, Arena *a)
{
	PipeOrder o;
	PipePlay play = { 0 };
	if (schedules_find(name)->order(p, a, &o) || !pipe_play(p, &o, 1, a, &play))
		return NAN;
	double work = p->micros * (p->stage[0].f + p->stage[0].b + p->stage[0].w);
	return (play.span - work) / play.span;
}

int main(void)
{
	const char *path = name_fmt("%s/tests/lanes/table5.csv", getenv("ROOT"));
	FILE *in = fopen(path, "r");
	if (!in) {
		printf("not ok rates: cannot read %s\n", path);
		return 1;
	}
	char line[256];
	int rows = 0, bad = 0;
	while (fgets(line, sizeof line, in)) {
		int p, m;
		double ms[4], want[3];
		if (sscanf(line, "%*[^,],%d,%d,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &p, &m, &ms[0], &ms[1], &ms[2], &ms[3],
			&want[0], &want[1], &want[2]) != 9)
			continue;
		Arena a = { 0 };
		Pipeline q = even(&a, p, m, ms);
		static const char *const names[] = { "1f1b", "zb-h1", "zb-h2" };
		for (int i = 0; i < 3; i++) {
			double got = bubble(&q, names[i], &a);
			if (!(fabs(got - want[i]) <= 0.00005)) {
				printf("    %s, p = %d, m = %d: %.4f instead of %.4f\n", names[i], p, m, got, want[i]);
				bad++;
			}
		}
		arena_free(&a);
		rows++;
	}
	fclose(in);
	if (rows == 12 && !bad)
		printf("ok 36 rates of 12 settings\n");
	else
		printf("not ok rates: %d of %d rates differ\n", bad, 3 * rows);
	return 0;
}
