/* Shared by the two files of the MPI transport: comm_mpi.c starts and ends ranks and lets them agree, mpi_moves.c moves
 * values. */
#ifndef MPI_MOVES_H
#define MPI_MOVES_H

#include "comm.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct RtMpi {
	struct Line *line;                /* by transfer */
	unsigned char *out, *in;
	size_t out_room, in_room;
	MPI_Request *request;
	int *whom;                        /* by request: the other rank */
	int nrequest, room;
	const struct Line *now;           /* the transfer that is being received */
	const unsigned char *const *from; /* by peer: its message */
	const void *x;
	int rank;
	double patience;                  /* seconds */
	pthread_mutex_t lock;             /* one thread at a time calls MPI */
	RtPulse *pulse;
	MPI_Comm asks;                    /* liveness messages have their own communicator */
	_Atomic uint32_t *heard;          /* by rank: its answers */
	uint32_t *seen;                   /* those that the waiting thread has seen, when, and when it asked */
	double *when, *asked;
	double clock, looked;             /* seconds that this process ran while it waited; time of the last poll */
} RtMpi;

int  rt_mpi_pulse_open(Ctx *, RtMpi *);         /* answers liveness requests from now on */
void rt_mpi_pulse_close(RtMpi *);
enum { RT_MPI_AGREE };                          /* the tag by which ranks agree; those after it are of channels */
int  rt_mpi_post(Ctx *, RtMpi *, int tag, bool sends, const void *data, size_t bytes, int rank);
int  rt_mpi_passed(Ctx *, RtMpi *, bool wait);  /* 0: all posted messages are complete; RT_LATER; an exit status */
size_t rt_mpi_room(const Ctx *);                /* bytes of messages */
int  rt_mpi_open(Ctx *, RtMpi *);               /* all routes */
void rt_mpi_close(const Ctx *, RtMpi *);
int  rt_mpi_advance(Ctx *, RtJob *, bool wait); /* a bucket of transfers, as RtComm has it */

#endif
