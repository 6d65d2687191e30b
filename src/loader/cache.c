/* SPDX-License-Identifier: Apache-2.0
 *
 * The page cache. Each cache has one lock; page data is read and used without it. The caches of the process
 * are in a list and are found by the fingerprint of their pack.
 */
#include "loader/cache.h"

#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "io/file.h"
#include "loader/chunk.h"

#define NEWEST_LOOKS 16 /* idle pages to look at; memory of older ones is no longer in the CPU caches */
#define CHUNK_LOOKS 8   /* chunks to search for a gap, the most recently released first */
#define CHUNK_MAX (UINT64_C(8) << 20)
#define CHUNK_SHARE 16 /* a chunk is at most this part of the cap: little of the last one is unused */

typedef struct entry {
    leat__cached page;      /* first member: the part that users see */
    leat__cache_user *user; /* the user whose budget it is charged to; NULL = its loader has left */
    leat__chunk *chunk;     /* contains its memory; NULL = separate memory */
    uint64_t room;          /* capacity: the bytes of its first page, or slightly more */
    uint32_t pins;
    uint64_t wanted; /* announced uses still to come */
    bool ready;
    bool populated; /* its memory was faulted in; set by the filler of the page */
    leat__cache_waiter *waiters;
    /* idle list, oldest first: ready, not pinned, not wanted */
    struct entry *older, *newer;
    bool idle;
} entry;

struct leat__cache {
    leat__cache *next; /* in the list of the process */
    uint64_t fingerprint, pages, pack_bytes;
    uint32_t fork_generation; /* a forked child must not use its copy, whose reads belong to the parent */
    uint32_t users;
    leat__mutex lock; /* guards all fields below and all entries */
    uint64_t bytes;
    entry *oldest, *newest;
    entry **entries; /* by page */
};

static leat__mutex list_lock = {PTHREAD_MUTEX_INITIALIZER};
static leat__cache *list; /* guarded by list_lock */

static bool serves(const leat__cache *c, const leat_pack_info *info)
{
    return c->fingerprint == info->fingerprint && c->pages == info->pages &&
           c->fork_generation == leat__fork_generation();
}

int leat__cache_open(leat__cache **out, const leat_pack *pack, leat_error *err)
{
    leat_pack_info info;
    int rc = 0;

    LEAT_TRY(leat_pack_info_read(pack, &info, sizeof info));
    leat__fork_renew(&list_lock);
    leat__mutex_lock(&list_lock);
    leat__cache *c = list;
    while (c != NULL && !serves(c, &info)) c = c->next;
    if (c == NULL) {
        c = LEAT_NEW(LOADER, leat__cache);
        entry **entries = LEAT_NEW_ARRAY(LOADER, entry *, info.pages + 1);
        if (c == NULL || entries == NULL) {
            rc = leat__fail_nomem(err, sizeof *c + info.pages * sizeof *entries, "the page cache");
            leat__free(c);
            leat__free(entries);
            c = NULL;
        } else {
            c->entries = entries;
            c->fork_generation = leat__fork_generation();
            c->fingerprint = info.fingerprint;
            c->pages = info.pages;
            /* a block shared by two pages is counted with both */
            c->pack_bytes = info.bytes + info.pages * LEAT__IO_ALIGN;
            leat__mutex_init(&c->lock);
            c->next = list;
            list = c;
        }
    }
    if (c != NULL) c->users++;
    leat__mutex_unlock(&list_lock);
    *out = c;
    return rc;
}

/* Checks the invariants of an entry and of the idle list; called before the lock is released. */
static void check_locked(const leat__cache *c, const entry *e)
{
    LEAT_ASSERT((c->oldest == NULL) == (c->newest == NULL));
    LEAT_ASSERT(c->oldest == NULL || (c->oldest->older == NULL && c->newest->newer == NULL));
    if (e == NULL) return;
    LEAT_ASSERT(e->page.page < c->pages && c->entries[e->page.page] == e);
    LEAT_ASSERT(e->page.bytes <= e->room && e->page.bytes <= c->bytes);
    LEAT_ASSERT(!e->idle || (e->ready && e->pins == 0 && e->wanted == 0));
    LEAT_ASSERT(!e->ready || e->waiters == NULL);
    LEAT_ASSERT(e->chunk == NULL || e->chunk->owner == e->user);
}

static void list_remove_locked(leat__cache *c, entry *e)
{
    if (!e->idle) return;
    *(e->older != NULL ? &e->older->newer : &c->oldest) = e->newer;
    *(e->newer != NULL ? &e->newer->older : &c->newest) = e->older;
    e->older = e->newer = NULL;
    e->idle = false;
}

