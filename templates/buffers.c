/*{banner*/
/* The memory plan: where every value lies, and how; this file, as it stands, is the template and holds one value. */
/*}*/
#include "buffers.h"
#include "tables.h"

/* What a step makes, numbered behind what is kept (params.c): name, type, offset and bytes. */
const RtValue values[NVALUE] = {
/*{values*/
	F("none", 0, T0)
/*}*/
};

/* How values lie on ranks (form.h): mesh, first rank or a list of ranks, shape, and a cut for each axis of the mesh. */
/*{forms*/
const Form forms[NFORM + 1] = {
	{ 0 }
};
/*}*/

/* Transfers: the forms that they lead from and to, by their numbers from 1 on; whether no other rank takes part. */
/*{moves*/
const RtMove moves[NMOVE + 1] = {
	{ 0 }
};
/*}*/

/* For --dump: shapes and how they lie on ranks; which of these is that of each value; gradients that are in memory under
 * another name, with their shapes. */
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
