#include "ops.h"

const Op ops_recurrent[] = {
	{ 0 },
};
