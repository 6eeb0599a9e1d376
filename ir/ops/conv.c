#include "ops.h"

const Op ops_conv[] = {
	{ 0 },
};
