/* Any bytes as an .ir file. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_begin();
	Model *m = parse_text(file_memory("fuzz.ir", data, n));
	if (!m && diag_errors() == 0)
		abort();                        /* refused without a word */
	if (m && diag_errors() == 0)
		fuzz_round_trip(m);
	if (m)
		model_free(m);
	return 0;
}
