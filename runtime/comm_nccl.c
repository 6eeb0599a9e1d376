/* Collectives between GPUs by NCCL.  The library is opened at run time, so that a program without it starts and reports
 * what is missing.  Rank 0 creates the unique id and passes it through the memory that local ranks share. */
#include "comm.h"
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

/* Elements that are already on this GPU. */
static int copy_block(Ctx *c, const RtRoute *r, const RtBlock *b, unsigned char *y, const unsigned char *x)
{
	cudaStream_t s = ((RtCuda *)c->device)->stream;
	int64_t k[RT_LOOPS] = { 0 };
	int code = 0, a = 0;
	while (a >= 0 && !code) {
		int64_t from = b->from, to = b->to;
		for (a = 0; a < b->n; a++) {
			from += k[a] * b->loop[a].from_step;
			to += k[a] * b->loop[a].to_step;
		}
		code = rt_cuda(c, cudaMemcpyAsync(y + (size_t)to * r->elem, x + (size_t)from * r->elem,
			(size_t)b->run * r->elem, cudaMemcpyDeviceToDevice, s), "copying a shard");
		for (a = b->n - 1; a >= 0 && ++k[a] == b->loop[a].len; a--)
			k[a] = 0;
	}
	return code;
}

static int here(Ctx *c, const RtRoute *r, unsigned char *y, const unsigned char *x)
{
	int code = r->fill ? rt_cuda(c, cudaMemsetAsync(y, 0, (size_t)r->count * r->elem,
		((RtCuda *)c->device)->stream), "filling a term") : 0;
	for (int i = 0; i < r->nblock && !code; i++)
		code = copy_block(c, r, &r->block[i], y, x);
	return code;
}

/* Shards may differ in length, so each rank broadcasts its own, if it is one run of the logical tensor. */
static int gather(Ctx *c, const RtRoute *r, unsigned char *y, const unsigned char *x)
{
	Nccl *t = nccl_of(c);
	cudaStream_t s = ((RtCuda *)c->device)->stream;
	int code = 0;
	for (int i = 0; i < r->nblock && !code; i++) {
		const RtBlock *b = &r->block[i];
		unsigned char *to = y + (size_t)b->to * r->elem;
		if (b->n || b->from || !b->first)
			return rt_error(c, RT_PLAN, "this transfer is not supported between GPUs");
		code = check(c, t->broadcast(b->rank == c->rank ? x : to, to, (size_t)b->run * r->elem, ncclChar,
			b->rank, t->comm, s), "gather");
	}
	return code;
}

/* Sums of floats over all ranks, gathers of the first axis, and transfers without peers. */
static int move(Ctx *c, const RtRoute *r, void *y, const void *x)
{
	Nccl *t = nccl_of(c);
	const Form *to = &c->program->form[r->move->to - 1];
	bool whole = r->npeer == c->nrank;
	if (r->move->channel < 0)
		return here(c, r, y, x);
	for (int k = 0; k < to->ndim; k++)
		whole &= to->cut[k].kind == FORM_B;
	if (whole && r->nterm && r->move->type == RT_F32)
		return check(c, t->reduce(x, y, (size_t)r->count, ncclFloat, ncclSum, t->comm,
			((RtCuda *)c->device)->stream), "all-reduce");
	return whole && !r->nterm ? gather(c, r, y, x)
		: rt_error(c, RT_PLAN, "this transfer is not supported between GPUs");
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

/* Transfers are ordered with kernels by the stream: nothing waits.  NCCL matches the calls of a communicator by their
 * order.  One communicator serves all channels, because every transfer with peers is between all ranks (move refuses
 * others), so all ranks call them in the same order. */
static void publish(Ctx *c, RtJob *j)
{
	(void)c;
	(void)j;
}

static int advance(Ctx *c, RtJob *j, bool wait)
{
	int code = 0;
	(void)wait;
	for (int i = 0; i < j->n && !code; i++)
		code = move(c, &c->route[j->move[i]], j->y[i], j->x[i]);
	return code;
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
	t->table.publish = publish;
	t->table.advance = advance;
	t->table.release = NULL;
	t->table.late = NULL;
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
