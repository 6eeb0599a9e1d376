/* What the fuzz programs share: a model that was accepted prints as text that parses, and prints again the same. */
#ifndef SBPCC_FUZZ_H
#define SBPCC_FUZZ_H

#include "ir.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline void fuzz_begin(void)
{
	language_init();
	diag_reset();
	diag_out = NULL;
	/* Small caps: a minute shall go into many inputs, not into a few large ones. */
	limits.nodes = 10000;
	limits.elements = 1 << 20;
	limits.unroll = 1000;
}

static inline char *fuzz_print(const Model *m, size_t *bytes)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, bytes);
	if (!f)
		abort();
	print_model(f, m);
	fclose(f);
	return text;
}

static inline void fuzz_round_trip(const Model *m)
{
	size_t n1, n2;
	char *once = fuzz_print(m, &n1);
	Model *again = parse_text(file_memory("once.ir", once, n1));
	if (!again) {
		fprintf(stderr, "what is printed does not parse:\n%s\n", once);
		abort();
	}
	char *twice = fuzz_print(again, &n2);
	if (n1 != n2 || memcmp(once, twice, n1)) {
		fprintf(stderr, "printed once:\n%s\nprinted twice:\n%s\n", once, twice);
		abort();
	}
	model_free(again);
	free(once);
	free(twice);
}

#endif
