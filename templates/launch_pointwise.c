/*{banner*/
/* Launchers of the pointwise operators of this model; this file, as it stands, is the template. */
/*}*/
#include "pointwise.h"
#include "slab_cuda.h"

/* An epilogue starts its kernel once, for the whole product. */
#define TILE(ep) \
	static void ep##_tile(Ctx *c, void *const *t); \
	static void ep##_run(const void *arg, float *y, int64_t row, int64_t nrow, int64_t col, int64_t ncol) \
	{ \
		(void)y, (void)row, (void)nrow, (void)col, (void)ncol; \
		ep##_tile(((const KTile *)arg)->c, ((const KTile *)arg)->t); \
	} \
	KEpilogue ep(const KTile *tile) \
	{ \
		return (KEpilogue){ ep##_run, tile }; \
	} \
	static void ep##_tile(Ctx *c, void *const *t)
/*{functions*/
/*}*/
