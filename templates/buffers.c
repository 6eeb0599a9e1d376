/*{banner*/
/* The memory plan: the offset and layout of every value.  As it stands, this file is the template: it has one value. */
/*}*/
#include "buffers.h"
#include "tables.h"

/* Values of a step, numbered after the kept values (params.c): name, type, offset and bytes. */
const RtValue values[NVALUE] = {
/*{values*/
	F("none", 0, 4)
/*}*/
};

/* How values are laid out on ranks (form.h): mesh, first rank or a list of ranks, shape, and a cut for each axis of
 * the mesh. */
/*{forms*/
const Form forms[NFORM + 1] = {
	{ 0 }
};
/*}*/

/* Transfers: the numbers of their source and destination forms, from 1 on; the type; the channel, or -1 if no other
 * rank takes part.  Channels: forms on the meshes of sources and destinations, whose ranks number transfers alike. */
/*{moves*/
const RtMove moves[NMOVE + 1] = {
	{ 0 }
};
const RtChannel channels[NCHANNEL + 1] = {
	{ 0 }
};
/*}*/

/* For --dump: shapes with their layouts; the number of the shape of each value; gradients that have another name in
 * memory, with their shapes. */
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
