/* The plan: meshes, placements, SBP signatures and their costs, pins, the search over candidates, transfers as nodes.
 * Sections stand in the order of the data: machine, SBP, signatures, pins, search, costs, transfers, all of them.
 *
 * An Sbp array says how a value is split, with an entry per axis of a mesh.  A Form (runtime/form.h) gives the same as
 * ranks and lengths: how a value is divided over ranks.  Passes choose SBPs; transfers are between forms. */
#ifndef SBPCC_PLAN_H
#define SBPCC_PLAN_H

#include "front/front.h"
#include "lanes/lanes.h"
#include "plan/stages.h"

typedef struct Sbp Sbp;

/* mesh.c: meshes of ranks, from @mesh or --ranks.  A placement is a mesh or a submesh. */
enum { MESH_DIMS = FORM_MESH, RANKS_MAX = 1 << 20 };
struct Mesh {
	Name name; Loc loc;
	bool cuda;
	int ndim, dim[MESH_DIMS], nrank;
	int first;                      /* rank NULL: the rank at coordinate (i, j) is first + i * dim[1] + j */
	const int *rank;                /* else it is rank[i * dim[1] + j] */
	const int *index; int nindex;   /* with it: by rank, 1 + its index in the mesh; 0: not of the mesh */
};
struct Placement {
	const Mesh *mesh;
	const Arg *on;                  /* the argument of @on; NULL: there is one mesh, so @on is not needed */
};

int  mesh_read(Model *, Plan *);
void mesh_default(Model *);                                  /* --ranks=N without @mesh: one axis, called ranks */
void mesh_ranks(Model *, Mesh *, const int *rank);           /* sets its ranks, nrank of them */
int  mesh_rank(const Mesh *, int index);
int  mesh_index(const Mesh *, int rank);                     /* -1: not of the mesh */

/* placement.c: the placement of nodes and values, where there are several meshes or submeshes. */
int  placement_spread(Graph *);                                 /* before the backward pass: writes @on on every node */
int  placement_find(Graph *, Plan *);                           /* of every node and value; -1 after explaining */
void placement_new(Graph *);                                    /* new nodes take the placement of those they replace */
void placement_note(Graph *, Node *);                           /* its placement as an annotation */
bool placement_here(const Value *, const Mesh *);               /* it is computed and held on this mesh */
bool placement_apart(const Placement *, const Placement *);             /* they have no rank in common */

/* device.c: performance of devices and links, from --machine or a preset; all costs are computed from it. */
typedef struct Wire { double latency, bytes; } Wire;         /* seconds before the first byte; bytes per second */
typedef struct Device {                                      /* rates are per second and rank */
	double flops, half, bytes;      /* flops in float and in half precision; bytes of memory traffic */
	double small, cached;           /* bytes per second of values of at most `small` bytes, in cache; 0: none */
	double start;                   /* seconds before an operator or a copy begins */
	double cores;                   /* of one computer, shared by its ranks; 0: one per rank */
	double turn;                    /* seconds that each rank sharing a core adds to the latency of links */
	double memory;                  /* bytes that a rank may use; 0: no limit */
	bool nccl;                      /* transfers are limited to those of runtime/comm_nccl.c */
	double overlap;                 /* fraction of transfers of parameters and gradients hidden by computation */
	Wire axis[MESH_DIMS];           /* between ranks along an axis of the mesh */
} Device;
extern Device device;
int  device_read(const char *file_or_preset, const Mesh *);  /* NULL: the preset of the target; -1 after explaining */
double device_through(double bytes);                         /* seconds in which a rank reads or writes one value */

/* probe.c: measures this computer. */
int  probe_device(FILE *);                                   /* writes a file for --machine */

