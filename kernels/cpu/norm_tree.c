/* Gradients of scales and biases of norms, which are sums over rows or images, in chunks of these (tree.h). */
#include "kernels.h"
#include "tree.h"

/* dscale and db of a chunk: two trees side by side. */
typedef struct Both { float *dscale, *db, *room; int64_t n, chunks; } Both;

static float *scale_of(const Both *b, int64_t k)
{
	return tree_place(b->dscale, b->room, b->n, k, b->chunks);
}

static float *bias_of(const Both *b, int64_t k)
{
	return b->db ? tree_place(b->db, b->room + tree_waits(b->chunks) * b->n, b->n, k, b->chunks) : NULL;
}

static void join(const Both *b, int64_t k)
{
	tree_join(scale_of(b, k), b->room, b->n, k);
	if (b->db)
		tree_join(bias_of(b, k), b->room + tree_waits(b->chunks) * b->n, b->n, k);
}

int k_layernorm_grad_w_tree_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t rows, int64_t n, int64_t chunks)
{
	Both b = { .dscale = dscale, .db = db, .room = (float *)(void *)c->shared, .n = n, .chunks = chunks };
	int64_t some = rows / chunks;
	int code = 0;
	for (int64_t k = 0; k < chunks && !code; k++) {
		code = k_layernorm_grad_w_f32(c, scale_of(&b, k), bias_of(&b, k), dy + k * some * n, x + k * some * n,
			mean ? mean + k * some : NULL, inv + k * some, some, n);
		join(&b, k);
	}
	return code;
}

int k_groupnorm_grad_w_tree_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner, int64_t chunks)
{
	Both b = { .dscale = dscale, .db = db, .room = (float *)(void *)c->shared, .n = groups * each,
		.chunks = chunks };
	int64_t some = batch / chunks, image = groups * each * inner;
	int code = 0;
	for (int64_t k = 0; k < chunks && !code; k++) {
		code = k_groupnorm_grad_w_f32(c, scale_of(&b, k), bias_of(&b, k), dy + k * some * image,
			x + k * some * image, mean + k * some * groups, inv + k * some * groups, some,
			groups, each, inner);
		join(&b, k);
	}
	return code;
}

int k_batchnorm_grad_w_tree_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t channels, int64_t inner, int64_t chunks)
{
	Both b = { .dscale = dscale, .db = db, .room = (float *)(void *)c->shared, .n = channels, .chunks = chunks };
	int64_t some = batch / chunks, image = channels * inner;
	int code = 0;
	for (int64_t k = 0; k < chunks && !code; k++) {
		code = k_batchnorm_grad_w_f32(c, scale_of(&b, k), bias_of(&b, k), dy + k * some * image,
			x + k * some * image, mean, inv, some, channels, inner);
		join(&b, k);
	}
	return code;
}
