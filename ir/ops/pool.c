#include "ops.h"

const Op ops_pool[] = {
	{ 0 },
};
