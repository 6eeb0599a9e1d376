/* cbc MODEL RANKS FILE.lp: writes the choice of signatures for a model, on a mesh of that shape ("4" or "2, 2"), as an
 * integer program for CBC, and prints what the solver found: cost, bound, and the constant that the program lacks.
 *
 * One variable for each choice, and one for each pair of choices at the ends of an edge that the sums of its row and
 * its column tie to them.  Choices that cannot be are left out; costs are in microseconds. */
#include "compiler.h"
#include "solve/solve.h"

#include <math.h>
#include <string.h>

static const char *path;

static void term(FILE *f, double cost, const char *fmt, int a, int b, int c)
{
	if (cost == 0)
		return;
	fprintf(f, " + %.9f ", cost * 1e6);
	fprintf(f, fmt, a, b, c);
	fputc('\n', f);
}

static void write_lp(const SolveProblem *p, const SolveResult *r)
{
	FILE *f = fopen(path, "w");
	if (!f || p->nlimit)
		return;
	fputs("Minimize\n", f);
	for (int i = 0; i < p->nnode; i++)
		for (int c = 0; c < p->node[i].n && p->node[i].cost; c++)
			if (p->node[i].cost[c] < INFINITY)
				term(f, p->node[i].cost[c], "x%d_%d", i, c, 0);
	for (int e = 0; e < p->nedge; e++) {
		const SolveEdge *x = &p->edge[e];
		int m = p->node[x->b].n;
		for (int c = 0; c < p->node[x->a].n; c++)
			for (int d = 0; d < m; d++)
				if (x->cost[c * m + d] < INFINITY)
					term(f, x->cost[c * m + d], "y%d_%d_%d", e, c, d);
	}
	fputs("Subject To\n", f);
	for (int i = 0; i < p->nnode; i++) {
		for (int c = 0; c < p->node[i].n; c++)
			if (!p->node[i].cost || p->node[i].cost[c] < INFINITY)
				fprintf(f, " + x%d_%d", i, c);
		fputs(" = 1\n", f);
	}
	for (int e = 0; e < p->nedge; e++) {
		const SolveEdge *x = &p->edge[e];
		int m = p->node[x->b].n;
		for (int c = 0; c < p->node[x->a].n; c++) {
			for (int d = 0; d < m; d++)
				if (x->cost[c * m + d] < INFINITY)
					fprintf(f, " + y%d_%d_%d", e, c, d);
			fprintf(f, " - x%d_%d = 0\n", x->a, c);
		}
		for (int d = 0; d < m; d++) {
			for (int c = 0; c < p->node[x->a].n; c++)
				if (x->cost[c * m + d] < INFINITY)
					fprintf(f, " + y%d_%d_%d", e, c, d);
			fprintf(f, " - x%d_%d = 0\n", x->b, d);
		}
	}
	fputs("Binaries\n", f);
	for (int i = 0; i < p->nnode; i++)
		for (int c = 0; c < p->node[i].n; c++)
			if (!p->node[i].cost || p->node[i].cost[c] < INFINITY)
				fprintf(f, " x%d_%d\n", i, c);
	fputs("End\n", f);
	fclose(f);
	printf("%.9f %.9f\n", r->cost * 1e6, r->bound * 1e6);
	solve_seen = NULL;              /* only of the training step */
}

int main(int argc, char **argv)
{
	language_init();
	if (argc != 4)
		return 2;
	path = argv[3];
	Model *m = read_model(argv[1]);
	char *mesh = arena_printf(&arena_process, "@mesh(ranks, cpu, [%s])", argv[2]);
	if (!m || parse_annots(file_memory("mesh", mesh, strlen(mesh)), m, ON_MODEL, &m->annot) || resolve_run(m) ||
		verify_graph(m->graph, 0))
		return 1;
	train_bind_batch(m);
	solve_seen = write_lp;
	opt.stop_after = "plan";
	return passes_run(m) != 0;
}