/* sbp.c: the SBP of a value, an entry per axis of the mesh. */
typedef enum { SBP_B, SBP_S, SBP_P, SBP_ANY } SbpKind;       /* SBP_ANY: not chosen yet, or left open by a pin */
struct Sbp {
	SbpKind kind;
	int axis;                       /* S: of the tensor */
	int leaf;                       /* S: 0, or 1 + the factor that is split (Value.factors), major first */
	const FormReach *reach;         /* S of an operand: overlapping shards of windows (sbp_reach); else NULL */
	Reduce red;                     /* P */
};
Form  sbp_form(const Value *v, const Sbp *, const Mesh *);   /* how v is divided over the ranks of the mesh */
bool  sbp_equal(const Sbp *, const Sbp *, int ndim);
/* entry k; a split of the major factor that divides evenly becomes one of the axis */
Sbp   sbp_plain(const Value *, const Sbp *, const Mesh *, int k);
const char *sbp_text(const Sbp *, int ndim);                 /* "S(0) P(max)": valid until the eighth call after it */
const FormReach *sbp_reach(FormReach);                       /* interned; NULL: the shards do not overlap */
const char *sbp_reach_text(const FormReach *);               /* "8, 1, 0, 0, 8, 1, -1, 1" */
void  sbp_note(Graph *, Value *, const Mesh *);              /* its SBP as an annotation */
const Annot *sbp_annot(const Sbp *, int ndim);               /* an SBP as an annotation, shared by values */
void  sbp_note_as(Graph *, Value *, const Annot *);          /* the same, with that annotation */

/* signatures.c: the legal SBP signatures of a node. */
typedef struct Sig {                                         /* along one axis of a mesh */
	Sbp *in, *out;
	bool run;                       /* shards must be contiguous ranges: the kernel counts from their start */
	bool counted;                   /* its kernel divides by the count over all ranks */
	bool define;                    /* the node is replaced by its definition, with these operands and results */
	int64_t cuts, of;               /* with opt.chunks: it splits a sum of `of` chunks `cuts` ways; 0: none */
} Sig;
/* in[i][k]: of operand i along axis k of the mesh */
typedef struct NdSig { int ndim; const Sig *sig[MESH_DIMS]; Sbp **in, **out; } NdSig;
Sig   *signatures_of(Node *, int nrank, Arena *, int *n);    /* along an axis of nrank ranks; "all B" is the first */
/* all valid combinations of these along the axes of a mesh; with: of mesh_axes_bundle */
NdSig *signatures_product(Node *, const Mesh *, const int *with, Arena *, int *n);
NdSig *signatures_together(const Node *, const Sig *const *, int ndim, Arena *); /* one of them; NULL: not valid */
bool   signatures_can(const Sbp *, int ndim);                /* the entries are valid together */
bool   signatures_define(const NdSig *, const Mesh *);       /* along some axis by the definition of the node */
/* the factors of an axis that are one factor of the rule */
bool   signatures_leaves(const FactorRule *, int operand, const Value *, int factor, int *axis, int *from, int *n);
bool   signatures_legal(Node *, const Mesh *, Arena *);      /* by the SBP of operands and results */
const char *signatures_text(const Node *, const Sig *);      /* "S(0), B -> S(0)" */

/* mesh_axes.c: bundles of axes, for meshes with too many axes to combine freely. */
enum { AXES_FREE = 4 };                                      /* axes or bundles that are combined freely */
typedef bool MeshAxesAlike(const void *arg, int j, int k);   /* may two axes always be split alike? */
bool mesh_axes_many(const int *dim, int ndim);               /* a mesh has more axes than are combined freely */
/* with: by axis, the first of its bundle; returns how many bundles have more than one rank */
int  mesh_axes_bundle(const Mesh *, MeshAxesAlike *, const void *arg, int *with);
/* the next of len[k] choices along each axis; false: it was the last */
bool mesh_axes_next(int ndim, const int *with, const int *len, int *at);

/* any_ranks.c: sums that do not depend on the number of ranks. */
enum { CHUNKS = 8, CHUNKS_MOST = 64 };
int     any_ranks_read(Model *);                             /* --deterministic or @any_ranks; -1 after explaining */
/* this split over nrank ranks gives the same bits; of: chunks of a sum that is split, else 0 */
bool    any_ranks_allow(Node *, const FactorRule *, int factor, int leaf, int nrank, int64_t *of);
bool    any_ranks_carry(const Node *);                       /* partial values pass through it unchanged */
/* chunks of its sum over all ranks, and the operand and axis that they divide */
int64_t any_ranks_chunks(Node *, Arena *, int *operand, int *axis);

/* pins.c, search.c, candidates.c, search_memory.c (search.h): the SBP of all values, by the solver (solve.h). */
int    search_solve(Graph *, const Plan *, const Mesh *);    /* of the values computed and held on this mesh */
bool   search_memory_near(const Graph *);                    /* a program may need more than the memory of a rank */

