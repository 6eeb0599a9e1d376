#include "ops.h"

const Op ops_random[] = {
	{ 0 },
};
