/*{banner*/
/* Pointwise operators of this model, each with its shape; this file, as it stands, is the template. */
/*}*/
#include "pointwise.h"
#include "expr.h"
#include "loops.h"
/*{functions*/
/*}*/
