/* Signals that every rank treats alike, however it was started. */
#include "run.h"

#include <signal.h>
#include <unistd.h>

/* A mapped file that became shorter: its pages are gone. */
static void lost_file(int sig)
{
	static const char text[] = "a file of the data set, or a checkpoint, became shorter while it was read\n";
	(void)sig;
	if (write(2, text, sizeof text - 1) < 0)
		_exit(RT_DATA);
	_exit(RT_DATA);
}

void rt_on(int sig, void (*what)(int))
{
	struct sigaction a = { .sa_handler = what };
	sigemptyset(&a.sa_mask);
	sigaction(sig, &a, NULL);
}

void rt_signals(void (*ask)(int))
{
	rt_on(SIGINT, ask);
	rt_on(SIGTERM, ask);
	rt_on(SIGBUS, lost_file);
	rt_on(SIGXFSZ, SIG_IGN);
	rt_on(SIGPIPE, SIG_IGN);        /* who reads what is told may leave: report.c goes on without */
}
