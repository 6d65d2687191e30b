/* SPDX-License-Identifier: Apache-2.0
 *
 * The byte budget: a hard limit, the bytes charged to it by category, and the threads that wait for bytes.
 *
 * It only counts bytes and allocates no memory itself. Any thread may call. `lock` guards the numbers and is
 * the innermost lock of the engine. `listening` guards the list of listeners and is taken before a pool's
 * lock. `keeping` guards the list of keepers, which can release cached bytes, and is taken before all other
 * locks.
 */
#include "engine/budget.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "probe/machine.h"

struct leat_budget {
    leat__mutex lock;
    uint32_t fork_generation;
    leat__cond freed; /* signalled for threads in leat_budget_charge */
    uint32_t refs;
    uint32_t waiters;
    uint32_t expected; /* requests outside of flows: see leat__budget_expect */
    bool ended;        /* one of them, after keepers were last asked for bytes */
    uint64_t limit;
    uint64_t ceiling; /* the limit; after it was lowered, the previous one until usage has dropped below it */
    uint64_t used, peak, floors, refused;
    uint64_t kept;  /* the part of `used` that belongs to no flow */
    uint64_t lent;  /* the part of `kept` that becomes free when tasks end: see leat__budget_lend */
    uint64_t twice; /* the part of `used` that is briefly charged twice: see leat__budget_try_twice */
    uint64_t memory, memory_peak; /* bytes really allocated by flows and keepers */
    uint64_t cat_used[LEAT_BUDGET_CATS], cat_peak[LEAT_BUDGET_CATS];
    bool starved; /* a flow was refused bytes since the last notification */
    leat__mutex listening;
    leat__budget_listener *listeners;
    leat__mutex keeping; /* taken before every other lock: keepers lock their caches */
    leat__budget_keeper *keepers;
};

static uint64_t default_limit(void)
{
    leat_machine machine;
    leat__machine_host(&machine);
    return machine.memory_available_bytes / 2;
}

/* Checks the invariants; called before the lock is released. */
static void check_locked(const leat_budget *b)
{
    if (!LEAT_CHECKED) return;
    uint64_t sum = 0;
    for (int c = 0; c < LEAT_BUDGET_CATS; c++) {
        LEAT_ASSERT((int64_t)b->cat_used[c] >= 0);
        LEAT_ASSERT(b->cat_used[c] <= b->cat_peak[c]);
        sum += b->cat_used[c];
    }
    LEAT_ASSERT(sum == b->used);
    LEAT_ASSERT(b->lent <= b->kept && b->kept <= b->used);
    LEAT_ASSERT(b->floors <= b->limit && b->limit <= b->ceiling);
    LEAT_ASSERT((int64_t)b->memory >= 0 && b->memory <= b->memory_peak);
}

int leat_budget_open(leat_budget **budget, uint64_t limit, leat_error *err)
{
    LEAT_REQUIRE(budget != NULL, err);
    *budget = NULL;
    leat_budget *b = LEAT_NEW(ENGINE, leat_budget);
    if (!b) return leat__fail_nomem(err, sizeof *b, "a budget");
    leat__mutex_init(&b->lock);
    leat__mutex_init(&b->listening);
    leat__mutex_init(&b->keeping);
    leat__cond_init(&b->freed);
    b->refs = 1;
    b->fork_generation = leat__fork_generation();
    b->limit = b->ceiling = limit ? limit : default_limit();
    *budget = b;
    return 0;
}

void leat__budget_ref(leat_budget *b)
{
    leat__mutex_lock(&b->lock);
    LEAT_ASSERT(b->refs > 0);
    b->refs++;
    leat__mutex_unlock(&b->lock);
}

void leat_budget_close(leat_budget **budget)
{
    leat_budget *b = budget ? *budget : NULL;
    if (!b) return;
    *budget = NULL;
    /* In a forked child, the copied lock may be held by a thread that exists only in the parent. */
    if (b->fork_generation != leat__fork_generation()) return;
    leat__mutex_lock(&b->lock);
    bool last = --b->refs == 0;
    leat__mutex_unlock(&b->lock);
    if (!last) return;
    LEAT_ASSERT(b->listeners == NULL && b->keepers == NULL);
    LEAT_ASSERT(b->waiters == 0 && b->floors == 0);
    leat__cond_destroy(&b->freed);
    leat__mutex_destroy(&b->listening);
    leat__mutex_destroy(&b->keeping);
    leat__mutex_destroy(&b->lock);
    leat__free(b);
}

