/* Any bytes as a side file, for a small model whose nodes and values it may name. */
#include "fuzz.h"

static const char model[] =
	"<ir_version: 10, opset_import: [\"\" : 21]>\n"
	"mlp (float[N, 8] x, int64[N] y) => (float loss)\n"
	"<float[8, 16] w1, float[16] b1, float[16, 4] w2> {\n"
	"	[fc1] h0 = MatMul(x, w1)\n"
	"	[bias1] h1 = Add(h0, b1)\n"
	"	[act] h = Relu(h1)\n"
	"	[fc2] z = MatMul(h, w2)\n"
	"	[loss] loss = SoftmaxCrossEntropyLoss(z, y)\n"
	"}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_begin();
	Model *m = parse_text(file_memory("model.ir", model, sizeof model - 1));
	if (!m)
		abort();
	int failed = parse_place(file_memory("fuzz.place", data, n), m);
	if (failed && diag_errors() == 0)
		abort();
	if (!failed && diag_errors() == 0)
		fuzz_round_trip(m);
	model_free(m);
	return 0;
}
