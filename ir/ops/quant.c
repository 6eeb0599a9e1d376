#include "ops.h"

const Op ops_quant[] = {
	{ 0 },
};
