/* The gradient of the weight of a convolution in chunks of images (tree.h).  What waits lies behind the scratch of one chunk. */
#include "work.h"

int k_conv_grad_w_tree_f32(Ctx *c, float *w, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin, int64_t cout, KWindow v, int64_t chunks)
{
	int64_t some = batch / chunks, n = groups * cout * cin * v.k[0] * v.k[1];
	int64_t ximages = some * groups * cin * v.in[0] * v.in[1], gimages = some * groups * cout * v.out[0] * v.out[1];
	float *room = (float *)(void *)(c->shared + k_work_behind(k_work_conv(K_CONV_GRAD_W, &v, some, groups, cin, cout)));
	int code = 0;
	for (int64_t k = 0; k < chunks && !code; k++) {
		float *to = tree_place(w, room, n, k, chunks);
		code = k_conv_grad_w_f32(c, to, x + k * ximages, g + k * gimages, some, groups, cin, cout, v);
		tree_join(to, room, n, k);
	}
	return code;
}
