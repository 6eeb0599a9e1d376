#include "ops.h"

const Op ops_misc[] = {
	{ 0 },
};
