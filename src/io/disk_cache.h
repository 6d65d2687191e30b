/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches pages of a remote pack in a local folder, shared by all processes that read the same
 * pack. Two files per pack: NAME.data has every page at its own offset (a sparse file); NAME.map
 * has one byte per page, 1 if cached. The byte is written after the page, so a kill at any time
 * is safe. Cached pages are not trusted: the caller verifies each page like one from the network,
 * and drops it when it is wrong.
 *
 * The folder stays within its limit. Packs that no process has open are evicted, least recently
 * used first; then pages of the open pack that the order of its only user never reads again. Pages
 * that will be read stay: every epoch reads each of them once, so with room for c of n pages no
 * policy has more than c hits in an epoch, and keeping the same ones has c. Replacing the least
 * recently used has fewer, none if the order repeats. Any thread may call.
 */
#ifndef LEAT_IO_DISK_CACHE_H
#define LEAT_IO_DISK_CACHE_H

#include <stdbool.h>

#include "io/file.h"

typedef struct leat__disk leat__disk;

typedef struct leat__disk_opts {
    const char *folder; /* created when missing */
    uint64_t id;        /* of the pack's content */
    uint64_t pages;
    uint64_t limit; /* bytes of all files in the folder; 0 = half of the free space there now */
    /* True for a page that the caller's order never reads, and where it is in the file. Asked when the
     * folder is full, by the thread that stores a page. NULL: all pages are read. */
    bool (*unwanted)(void *cookie, uint64_t page, uint64_t *offset, uint64_t *len);
    void *cookie;
} leat__disk_opts;

int leat__disk_open(leat__disk **d, const leat__disk_opts *opts, leat_error *err) LEAT_MUST_CHECK;
/* Ends the thread that calls waiters and stores pages, after the last of them; NULL is allowed. Before what
 * they use is closed. leat__disk_close does it, too. */
void leat__disk_stop(leat__disk *d);
void leat__disk_close(leat__disk **d);

bool leat__disk_has(leat__disk *d, uint64_t page);
/* The file to read pages from, at their offsets. */
const leat__file *leat__disk_file(const leat__disk *d);
/* Caches a page if there is room. After a failure (a full disk) nothing more is cached. */
void leat__disk_put(leat__disk *d, uint64_t page, uint64_t offset, const void *data, size_t len);
/* Drops a page that was wrong when it was read back. */
void leat__disk_forget(leat__disk *d, uint64_t page);

/* A page is fetched once per machine. True: the caller fetches it, and must release it once the page is
 * stored or will not be. False: another thread, loader or process is fetching it; leat__disk_wait reports
 * when that has ended. A killed process releases its claims. */
bool leat__disk_claim(leat__disk *d, uint64_t page);
void leat__disk_release(leat__disk *d, uint64_t page);

/* Belongs to the caller until `ready`. That runs on a thread of the cache (leat-disk) when the page is
 * cached, or is claimed for the caller (`claimed`), or after a few seconds if another process does neither. A
 * holder must not wait for another page before it stores its own: two of them would wait for each other. */
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
/* While on, waiters are called at once: their requests are to end. */
void leat__disk_hurry(leat__disk *d, bool on);

/* Stores a page that the caller has claimed, as leat__disk_put, and releases it: on the thread of the cache,
 * because writing may wait for the disk. It and `data` belong to the cache until `done`. */
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
