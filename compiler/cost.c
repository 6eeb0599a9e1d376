/* Seconds from flops and bytes.  The figures are those of one core of a common server and shared memory between ranks; what
 * matters to the choice of signatures is their order of magnitude. */
#include "compiler.h"

#include <math.h>

static const struct { double flops, bytes, link, latency; } machine = { 5e10, 1e10, 5e9, 5e-6 };

static double node_bytes(const Node *n)
{
	double b = 0;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && n->in[i]->type && type_elements(n->in[i]->type) > 0)
			b += (double)type_elements(n->in[i]->type) * dtype_bits(n->in[i]->type->elem) / 8;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && n->out[i]->type && type_elements(n->out[i]->type) > 0)
			b += (double)type_elements(n->out[i]->type) * dtype_bits(n->out[i]->type->elem) / 8;
	return b;
}

double cost_flops(const Node *n)
{
	if (n->row && n->row->cost)
		return n->row->cost(n).flops;
	return n->nout && n->out[0] && n->row && n->row->expr ? (double)type_elements(n->out[0]->type) * (n->row->flops ? n->row->flops : 1) : 0;
}

double cost_node(Node *n, double share)
{
	Cost c = { 0, node_bytes(n) };
	if (n->row && n->row->cost)
		c = n->row->cost(n);
	return fmax(c.flops / machine.flops, c.bytes / machine.bytes) * share;
}

/* Volumes of the pairs on one set of p ranks, as the busiest rank sees them (rings). */
double cost_box(const Sbp *from, const Sbp *to, int64_t bytes, int p)
{
	if (p == 1 || sbp_equal(from, to, 1))
		return 0;
	double t = (double)bytes, f = (double)(p - 1) / p;
	if (from->kind == SBP_P)
		return machine.latency + 2 * f * t / machine.link + (to->kind == SBP_B ? 0 : t / machine.bytes);
	if (from->kind == SBP_S)
		return machine.latency + f * t / machine.link + (to->kind == SBP_B ? 0 : t / machine.bytes);
	return t / machine.bytes;       /* B: a slice, or zeros on all ranks but one */
}
