/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of a pack cached in this process, shared by all its loaders with the same content.
 *
 * A loader asks for the page of a sample. It is cached (HIT), or the loader must read it (FILL),
 * or another loader is reading it (WAIT, notified later), or there is no room (BYPASS: read only
 * the sample). A page that is still wanted is never evicted for another one, because in a random
 * order every page is equally likely to come next. A page is wanted while it is pinned or a
 * loader has announced uses that are not yet counted down; `keep` announces unlimited uses. Pages
 * that are no longer wanted stay until their memory is needed.
 *
 * Bytes are charged to the budget of the loader that read the page, up to its cap; when that
 * loader leaves, its pages are dropped. Any thread may call.
 *
 * A device may read pages in place: a mapper page-locks the memory of its loader's pages. Such a page stays
 * pinned until the device has read it.
 */
#ifndef LEAT_LOADER_CACHE_H
#define LEAT_LOADER_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <leat/loader.h>

#include "base/error.h"
#include "loader/mapper.h"

typedef struct leat__cache leat__cache;

typedef struct leat__cached {
    uint8_t *data; /* aligned for direct reads; the filler knows where the page begins in it */
    uint64_t page;
    uint64_t bytes; /* size of `data` */
    /* set by a holder of a pin: the checksum is right; or wrong, and the page is dropped when unpinned */
    atomic_bool checked, damaged;
} leat__cached;

typedef enum leat__cache_answer {
    LEAT__CACHE_HIT,
    LEAT__CACHE_FILL,
    LEAT__CACHE_WAIT,
    LEAT__CACHE_BYPASS
} leat__cache_answer;

/* The user of a cache: one per loader. */
typedef struct leat__cache_user {
    leat_budget *budget;
    _Atomic uint64_t cap; /* maximum bytes it may keep; its loader may change it at any time */
    bool keep;            /* random orders: pages stay wanted */
    bool small_pages;     /* use small memory pages: huge ones cost more than they save here */
    bool populate; /* fault in new memory on the requesting thread, because the filling one is busier */
    _Atomic uint64_t bytes;     /* bytes kept for it now */
    uint64_t asked;             /* bytes of pages that were missing; private to the cache */
    struct leat__chunk *chunks; /* memory of its pages; private to the cache */
    leat__mapper *mapper;       /* maps new memory for a device, or NULL */
} leat__cache_user;

/* Called on the filling thread when a page that was WAITed for is cached (page pinned) or could
 * not be read (NULL: read the sample yourself). */
typedef struct leat__cache_waiter {
    void (*ready)(struct leat__cache_waiter *w, leat__cached *page);
    struct leat__cache_waiter *next;
} leat__cache_waiter;

/* Opens the cache of this pack's content, creating it if needed. */
int leat__cache_open(leat__cache **c, const leat_pack *pack, leat_error *err) LEAT_MUST_CHECK;
/* Drops the pages of `user`, which must hold no pins; the last user closes the cache. */
void leat__cache_leave(leat__cache **c, leat__cache_user *user);

/* Requests a page that takes `bytes` bytes of memory, always the same for the same page. `uses`: how often
 * this loader will still request it this epoch, including this time. It is announced once, with the first
 * request of an epoch. */
leat__cache_answer leat__cache_get(leat__cache *c, leat__cache_user *user, uint64_t page, uint64_t bytes,
                                   uint32_t uses, leat__cache_waiter *waiter, leat__cached **out);
bool leat__cache_has(leat__cache *c, uint64_t page); /* cached, or being read */
/* Reports the result of FILL. rc 0: the page was read and stays pinned for the filler; else it is dropped. */
void leat__cache_filled(leat__cache *c, leat__cached *page, int rc);
/* Adds a pin, by a holder of a pin; it does not count as an announced use. */
void leat__cache_pin(leat__cache *c, leat__cached *page);
/* Ends a pin; one announced use is counted down. */
void leat__cache_unpin(leat__cache *c, leat__cached *page);
void leat__cache_unpin_all(leat__cache *c, leat__cached *const *pages,
                           uint32_t count); /* ends `count` pins */

/* Returns the address at which `gpu` can read a pinned page's data; 0: it cannot. The memory around it can be
 * read too, to the limits of its blocks of LEAT__IO_ALIGN bytes. */
uint64_t leat__cache_mapped(const leat__cached *page, const leat__gpu *gpu);

/* Drops announced uses, when an epoch was left early. Pages stay until their memory is needed. */
void leat__cache_forget(leat__cache *c);

/* Drops unpinned pages of `user` until it is within its cap. */
void leat__cache_trim(leat__cache *c, leat__cache_user *user);
/* Drops unpinned pages of `user` until about `bytes` were released to the budget; returns how
 * many. */
uint64_t leat__cache_shed(leat__cache *c, leat__cache_user *user, uint64_t bytes);
uint64_t leat__cache_bytes(leat__cache *c);
/* True when pages stay cached after their use, because they are kept or all of them fit. */
bool leat__cache_stays(const leat__cache *c, const leat__cache_user *user);

#endif
