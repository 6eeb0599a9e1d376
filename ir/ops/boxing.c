#include "ops.h"

const Op ops_boxing[] = {
	{ 0 },
};
