/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of a pack kept in this process, shared by all its loaders that read the same content.
 *
 * A loader asks for the page a sample lies in. It is there (HIT), or the loader is to read it
 * (FILL), or someone else is reading it (WAIT, told later), or there is no room (BYPASS: read
 * just the sample). Never-evict: a page that is still wanted is not dropped to make room for
 * another one, since in a random order every page is equally likely to come next. A page is
 * wanted as long as it is pinned or a loader has announced uses that are not yet counted down;
 * `keep` announces them for ever. Pages that are no longer wanted stay until their room is.
 *
 * Bytes are charged to the budget of the loader that read the page, up to the cap it gives; when
 * that loader leaves, its pages go. Any thread may call.
 */
#ifndef LEAT_LOADER_CACHE_H
#define LEAT_LOADER_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <leat/loader.h>

#include "base/error.h"

typedef struct leat__cache leat__cache;

typedef struct leat__cached {
    uint8_t *data; /* aligned for direct reads; where in it the page begins, its filler knows */
    uint64_t page;
    uint64_t bytes; /* of data */
    /* set by whoever holds a pin: its checksum was right; was wrong, and it goes when unpinned */
    atomic_bool checked, damaged;
    atomic_bool unsaved; /* came over the network, is not yet in the disk cache */
} leat__cached;

typedef enum leat__cache_answer {
    LEAT__CACHE_HIT,
    LEAT__CACHE_FILL,
    LEAT__CACHE_WAIT,
    LEAT__CACHE_BYPASS
} leat__cache_answer;

/* Who asks: one per loader. */
typedef struct leat__cache_user {
    leat_budget *budget;
    _Atomic uint64_t cap; /* most bytes it may keep; changed at any time by its loader */
    bool keep;    /* random orders: pages stay wanted */
    _Atomic uint64_t bytes; /* kept for it now */
    uint64_t asked; /* bytes of pages that were not there; the cache's */
    struct leat__chunk *chunks; /* memory its pages are in; the cache's */
} leat__cache_user;

/* Told, on the filling thread, when a page that was WAITed for is there (page pinned) or could
 * not be read (NULL: read the sample yourself). */
typedef struct leat__cache_waiter {
    void (*ready)(struct leat__cache_waiter *w, leat__cached *page);
    struct leat__cache_waiter *next;
} leat__cache_waiter;

/* The cache of this pack's content, made when there is none. */
int leat__cache_open(leat__cache **c, const leat_pack *pack, leat_error *err) LEAT_MUST_CHECK;
/* Drops the pages of `user`; the cache goes with its last user. It must hold no pins. */
void leat__cache_leave(leat__cache **c, leat__cache_user *user);

/* Asks for a page that takes `bytes` bytes of memory, always as many for the same page. `uses`: how
 * often this loader will still ask for it this epoch, this one included; announced once, with the
 * first ask of an epoch. */
leat__cache_answer leat__cache_get(leat__cache *c, leat__cache_user *user, uint64_t page,
                                   uint64_t bytes, uint32_t uses, leat__cache_waiter *waiter,
                                   leat__cached **out);
/* After FILL: the page was read (rc 0: it stays pinned for the filler) or not (it goes). */
void leat__cache_filled(leat__cache *c, leat__cached *page, int rc);
/* Ends a pin; one announced use is counted down. */
void leat__cache_unpin(leat__cache *c, leat__cached *page);

/* Forgets announced uses: an epoch was left in the middle. Pages stay until room is needed. */
void leat__cache_forget(leat__cache *c);

/* Drops pages of `user` that nobody has pinned until it is within its cap. */
void leat__cache_trim(leat__cache *c, leat__cache_user *user);
/* Drops pages of `user` that nobody has pinned until about `bytes` were given back to the budget;
 * answers how many were. */
uint64_t leat__cache_shed(leat__cache *c, leat__cache_user *user, uint64_t bytes);
uint64_t leat__cache_bytes(leat__cache *c);

#endif
