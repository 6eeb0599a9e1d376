/* The caps on what an input may need. */
#include "base.h"

Limits limits = {
	.file_bytes = 256ll << 20, .onnx_bytes = (2ll << 30) - 1, .name_bytes = 64 << 10, .nodes = 4 << 20,
	.depth = 100, .elements = 1ll << 31, .const_bytes = 64 << 10, .table = 4 << 20, .unroll = 100000,
	.checksum_bytes = 4ll << 30, .compared = 20000000, .errors = 20,
};
