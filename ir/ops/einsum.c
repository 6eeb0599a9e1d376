#include "ops.h"

const Op ops_einsum[] = {
	{ 0 },
};
