/* SPDX-License-Identifier: Apache-2.0
 *
 * A bounded queue: a ring under one lock, two conditions. Entered by any thread.
 */
#include "base/queue.h"

#include <assert.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

struct leat__queue {
    leat__mutex lock; /* guards all fields below */
    leat__cond not_empty, not_full;
    size_t capacity, head, len;
    bool closed;
    void *items[];
};

int leat__queue_open(leat__queue **out, size_t capacity, leat_error *err)
{
    *out = NULL;
    if (capacity == 0 || capacity > (SIZE_MAX - sizeof(leat__queue)) / sizeof(void *))
        return leat__fail(err, LEAT_EINVAL, "queue: capacity %zu is out of range",
                          capacity);
    size_t bytes = sizeof(leat__queue) + capacity * sizeof(void *);
    leat__queue *q = leat__zalloc(LEAT__MEM_MISC, bytes);
    if (q == NULL) return leat__fail_nomem(err, bytes, "a queue");
    leat__mutex_init(&q->lock);
    leat__cond_init(&q->not_empty);
    leat__cond_init(&q->not_full);
    q->capacity = capacity;
    *out = q;
    return 0;
}

void leat__queue_close(leat__queue *q)
{
    leat__mutex_lock(&q->lock);
    q->closed = true;
    leat__cond_broadcast(&q->not_empty);
    leat__cond_broadcast(&q->not_full);
    leat__mutex_unlock(&q->lock);
}

void leat__queue_destroy(leat__queue **out)
{
    leat__queue *q = *out;
    if (q == NULL) return;
    assert(q->len == 0); /* the owner must drain it first */
    leat__cond_destroy(&q->not_full);
    leat__cond_destroy(&q->not_empty);
    leat__mutex_destroy(&q->lock);
    leat__free(q);
    *out = NULL;
}

/* Waits on `c`; false once the deadline has passed. A deadline of 0 never waits. */
static bool wait_locked(leat__queue *q, leat__cond *c, uint64_t deadline_ns)
{
    if (deadline_ns == 0) return false;
    return leat__cond_wait_until(c, &q->lock, deadline_ns) ||
           leat__clock_ns() < deadline_ns;
}

int leat__queue_push(leat__queue *q, void *item, uint64_t deadline_ns)
{
    int rc = 0;

    leat__mutex_lock(&q->lock);
    while (q->len == q->capacity && !q->closed) {
        if (!wait_locked(q, &q->not_full, deadline_ns)) {
            rc = q->len == q->capacity && !q->closed ? LEAT_ETIMEDOUT : 0;
            break;
        }
    }
    if (q->closed) rc = LEAT_ECLOSED;
    if (rc == 0) {
        q->items[(q->head + q->len) % q->capacity] = item;
        q->len++;
        leat__cond_signal(&q->not_empty);
    }
    leat__mutex_unlock(&q->lock);
    return rc;
}

int leat__queue_pop(leat__queue *q, void **item, uint64_t deadline_ns)
{
    int rc = 0;

    *item = NULL;
    leat__mutex_lock(&q->lock);
    while (q->len == 0 && !q->closed) {
        if (!wait_locked(q, &q->not_empty, deadline_ns)) {
            rc = q->len == 0 && !q->closed ? LEAT_ETIMEDOUT : 0;
            break;
        }
    }
    if (rc == 0 && q->len == 0) rc = LEAT_ECLOSED;
    if (rc == 0) {
        *item = q->items[q->head];
        q->head = (q->head + 1) % q->capacity;
        q->len--;
        leat__cond_signal(&q->not_full);
    }
    leat__mutex_unlock(&q->lock);
    return rc;
}

size_t leat__queue_len(leat__queue *q)
{
    leat__mutex_lock(&q->lock);
    size_t len = q->len;
    leat__mutex_unlock(&q->lock);
    return len;
}
