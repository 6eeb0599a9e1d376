/* How threads of one process wait for each other: they spin for a while, then sleep in the kernel. */
#ifndef WAIT_H
#define WAIT_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void rt_futex(_Atomic uint32_t *at, int what, uint32_t value)
{
	syscall(SYS_futex, at, what | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* A bell wakes up the thread of a rank that sleeps until something changes; all ranks of a machine may ring it.
 * asleep: the events that the thread sleeps for. */
typedef struct RtBell { _Atomic uint32_t rings, asleep; } RtBell;

static inline void rt_ring(RtBell *b, uint32_t what)
{
	atomic_fetch_add(&b->rings, 1);
	if (atomic_load(&b->asleep) & what)
		syscall(SYS_futex, &b->rings, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Between two polls of a spinning thread. */
static inline void rt_breathe(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

#endif