static int check(const leat_budget *b, leat_error *err)
{
    if (b == NULL) return leat__fail(err, LEAT_EINVAL, "no budget was given");
    if (b->fork_generation == leat__fork_generation()) return 0;
    return leat__fail(err, LEAT_EFORK, "the budget was opened before the process forked");
}

static uint64_t below_floors_locked(const leat_budget *b)
{
    return b->limit > b->floors ? b->limit - b->floors : 0;
}

/* A lowered limit takes effect once all bytes in use fit below limit - floors. From then on the
 * floors are free for tasks that cannot make progress without them. */
static void settle_ceiling_locked(leat_budget *b)
{
    if (b->ceiling != b->limit && b->used <= below_floors_locked(b)) b->ceiling = b->limit;
}

static void note_peak_locked(leat_budget *b)
{
    b->peak = LEAT_MAX(b->peak, b->used - LEAT_MIN(b->twice, b->used));
}

static void add_locked(leat_budget *b, leat_budget_cat cat, uint64_t bytes)
{
    LEAT_ASSERT((unsigned)cat < LEAT_BUDGET_CATS);
    LEAT_ASSERT(b->used + bytes >= b->used);
    b->used += bytes;
    b->cat_used[cat] += bytes;
    note_peak_locked(b);
    b->cat_peak[cat] = LEAT_MAX(b->cat_peak[cat], b->cat_used[cat]);
}

bool leat__budget_grant(leat_budget *b, leat_budget_cat cat, uint64_t bytes, bool senior)
{
    LEAT_ASSERT((unsigned)cat < LEAT_BUDGET_CATS);
    leat__mutex_lock(&b->lock);
    uint64_t room = senior ? b->ceiling : below_floors_locked(b);
    bool fits = b->used <= room && bytes <= room - b->used;
    if (fits) {
        add_locked(b, cat, bytes);
    } else {
        b->refused++;
        b->starved = true;
    }
    check_locked(b);
    leat__mutex_unlock(&b->lock);
    return fits;
}

bool leat__budget_apply(leat_budget *b, const int64_t delta[LEAT_BUDGET_CATS])
{
    int64_t sum = 0;
    leat__mutex_lock(&b->lock);
    for (int c = 0; c < LEAT_BUDGET_CATS; c++) {
        b->cat_used[c] += (uint64_t)delta[c];
        b->cat_peak[c] = LEAT_MAX(b->cat_peak[c], b->cat_used[c]);
        sum += delta[c];
    }
    b->used += (uint64_t)sum;
    if (sum < 0) b->twice -= LEAT_MIN(b->twice, (uint64_t)-sum);
    note_peak_locked(b);
    settle_ceiling_locked(b);
    bool tell = sum < 0 && b->starved;
    if (tell) b->starved = false;
    if (sum < 0 && b->waiters) leat__cond_broadcast(&b->freed);
    check_locked(b);
    leat__mutex_unlock(&b->lock);
    return tell;
}

void leat__budget_notify(leat_budget *b)
{
    leat__mutex_lock(&b->listening);
    for (leat__budget_listener *l = b->listeners; l; l = l->next) l->freed(l->arg);
    leat__mutex_unlock(&b->listening);
}

void leat__budget_listen(leat_budget *b, leat__budget_listener *l)
{
    LEAT_ASSERT(l->freed != NULL);
    leat__mutex_lock(&b->listening);
    l->next = b->listeners;
    b->listeners = l;
    leat__mutex_unlock(&b->listening);
}

void leat__budget_unlisten(leat_budget *b, leat__budget_listener *l)
{
    leat__mutex_lock(&b->listening);
    for (leat__budget_listener **at = &b->listeners; *at; at = &(*at)->next) {
        if (*at != l) continue;
        *at = l->next;
        break;
    }
    leat__mutex_unlock(&b->listening);
}

