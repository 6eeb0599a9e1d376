#include "ops.h"

const Op ops_optimizer[] = {
	{ 0 },
};
