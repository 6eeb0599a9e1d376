/*{banner*/
/* The functions of blocks.c as sbpcc writes them; this file, as it stands, is the template. */
/*}*/
#ifndef BLOCKS_H
#define BLOCKS_H

#include "rt.h"

/* values: the numbers of the values that a function makes and reads, in the order of its pointers; 0, or an exit status
 * after a message. */
typedef int BlockRun(Ctx *c, const int *values);
/*{names*/
BlockRun forward_y;
/*}*/

#endif
