/* The kernels of recurrent cells.  Each puts its operands into a Cells list `a`; RUN_CELLS(NAME), defined by the file
 * that includes this one, then runs NAME over the list with elements of `type`. */

int k_lstm(Ctx *c, void *y, void *yh, void *before, void *gates, void *yc, void *cells, const void *xw, const void *r,
	const void *h0, const int32_t *lens, const void *c0, const KCells *k, KType type)
{
	Cells a = { .c = c, .k = k, .y = y, .yh = yh, .before = before, .gates = gates, .yc = yc, .cells = cells,
		.xw = xw, .r = r, .h0 = h0, .c0 = c0, .lens = lens, .gate = 4 };
	return RUN_CELLS(lstm);
}

int k_lstm_grad(Ctx *c, void *dxw, void *dh0, void *dc0, const void *dy, const void *dyh,
	const void *gates, const void *r, const void *dyc, const void *cells, const void *c0, const int32_t *lens,
	const KCells *k, KType type)
{
	Cells a = { .c = c, .k = k, .dxw = dxw, .dh0 = dh0, .dc0 = dc0, .dy = dy, .dyh = dyh, .stay = gates, .r = r,
		.dyc = dyc, .state = cells, .c0 = c0, .lens = lens, .gate = 4 };
	return RUN_CELLS(lstm_grad);
}

int k_gru(Ctx *c, void *y, void *yh, void *before, void *gates, void *inner, const void *xw, const void *r,
	const void *h0, const int32_t *lens, const void *rb, const KCells *k, KType type)
{
	Cells a = { .c = c, .k = k, .y = y, .yh = yh, .before = before, .gates = gates, .inner = inner, .xw = xw,
		.r = r, .h0 = h0, .rb = rb, .lens = lens, .gate = 3 };
	return RUN_CELLS(gru);
}

int k_gru_grad(Ctx *c, void *dxw, void *dh0, void *side, const void *dy, const void *dyh, const void *gates,
	const void *r, const void *before, const void *inner, const int32_t *lens, const KCells *k, KType type)
{
	Cells a = { .c = c, .k = k, .dxw = dxw, .dh0 = dh0, .side = side, .dy = dy, .dyh = dyh, .stay = gates, .r = r,
		.was = before, .saved = inner, .lens = lens, .gate = 3 };
	return RUN_CELLS(gru_grad);
}

int k_rnn(Ctx *c, void *y, void *yh, void *before, const void *xw, const void *r, const void *h0, const int32_t *lens,
	const KCells *k, KType type)
{
	Cells a = { .c = c, .k = k, .y = y, .yh = yh, .before = before, .xw = xw, .r = r, .h0 = h0,
		.lens = lens, .gate = 1 };
	return RUN_CELLS(rnn);
}

int k_rnn_grad(Ctx *c, void *dxw, void *dh0, const void *dy, const void *dyh, const void *y, const void *r,
	const int32_t *lens, const KCells *k, KType type)
{
	Cells a = { .c = c, .k = k, .dxw = dxw, .dh0 = dh0, .dy = dy, .dyh = dyh, .state = y, .r = r,
		.lens = lens, .gate = 1 };
	return RUN_CELLS(rnn_grad);
}
