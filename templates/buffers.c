/*{banner*/
/* The memory plan: where every value lies; this file, as it stands, is the template and holds one value. */
/*}*/
#include "buffers.h"
#include "tables.h"

/* What a step makes, numbered behind what is kept (params.c): name, type, offset and bytes. */
const RtValue values[NVALUE] = {
/*{values*/
	F("none", 0, T0)
/*}*/
};
