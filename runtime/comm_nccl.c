/* Collectives between GPUs by NCCL.  The library is opened at run time, so that a program starts, and says what is missing,
 * where it is not installed.  Rank 0 makes the unique id and passes it through the memory that local ranks share. */
#include "slab_cuda.h"

#include <dlfcn.h>
#include <nccl.h>
#include <stdlib.h>
#include <string.h>

typedef struct Nccl {
	void *lib;
	ncclComm_t comm;
	RtComm table;
	ncclResult_t (*id)(ncclUniqueId *);
	ncclResult_t (*init)(ncclComm_t *, int, ncclUniqueId, int);
	ncclResult_t (*destroy)(ncclComm_t);
	ncclResult_t (*reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
	ncclResult_t (*broadcast)(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
	const char *(*text)(ncclResult_t);
} Nccl;

static Nccl *nccl_of(const Ctx *c)
{
	return ((RtCuda *)c->device)->nccl;
}

static int check(const Ctx *c, ncclResult_t r, const char *what)
{
	return r == ncclSuccess ? 0 : rt_error(c, RT_PEER, "%s: %s", what, nccl_of(c)->text(r));
}

static int all_reduce(Ctx *c, float *y, const float *x, int64_t n)
{
	Nccl *t = nccl_of(c);
	cudaStream_t s = ((RtCuda *)c->device)->stream;
	return check(c, t->reduce(x, y, (size_t)n, ncclFloat, ncclSum, t->comm, s), "all-reduce");
}

/* Parts may differ in length, so each rank broadcasts its own; only the first axis can be split in one run. */
static int all_gather(Ctx *c, void *y, const void *x, const RtBox *b, size_t elem)
{
	Nccl *t = nccl_of(c);
	cudaStream_t s = ((RtCuda *)c->device)->stream;
	int64_t inner = 1;
	if (b->split[0] < 0)
		return rt_error(c, RT_PLAN, "a gather of an inner axis");
	for (int a = 1; a < b->rank; a++)
		inner *= b->dim[a];
	for (int r = 0; r < c->nrank; r++) {
		int64_t at = c->program->rank[r].origin[b->split[0]];
		int64_t end = r + 1 < c->nrank ? c->program->rank[r + 1].origin[b->split[0]] : b->dim[0];
		unsigned char *to = (unsigned char *)y + (size_t)(at * inner) * elem;
		int code = check(c, t->broadcast(r == c->rank ? x : to, to, (size_t)((end - at) * inner) * elem, ncclChar, r, t->comm, s), "gather");
		if (code)
			return code;
	}
	return 0;
}

/* POSIX lets dlsym's object pointer be a function; C has no cast for it, so the bytes are copied. */
static int load(Ctx *c, Nccl *t, void *to, const char *name)
{
	void *p = dlsym(t->lib, name);
	if (!p)
		return rt_error(c, RT_PLAN, "libnccl.so.2 has no %s", name);
	memcpy(to, &p, sizeof p);
	return 0;
}

int rt_nccl_open(Ctx *c)
{
	Nccl *t = calloc(1, sizeof *t);
	if (!t)
		return rt_error(c, RT_MEMORY, "no memory");
	((RtCuda *)c->device)->nccl = t;
	t->lib = dlopen("libnccl.so.2", RTLD_NOW);
	if (!t->lib)
		return rt_error(c, RT_PLAN, "several GPUs need NCCL: %s", dlerror());
	int code;
	if ((code = load(c, t, &t->id, "ncclGetUniqueId")) || (code = load(c, t, &t->init, "ncclCommInitRank")) ||
	    (code = load(c, t, &t->destroy, "ncclCommDestroy")) || (code = load(c, t, &t->reduce, "ncclAllReduce")) ||
	    (code = load(c, t, &t->broadcast, "ncclBroadcast")) || (code = load(c, t, &t->text, "ncclGetErrorString")))
		return code;
	size_t room;
	ncclUniqueId *id = rt_shared(c, &room), mine;
	if (c->rank == 0 && (code = check(c, t->id(id), "making an id")))
		return code;
	if ((code = c->comm->barrier(c)))
		return code;
	mine = *id;
	if ((code = check(c, t->init(&t->comm, c->nrank, mine, c->rank), "joining the ranks")))
		return code;
	t->table = *c->comm;            /* barrier and shared memory stay those of the local transport */
	t->table.name = "nccl";
	t->table.all_reduce = all_reduce;
	t->table.all_gather = all_gather;
	c->comm = &t->table;
	return 0;
}

void rt_nccl_close(Ctx *c)
{
	Nccl *t = nccl_of(c);
	if (!t)
		return;
	if (t->comm)
		t->destroy(t->comm);
	free(t);
	((RtCuda *)c->device)->nccl = NULL;
}
