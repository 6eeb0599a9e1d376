#include "ops.h"

const Op ops_resize[] = {
	{ 0 },
};
