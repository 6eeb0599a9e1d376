/* gpt_sample WEIGHTS TEXT BYTES: continues the first bytes of TEXT, one byte at a time, with the model of
 * examples/gpt.ir as a library.  A byte is drawn from the probabilities that the model gives, sharpened a little. */
#include "model.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, LENGTH = 64, BYTES = 256 };

static int64_t tokens[BATCH][LENGTH];
static float logits[BATCH][LENGTH][BYTES];

/* A number in [0, 1) that is the same in every run. */
static double chance(void)
{
	static uint64_t s = 88172645463325252u;
	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return (double)(s >> 11) * 0x1p-53;
}

static int draw(const float *score)
{
	double p[BYTES], sum = 0, max = score[0];
	for (int i = 1; i < BYTES; i++)
		max = score[i] > max ? score[i] : max;
	for (int i = 0; i < BYTES; i++)
		sum += p[i] = exp((score[i] - max) / 0.7);
	double u = chance() * sum;
	int i = 0;
	while (i < BYTES - 1 && (u -= p[i]) > 0)
		i++;
	return i;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	unsigned char seen[LENGTH];
	FILE *f = fopen(argv[2], "rb");
	if (!f || fread(seen, 1, LENGTH, f) != LENGTH) {
		fprintf(stderr, "gpt_sample: %s has less than %d bytes\n", argv[2], LENGTH);
		return 1;
	}
	fclose(f);
	gpt_config *config = gpt_config_new();
	gpt_context *c = config && !gpt_config_weights(config, argv[1]) ? gpt_context_new(config) : NULL;
	gpt_config_free(config);
	if (!c || *gpt_error(c)) {
		fprintf(stderr, "gpt_sample: %s\n", c ? gpt_error(c) : "out of memory");
		return 1;
	}
	const void *in[] = { tokens };
	void *out[] = { logits };
	for (int n = atoi(argv[3]); n > 0; n--) {
		for (int i = 0; i < LENGTH; i++)
			tokens[0][i] = seen[i];
		if (gpt_infer(c, in, out)) {
			fprintf(stderr, "gpt_sample: %s\n", gpt_error(c));
			return 1;
		}
		memmove(seen, seen + 1, LENGTH - 1);
		seen[LENGTH - 1] = (unsigned char)draw(logits[0][LENGTH - 1]);
		putchar(seen[LENGTH - 1] == '\n' ||
			(seen[LENGTH - 1] >= 32 && seen[LENGTH - 1] < 127) ? seen[LENGTH - 1] : '?');
	}
	putchar('\n');
	gpt_context_free(c);
	return 0;
}