void leat__budget_keep(leat_budget *b, leat__budget_keeper *k)
{
    LEAT_ASSERT(k->trim != NULL);
    leat__mutex_lock(&b->keeping);
    k->next = b->keepers;
    b->keepers = k;
    leat__mutex_unlock(&b->keeping);
}

void leat__budget_unkeep(leat_budget *b, leat__budget_keeper *k)
{
    leat__mutex_lock(&b->keeping);
    for (leat__budget_keeper **at = &b->keepers; *at; at = &(*at)->next) {
        if (*at != k) continue;
        *at = k->next;
        break;
    }
    leat__mutex_unlock(&b->keeping);
}

uint64_t leat__budget_reclaim(leat_budget *b, uint64_t bytes)
{
    uint64_t freed = 0;
    leat__mutex_lock(&b->lock);
    b->ended = false;
    leat__mutex_unlock(&b->lock);
    leat__mutex_lock(&b->keeping);
    for (leat__budget_keeper *k = b->keepers; k && freed < bytes; k = k->next)
        freed += k->trim(k->arg, bytes - freed);
    leat__mutex_unlock(&b->keeping);
    return freed;
}

uint64_t leat__budget_lacking(leat_budget *b, uint64_t bytes)
{
    uint64_t sum;
    leat__mutex_lock(&b->lock);
    if (!leat__add_u64(b->used, bytes, &sum)) sum = UINT64_MAX;
    uint64_t lacking = sum > b->ceiling ? sum - b->ceiling : 0;
    leat__mutex_unlock(&b->lock);
    return lacking;
}

uint64_t leat__budget_floor_lacking(leat_budget *b, uint64_t old_floor, uint64_t floor)
{
    uint64_t sum;
    leat__mutex_lock(&b->lock);
    LEAT_ASSERT(b->floors >= old_floor);
    if (!leat__add_u64(b->floors - old_floor + b->kept - b->lent, floor, &sum)) sum = UINT64_MAX;
    uint64_t lacking = sum > b->limit ? sum - b->limit : 0;
    leat__mutex_unlock(&b->lock);
    return lacking;
}

void leat__budget_expect(leat_budget *b, int32_t requests)
{
    leat__mutex_lock(&b->lock);
    b->expected += (uint32_t)requests;
    LEAT_ASSERT((int32_t)b->expected >= 0);
    b->ended |= requests < 0;
    leat__mutex_unlock(&b->lock);
}

bool leat__budget_hopeless(leat_budget *b, uint64_t charged, uint64_t bytes)
{
    leat__mutex_lock(&b->lock);
    bool alone = b->used <= charged + b->kept && b->expected == 0 && !b->ended;
    bool fits = b->used <= b->ceiling && bytes <= b->ceiling - b->used;
    leat__mutex_unlock(&b->lock);
    return alone && !fits;
}

int leat__budget_floor(leat_budget *b, uint64_t old_floor, uint64_t new_floor, const char *who,
                       leat_error *err)
{
    int rc = 0;
    leat__mutex_lock(&b->lock);
    LEAT_ASSERT(b->floors >= old_floor);
    uint64_t others = b->floors - old_floor, kept = b->kept - b->lent, taken, total;
    if (!leat__add_u64(others, kept, &taken) || !leat__add_u64(taken, new_floor, &total)) total = UINT64_MAX;
    if (new_floor > old_floor && total > b->limit)
        rc = leat__fail(err, LEAT_EBUDGET,
                        "%s needs at least %s, %s more than the budget of %s has "
                        "left (%s for other flows, %s kept outside flows)",
                        who, leat__as_size(new_floor).text, leat__as_size(total - b->limit).text,
                        leat__as_size(b->limit).text, leat__as_size(others).text, leat__as_size(kept).text);
    else b->floors = others + new_floor;
    settle_ceiling_locked(b);
    check_locked(b);
    leat__mutex_unlock(&b->lock);
    return rc;
}

