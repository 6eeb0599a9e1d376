/*{banner*/
/* The device code of this model, one file; this file, as it stands, is the template. */
/*}*/
#include "dialect.h"
#include "expr.h"

/*{includes*/
/*}*/

/*{functions*/
/*}*/
