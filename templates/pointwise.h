/*{banner*/
/* Pointwise operators of this model, each with its shape; this file, as it stands, is the template. */
/*}*/
#ifndef POINTWISE_H
#define POINTWISE_H

#include "kernels.h"

/*{prototypes*/
/*}*/

#endif
