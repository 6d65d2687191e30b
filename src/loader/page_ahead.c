/* SPDX-License-Identifier: Apache-2.0
 *
 * A request is a run of one sample that is not decoded. Like other samples it goes through the page cache and
 * the disk cache, and it is closed when its page has arrived. The page then stays cached for the announced
 * uses.
 */
#include "loader/page_ahead.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "engine/budget.h"
#include "loader/feed.h"
#include "loader/remote_pages.h"
#include "loader/run_list.h"
#include "loader/run_read.h"
#include "loader/setup.h"

/* Least runs in flight: a single one was seen to wait for memory that only later runs free. */
#define REMOTE_LEAST 2u
#define LOOK_ROWS 256u /* rows per call: more than a run has, so that it gets ahead of the feed */

struct leat__page_ahead {
    uint64_t pages;
    uint64_t row; /* next row of this rank to look at */
    /* bytes of requested pages whose first sample is not planned yet, and their limit */
    uint64_t bytes, most;
    uint64_t known;      /* pages seen in this epoch */
    uint8_t *unused;     /* bit per page: requested, and its first sample is not planned yet */
    leat_budget *budget; /* knows of the requests: the cache cannot release their pages until they end */
    leat__mutex lock;
    leat__cond ended;
    uint32_t in_flight; /* guarded by lock */
};

int leat__page_ahead_open(leat__page_ahead **out, uint64_t pages, leat_budget *budget, leat_error *err)
{
    leat__page_ahead *a = LEAT_NEW(LOADER, leat__page_ahead);
    uint8_t *unused = LEAT_NEW_ARRAY(LOADER, uint8_t, pages / 8 + 1);
    *out = NULL;
    if (a == NULL || unused == NULL) {
        leat__free(a);
        leat__free(unused);
        return leat__fail_nomem(err, pages / 8 + 1, "the pages ahead");
    }
    a->pages = pages;
    a->unused = unused;
    a->budget = budget;
    leat__mutex_init(&a->lock);
    leat__cond_init(&a->ended);
    *out = a;
    return 0;
}

void leat__page_ahead_close(leat__page_ahead **out)
{
    leat__page_ahead *a = *out;
    if (a == NULL) return;
    LEAT_ASSERT(a->in_flight == 0);
    leat__cond_destroy(&a->ended);
    leat__mutex_destroy(&a->lock);
    leat__free(a->unused);
    leat__free(a);
    *out = NULL;
}

void leat__page_ahead_begin(leat_loader *l)
{
    leat__page_ahead *a = l->page_ahead;
    const leat_order order = l->opts.order;
    uint64_t bytes = l->info.bytes;
    uint64_t open = leat__pages_open(order, bytes, l->info.pages, l->opts.window_pages);
    LEAT_ASSERT(a->in_flight == 0);
    memset(a->unused, 0, a->pages / 8 + 1);
    a->row = a->bytes = a->known = 0;
    a->most = leat__pages_ahead(order, bytes, open, atomic_load(&l->cache_user.cap));
}

void leat__page_ahead_end(leat__page_ahead *a)
{
    leat__mutex_lock(&a->lock);
    while (a->in_flight > 0) leat__cond_wait(&a->ended, &a->lock);
    leat__mutex_unlock(&a->lock);
}

static bool is_active(const leat__page_ahead *a)
{
    return a != NULL && a->most > 0;
}

static uint32_t depth_of(const leat_loader *l, uint32_t share)
{
    uint64_t sample =
        l->info.bytes / LEAT_MAX(l->info.samples, UINT64_C(1)) + l->max_frame_bytes / l->opts.batch_size;
    return leat__singles_depth(leat__budget_limit(l->budget), sample * l->run_usual, share);
}

