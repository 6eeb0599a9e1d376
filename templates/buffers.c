/*{banner*/
/* The memory plan: where every value lies; this file, as it stands, is the template and holds one value. */
/*}*/
#include "buffers.h"

/* What a step makes, numbered behind what is kept (params.c): name, type, offset and bytes, in the slab (S; F: of floats) or in the window (W), where it is known to fit. */
#define INSIDE(offset, bytes, area) (offset) + (int64_t)(0 * sizeof(struct { _Static_assert((offset) + (int64_t)(bytes) <= (int64_t)(area), #offset); int x; }))
#define S(name, type, offset, bytes) { name, RT_##type, false, INSIDE(offset, bytes, SLAB_BYTES), bytes }
#define F(name, offset, bytes) S(name, F32, offset, bytes)
#define W(name, type, offset, bytes) { name, RT_##type, true, INSIDE(offset, bytes, WINDOW_BYTES), bytes }

const RtValue values[NVALUE] = {
/*{values*/
	F("none", 0, T0),
/*}*/
};