int leat__budget_take_floor(leat_budget *b, uint64_t old_floor, uint64_t new_floor, const char *who,
                            leat_error *err)
{
    bool again;
    int rc;
    do { /* a worker of another flow may return a block between the request and the grant */
        uint64_t lacking = leat__budget_floor_lacking(b, old_floor, new_floor);
        again = lacking == 0 || leat__budget_reclaim(b, lacking) > 0;
        rc = leat__budget_floor(b, old_floor, new_floor, who, err);
    } while (rc == LEAT_EBUDGET && again);
    return rc;
}

int leat_budget_set_limit(leat_budget *b, uint64_t limit, leat_error *err)
{
    int rc = 0;
    LEAT_TRY(check(b, err));
    leat__mutex_lock(&b->lock);
    if (limit == 0) {
        rc = leat__fail(err, LEAT_EINVAL, "a budget of 0 bytes: must be at least 1");
    } else if (limit < b->floors) {
        rc = leat__fail(err, LEAT_EBUDGET, "the running flows need at least %s, %s more than the given %s",
                        leat__as_size(b->floors).text, leat__as_size(b->floors - limit).text,
                        leat__as_size(limit).text);
    } else {
        b->limit = limit;
        b->ceiling = LEAT_MAX(b->ceiling, limit);
        settle_ceiling_locked(b);
        leat__cond_broadcast(&b->freed);
    }
    check_locked(b);
    leat__mutex_unlock(&b->lock);
    if (rc == 0) leat__budget_notify(b);
    return rc;
}

static void change_memory_locked(leat_budget *b, int64_t bytes)
{
    b->memory += (uint64_t)bytes;
    b->memory_peak = LEAT_MAX(b->memory_peak, b->memory);
}

void leat__budget_allocated(leat_budget *b, int64_t bytes)
{
    leat__mutex_lock(&b->lock);
    change_memory_locked(b, bytes);
    check_locked(b);
    leat__mutex_unlock(&b->lock);
}

uint64_t leat__budget_memory(leat_budget *b, uint64_t *peak)
{
    leat__mutex_lock(&b->lock);
    uint64_t memory = b->memory;
    *peak = b->memory_peak;
    leat__mutex_unlock(&b->lock);
    return memory;
}

static int try_locked(leat_budget *b, leat_budget_cat cat, uint64_t bytes)
{
    uint64_t room = below_floors_locked(b);
    if (bytes > room) return LEAT_EBUDGET;
    if (b->used > room || bytes > room - b->used) {
        b->refused++;
        return LEAT_EAGAIN;
    }
    add_locked(b, cat, bytes);
    b->kept += bytes;
    return 0;
}

int leat_budget_try(leat_budget *b, leat_budget_cat cat, uint64_t bytes)
{
    LEAT_TRY(check(b, NULL));
    LEAT_REQUIRE((unsigned)cat < LEAT_BUDGET_CATS, NULL);
    leat__mutex_lock(&b->lock);
    int rc = try_locked(b, cat, bytes);
    if (rc == 0) change_memory_locked(b, (int64_t)bytes);
    check_locked(b);
    leat__mutex_unlock(&b->lock);
    return rc;
}

int leat__budget_try_twice(leat_budget *b, leat_budget_cat cat, uint64_t bytes, uint64_t spare)
{
    LEAT_TRY(check(b, NULL));
    leat__mutex_lock(&b->lock);
    uint64_t room = below_floors_locked(b), rest = room - LEAT_MIN(b->used, room);
    b->twice += bytes;
    int rc = spare <= rest && bytes <= rest - spare ? try_locked(b, cat, bytes) : LEAT_EAGAIN;
    if (rc != 0) b->twice -= LEAT_MIN(b->twice, bytes);
    check_locked(b);
    leat__mutex_unlock(&b->lock);
    return rc;
}

