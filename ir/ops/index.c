#include "ops.h"

const Op ops_index[] = {
	{ 0 },
};
