/* vee.c: schedules of a V, by units of time up and down the ranks, and the most activations of a rank; schedules.c has
 * their rows. */
#ifndef SBPCC_VEE_H
#define SBPCC_VEE_H

#include "lanes/lanes.h"

typedef struct VeeShape { int up, down, most; bool ahead; } VeeShape;
const char *vee_order(const Pipeline *, VeeShape, Arena *, PipeOrder *);

#endif
