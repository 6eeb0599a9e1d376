#include "ops.h"

const Op ops_reduce[] = {
	{ 0 },
};
