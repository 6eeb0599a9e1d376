/*{banner*/
/* Values that live from step to step; this file, as it stands, is the template and holds one. */
/*}*/
#include "buffers.h"
#include "tables.h"

/*{constants*/
/*}*/
extern const RtKept params[];
const RtKept params[] = {
/*{rows*/
	ZEROS("none", 0, 1, 1)
/*}*/
};
