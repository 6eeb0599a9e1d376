/* A thread that shows that a rank is alive, while its other threads may compute, read, save or wait for minutes.  It
 * runs unless the process is stopped or gone, so a rank without a pulse for some time is lost. */
#include "comm.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { STACK = 64 << 10 };

struct RtPulse {
	void (*beat)(void *);
	void *arg;
	double tick;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop;
};

static void *beat(void *arg)
{
	RtPulse *p = arg;
	struct timespec t;
	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		pthread_mutex_unlock(&p->lock);
		p->beat(p->arg);
		double until = rt_seconds() + p->tick;
		t.tv_sec = (time_t)until;
		t.tv_nsec = (long)(1e9 * (until - (double)t.tv_sec));
		pthread_mutex_lock(&p->lock);
		if (!p->stop)
			pthread_cond_timedwait(&p->changed, &p->lock, &t);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

double rt_pulse_tick(double patience)
{
	return patience / 16 < 1 ? patience / 16 : 1;
}

RtPulse *rt_pulse_open(double tick, void (*call)(void *), void *arg)
{
	RtPulse *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	*p = (RtPulse){ .beat = call, .arg = arg, .tick = tick };
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, &clock);
	pthread_condattr_destroy(&clock);
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	int bad = pthread_create(&p->thread, &attr, beat, p);
	pthread_attr_destroy(&attr);
	if (bad) {
		free(p);
		return NULL;
	}
	return p;
}

void rt_pulse_close(RtPulse *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->changed);
	free(p);
}
