/*{banner*/
/* The schedule of a role as sbpcc writes it; this file, as it stands, is the template and does nothing. */
/*}*/
#include "blocks.h"
#include "tables.h"

/*{lists*/
static int step_body(Ctx *c)
{
	return c ? 0 : RT_PLAN;
}

static const RtActor step_actors[] = { { .name = "body", .run = step_body, .id = 0 } };
extern const RtSchedule role0_step;
const RtSchedule role0_step = { .actor = step_actors, .nactor = ROWS_OF(step_actors) };
/*}*/
