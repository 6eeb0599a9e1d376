/* Where every value lies: meshes, placements, SBP signatures and their costs, pins, the search, transfers as nodes. */
#ifndef SBPCC_PLAN_H
#define SBPCC_PLAN_H

#include "front/front.h"

typedef struct Sbp Sbp;

/* mesh.c: meshes of ranks, from @mesh or --ranks.  A place is a mesh, or later a part of one. */
enum { MESH_DIMS = FORM_MESH, RANKS_MAX = 1 << 20 };
struct Mesh {
	Name name;
	bool cuda;
	int ndim, dim[MESH_DIMS];
	int nrank;
	int first;                      /* at coordinate (i, j): first + i * dim[1] + j */
	const int *rank;                /* or rank[i * dim[1] + j]; NULL: that */
	const int *place; int nplace;   /* with it: by rank, 1 + where it stands in the mesh; 0: nowhere */
	Loc loc;
};
struct Place {
	const Mesh *mesh;
	const Arg *on;                  /* as @on says it; NULL: there is one mesh, so nothing has to be said */
};

int  mesh_read(Model *, Plan *);
void mesh_default(Model *);                               /* --ranks=N without @mesh is a mesh of one axis, called ranks */
void mesh_ranks(Model *, Mesh *, const int *rank);           /* sets which they are, nrank of them */
int  mesh_rank(const Mesh *, int place);
int  mesh_index(const Mesh *, int rank);                      /* -1: it is not of the mesh */

/* places.c: who runs a node and holds a value, where there are several meshes or parts of one. */
int  places_spread(Graph *);                                 /* before the backward pass: every node says where it is */
int  places_find(Graph *, Plan *);                           /* of every node and value; -1 after explaining */
void places_new(Graph *);                                    /* nodes that took the place of others: where those were */
void places_note(Graph *, Node *);                           /* its place as an annotation */
bool places_here(const Value *, const Mesh *);                /* it is made and held on this mesh */
bool places_apart(const Place *, const Place *);             /* no rank is of both */

/* device.c: what devices and links can do, from --machine or a preset.  Everything that costs time is priced by these. */
typedef struct Wire { double latency, bytes; } Wire;         /* seconds before the first byte; bytes a second of one rank */
typedef struct Device {
	double flops, half, bytes;      /* a second, of one rank: in float, in half precision; through its memory */
	double small, cached;           /* a value of so many bytes or fewer stays in a cache: so many bytes a second; 0: none does */
	double start;                   /* seconds before an operator or a copy begins */
	double cores;                   /* for the ranks of one computer; 0: one for each */
	double turn;                    /* seconds that each rank that shares a core adds to the latency of links */
	double memory;                  /* bytes that a rank may use; 0: no limit */
	bool nccl;                      /* transfers are those of runtime/comm_nccl.c: few kinds */
	double overlap;                 /* share of the transfers of parameters and gradients that computing hides */
	Wire axis[MESH_DIMS];           /* between ranks along an axis of the mesh */
} Device;
extern Device device;
int  device_read(const char *file_or_preset, const Mesh *); /* NULL: the preset of the target; -1 after explaining */
double device_through(double bytes);                        /* seconds in which a rank reads or writes so many bytes of one value */
int  probe_device(FILE *);                                  /* probe.c: measures this computer, writes a file of figures */

/* sbp.c: how a value lies along each axis of a mesh. */
typedef enum { SBP_B, SBP_S, SBP_P, SBP_ANY } SbpKind;        /* SBP_ANY: left to the compiler; in pins, and while a plan is being made */
struct Sbp {
	SbpKind kind;
	int axis;                       /* S: of the tensor */
	int leaf;                       /* S: 0, or 1 + the factor of the axis that is cut (Value.factors), major first */
	const FormReach *reach;         /* S: what windows reach, by the share of another axis (sbp_reach); only of what a node reads, never of how a value is kept */
	Reduce red;                     /* P */
};
/* The same as a form: what every rank holds of v. */
Form  sbp_form(const Value *v, const Sbp *, const Mesh *);
bool  sbp_equal(const Sbp *, const Sbp *, int ndim);
/* Entry k.  Only what ranks hold counts: a cut along the first factor of an axis that it divides is one of the axis. */
Sbp   sbp_plain(const Value *, const Sbp *, const Mesh *, int k);
const char *sbp_text(const Sbp *, int ndim);                 /* "S(0) B", "S(2/0) P(max)": valid until the eighth call after it */
const FormReach *sbp_reach(FormReach);                       /* the one that all who say the same share; NULL: it is the share itself */
const char *sbp_reach_text(const FormReach *);               /* "8, 1, 0, 0, 8, 1, -1, 1" */
void  sbp_note(Graph *, Value *, const Mesh *);              /* its SBP as an annotation */
const Annot *sbp_annot(const Sbp *, int ndim);               /* a form as an annotation, which others may share */
void  sbp_note_as(Graph *, Value *, const Annot *);          /* of its SBP */

