#include "ops.h"

const Op ops_loss[] = {
	{ 0 },
};
