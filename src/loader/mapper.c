/* SPDX-License-Identifier: Apache-2.0
 *
 * The mapping thread: see mapper.h.
 */
#include "loader/mapper.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "loader/chunk.h"

struct leat__mapper {
    leat__gpu *gpu; /* a reference */
    leat_log log;
    atomic_bool started;
    leat__thread thread;
    leat__mutex lock; /* guards the rest */
    leat__cond changed;
    leat__chunk *waiting, *current;
    bool failed, closed;
};

static leat__chunk *next_locked(leat__mapper *m)
{
    leat__chunk *k = atomic_load(&m->started) && !m->failed ? m->waiting : NULL;
    if (k != NULL) m->waiting = k->map_next;
    return k;
}

static void map_thread(void *arg)
{
    leat__mapper *m = arg;
    leat__mutex_lock(&m->lock);
    while (!m->closed) {
        leat_error why;
        if ((m->current = next_locked(m)) == NULL) {
            leat__cond_wait(&m->changed, &m->lock);
            continue;
        }
        leat__mutex_unlock(&m->lock);
        const int rc = leat__chunk_map(m->current, m->gpu, &why);
        if (rc != 0)
            leat__log(&m->log, LEAT_LOG_WARN,
                      "cached pages are copied before the device reads them, which is slower (%s)",
                      why.message);
        leat__mutex_lock(&m->lock);
        m->failed |= rc != 0;
        m->current = NULL;
        leat__cond_broadcast(&m->changed);
    }
    leat__mutex_unlock(&m->lock);
}

int leat__mapper_open(leat__mapper **out, leat__gpu *gpu, const leat_log *log, leat_error *err)
{
    leat__mapper *m = LEAT_NEW(LOADER, leat__mapper);
    *out = m;
    if (m == NULL) return leat__fail_nomem(err, sizeof *m, "page-locked memory");
    m->gpu = leat__gpu_ref(gpu);
    m->log = *log;
    leat__mutex_init(&m->lock);
    leat__cond_init(&m->changed);
    int rc = leat__thread_start(&m->thread, "leat-map", map_thread, m, err);
    if (rc != 0) leat__mapper_close(out);
    return rc;
}

void leat__mapper_close(leat__mapper **out)
{
    leat__mapper *m = *out;
    if (m == NULL) return;
    *out = NULL;
    leat__mutex_lock(&m->lock);
    m->closed = true;
    leat__cond_broadcast(&m->changed);
    leat__mutex_unlock(&m->lock);
    leat__thread_join(&m->thread);
    leat__gpu_close(&m->gpu);
    leat__cond_destroy(&m->changed);
    leat__mutex_destroy(&m->lock);
    leat__free(m);
}

bool leat__mapper_failed(leat__mapper *m)
{
    leat__mutex_lock(&m->lock);
    const bool failed = m->failed;
    leat__mutex_unlock(&m->lock);
    return failed;
}

void leat__mapper_start(leat__mapper *m)
{
    if (atomic_load_explicit(&m->started, memory_order_relaxed)) return;
    leat__mutex_lock(&m->lock);
    atomic_store(&m->started, true);
    leat__cond_broadcast(&m->changed);
    leat__mutex_unlock(&m->lock);
}

void leat__mapper_add(leat__mapper *m, leat__chunk *k)
{
    leat__mutex_lock(&m->lock);
    k->map_next = m->waiting;
    m->waiting = k;
    leat__cond_broadcast(&m->changed);
    leat__mutex_unlock(&m->lock);
}

void leat__mapper_remove(leat__mapper *m, leat__chunk *k)
{
    leat__mutex_lock(&m->lock);
    while (m->current == k) leat__cond_wait(&m->changed, &m->lock);
    leat__chunk **at = &m->waiting;
    while (*at != NULL && *at != k) at = &(*at)->map_next;
    if (*at != NULL) *at = k->map_next;
    leat__mutex_unlock(&m->lock);
}
