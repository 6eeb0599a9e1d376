/* Any text as a model that goes through binding, inlining, shapes and folding: hostile attributes, types and shapes for
 * the rules of every operator.  No input makes us stop with an internal error (die), and a refusal has a message. */
#include "fuzz.h"
#include "compiler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_begin();
	limits.elements = 1 << 16;
	opt.stop_after = "fold";
	Model *m = parse_text(file_memory("fuzz.ir", data, n));
	if (m && !verify_model(m) && !resolve_run(m)) {
		int bad = passes_run(m);

		if (bad && diag_errors() == 0)
			abort();
	}
	if (m)
		model_free(m);
	return 0;
}
