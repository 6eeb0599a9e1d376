#include "ops.h"

const Op ops_attention[] = {
	{ 0 },
};
