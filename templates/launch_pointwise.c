/*{banner*/
/* Launchers of the pointwise operators of this model; this file, as it stands, is the template. */
/*}*/
#include "pointwise.h"
#include "slab_cuda.h"

/*{functions*/
/*}*/
