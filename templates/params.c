/*{banner*/
/* Values that live from step to step; this file, as it stands, is the template and holds one. */
/*}*/
#include "buffers.h"

/*{constants*/
/*}*/

/* What a value starts as. */
#define ZERO .start = RT_FILL
#define FILL(v) .start = RT_FILL, .a = v
#define NORMAL(mean, dev, k) .start = RT_NORMAL, .a = mean, .b = dev, .key = k
#define UNIFORM(from, to, k) .start = RT_UNIFORM, .a = from, .b = to, .key = k
#define HERE(array) .start = RT_DATA_HERE, .data = array
#define FILE .start = RT_DATA_FILE

/* What it is, name, type, offset, start, rank and shape; PARAM: a parameter of floats; ZEROS: state of floats. */
#define KEPT(is, name, type, offset, start, rank, ...) { { name, RT_##type, rank, { __VA_ARGS__ }, { 0 }, false, offset }, RT_##is, start }
#define PARAM(name, offset, start, rank, ...) { { name, RT_F32, rank, { __VA_ARGS__ }, { 0 }, false, offset }, RT_PARAMETER, start }
#define ZEROS(name, offset, rank, ...) { { name, RT_F32, rank, { __VA_ARGS__ }, { 0 }, false, offset }, RT_STATE, ZERO }

extern const RtKept params[];
const RtKept params[] = {
/*{rows*/
	ZEROS("none", 0, 1, 1),
/*}*/
};