static void list_append_locked(leat__cache *c, entry *e)
{
    LEAT_ASSERT(!e->idle && e->ready && e->pins == 0);
    e->older = c->newest;
    e->newer = NULL;
    *(c->newest != NULL ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
    e->idle = true;
}

/* ---- memory: slots in chunks of huge pages, or separate
 * -------------------------------------- */

static bool charge_locked(leat__cache_user *user, uint64_t bytes)
{
    uint64_t sum;
    if (!leat__add_u64(atomic_load(&user->bytes), bytes, &sum) || sum > user->cap) return false;
    if (leat_budget_try(user->budget, LEAT_BUDGET_PAGE, bytes) != 0) return false;
    atomic_fetch_add(&user->bytes, bytes);
    return true;
}

static void discharge_locked(leat__cache_user *user, uint64_t bytes)
{
    LEAT_ASSERT(user == NULL || atomic_load(&user->bytes) >= bytes);
    if (user == NULL) return;
    atomic_fetch_sub(&user->bytes, bytes);
    leat_budget_release(user->budget, LEAT_BUDGET_PAGE, bytes);
}

static void unlink_chunk_locked(leat__chunk *k)
{
    leat__cache_user *user = k->owner;
    if (user == NULL) return;
    *(k->prev != NULL ? &k->prev->next : &user->chunks) = k->next;
    if (k->next != NULL) k->next->prev = k->prev;
    k->prev = k->next = NULL;
}

static void link_chunk_locked(leat__chunk *k)
{
    leat__cache_user *user = k->owner;
    if (user == NULL) return;
    k->next = user->chunks;
    if (k->next != NULL) k->next->prev = k;
    user->chunks = k;
}

/* Returns the bytes of a new chunk; 0 when the cap is too small for huge pages. */
static uint64_t chunk_bytes(const leat__cache_user *user)
{
    uint64_t share = LEAT_MIN(atomic_load(&user->cap) / CHUNK_SHARE, CHUNK_MAX);
    return share / LEAT__CHUNK_ALIGN * LEAT__CHUNK_ALIGN;
}

static leat__chunk *new_chunk_locked(leat__cache_user *user, uint64_t bytes)
{
    if (!charge_locked(user, bytes)) return NULL;
    leat__chunk *k = leat__chunk_open(LEAT__MEM_PAGE, bytes);
    if (k == NULL) {
        discharge_locked(user, bytes);
        return NULL;
    }
    if (user->small_pages) leat__mem_small_pages(k->data);
    k->owner = user;
    link_chunk_locked(k);
    if (user->mapper != NULL) leat__mapper_add(user->mapper, k);
    return k;
}

/* Rounds `room` up to whole huge pages if that adds at most an eighth. Faulting in the rest of the last one 4
 * KiB at a time would cost more than copying its content. */
static uint64_t whole_pages(uint64_t room)
{
    if (room < LEAT__CHUNK_ALIGN || room > UINT64_MAX / 2) return room;
    uint64_t whole = (room + LEAT__CHUNK_ALIGN - 1) / LEAT__CHUNK_ALIGN * LEAT__CHUNK_ALIGN;
    return whole - room <= room / 8 ? whole : room;
}

static bool get_separate_locked(leat__cache_user *user, uint64_t room, entry *e)
{
    e->room = user->small_pages ? room : whole_pages(room);
    bool charged = charge_locked(user, e->room);
    if (!charged && e->room > room) { /* the budget has too little for whole huge pages */
        e->room = room;
        charged = charge_locked(user, room);
    }
    if (!charged) return false;
    e->page.data = leat__alloc_aligned(LEAT__MEM_PAGE, e->room,
                                       room >= LEAT__CHUNK_ALIGN ? LEAT__CHUNK_ALIGN : LEAT__IO_ALIGN);
    if (e->page.data == NULL) discharge_locked(user, e->room);
    else if (user->small_pages) leat__mem_small_pages(e->page.data);
    return e->page.data != NULL;
}

/* Finds memory for `room` bytes within the cap and the budget; false when there is none. */
static bool get_room_locked(leat__cache_user *user, uint64_t room, entry *e)
{
    LEAT_ASSERT(room > 0 && e->page.data == NULL);
    uint64_t whole = chunk_bytes(user);
    uint32_t looks = CHUNK_LOOKS;

    e->room = room;
    e->user = user;
    if (room > whole / 4) return get_separate_locked(user, room, e);
    for (e->chunk = user->chunks; e->chunk != NULL; e->chunk = --looks > 0 ? e->chunk->next : NULL) {
        if ((e->page.data = leat__chunk_take(e->chunk, room)) != NULL) return true;
    }
    e->chunk = new_chunk_locked(user, whole);
    if (e->chunk != NULL) e->page.data = leat__chunk_take(e->chunk, room);
    return e->chunk != NULL;
}

static void give_room_locked(entry *e)
{
    leat__chunk *k = e->chunk;

    if (k == NULL) {
        discharge_locked(e->user, e->room);
        leat__free(e->page.data);
        return;
    }
    leat__chunk_give(k, e->page.data, e->room);
    unlink_chunk_locked(k);
    if (leat__chunk_empty(k)) {
        leat__cache_user *const owner = k->owner;
        if (owner != NULL && owner->mapper != NULL) leat__mapper_remove(owner->mapper, k);
        discharge_locked(owner, k->bytes);
        leat__chunk_close(k);
    } else {
        link_chunk_locked(k);
    }
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void drop_locked(leat__cache *c, entry *e)
{
    LEAT_ASSERT(c->entries[e->page.page] == e && e->waiters == NULL);
    LEAT_ASSERT(c->bytes >= e->page.bytes);
    LEAT_ASSERT(e->pins == 0);
    list_remove_locked(c, e);
    c->entries[e->page.page] = NULL;
    c->bytes -= e->page.bytes;
    give_room_locked(e);
    leat__free(e);
}

/* Drops the pages of a user that leaves. Pages pinned by other loaders stay in memory until they are
 * unpinned; no budget is charged for them. */
static void disown_locked(leat__cache *c, leat__cache_user *user)
{
    for (uint64_t i = 0; i < c->pages; i++) {
        entry *e = c->entries[i];
        if (e == NULL || e->user != user) continue;
        if (e->pins == 0) {
            drop_locked(c, e);
        } else {
            if (e->chunk == NULL) discharge_locked(user, e->room);
            e->user = NULL;
        }
    }
    for (leat__chunk *k; (k = user->chunks) != NULL;) {
        discharge_locked(user, k->bytes);
        unlink_chunk_locked(k);
        k->owner = NULL;
    }
}

void leat__cache_leave(leat__cache **out, leat__cache_user *user)
{
    leat__cache *c = *out;
    bool last;

    if (c == NULL) return;
    leat__mutex_lock(&list_lock);
    leat__mutex_lock(&c->lock);
    disown_locked(c, user);
    LEAT_ASSERT(atomic_load(&user->bytes) == 0 && user->chunks == NULL);
    LEAT_ASSERT(c->users > 0);
    last = --c->users == 0;
    leat__mutex_unlock(&c->lock);
    if (last) {
        leat__cache **at = &list;
        while (*at != c) at = &(*at)->next;
        *at = c->next;
    }
    leat__mutex_unlock(&list_lock);
    if (last) {
        leat__mutex_destroy(&c->lock);
        leat__free(c->entries);
        leat__free(c);
    }
    *out = NULL;
}

/* Drops the oldest idle page of this user; false when it has none. */
static bool drop_idle_locked(leat__cache *c, const leat__cache_user *user)
{
    for (entry *e = c->oldest; e != NULL; e = e->newer) {
        if (e->user == user) return drop_locked(c, e), true;
    }
    return false;
}

/* Reuses the memory of the newest idle page of similar size, among at most `looks`. It need not be freed and
 * faulted in again, and much of it is still in the CPU cache. Older pages are kept for the next epoch: each
 * page comes once per epoch, so newer pages are not more useful than older ones. */
static entry *reuse_idle_locked(leat__cache *c, const leat__cache_user *user, uint64_t room, uint64_t looks)
{
    entry *e = c->newest;
    while (e != NULL && (e->user != user || e->room < room || e->room / 2 > room))
        e = --looks > 0 ? e->older : NULL;
    if (e == NULL || atomic_load(&user->bytes) > user->cap) return NULL;
    LEAT_ASSERT(e->idle && e->pins == 0 && c->bytes >= e->page.bytes);
    list_remove_locked(c, e);
    c->entries[e->page.page] = NULL;
    c->bytes -= e->page.bytes;
    return e;
}

/* Allocates an entry with new memory within the cap and the budget. */
static entry *allocate_locked(leat__cache_user *user, uint64_t room)
{
    entry *e = LEAT_NEW(LOADER, entry);
    if (e != NULL && get_room_locked(user, room, e)) return e;
    leat__free(e);
    return NULL;
}

/* True when the cache grows faster than needed. A pack larger than the cap should fill it only by the end of
 * the first epoch, because faulting in new memory delays the first reads. */
static bool ahead_of_pace(const leat__cache *c, const leat__cache_user *user)
{
    uint64_t cap = atomic_load(&user->cap), kept = atomic_load(&user->bytes);
    if (c->pack_bytes <= cap || user->asked >= c->pack_bytes) return false;
    return (double)kept > (double)cap * ((double)user->asked / (double)c->pack_bytes);
}

/* Finds memory for a page; only idle pages are dropped for it. A page that nothing is announced for takes
 * only free memory: there was no room when its uses were announced, and it would be dropped after one use. */
static entry *find_memory_locked(leat__cache *c, leat__cache_user *user, uint64_t bytes, bool announced)
{
    entry *e = NULL;

    if (bytes > atomic_load(&user->cap)) return NULL;
    if (!announced) return allocate_locked(user, bytes);
    if (ahead_of_pace(c, user)) e = reuse_idle_locked(c, user, bytes, NEWEST_LOOKS);
    if (e == NULL) e = allocate_locked(user, bytes);
    if (e == NULL) e = reuse_idle_locked(c, user, bytes, UINT64_MAX);
    while (e == NULL && drop_idle_locked(c, user)) e = allocate_locked(user, bytes);
    return e;
}

static entry *make_entry_locked(leat__cache *c, leat__cache_user *user, uint64_t page, uint64_t bytes,
                                bool announced)
{
    entry *e = find_memory_locked(c, user, bytes, announced);

    if (!leat__add_u64(user->asked, bytes, &user->asked)) user->asked = UINT64_MAX;
    if (e == NULL) return NULL;
    LEAT_ASSERT(e->room >= bytes && c->entries[page] == NULL);
    e->page.page = page;
    e->page.bytes = bytes;
    e->page.checked = e->page.damaged = false;
    e->ready = false;
    e->wanted = 0;
    c->entries[page] = e;
    c->bytes += bytes;
    return e;
}

leat__cache_answer leat__cache_get(leat__cache *c, leat__cache_user *user, uint64_t page, uint64_t bytes,
                                   uint32_t uses, leat__cache_waiter *waiter, leat__cached **out)
{
    LEAT_ASSERT(bytes > 0);
    leat__cache_answer answer;

    LEAT_ASSERT(page < c->pages);
    *out = NULL;
    leat__mutex_lock(&c->lock);
    entry *e = c->entries[page];
    if (e == NULL) {
        e = make_entry_locked(c, user, page, bytes, uses > 0 || user->keep);
        answer = e != NULL ? LEAT__CACHE_FILL : LEAT__CACHE_BYPASS;
    } else {
        answer = e->ready ? LEAT__CACHE_HIT : LEAT__CACHE_WAIT;
    }
    if (e != NULL) {
        list_remove_locked(c, e);
        e->pins++;
        e->wanted = user->keep ? UINT64_MAX : e->wanted == UINT64_MAX ? UINT64_MAX : e->wanted + uses;
        if (answer == LEAT__CACHE_WAIT) {
            waiter->next = e->waiters;
            e->waiters = waiter;
        } else {
            *out = &e->page;
        }
    }
    check_locked(c, e);
    leat__mutex_unlock(&c->lock);
    if (answer == LEAT__CACHE_FILL && user->populate && !e->populated) {
        leat__mem_populate(e->page.data, e->page.bytes);
        e->populated = true; /* pages that reuse this memory need not be faulted in */
    }
    return answer;
}

bool leat__cache_has(leat__cache *c, uint64_t page)
{
    LEAT_ASSERT(page < c->pages);
    leat__mutex_lock(&c->lock);
    const bool has = c->entries[page] != NULL;
    leat__mutex_unlock(&c->lock);
    return has;
}

void leat__cache_filled(leat__cache *c, leat__cached *page, int rc)
{
    entry *e = (entry *)page;

    leat__mutex_lock(&c->lock);
    LEAT_ASSERT(!e->ready && e->pins > 0);
    leat__cache_waiter *w = e->waiters;
    e->waiters = NULL;
    if (rc == 0) {
        e->ready = true;
    } else {
        e->pins = 0; /* drops the pins of filler and waiters, none of which gets the page */
        drop_locked(c, e);
        page = NULL;
    }
    check_locked(c, page != NULL ? e : NULL);
    leat__mutex_unlock(&c->lock);
    while (w != NULL) {
        leat__cache_waiter *next = w->next; /* ready() may free the waiter */
        w->ready(w, page);
        w = next;
    }
}

void leat__cache_pin(leat__cache *c, leat__cached *page)
{
    entry *e = (entry *)page;

    leat__mutex_lock(&c->lock);
    LEAT_ASSERT(e->pins > 0 && e->ready);
    e->pins++;
    if (e->wanted != UINT64_MAX) e->wanted++;
    leat__mutex_unlock(&c->lock);
}

static void unpin_locked(leat__cache *c, leat__cached *page)
{
    entry *e = (entry *)page;

    LEAT_ASSERT(e->pins > 0);
    e->pins--;
    if (e->wanted != UINT64_MAX && e->wanted > 0) e->wanted--;
    if (e->pins == 0 && (e->user == NULL || page->damaged)) drop_locked(c, e);
    else if (e->pins == 0 && e->wanted == 0) list_append_locked(c, e);
}

void leat__cache_unpin(leat__cache *c, leat__cached *page)
{
    leat__cache_unpin_all(c, &page, 1);
}

void leat__cache_unpin_all(leat__cache *c, leat__cached *const *pages, uint32_t count)
{
    if (count == 0) return;
    leat__mutex_lock(&c->lock);
    for (uint32_t i = 0; i < count; i++) unpin_locked(c, pages[i]);
    leat__mutex_unlock(&c->lock);
}

uint64_t leat__cache_mapped(const leat__cached *page, const leat__gpu *gpu)
{
    const leat__chunk *const k = ((const entry *)page)->chunk;
    const uint64_t address = k != NULL ? leat__chunk_mapped(k, gpu) : 0;
    return address != 0 ? address + (uint64_t)(page->data - k->data) : 0;
}

void leat__cache_forget(leat__cache *c)
{
    leat__mutex_lock(&c->lock);
    for (uint64_t i = 0; i < c->pages; i++) {
        entry *e = c->entries[i];
        if (e == NULL || e->wanted == UINT64_MAX) continue;
        e->wanted = 0;
        if (e->pins == 0 && e->ready && !e->idle) list_append_locked(c, e);
    }
    check_locked(c, NULL);
    leat__mutex_unlock(&c->lock);
}

static bool droppable(const entry *e, const leat__cache_user *user)
{
    return e != NULL && e->user == user && e->pins == 0 && e->ready;
}

/* Marks chunks of `user` without pinned pages to be freed, up to `bytes`. Whole chunks are chosen, because a
 * chunk with one page left frees nothing. */
static void choose_chunks_locked(leat__cache *c, const leat__cache_user *user, uint64_t bytes)
{
    uint64_t sum = 0;

    for (leat__chunk *k = user->chunks; k != NULL; k = k->next) k->pinned = k->leaves = false;
    for (uint64_t i = 0; i < c->pages; i++) {
        const entry *e = c->entries[i];
        if (e != NULL && e->chunk != NULL && !droppable(e, user)) e->chunk->pinned = true;
    }
    for (leat__chunk *k = user->chunks; k != NULL && sum < bytes; k = k->next) {
        if (k->pinned) continue;
        k->leaves = true;
        sum += k->bytes;
    }
}

static uint64_t shed_locked(leat__cache *c, leat__cache_user *user, uint64_t bytes)
{
    uint64_t before = atomic_load(&user->bytes), target = before > bytes ? before - bytes : 0;

    for (entry *e = c->oldest, *next; e != NULL && atomic_load(&user->bytes) > target; e = next) {
        next = e->newer; /* idle pages with separate memory first */
        if (e->user == user && e->chunk == NULL) drop_locked(c, e);
    }
    uint64_t now = atomic_load(&user->bytes);
    if (now > target) choose_chunks_locked(c, user, now - target);
    for (uint64_t i = 0; i < c->pages && atomic_load(&user->bytes) > target; i++) {
        entry *e = c->entries[i];
        if (droppable(e, user) && (e->chunk == NULL || e->chunk->leaves)) drop_locked(c, e);
    }
    return before - atomic_load(&user->bytes);
}

uint64_t leat__cache_shed(leat__cache *c, leat__cache_user *user, uint64_t bytes)
{
    leat__mutex_lock(&c->lock);
    uint64_t freed = shed_locked(c, user, bytes);
    check_locked(c, NULL);
    leat__mutex_unlock(&c->lock);
    return freed;
}

void leat__cache_trim(leat__cache *c, leat__cache_user *user)
{
    uint64_t bytes = atomic_load(&user->bytes), cap = atomic_load(&user->cap);
    if (bytes > cap) leat__cache_shed(c, user, bytes - cap);
}

uint64_t leat__cache_bytes(leat__cache *c)
{
    leat__mutex_lock(&c->lock);
    uint64_t bytes = c->bytes;
    leat__mutex_unlock(&c->lock);
    return bytes;
}

bool leat__cache_stays(const leat__cache *c, const leat__cache_user *user)
{
    return user->keep || c->pack_bytes <= atomic_load(&user->cap);
}
