/*{banner*/
/* Values that live from step to step; this file, as it stands, is the template and holds none. */
/*}*/
#include "buffers.h"

/*{constants*/
/*}*/

/* name, type, shape, splits, whether peers see it, offset; what it is; what it starts as */
extern const RtKept params[];
const RtKept params[] = {
/*{rows*/
	{ .start = RT_FILL },
/*}*/
};
