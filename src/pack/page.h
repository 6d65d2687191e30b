/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds pages independently of the writer. The thread that orders samples decides, with fits and
 * add, which samples share a page. Any thread may then seal it (compute the hashes), and the packer takes
 * sealed pages in order. leat_packer_append() does these three steps in one thread. Pages of one packer
 * are filled in order by one thread at a time, so the bytes never depend on how many threads seal.
 *
 *   leat__sample_measure(schema, &sample, &size, err);
 *   if (!leat__page_fits(page, &sample, size)) { hand `page` to seal + put; take a fresh one; }
 *   leat__page_add(page, &sample, err);
 */
#ifndef LEAT_PACK_PAGE_H
#define LEAT_PACK_PAGE_H

#include "pack/layout.h"
#include "pack/schema.h"

/* Samples without payload (only labels) must also fill pages. */
#define LEAT__PAGE_SAMPLES_MAX 65536u

typedef struct leat__page {
    const leat__schema *schema;
    uint64_t target; /* size at which a page is full: the option page_bytes */
    uint8_t *data;   /* allocated in whole blocks */
    uint64_t used, capacity;
    uint64_t bytes; /* when sealed: a multiple of LEAT__PACK_ALIGN */
    uint64_t check; /* when sealed */
    uint32_t samples;
    uint64_t max_sample; /* bytes of the largest */
    uint64_t payload;    /* sum of the sizes of its samples */
    leat__buf rows;      /* per sample: entry (page 0, key end in `keys`), cells of all fields */
    leat__buf keys;
    uint64_t marks[LEAT_PACKER_MARKS]; /* of the last sample */
    bool sealed;
    const leat_pack_sample *lent; /* its only sample, not copied: see leat__page_lend */
} leat__page;

/* Returns NULL for text that a JSON field accepts, else what is wrong with it. */
const char *leat__page_json_fault(const void *data, size_t size);

/* The schema must outlive the page. */
int leat__page_open(leat__page **p, const leat__schema *schema, uint64_t page_bytes,
                    leat_error *err) LEAT_MUST_CHECK;
void leat__page_close(leat__page **p);
void leat__page_clear(leat__page *p); /* empties it; keeps its memory unless oversized */

/* Computes the stored size of the sample; checks the values against the schema. */
int leat__sample_measure(const leat__schema *schema, const leat_pack_sample *sample, uint64_t *size,
                         leat_error *err) LEAT_MUST_CHECK;
/* True when the page is empty or the sample still fits: payloads and keys must each stay within
 * the target, and samples within LEAT__PAGE_SAMPLES_MAX. */
bool leat__page_fits(const leat__page *p, const leat_pack_sample *sample, uint64_t size);
/* Copies the sample into the page, which must have room and not be sealed. */
int leat__page_add(leat__page *p, const leat_pack_sample *sample, leat_error *err) LEAT_MUST_CHECK;
/* Adds a sample larger than a page to an empty page and seals it. Its payloads are not copied;
 * they must live until the page is put or cleared. */
int leat__page_lend(leat__page *p, const leat_pack_sample *sample, leat_error *err) LEAT_MUST_CHECK;
/* Passes the bytes of a lent page in order, including zeros between payloads, to `piece`, which
 * returns 0 to continue. */
int leat__page_lent_bytes(const leat__page *p, int (*piece)(void *cookie, const void *data, size_t len),
                          void *cookie);
/* Computes the checksums of samples and page. Cannot fail. */
void leat__page_seal(leat__page *p);

/* Writes a sealed page. Called on the packer's thread, in order; the page may be cleared and reused
 * afterwards. */
int leat__packer_put(leat_packer *packer, leat__page *page, leat_error *err) LEAT_MUST_CHECK;
/* Returns the pack appended to, or NULL. */
leat_pack *leat__packer_base(const leat_packer *packer);
/* Returns one line about a synced page that resume found damaged, or "". */
const char *leat__packer_damage(const leat_packer *packer);

#endif
