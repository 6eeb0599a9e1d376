#include "ops.h"

const Op ops_shape[] = {
	{ 0 },
};