void leat__page_ahead_depth(const leat_loader *l, leat_flow_opts *o)
{
    o->io_depth_first = LEAT__REMOTE_DEPTH;
    if (l->opts.io_depth != 0) o->io_depth = o->io_depth_max = LEAT_MAX(o->io_depth, REMOTE_LEAST);
    /* more runs would not make bytes arrive earlier, and would open more batches */
    if (is_active(l->page_ahead)) {
        if (l->opts.io_depth == 0) o->io_depth_max = LEAT__REMOTE_DEPTH;
        return;
    }
    /* the HTTP loop has its own limit of requests */
    if (l->opts.io_depth == 0) o->io_depth_max = LEAT__REMOTE_DEPTH_MAX;
    o->io_depth_first = depth_of(l, LEAT__SINGLES_SHARE_FIRST);
    o->io_depth_ramp = depth_of(l, LEAT__SINGLES_SHARE_MOST);
}

static void count(leat__page_ahead *a, int change)
{
    leat__budget_expect(a->budget, change);
    leat__mutex_lock(&a->lock);
    a->in_flight = (uint32_t)((int64_t)a->in_flight + change);
    if (a->in_flight == 0) leat__cond_broadcast(&a->ended);
    leat__mutex_unlock(&a->lock);
}

void leat__page_ahead_done(leat__run *r)
{
    leat__page_ahead *a = r->ahead;
    leat__run_close(r);
    count(a, -1);
}

bool leat__page_ahead_used(leat__page_ahead *a, uint64_t page, uint64_t bytes)
{
    uint8_t *at = &a->unused[page / 8], bit = (uint8_t)(1u << page % 8);
    if (!(*at & bit)) return false;
    *at &= (uint8_t)~bit;
    LEAT_ASSERT(a->bytes >= bytes);
    a->bytes -= bytes;
    return true;
}

/* Requests the page of a run; false when there is no memory for it now. */
static bool request(leat_loader *l, leat__run *r)
{
    leat__page_ahead *a = l->page_ahead;
    leat__run_sample *s = &r->sample[0];
    uint64_t page = s->row.page, bytes = s->page.bytes;
    /* the uses of its samples, and one for this run */
    s->uses = (uint32_t)LEAT_MIN(leat__feed_uses(l, &s->page) + UINT64_C(1), UINT32_MAX);
    r->ahead = a;
    count(a, 1);
    /* the run may be closed when this returns */
    switch (leat__run_ask(r)) {
    case LEAT__CACHE_FILL:
    case LEAT__CACHE_WAIT:
        a->unused[page / 8] |= (uint8_t)(1u << page % 8);
        a->bytes += bytes;
        return true;
    case LEAT__CACHE_HIT: leat__page_ahead_done(r); return true;
    case LEAT__CACHE_BYPASS: break;
    }
    leat__page_ahead_done(r);
    return false;
}

/* Requests the page of one sample if needed; false when there is no memory for it now. */
static bool look_at(leat_loader *l, uint64_t sample)
{
    leat_pack_row row;
    leat__run *r;
    const uint64_t salt = 0;
    /* the run that needs it reports an error */
    if (leat_pack_look(l->pack, sample, &row, NULL, 0, NULL, NULL) != 0 || row.size == 0) return true;
    uint8_t *seen = &l->page_seen[row.page / 8], bit = (uint8_t)(1u << row.page % 8);
    if (*seen & bit || leat__run_is_resident(&l->env, sample)) return true;
    if (leat__run_open(&r, &l->env, &sample, &salt, 1, NULL) != 0) return false;
    if (r->sample[0].rc != 0) {
        leat__run_close(r);
        return true;
    }
    if (!request(l, r)) return false;
    *seen |= bit;
    l->page_ahead->known++;
    return true;
}

void leat__page_ahead_look(leat_loader *l)
{
    leat__page_ahead *a = l->page_ahead;
    if (!is_active(a)) return;
    a->row = LEAT_MAX(a->row, l->feed.at);
    for (uint32_t i = 0; i < LOOK_ROWS && a->row < l->feed.end; i++) {
        if (a->bytes >= a->most || a->known == a->pages) return;
        if (!look_at(l, leat__order_at(l->order, a->row * l->opts.world + l->opts.rank))) return;
        a->row++;
    }
}