/* signatures.c: the legal ways to run a node. */
typedef struct Sig {                                         /* along one axis of a mesh */
	Sbp *in, *out;
	bool run;                       /* a rank's part is one run, for its kernel counts from there */
	bool counted;                   /* its kernel divides by how many all ranks have */
	bool define;                    /* the node is replaced by its definition, in which its operands and results lie like this */
	int64_t cuts, of;               /* with opt.chunks: into how many parts it cuts so many chunks of a sum; 0: it cuts none */
} Sig;
typedef struct NdSig { int ndim; const Sig *sig[MESH_DIMS]; Sbp **in, **out; } NdSig;    /* in[i][k]: of operand i along axis k of the mesh */
Sig   *signatures_of(Node *, int parts, Arena *, int *n);   /* "everything B" is the first */
NdSig *signatures_product(Node *, const Mesh *, const int *with, Arena *, int *n);      /* all mixtures of these along the axes of a mesh that forms can say; with: of mesh_axes_bundle */
NdSig *signatures_together(const Node *, const Sig *const *, int ndim, Arena *);        /* one of them; NULL: no form can say it */
bool   signatures_can(const Sbp *, int ndim);                       /* a form can say it */
bool   signatures_leaves(const FactorRule *, int operand, const Value *, int factor, int *axis, int *from, int *n);    /* which factors of an axis stand for one of the rule */
bool   signatures_legal(Node *, const Mesh *, Arena *);             /* operands and results lie as one of its signatures says */
const char *signatures_text(const Node *, const Sig *);         /* "S(0), B -> S(0)" */

/* mesh_axes.c: axes of a mesh that are too many to be mixed with each other. */
enum { AXES_FREE = 4 };                                      /* so many axes, or bundles of them, are */
typedef bool MeshAxesAlike(const void *arg, int j, int k);       /* may two axes always be cut alike? */
bool mesh_axes_many(const int *dim, int ndim);                    /* of a mesh: more than are free */
int  mesh_axes_bundle(const Mesh *, MeshAxesAlike *, const void *arg, int *with);     /* by axis: the first of its bundle; returns how many bundles have more than one rank */
bool mesh_axes_next(int ndim, const int *with, const int *len, int *at);  /* the next of len[k] choices along each axis; false: it was the last */

/* any_ranks.c: sums that do not depend on the number of ranks. */
enum { CHUNKS = 8, CHUNKS_MOST = 64 };
int     any_ranks_read(Model *);                                /* --deterministic or @any_ranks, and says so in the model; -1 after explaining */
bool    any_ranks_allow(Node *, const FactorRule *, int factor, int leaf, int parts, int64_t *of);  /* cut so, it gives the same bits; of: chunks of a sum that is cut, else 0 */
bool    any_ranks_carry(const Node *);                          /* terms go through it unchanged */
int64_t any_ranks_chunks(Node *, Arena *, int *operand, int *axis); /* of its sum, on all ranks together, and where the letter is that they are of */

/* pins.c: what the user says of values and of nodes. */
typedef struct NodePin { Sbp **in, **out; } NodePin;         /* an entry per axis of the mesh; NULL: free */
typedef struct Pins {
	Sbp **value;                    /* by value id: an entry per axis of the mesh, SBP_ANY where free; NULL: not pinned */
	NodePin **node;                 /* by index in graph->node; NULL: not pinned */
} Pins;
Pins *pins_read(Graph *, const Mesh *);                      /* NULL after explaining */
NodePin *pins_node(Node *, const Mesh *, Arena *, int *bad);
bool  pins_allow(const Node *, const NodePin *, const Sig *, int k);     /* along axis k of the mesh */

/* search.c: the forms of all values, by the solver (solve.h). */
int    search_solve(Graph *, const Plan *, const Mesh *);       /* of the values that are made and held there */

/* cheapest.c: one signature for a node. */
bool   cheapest_alike(const void *node, int j, int k);       /* all that is settled of its operands and results, along two axes of the mesh */
bool   cheapest_served(const Node *, const Sig *);                /* the passes behind this one can hold and run it */
NdSig *cheapest_find(Node *, const Mesh *, bool define, Arena *);   /* the cheapest, given operands and settled results; define: it may be replaced by its definition */

