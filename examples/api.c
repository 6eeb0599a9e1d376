/* A program that uses a model as a library: it trains the perceptron of examples/mlp.ir for some steps, reads a
 * parameter, infers scores, and resumes from a checkpoint to train on its own sample.  `examples/run api` builds and
 * runs it; the library was written with --prefix digits. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(digits_context *c)
{
	fprintf(stderr, "api: %s\n", c ? digits_error(c) : "out of memory");
	digits_context_free(c);
	return 1;
}

enum { BATCH = 32, PIXELS = 64, CLASSES = 10 };

/* The digit with the highest score for an image. */
static int guess(digits_context *c, const float *image, int *digit)
{
	float out[CLASSES] = { 0 };
	int code = digits_infer_some(c, 1, (const void *[]){ image }, (void *[]){ out });
	*digit = 0;
	for (int k = 1; k < CLASSES; k++)
		if (out[k] > out[*digit])
			*digit = k;
	return code;
}

/* A step on a batch that repeats one image. */
static int learn(digits_context *c, const float *image, int64_t digit, float *loss)
{
	static float images[BATCH][PIXELS];
	int64_t label[BATCH];
	for (int i = 0; i < BATCH; i++) {
		memcpy(images[i], image, sizeof images[i]);
		label[i] = digit;
	}
	return digits_step_on(c, BATCH, (const void *[]){ images, label }, loss);
}

/* A seven, drawn by hand. */
static const char *const drawing[8] = {
	"..####..",
	"..####..",
	".....##.",
	"....##..",
	"...##...",
	"..###...",
	"..##....",
	"..##....",
};

int main(int argc, char **argv)
{
	const char *checkpoint = argc > 1 ? argv[1] : "checkpoint";
	digits_config *config = digits_config_new();
	digits_config_threads(config, 1);
	digits_context *c = digits_context_new(config);
	digits_config_free(config);
	if (!c || *digits_error(c))
		return fail(c);
	float loss = 0, own, bias[10];
	double held_out;
	for (int i = 0; i < 400; i++)
		if (digits_step(c, &loss))
			return fail(c);
	if (digits_evaluate(c, &held_out) || digits_get(c, "b2", bias, sizeof bias))
		return fail(c);
	double accuracy = digits_metric(c, "accuracy");
	printf("%d parameters; b2 is", digits_parameters());
	for (int i = 0; i < 10; i++)
		printf(" %.2f", (double)bias[i]);
	float image[64];
	for (int i = 0; i < 64; i++)
		image[i] = drawing[i / 8][i % 8] == '#' ? 1.0f : 0.0f;
	int digit;
	if (guess(c, image, &digit))
		return fail(c);
	printf("\nthe drawing is taken for a %d\n", digit);
	if (digits_save(c, checkpoint) || learn(c, image, 7, &own) || digits_resume(c, checkpoint))
		return fail(c);
	printf("its loss as a 7 is %.3f; back at step %lld, rate %.2g\n", (double)own, (long long)digits_steps(c),
		digits_rate(c));
	printf("loss of the last batch %.3f, of the digits held out %.3f, accuracy %.3f\n",
		(double)loss, held_out, accuracy);
	digits_context_free(c);
	return 0;
}
