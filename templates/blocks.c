/*{banner*/
/* What ranks compute; this file, as it stands, is the template. */
/*}*/
#include "blocks.h"
#include "kernels.h"
#include "pointwise.h"
#include "tables.h"

/* h has a pointer for each value of a function: first the results of its calls in their order, then what it reads
 * besides.  Above each call stand the number of the action, the line of the model, and how the values lie on the ranks.
 * What repeats, and what several roles run, stands once; schedule.c of each role says with which values it runs. */
/*{before*/
/*}*/
/*{functions*/
int forward_y(Ctx *c, const int *values)
{
	union {
		void *t[1];
		struct {
			float *y;
		};
	} h;
	BIND(h, values);
	DO(COMPUTE, "None", y, 1, 0, h.y ? 0 : RT_PLAN);
	return 0;
}
/*}*/
