#include "ops.h"

const Op ops_pointwise[] = {
	{ 0 },
};
