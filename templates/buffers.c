/*{banner*/
/* The memory plan: where every value lies; this file, as it stands, is the template and holds one value. */
/*}*/
#include "buffers.h"

/* Name, type and offset, in the slab (S) or in the window (W), where it is known to fit. */
#define INSIDE(id, offset, bytes) (T##id + (int64_t)(0 * sizeof(struct { _Static_assert((offset) + T##id <= (int64_t)(bytes), "T" #id); int x; })))
#define S(id, name, type, offset) { name, RT_##type, false, offset, INSIDE(id, offset, SLAB_BYTES) }
#define W(id, name, type, offset) { name, RT_##type, true, offset, INSIDE(id, offset, WINDOW_BYTES) }

const RtValue values[NVALUE] = {
/*{values*/
	S(0, "none", F32, 0),
/*}*/
};
