#include "ops.h"

const Op ops_matmul[] = {
	{ 0 },
};
