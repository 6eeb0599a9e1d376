/* Shared by the two files of the MPI transport: comm_mpi.c starts and ends ranks and lets them agree, mpi_moves.c moves
 * values. */
#ifndef MPI_MOVES_H
#define MPI_MOVES_H

#include "comm.h"
#include "wait.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

/* Messages in flight and their buffers: one for agreement and buckets, one for each end of a queue. */
typedef struct RtFlow {
	unsigned char *out, *in;
	size_t out_room, in_room;
	MPI_Request *request;
	int *whom;                        /* by request: the other rank */
	int nrequest, room;
	bool posted;                      /* the messages of a piece */
} RtFlow;

/* The state of a waiting thread, by rank: the answers that it has seen, when, and when it asked. */
typedef struct RtAsking {
	uint32_t *seen;
	double *when, *asked;
	double clock, looked;             /* seconds that this process ran while it waited; time of the last poll */
} RtAsking;

typedef struct RtMpi {
	struct Line *line;                /* by transfer */
	RtFlow flow;
	_Atomic size_t bytes;             /* of the buffers of all flows */
	int rank;
	double patience;                  /* seconds */
	pthread_mutex_t lock;             /* one thread at a time calls MPI */
	RtPulse *pulse;
	RtBell bell;
	MPI_Comm asks;                    /* liveness messages have their own communicator */
	struct Answer *answered, *answers; /* by rank: its last answer; the last answer to it, while it is sent */
	MPI_Request *sending;             /* by rank: sends it */
	const RtEnd *_Atomic wanted;      /* the end that the walk waits for; NULL: none */
	_Atomic double since;             /* since when, in seconds, and in which step */
	_Atomic int64_t step;
	_Atomic int64_t task;             /* that the walk is in: rt_task */
	_Atomic uint32_t waits;           /* with wanted: 1 + the rank that it waits for; 0: none yet */
	uint32_t *before;                 /* by rank: its answers when the chain of waits began to be followed */
	double followed;                  /* the wait whose chain is followed: its beginning */
	bool warned;
	_Atomic uint32_t *heard;          /* by rank: its answers */
	RtAsking asking[2];               /* of the walk and of the courier */
	MPI_Comm verdicts;                   /* verdicts have their own communicator */
	uint32_t vote[3], verdict[3];
	MPI_Request heard_all;
} RtMpi;

int  rt_mpi_pulse_open(Ctx *, RtMpi *);         /* answers liveness requests from now on */
void rt_mpi_pulse_close(const Ctx *, RtMpi *);
void rt_mpi_task(Ctx *, int actor);             /* as RtComm has it, as the next */
void rt_mpi_waits(Ctx *, const RtEnd *);
enum { RT_MPI_AGREE };                          /* the tag by which ranks agree; those after it are of channels */
int  rt_mpi_post(Ctx *, RtMpi *, int tag, bool sends, const void *data, size_t bytes, int rank);
int  rt_mpi_passed(Ctx *, RtMpi *, bool wait);  /* 0: all posted messages are complete; RT_LATER; an exit status */
int  rt_mpi_rest(Ctx *, uint32_t rung, int what, int turn);      /* as RtComm has it, as rt_mpi_advance */
size_t rt_mpi_room(const Ctx *);                /* bytes of messages */
int  rt_mpi_open(Ctx *, RtMpi *);               /* all routes */
void rt_mpi_close(const Ctx *, RtMpi *);
int  rt_mpi_advance(Ctx *, RtJob *, bool wait); /* a bucket of transfers */
void rt_mpi_say(Ctx *, const RtVerdict *);
int  rt_mpi_hear(Ctx *, RtVerdict *, bool wait);
int  rt_mpi_end_open(Ctx *, RtEnd *);
void rt_mpi_end_close(Ctx *, RtEnd *);
int  rt_mpi_end_advance(Ctx *, RtEnd *, uint64_t k);

#endif
