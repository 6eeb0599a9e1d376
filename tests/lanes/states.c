/* The checker of programs of lanes against a search through all states (states.h).  Nets of small pipelines get fewer
 * or more copies, areas that share bytes, transfers on the compute lane, meetings; half of them get an order bug:
 * neighbours of a list change places.  check_net refuses a net if and only if its lists have an illegal order, or some
 * order of its tasks stands still, when sends end as they are received, or has bytes in use twice, when sends are
 * buffered.  Orders whose micro-batches are exchanged must be refused, too. */
#include "states.h"

static const char *const verdict_name[] = { "nothing", "a standstill", "bytes in use twice", "too many states" };

int main(void)
{
	int wrong = 0, verdicts[4] = { 0 }, orders = 0;
	long searched = 0;
	for (int i = 0; i < 1000; i++) {
		Arena a = { 0 };
		LaneNet n;
		random_net(&a, i % 2, &n);
		const char *why = check_net(&n, &a);
		Verdict found = search(&n, false);
		searched += nstate;
		if (found == RUNS) {
			found = search(&n, true);
			searched += nstate;
		}
		verdicts[found]++;
		orders += found == RUNS && illegal(&n);
		if (((why != NULL) != (found != RUNS || illegal(&n)) || found == MANY) && wrong++ < 5)
			printf("not ok net %d: the search finds %s, check_net %s\n", i,
				illegal(&n) ? "an illegal order" : verdict_name[found], why ? why : "nothing");
		/* Two micro-batches of a block change places: a message is read in another order than made.  Only a
		 * lane that makes and reads everything itself may do so. */
		Lane *l = &n.role[0].lane[0];
		for (int k = 1; k < l->ntask && !why && n.role[0].nlane > 1; k++)
			if (l->task[k].act == DO_BLOCK && l->task[k].id == l->task[0].id) {
				l->task[0].micro = l->task[k].micro;
				l->task[k].micro = 0;
				if (!check_net(&n, &a) && wrong++ < 5)
					printf("not ok net %d: exchanged micro-batches are not refused\n", i);
				break;
			}
		arena_free(&a);
	}
	if (!wrong && verdicts[RUNS] > 300 && verdicts[STOPS] > 300 && verdicts[TWICE] > 100)
		printf("ok %d nets run (%d of them in an illegal order), %d stand still, %d share bytes: %ld states\n",
			verdicts[RUNS], orders, verdicts[STOPS], verdicts[TWICE], searched);
	else
		printf("not ok verdicts: %d nets run, %d stand still, %d share bytes, %d wrong\n", verdicts[RUNS],
			verdicts[STOPS], verdicts[TWICE], wrong);
	search_end();
	return 0;
}
