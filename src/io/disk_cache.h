/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of a remote pack kept in a folder of this machine, shared by all processes that read the
 * same pack. Two files per pack: NAME.data has every page at its own place (a sparse file), NAME.map
 * one byte per page that says whether it is there. The byte is written after the page, so that a
 * process may be killed at any moment. Nothing is trusted when it is read back: the caller checks
 * each page as if it came from the network, and forgets it when it is wrong.
 *
 * The folder keeps to its limit. Packs that no process has open are removed for room, those not
 * used for longest first. Pages of the pack itself are never removed for others: every epoch reads
 * each of them once, so one is as good as the next. Any thread may call.
 */
#ifndef LEAT_IO_DISK_CACHE_H
#define LEAT_IO_DISK_CACHE_H

#include <stdbool.h>

#include "io/file.h"

typedef struct leat__disk leat__disk;

typedef struct leat__disk_opts {
    const char *folder; /* made when it is not there */
    uint64_t id;        /* of the pack's content */
    uint64_t pages;
    uint64_t limit; /* bytes of all files in the folder; 0 = half of what is free there now */
} leat__disk_opts;

int leat__disk_open(leat__disk **d, const leat__disk_opts *opts, leat_error *err) LEAT_MUST_CHECK;
void leat__disk_close(leat__disk **d);

bool leat__disk_has(leat__disk *d, uint64_t page);
/* Where the pages are read from, at the offsets they were put to. */
const leat__file *leat__disk_file(const leat__disk *d);
/* Keeps a page if there is room. A failure (a full disk) only ends the keeping. */
void leat__disk_put(leat__disk *d, uint64_t page, uint64_t offset, const void *data, size_t len);
/* The page was wrong when it was read back. */
void leat__disk_forget(leat__disk *d, uint64_t page);

/* A page is fetched by one process of the machine at a time. True: by the caller, who releases it when
 * it was put, or will not be. False: another process (or loader) is at it; leat__disk_wait tells when
 * that has ended. A process that is killed releases what it had. */
bool leat__disk_claim(leat__disk *d, uint64_t page);
void leat__disk_release(leat__disk *d, uint64_t page); /* also what is not claimed */

/* The caller's until `ready`, which runs on a thread of the cache (leat-disk) when the page is there, or
 * else is claimed for the caller; after a few seconds in any case. */
typedef struct leat__disk_waiter leat__disk_waiter;
struct leat__disk_waiter {
    uint64_t page;
    void (*ready)(leat__disk_waiter *w);
    /* private */
    uint64_t until_ns;
    leat__disk_waiter *next;
};
void leat__disk_wait(leat__disk *d, leat__disk_waiter *w);

bool leat__disk_full(const leat__disk *d); /* no more pages will be kept */
uint64_t leat__disk_used(leat__disk *d); /* bytes of all packs in the folder */
uint64_t leat__disk_limit(const leat__disk *d);

#endif
