/* SPDX-License-Identifier: Apache-2.0
 *
 * Readahead: see readahead.h. A ring of ranges with three marks that only move forward:
 *
 *   consumed <= advised <= pushed
 *
 * The thread moves `advised` while fewer than `window` bytes are advised and not consumed. The
 * lock guards ring and marks; it is not held during the advice call.
 */
#include "io/readahead.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"

#define WINDOW_DEFAULT (UINT64_C(64) << 20)
#define CAPACITY_DEFAULT 4096u

typedef struct range {
    const leat__file *file;
    uint64_t offset, len;
} range;

struct leat__readahead {
    leat__mutex lock;
    leat__cond work;
    leat__thread thread;
    bool closing;
    range *ring;
    size_t capacity;
    uint64_t window;
    leat__readahead_stats stats; /* contains the marks */
    bool advising;               /* the thread is using a file */
    leat__cond idle;
};

static bool may_advise_locked(const leat__readahead *r)
{
    return r->stats.advised < r->stats.pushed && r->stats.ahead_bytes < r->window;
}

static void check_locked(const leat__readahead *r)
{
    LEAT_ASSERT(r->stats.consumed <= r->stats.advised && r->stats.advised <= r->stats.pushed);
    LEAT_ASSERT(r->stats.pushed - r->stats.consumed <= r->capacity);
    LEAT_ASSERT(r->stats.advised > r->stats.consumed || r->stats.ahead_bytes == 0);
}

static void advise(void *arg)
{
    leat__readahead *r = arg;
    leat__mutex_lock(&r->lock);
    while (!r->closing) {
        if (!may_advise_locked(r)) {
            leat__cond_wait(&r->work, &r->lock);
            continue;
        }
        range g = r->ring[r->stats.advised % r->capacity];
        r->stats.advised++;
        r->stats.ahead_bytes += g.len;
        check_locked(r);
        r->advising = true;
        leat__mutex_unlock(&r->lock);
        leat__file_advise(g.file, g.offset, g.len, LEAT__ADVICE_WILLNEED);
        leat__mutex_lock(&r->lock);
        r->advising = false;
        leat__cond_broadcast(&r->idle);
    }
    leat__mutex_unlock(&r->lock);
}

int leat__readahead_open(leat__readahead **out, uint64_t window, size_t capacity, leat_error *err)
{
    *out = NULL;
    leat__readahead *r = LEAT_NEW(IO, leat__readahead);
    if (r == NULL) return leat__fail_nomem(err, sizeof *r, "read-ahead");
    r->window = window ? window : WINDOW_DEFAULT;
    r->capacity = capacity ? capacity : CAPACITY_DEFAULT;
    leat__mutex_init(&r->lock);
    leat__cond_init(&r->work);
    leat__cond_init(&r->idle);
    r->ring = LEAT_NEW_ARRAY(IO, range, r->capacity);
    int rc = 0;
    if (r->ring == NULL) rc = leat__fail_nomem(err, r->capacity * sizeof *r->ring, "read-ahead");
    if (rc == 0) rc = leat__thread_start(&r->thread, "leat-ahead", advise, r, err);
    if (rc == 0) *out = r;
    else leat__readahead_close(&r);
    return rc;
}

void leat__readahead_close(leat__readahead **ra)
{
    leat__readahead *r = *ra;
    if (r == NULL) return;
    leat__mutex_lock(&r->lock);
    r->closing = true;
    leat__cond_signal(&r->work);
    leat__mutex_unlock(&r->lock);
    leat__thread_join(&r->thread);
    leat__cond_destroy(&r->idle);
    leat__cond_destroy(&r->work);
    leat__mutex_destroy(&r->lock);
    leat__free(r->ring);
    leat__free(r);
    *ra = NULL;
}

int leat__readahead_push(leat__readahead *r, const leat__file *file, uint64_t offset, uint64_t len)
{
    int rc = 0;
    leat__mutex_lock(&r->lock);
    if (r->stats.pushed - r->stats.consumed == r->capacity) {
        rc = LEAT_EAGAIN;
    } else {
        r->ring[r->stats.pushed++ % r->capacity] = (range){file, offset, len};
        if (may_advise_locked(r)) leat__cond_signal(&r->work);
    }
    check_locked(r);
    leat__mutex_unlock(&r->lock);
    return rc;
}

void leat__readahead_consume(leat__readahead *r, size_t ranges)
{
    leat__mutex_lock(&r->lock);
    /* the owner may close the file after this call, so wait for an advice call in progress */
    while (r->advising) leat__cond_wait(&r->idle, &r->lock);
    for (; ranges > 0 && r->stats.consumed < r->stats.pushed; ranges--) {
        const range *g = &r->ring[r->stats.consumed % r->capacity];
        if (r->stats.consumed < r->stats.advised) {
            LEAT_ASSERT(r->stats.ahead_bytes >= g->len);
            r->stats.ahead_bytes -= g->len;
        } else { /* read before it was advised: nothing left to advise */
            r->stats.advised++;
            r->stats.late++;
        }
        r->stats.consumed++;
    }
    if (may_advise_locked(r)) leat__cond_signal(&r->work);
    check_locked(r);
    leat__mutex_unlock(&r->lock);
}

void leat__readahead_read(leat__readahead *r, leat__readahead_stats *stats)
{
    leat__mutex_lock(&r->lock);
    *stats = r->stats;
    leat__mutex_unlock(&r->lock);
}
