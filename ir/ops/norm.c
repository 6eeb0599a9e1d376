#include "ops.h"

const Op ops_norm[] = {
	{ 0 },
};
