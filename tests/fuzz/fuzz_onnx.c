/* Any bytes as an .onnx file: what is read also prints, and is written as bytes that read back and write the same. */
#include "fuzz.h"

static char *write(const Model *m, size_t *bytes)
{
	char *out = NULL;
	FILE *f = open_memstream(&out, bytes);
	if (!f)
		abort();
	int failed = onnx_write(f, m);
	fclose(f);
	if (failed)
		abort();
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_begin();
	Model *m = onnx_read(file_memory("fuzz.onnx", data, n));
	if (!m && diag_errors() == 0)
		abort();
	if (m && diag_errors() == 0 && verify_model(m) == 0) {
		fuzz_round_trip(m);
		size_t n1, n2;
		char *once = write(m, &n1);
		Model *again = onnx_read(file_memory("once.onnx", once, n1));
		if (!again)
			abort();
		char *twice = write(again, &n2);
		if (n1 != n2 || memcmp(once, twice, n1))
			abort();
		model_free(again);
		free(once);
		free(twice);
	}
	if (m)
		model_free(m);
	return 0;
}
