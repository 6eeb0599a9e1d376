/* Checks before the first step that ranks agree.  Under mpirun each rank reads its own command line and its own files.
 * Ranks that differ in the number of steps, in data or in the folder of checkpoints would deadlock, or train something
 * else than requested.  So rank 0 broadcasts its facts as text, and a rank with a different value reports both. */
#include "comm.h"

#include <stdlib.h>
#include <string.h>

int rt_same(Ctx *c, int n, const RtFact *mine)
{
	int code = 0;
	for (int i = 0; i < n; i++) {
		char first[RT_FACT];
		memcpy(first, mine[i].value, sizeof first);
		rt_broadcast(c, 0, first, sizeof first);
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
	const char *given = getenv("RT_PATIENCE");
	double seconds = given ? strtod(given, NULL) : 0;
	return seconds > 0 ? seconds : (double)PATIENCE;
}

/* Ranks must be built from the plan of rank 0, for the same number format of the processor. */
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