/* expansion.c: nodes that run by their definitions. */
int expansion_nodes(Graph *);                                   /* those that are marked, after the SBP of every value is chosen; -1 after explaining */
typedef struct Expansion Expansion;                        /* of a node, written out on its own */
Expansion *expansion_open(const Node *);
double expansion_cost(Expansion *, const NdSig *, const Mesh *);       /* seconds by a signature that takes the definition */
void expansion_close(Expansion *);
bool signatures_define(const NdSig *, const Mesh *);               /* does it? */

/* shard_node.c: the node that a rank runs, whose operands and results have these types (NULL: their own).  NULL: it has nothing to do, for an
 * operand that is cut is empty there; its partial results are the neutral element of their reduction. */
/* at: the first index along each axis of the parts of operands, then of results; NULL: nothing is cut that needs it. */
Node *shard_node_of(const Node *, Type *const *in, Type *const *out, const int64_t *const *at, const int64_t *origin, Arena *);  /* origin: by axis of what op_origin names; NULL: kernels find it */

/* cost.c: flops and bytes to seconds; what a transfer moves. */
double cost_flops(const Node *);                             /* of the whole value, all ranks together */
double cost_node(Node *, double share);                      /* of a device that does this share of the work */
double cost_run(const Node *, Sbp *const *in, Sbp *const *out, const Mesh *, uint64_t inside);       /* by forms: in[i][k] of operand i along axis k of the mesh */
uint64_t cost_inside(const Node *, const uint64_t *fused);   /* fused: of cost_fused */
uint64_t *cost_fused(const Graph *, Arena *);                /* by the first result of a node: which operands and results pointwise nodes do not read and write in memory */
double cost_shard(const Value *, const Sbp *, const Mesh *);  /* bytes of the largest part */
double cost_move(const Value *, const Sbp *from, const Sbp *to, const Mesh *);       /* of a transfer, whatever it goes through */
double cost_step(const Value *, const Sbp *from, const Sbp *to, const Mesh *);       /* of one that changes along one axis of the mesh only */

/* boxing.c */
const char *boxing_how(const Node *);                        /* what a Boxing node is called, by the forms of operand and result */
const char *boxing_made(const Node *);                       /* where the value that it moves is made: "mlp.ir:14:3" */
int boxing_run(Graph *);

/* transfer.c: one transfer: its name, groups, volume and time. */
bool transfer_same_cut(const FormCut *, const FormCut *);
_Noreturn void transfer_no_room(void);                                   /* ends with EXIT_LIMIT: the pieces of a part do not fit into memory */
typedef struct Transfer {
	const char *how;                /* all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, scatter, gather, reduce, send, slice, zero_fill, none */
	bool one_mesh, local;           /* between the same ranks in one mesh; nothing is moved */
	unsigned axes;                  /* on one mesh: bit k when the forms differ along axis k; groups are ranks that differ only there */
	int64_t total, busiest;         /* elements that all ranks receive, and that the busiest receives (or, between meshes, sends) */
} Transfer;
Transfer transfer_count(const Form *from, const Form *to, bool exact);   /* exact: rank by rank, even where one can speak for all */
const Transfer *transfer_of(const Form *from, const Form *to);           /* remembered */
bool transfer_nccl(const Form *from, const Form *to, int64_t elem_bytes);        /* runtime/comm_nccl.c can do it, between all ranks */
double transfer_time(const Transfer *, const Form *from, const Form *to, int64_t elem_bytes);
double transfer_seconds(const Form *from, const Form *to, int64_t elem_bytes);
/* What is remembered of a pair of forms; a new entry is NULL. */
typedef struct FormPair FormPair;
typedef struct FormPairs { FormPair **list; int n, cap; } FormPairs;
void **transfer_pair(FormPairs *, const Form *from, const Form *to, int64_t more);

/* boxing_route.c: the quickest way from form to form. */
typedef struct BoxingRoute { int n; Form *form; double seconds; } BoxingRoute;       /* the forms after the first; the last is the end */
const BoxingRoute *boxing_route_find(const Form *from, const Form *to, int64_t elem_bytes);   /* remembered */

/* plan.c: all of it, in order. */
int plan_prepare(Graph *);                                   /* meshes, machine and places, before trials begin; -1 after explaining */
bool search_memory_near(const Graph *);                         /* the memory of a rank (search_memory.c) */
int plan_run(Graph *);

#endif
