#include "ops.h"

const Op ops_movement[] = {
	{ 0 },
};
