/* What the two files of the mpi transport share: comm_mpi.c starts and ends ranks and lets them agree, mpi_moves.c moves values. */
#ifndef MPI_MOVES_H
#define MPI_MOVES_H

#include "run.h"

#include <mpi.h>

typedef struct RtMpi {
	struct Line *line;              /* by transfer */
	unsigned char *out, *in;
	size_t out_room, in_room;
	MPI_Request *request;
	int *whom;                      /* by request: the other rank */
	int nrequest, room;
	const struct Line *now;         /* the transfer whose blocks are taken */
	const unsigned char *const *from;       /* by peer of its line: what came */
	const void *x;
	int rank;
	double patience, more;          /* seconds; more: for peers that may wait for others themselves */
} RtMpi;

int  rt_mpi_post(Ctx *, RtMpi *, bool sends, const void *data, size_t bytes, int rank);
int  rt_mpi_passed(Ctx *, RtMpi *, bool wait);          /* whether all messages that were posted have passed: 0, RT_LATER, or an exit code */
int  rt_mpi_open(Ctx *, RtMpi *);                       /* all transfers */
void rt_mpi_close(const Ctx *, RtMpi *);
int  rt_mpi_advance(Ctx *, RtJob *, bool wait);         /* a bucket of transfers, as RtComm has it */

#endif
