/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads, locks and condition variables: a thin shim over pthreads. It names threads, uses the
 * monotonic clock for waits, and lets tests fail a thread start. Lock and condition calls cannot
 * fail at run time; misuse aborts in debug builds.
 */
#ifndef LEAT_BASE_THREAD_H
#define LEAT_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct leat__thread {
    pthread_t handle;
    bool running;
} leat__thread;

typedef void (*leat__thread_main)(void *arg);

/* Starts a thread named `name` (cut to 15 bytes). It blocks all signals except faults, so that
 * the host's signal handlers run on the host's threads. */
int leat__thread_start(leat__thread *t, const char *name, leat__thread_main main, void *arg,
                       leat_error *err) LEAT_MUST_CHECK;
void leat__thread_join(leat__thread *t); /* does nothing when it was never started */
uint32_t leat__thread_id(void);          /* kernel id of the caller */
void leat__thread_yield(void);
/* Restricts the calling thread to the CPUs of this mask (`bytes` long, bit n = CPU n). False when
 * the kernel allows none of them. */
bool leat__thread_set_cpus(const uint64_t *mask, size_t bytes);

typedef struct leat__mutex {
    pthread_mutex_t m;
} leat__mutex;

typedef struct leat__cond {
    pthread_cond_t c;
} leat__cond;

void leat__mutex_init(leat__mutex *m);
void leat__mutex_destroy(leat__mutex *m);
void leat__mutex_lock(leat__mutex *m);
void leat__mutex_unlock(leat__mutex *m);

void leat__cond_init(leat__cond *c);
void leat__cond_destroy(leat__cond *c);
void leat__cond_signal(leat__cond *c);
void leat__cond_broadcast(leat__cond *c);
void leat__cond_wait(leat__cond *c, leat__mutex *m);
/* Returns false when `deadline_ns` (of leat__clock_ns) passed. Wake-ups may be spurious. */
bool leat__cond_wait_until(leat__cond *c, leat__mutex *m, uint64_t deadline_ns);

/* A shared/exclusive lock; waiters for exclusive access go first. */
typedef struct leat__gate {
    pthread_rwlock_t lock;
} leat__gate;

void leat__gate_init(leat__gate *g);
void leat__gate_destroy(leat__gate *g);
void leat__gate_share(leat__gate *g);
void leat__gate_alone(leat__gate *g);
void leat__gate_leave(leat__gate *g); /* after either kind of entry */

/* A condition that may be signalled from a signal handler. A waiter reads the ring count before
 * it checks its condition, so no ring between the check and the wait is lost. */
typedef struct leat__bell {
    _Atomic uint32_t rings, waiters;
} leat__bell;

void leat__bell_ring(leat__bell *b); /* wakes all; async-signal-safe, any thread, no lock needed */
uint32_t leat__bell_rings(const leat__bell *b);
/* Releases `m` and waits until the count differs from `seen`; false when `deadline_ns` (UINT64_MAX: none)
 * passed first. Wake-ups may be spurious. */
bool leat__bell_wait_until(leat__bell *b, uint32_t seen, leat__mutex *m, uint64_t deadline_ns);

typedef pthread_once_t leat__once;
#define LEAT__ONCE_INIT PTHREAD_ONCE_INIT
void leat__once_run(leat__once *once, void (*fn)(void));

/* A number that changes when the process forks. Objects store it when created and compare it on
 * use, to refuse work in a forked child. Costs one load. */
uint32_t leat__fork_generation(void);

/* Asks the process to end (Ctrl-C in the command): requests to a server give up, and nothing more is written
 * there. A signal handler may call it. It cannot be undone. */
void leat__stop_ask(void);
bool leat__stop_asked(void);

/* Sets the function that tells whether the calling thread shall stop waiting (Ctrl-C in Python). Waits for a
 * server call it a few times a second, without locks. NULL: none. */
void leat__interrupt_hook(bool (*asked)(void));
bool leat__interrupt_hooked(void);
bool leat__interrupted(void); /* calls it */

/* Registers a process-wide mutex that another thread may hold during a fork: the child
 * initializes it again. Call before the first lock; a second call does nothing. */
void leat__fork_renew(leat__mutex *m);

#endif
