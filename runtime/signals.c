/* Signals, which every rank handles in the same way for all transports. */
#include "run.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const Ctx *reader;

void rt_signals_data(const Ctx *c)
{
	reader = c;
}

static void say(const char *s)
{
	if (write(2, s, strlen(s)) < 0)
		_exit(RT_DATA);
}

/* A mapped file was truncated: its pages are gone. */
static void lost_file(int sig, siginfo_t *about, void *more)
{
	const char *path = reader ? rt_data_mapped(reader, about->si_addr) : NULL;
	(void)sig, (void)more;
	say(path ? path : "a file of the data set, or a checkpoint,");
	say(" was truncated while it was read\n");
	_exit(RT_DATA);
}

void rt_on(int sig, void (*what)(int))
{
	struct sigaction a = { .sa_handler = what };
	sigemptyset(&a.sa_mask);
	sigaction(sig, &a, NULL);
}

/* SIGUSR1, too: mpirun forwards it and gives the program time to end. */
void rt_on_stop(void (*ask)(int))
{
	rt_on(SIGINT, ask);
	rt_on(SIGTERM, ask);
	rt_on(SIGUSR1, ask);
}

void rt_signals(void (*ask)(int))
{
	rt_on_stop(ask);
	struct sigaction lost = { .sa_sigaction = lost_file, .sa_flags = SA_SIGINFO };
	sigemptyset(&lost.sa_mask);
	sigaction(SIGBUS, &lost, NULL);
	rt_on(SIGXFSZ, SIG_IGN);
	rt_on(SIGPIPE, SIG_IGN);        /* the reader of the output may end: report.c continues without it */
}

/* ---- stopping ---- */

static RtStops stops;

void rt_stops(RtStops what)
{
	stops = what;
}

/* Called by signal handlers: only writes. */
bool rt_stops_now(uint32_t nth, bool says)
{
	static const char *const text[] = {
		[RT_SAVES] = "stopping: this step is finished, then a checkpoint is saved; "
		             "a second signal ends the run at once\n",
		[RT_TRAINS] = "stopping after this step; nothing is saved, because there is no --checkpoint; "
		              "a second signal ends the run at once\n",
		[RT_NO_STEPS] = "stopping\n",
	};
	const char *s = nth == 1 ? text[stops] : "stopping at once\n";
	if (says && ((isatty(2) && write(2, "\n", 1) < 0) || write(2, s, strlen(s)) < 0))
		return nth > 1;         /* stderr is closed */
	return nth > 1 || stops == RT_NO_STEPS;
}
