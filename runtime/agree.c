/* What ranks must have in common before the first step.  Under mpirun each rank reads its own command line and its own
 * files; ranks that differ in a number of steps, in data or in the folder of checkpoints would wait for each other for
 * ever, or train something that nobody asked for.  So rank 0 tells what it has, fact by fact as text, and a rank that
 * has something else says both. */
#include "comm.h"

#include <stdlib.h>
#include <string.h>

int rt_same(Ctx *c, int n, const RtFact *mine)
{
	int code = 0;
	for (int i = 0; i < n; i++) {
		char first[RT_FACT];
		memcpy(first, mine[i].value, sizeof first);
		rt_broadcast(c, first, sizeof first);
		first[RT_FACT - 1] = 0;
		if (strcmp(first, mine[i].value))
			code = rt_error(c, RT_PLAN, "%s: %s here, but %s on rank 0", mine[i].name, mine[i].value,
			                first);
	}
	return (int)rt_worst(c, (uint32_t)code);
}

double rt_patience(void)
{
	enum { PATIENCE = 50 };
	const char *said = getenv("RT_PATIENCE");
	double seconds = said ? strtod(said, NULL) : 0;
	return seconds > 0 ? seconds : (double)PATIENCE;
}

/* Ranks that were built from another plan than rank 0, or for another kind of processor, must not meet. */
int rt_same_plan(Ctx *c)
{
	const uint64_t order = 0x0102030405060708u;
	const double number = -1.5;
	uint64_t bits;
	RtFact fact[] = {
		{ "the plan that the program was built from", "" },
		{ "how the processor lays out numbers", "" },
	};
	snprintf(fact[0].value, RT_FACT, "%016llx", (unsigned long long)c->program->hash);
	memcpy(&bits, &number, sizeof bits);
	const char *first = *(const char *)&order == 8 ? "lowest" : "highest";
	snprintf(fact[1].value, RT_FACT, "%s byte first, %llx", first, (unsigned long long)bits);
	return rt_same(c, 2, fact);
}
