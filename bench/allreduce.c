/* All-reduce of floats in place: seconds for each size, the best of many, as lines `BYTES SECONDS`.
 *
 *   bench-allreduce [RANKS]       ours: ranks are processes that read each other's windows
 *   bench-allreduce [RANKS] copy  every rank copies as many bytes at the same time: the limit of the memory bandwidth,
 *                                 because an all-reduce in place has to read and write every byte once
 *
 * With -DMPI, by mpicc, the same for MPI_Allreduce of as many ranks as mpirun starts. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SMALL = 1 << 10, LARGE = 64 << 20 };

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of several runs, each of so many all-reduces that it takes milliseconds. */
static double best(size_t bytes, void (*once)(void *, size_t), void (*together)(void *), void *arg)
{
	int times = bytes < 1 << 16 ? 200 : bytes < 1 << 20 ? 50 : 3, tries = bytes < 1 << 22 ? 20 : 8;
	double least = 1e9;
	for (int k = 0; k < tries; k++) {
		together(arg);
		double begin = seconds();
		for (int i = 0; i < times; i++)
			once(arg, bytes);
		double t = (seconds() - begin) / times;
		least = k && t < least ? t : least;
	}
	return least;
}

static void all_sizes(void (*once)(void *, size_t), void (*together)(void *), void *arg, bool tell)
{
	for (size_t n = SMALL; n <= LARGE; n *= 4) {
		double t = best(n, once, together, arg);
		if (tell)
			printf("%zu %.9f\n", n, t);
	}
}

#ifdef MPI
#include <mpi.h>

static void once(void *arg, size_t bytes)
{
	MPI_Allreduce(MPI_IN_PLACE, arg, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void together(void *arg)
{
	(void)arg;
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	float *x = calloc(1, LARGE);
	if (x)
		all_sizes(once, together, x, rank == 0);
	MPI_Finalize();
	return !x;
}

#else
#include "comm.h"

static int move_of(size_t bytes)
{
	int i = 0;
	while ((size_t)SMALL << 2 * i < bytes)
		i++;
	return i;
}

static void once(void *arg, size_t bytes)
{
	Ctx *c = arg;
	rt_move(c, move_of(bytes), c->window, c->window);
}

static void copy(void *arg, size_t bytes)
{
	Ctx *c = arg;
	memcpy(c->slab, c->window, bytes);
}

static void together(void *arg)
{
	Ctx *c = arg;
	c->comm->barrier(c);
}

static int rank(Ctx *c, void *arg)
{
	memset(c->window, 0, LARGE);
	all_sizes(*(bool *)arg ? copy : once, together, c, c->rank == 0);
	return 0;
}

int main(int argc, char **argv)
{
	static Form form[18];
	static RtMove move[9];
	bool copies = argc > 2;
	RtProgram p = { .nrank = argc > 1 ? atoi(argv[1]) : 2, .form = form, .move = move,
		.slab_bytes = copies ? LARGE : 0, .window_bytes = LARGE,
		.channel = &(const RtChannel){ 1, 1 }, .nchannel = 1 };
	for (size_t n = SMALL; n <= LARGE; n *= 4) {
		Form f = { .ndim = 1, .mesh = { p.nrank }, .naxis = 1, .dim = { (int64_t)(n / sizeof(float)) },
			.cut = { { .kind = FORM_P } } };
		form[p.nform] = f;
		f.cut[0].kind = FORM_B;
		form[p.nform + 1] = f;
		move[p.nmove++] = (RtMove){ p.nform + 1, p.nform + 2, RT_F32, 0 };
		p.nform += 2;
	}
	return rt_run(&p, rank, &copies);
}
#endif