int leat_budget_charge(leat_budget *b, leat_budget_cat cat, uint64_t bytes, int64_t timeout_ms,
                       leat_error *err)
{
    LEAT_TRY(check(b, err));
    if ((unsigned)cat >= LEAT_BUDGET_CATS)
        return leat__fail(err, LEAT_EINVAL, "no budget category %d", (int)cat);
    uint64_t until = leat__clock_deadline(leat__clock_ns(), timeout_ms);
    leat__mutex_lock(&b->lock);
    int rc = try_locked(b, cat, bytes);
    if (rc == LEAT_EAGAIN) { /* free cached bytes before waiting */
        uint64_t lacking = b->used + bytes - below_floors_locked(b);
        leat__mutex_unlock(&b->lock);
        leat__budget_reclaim(b, lacking);
        leat__mutex_lock(&b->lock);
        rc = try_locked(b, cat, bytes);
    }
    while (rc == LEAT_EAGAIN) {
        b->waiters++;
        bool in_time = true;
        if (until == UINT64_MAX) leat__cond_wait(&b->freed, &b->lock);
        else in_time = leat__cond_wait_until(&b->freed, &b->lock, until);
        b->waiters--;
        rc = try_locked(b, cat, bytes);
        if (rc == LEAT_EAGAIN && !in_time) {
            rc = leat__fail(err, LEAT_ETIMEDOUT, "waited %lld ms for %s of the budget", (long long)timeout_ms,
                            leat__as_size(bytes).text);
            break;
        }
    }
    if (rc == LEAT_EBUDGET)
        leat__fail(err, rc, "%s is %s more than the budget of %s can ever give", leat__as_size(bytes).text,
                   leat__as_size(bytes - below_floors_locked(b)).text, leat__as_size(b->limit).text);
    if (rc == 0) change_memory_locked(b, (int64_t)bytes);
    check_locked(b);
    leat__mutex_unlock(&b->lock);
    return rc;
}

void leat__budget_lend(leat_budget *b, int64_t bytes)
{
    leat__mutex_lock(&b->lock);
    b->lent += (uint64_t)bytes;
    LEAT_ASSERT(b->lent <= b->kept);
    leat__mutex_unlock(&b->lock);
}

static void release(leat_budget *b, leat_budget_cat cat, uint64_t bytes, bool freed)
{
    if (check(b, NULL) != 0 || (unsigned)cat >= LEAT_BUDGET_CATS) return;
    leat__mutex_lock(&b->lock);
    bytes = LEAT_MIN(bytes, LEAT_MIN(b->kept, b->cat_used[cat])); /* release no more than was charged */
    b->kept -= bytes;
    if (freed) change_memory_locked(b, -(int64_t)LEAT_MIN(bytes, b->memory));
    leat__mutex_unlock(&b->lock);
    int64_t delta[LEAT_BUDGET_CATS] = {0};
    delta[cat] = -(int64_t)bytes;
    if (leat__budget_apply(b, delta)) leat__budget_notify(b);
}

void leat_budget_release(leat_budget *b, leat_budget_cat cat, uint64_t bytes)
{
    release(b, cat, bytes, true);
}

void leat__budget_reuse(leat_budget *b, leat_budget_cat cat, uint64_t bytes)
{
    release(b, cat, bytes, false);
}

uint64_t leat__budget_limit(leat_budget *b)
{
    leat__mutex_lock(&b->lock);
    uint64_t limit = b->limit;
    leat__mutex_unlock(&b->lock);
    return limit;
}

uint64_t leat__budget_used(leat_budget *b)
{
    leat__mutex_lock(&b->lock);
    uint64_t used = b->used;
    leat__mutex_unlock(&b->lock);
    return used;
}

void leat_budget_read(const leat_budget *budget, leat_budget_stats *stats)
{
    leat_budget *b = (leat_budget *)budget; /* only the lock is modified, not the numbers */
    if (stats == NULL) return;
    *stats = (leat_budget_stats){0};
    if (check(b, NULL) != 0) return;
    leat__mutex_lock(&b->lock);
    *stats = (leat_budget_stats){
        .limit = b->limit, .used = b->used, .peak = b->peak, .floors = b->floors, .refused = b->refused};
    for (int c = 0; c < LEAT_BUDGET_CATS; c++) {
        stats->cat_used[c] = b->cat_used[c];
        stats->cat_peak[c] = b->cat_peak[c];
    }
    leat__mutex_unlock(&b->lock);
}
