/*{banner*/
/* The memory plan: the offset and layout of every value; this file, as it stands, is the template and holds one value. */
/*}*/
#include "buffers.h"
#include "tables.h"

/* Values of a step, numbered after the kept values (params.c): name, type, offset and bytes. */
const RtValue values[NVALUE] = {
/*{values*/
	F("none", 0, T0)
/*}*/
};

/* How values are laid out on ranks (form.h): mesh, first rank or a list of ranks, shape, and a cut for each axis of the mesh. */
/*{forms*/
const Form forms[NFORM + 1] = {
	{ 0 }
};
/*}*/

/* Transfers: the numbers of their source and destination forms, from 1 on; whether no other rank takes part. */
/*{moves*/
const RtMove moves[NMOVE + 1] = {
	{ 0 }
};
/*}*/

/* For --dump: shapes with their layouts; the number of the shape of each value; gradients that have another name in memory,
 * with their shapes. */
/*{shapes*/
const Form shapes[] = {
	{ 0 }
};
const int shape_of[NVALUE] = {
	0
};
const RtGradient gradients[] = {
	{ 0 }
};
const int ngradient = 0;
/*}*/
