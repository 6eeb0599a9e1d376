/* The steps of recurrent cells; the loops are in cells.h. */
#include "kernels.h"

#include <math.h>

#define T float
#define NAME(f) f##_f32
#define EXP expf
#define TANH tanhf
#include "cells.h"

#define T double
#define NAME(f) f##_f64
#define EXP exp
#define TANH tanh
#include "cells.h"

#define BY_REAL(name, ...) \
	do { \
		if (type == K_F64) \
			name##_f64(__VA_ARGS__, (double *)(void *)c->work); \
		else \
			name##_f32(__VA_ARGS__, (float *)(void *)c->work); \
		return 0; \
	} while (0)

int k_lstm(Ctx *c, void *y, void *yh, void *before, void *gates, void *yc, void *cells, const void *xw, const void *r, const void *h0, const int32_t *lens,
           const void *c0, const KCells *k, KType type)
{
	BY_REAL(lstm, k, y, yh, before, gates, yc, cells, xw, r, h0, c0, lens);
}

int k_lstm_grad(Ctx *c, void *dxw, void *dh0, void *dc0, const void *dy, const void *dyh, const void *gates, const void *r, const void *dyc, const void *cells,
                const void *c0, const int32_t *lens, const KCells *k, KType type)
{
	BY_REAL(lstm_grad, k, dxw, dh0, dc0, dy, dyh, gates, r, dyc, cells, c0, lens);
}

int k_gru(Ctx *c, void *y, void *yh, void *before, void *gates, void *inner, const void *xw, const void *r, const void *h0, const int32_t *lens, const void *rb,
          const KCells *k, KType type)
{
	BY_REAL(gru, k, y, yh, before, gates, inner, xw, r, h0, lens, rb);
}

int k_gru_grad(Ctx *c, void *dxw, void *dh0, void *side, const void *dy, const void *dyh, const void *gates, const void *r, const void *before, const void *inner,
               const int32_t *lens, const KCells *k, KType type)
{
	BY_REAL(gru_grad, k, dxw, dh0, side, dy, dyh, gates, r, before, inner, lens);
}

int k_rnn(Ctx *c, void *y, void *yh, void *before, const void *xw, const void *r, const void *h0, const int32_t *lens, const KCells *k, KType type)
{
	BY_REAL(rnn, k, y, yh, before, xw, r, h0, lens);
}

int k_rnn_grad(Ctx *c, void *dxw, void *dh0, const void *dy, const void *dyh, const void *y, const void *r, const int32_t *lens, const KCells *k, KType type)
{
	BY_REAL(rnn_grad, k, dxw, dh0, dy, dyh, y, r, lens);
}
