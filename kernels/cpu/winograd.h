/* Convolutions with a window of 3 x 3, step 1: 2 x 2 results at a time from 16 products instead of 36.
 *
 *   forward, gradient x   y  = A' [ (G w G') * (B' x B) ] A       * is elementwise, summed over channels: 16 matrix
 *                                                                 products
 *   gradient w            dw = G' [ (A dy A') * (B' x B) ] G      summed over tiles
 *
 * after A. Lavin and S. Gray, "Fast algorithms for convolutional neural networks", 2015, section 4.1, F(2x2, 3x3).  The
 * sums run over channels and tiles in order, so results depend neither on the number of threads nor on how many images
 * there are. */
#ifndef WINOGRAD_H
#define WINOGRAD_H

#include "lay.h"

/* One group; images of x and y lie ximage and yimage apart.  The weights of output channel o and input channel i begin
 * at w + o * wout + i * win; flip reverses the positions of the window. */
typedef struct Winograd {
	const float *x, *w;
	float *y;
	int64_t batch, cin, cout;
	int64_t in[2], out[2], lo[2];
	int64_t ximage, yimage, wout, win;
	bool flip;
} Winograd;

void winograd_run(Ctx *, const Winograd *);

/* The gradient of the weight, w: x as above, g in place of y. */
void winograd_grad_w(Ctx *, float *w, const float *g, const Winograd *);

#endif