/* cheapest.c: one signature for a node. */
bool   cheapest_alike(const void *node, int j, int k);       /* equal SBP entries along two axes of the mesh */
bool   cheapest_served(const Node *, const Sig *);           /* later passes support it */
/* the cheapest, given the SBP of operands and of decided results; define: it may be replaced by its definition */
NdSig *cheapest_find(Node *, const Mesh *, bool define, Arena *);

/* expansion.c: nodes that are replaced by their definitions. */
int expansion_nodes(Graph *);                                /* the marked ones; -1 after explaining */
typedef struct Expansion Expansion;                          /* the definition of a node as a graph of its own */
Expansion *expansion_open(const Node *);
double expansion_cost(Expansion *, const NdSig *, const Mesh *);       /* seconds, by its definition */
void expansion_close(Expansion *);

/* shard_node.c: the node that a rank runs, with these types of operands and results (NULL: unchanged).  NULL: the rank
 * has nothing to do, because its shard of an operand is empty; its partial results are then the neutral element of
 * their reduction.
 *   at      the first index along each axis of the shards of operands, then of results; NULL: not needed
 *   origin  by axis of what op_origin names; NULL: kernels find it */
Node *shard_node_of(const Node *, Type *const *in, Type *const *out, const int64_t *const *at, const int64_t *origin,
	Arena *);

/* cost.c: flops and bytes to seconds; what a transfer moves. */
double cost_flops(const Node *);                             /* of the logical node, all ranks together */
double cost_node(Node *, double share);                      /* seconds of a rank that does this share of the work */
/* seconds, by SBP: in[i][k] of operand i along axis k of the mesh */
double cost_run(const Node *, Sbp *const *in, Sbp *const *out, const Mesh *, uint64_t inside);
uint64_t cost_inside(const Node *, const uint64_t *fused);   /* fused: of cost_fused */
uint64_t *cost_fused(const Graph *, Arena *);                /* operands and results in registers, by first result */
double cost_shard(const Value *, const Sbp *, const Mesh *); /* bytes of the largest shard */
/* seconds of a transfer, by its best route */
double cost_move(const Value *, const Sbp *from, const Sbp *to, const Mesh *);
double cost_step(const Value *, const Sbp *from, const Sbp *to, const Mesh *);   /* it changes one axis only */

/* boxing.c: transfers as nodes. */
const char *boxing_how(const Node *);                        /* the collective of a Boxing node */
const char *boxing_made(const Node *);                       /* where its value is computed: "mlp.ir:14:3" */
int boxing_run(Graph *);

/* transfer.c: one transfer: its name, groups, volume and time. */
bool transfer_same_cut(const FormCut *, const FormCut *);
_Noreturn void transfer_no_room(void);                       /* exits with EXIT_LIMIT: too many pieces for memory */
typedef struct Transfer {
	const char *how;                /* all_reduce, all_gather, ..., send, slice, zero_fill, none */
	bool one_mesh, local;           /* source and destination are one mesh; nothing is moved */
	unsigned axes;                  /* on one mesh: bit k when forms differ along axis k; groups exchange there */
	int64_t total, busiest;         /* elements received by all ranks; by the busiest (between meshes: or sent) */
} Transfer;
Transfer transfer_count(const Form *from, const Form *to, bool exact);   /* exact: rank by rank */
const Transfer *transfer_of(const Form *from, const Form *to);           /* memoised */
bool transfer_nccl(const Form *from, const Form *to, int64_t elem_bytes);        /* comm_nccl.c can do it */
double transfer_time(const Transfer *, const Form *from, const Form *to, int64_t elem_bytes);
double transfer_seconds(const Form *from, const Form *to, int64_t elem_bytes);
typedef struct FormPairs { struct FormPair **list; int n, cap; } FormPairs;      /* a memo; a new entry is NULL */
void **transfer_pair(FormPairs *, const Form *from, const Form *to, int64_t more);

/* boxing_route.c: the quickest route from form to form; its forms after the first, the last is the destination. */
typedef struct BoxingRoute { int n; Form *form; double seconds; } BoxingRoute;
const BoxingRoute *boxing_route_find(const Form *from, const Form *to, int64_t elem_bytes);   /* memoised */

/* plan.c: the pass. */
int plan_prepare(Graph *);                                   /* meshes, machine, placements; -1 after explaining */
int plan_run(Graph *);

#endif
