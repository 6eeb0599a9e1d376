#include "ops.h"

const Op ops_spectral[] = {
	{ 0 },
};
