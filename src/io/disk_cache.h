/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches pages of a remote pack in a local folder, shared by all processes that read the same
 * pack. Two files per pack: NAME.data has every page at its own offset (a sparse file); NAME.map
 * has one byte per page, 1 if cached. The byte is written after the page, so a kill at any time
 * is safe. Cached pages are not trusted: the caller verifies each page like one from the network,
 * and drops it when it is wrong.
 *
 * The folder stays within its limit. Packs that no process has open are evicted, least recently used first.
 * Then pages of the open pack are evicted that its only user never reads again. Pages that will be read stay:
 * every epoch reads each page once, so with room for c of n pages no policy has more than c hits per epoch,
 * and keeping the same pages reaches c. LRU has fewer hits, and none if the order repeats. Any thread may
 * call.
 */
#ifndef LEAT_IO_DISK_CACHE_H
#define LEAT_IO_DISK_CACHE_H

#include <stdbool.h>

#include "io/file.h"

typedef struct leat__disk leat__disk;

typedef struct leat__disk_opts {
    const char *folder; /* created when missing */
    uint64_t id;        /* hash of the pack's content */
    uint64_t pages;
    uint64_t limit; /* bytes of all files in the folder; 0 = half of the free space there now */
    /* Returns true for a page that the caller's order never reads, and sets its place in the file. Called
     * when the folder is full, by the thread that stores a page. NULL: all pages are read. */
    bool (*unwanted)(void *cookie, uint64_t page, uint64_t *offset, uint64_t *len);
    void *cookie;
} leat__disk_opts;

int leat__disk_open(leat__disk **d, const leat__disk_opts *opts, leat_error *err) LEAT_MUST_CHECK;
/* Ends the thread that calls waiters and stores pages, after it has served all of them. Call it before
 * closing anything they use. leat__disk_close does it too. NULL is allowed. */
void leat__disk_stop(leat__disk *d);
void leat__disk_close(leat__disk **d);

bool leat__disk_has(leat__disk *d, uint64_t page);
/* Returns the file that holds the pages at their offsets. */
const leat__file *leat__disk_file(const leat__disk *d);
/* Caches a page if there is room. After a failure (a full disk) nothing more is cached. */
void leat__disk_put(leat__disk *d, uint64_t page, uint64_t offset, const void *data, size_t len);
/* Drops a page that failed verification when it was read back. */
void leat__disk_forget(leat__disk *d, uint64_t page);

/* Claims a page, so that it is fetched only once per machine. True: the caller fetches it, and must release
 * it after storing the page or giving up. False: another thread, loader or process is fetching it;
 * leat__disk_wait reports when that has ended. The claims of a killed process are released. */
bool leat__disk_claim(leat__disk *d, uint64_t page);
void leat__disk_release(leat__disk *d, uint64_t page);

/* A wait for a page; must stay in place until `ready` is called. `ready` runs on the cache's thread
 * (leat-disk) when the page is cached, when it has been claimed for the caller (`claimed`), or after 20
 * seconds if another process is still fetching it. A caller that holds a claim must store its page before it
 * waits for another, else two such callers could deadlock. */
typedef struct leat__disk_waiter leat__disk_waiter;
struct leat__disk_waiter {
    uint64_t page;
    void (*ready)(leat__disk_waiter *w);
    bool claimed;
    /* private */
    uint64_t until_ns;
    leat__disk_waiter *next;
};
void leat__disk_wait(leat__disk *d, leat__disk_waiter *w);
/* While on, waiters are called at once, because their requests must end. */
void leat__disk_hurry(leat__disk *d, bool on);

/* Stores a claimed page like leat__disk_put, then releases the claim. This happens on the cache's thread,
 * because a write may wait for the disk. The saver and `data` must stay in place until `done`. */
typedef struct leat__disk_saver leat__disk_saver;
struct leat__disk_saver {
    uint64_t page, offset;
    const void *data;
    size_t len;
    void (*done)(leat__disk_saver *s);
    leat__disk_saver *next; /* private */
};
void leat__disk_save(leat__disk *d, leat__disk_saver *s);

bool leat__disk_full(const leat__disk *d); /* no more pages are cached */
uint64_t leat__disk_used(leat__disk *d);   /* bytes of all packs in the folder */

#endif
