/* SPDX-License-Identifier: Apache-2.0
 *
 * Building pages away from the writer. The thread that orders samples decides, with fits and
 * add, which samples share a page; any thread may then seal (the hashing); the packer takes
 * sealed pages in order. leat_packer_append() is these three steps in one thread. Pages of
 * one packer are filled in order by one thread at a time, so bytes never depend on how many
 * threads seal.
 *
 *   leat__sample_measure(schema, &sample, &size, err);
 *   if (!leat__page_fits(page, &sample, size)) { hand `page` to seal + put; take a fresh one; }
 *   leat__page_add(page, &sample, err);
 */
#ifndef LEAT_PACK_PAGE_H
#define LEAT_PACK_PAGE_H

#include "pack/layout.h"
#include "pack/schema.h"

/* Samples without payload (labels only) must close pages too. */
#define LEAT__PAGE_SAMPLES_MAX 65536u

typedef struct leat__page {
    const leat__schema *schema;
    uint64_t target;     /* page_bytes */
    uint8_t *data;       /* whole blocks of memory */
    uint64_t used, capacity;
    uint64_t bytes;      /* when sealed: a multiple of LEAT__PACK_ALIGN */
    uint64_t check;      /* when sealed */
    uint32_t samples;
    uint64_t max_sample; /* bytes of the largest */
    uint64_t payload;    /* sum of the sizes of its samples */
    leat__buf rows;      /* per sample: entry (page 0, key end in `keys`), cells of all fields */
    leat__buf keys;
    uint64_t marks[LEAT_PACKER_MARKS]; /* of the last sample */
    bool sealed;
    const leat_pack_sample *lent; /* its only sample, not copied: see leat__page_lend */
} leat__page;

/* The schema must outlive the page. */
int leat__page_open(leat__page **p, const leat__schema *schema, uint64_t page_bytes,
                    leat_error *err) LEAT_MUST_CHECK;
void leat__page_close(leat__page **p);
void leat__page_clear(leat__page *p); /* empty again; keeps its memory unless oversized */

/* Size the sample will have; checks the values against the schema. */
int leat__sample_measure(const leat__schema *schema, const leat_pack_sample *sample,
                         uint64_t *size, leat_error *err) LEAT_MUST_CHECK;
/* True when the page is empty or the sample still fits: payloads and keys of a page stay
 * within the target each, and samples within LEAT__PAGE_SAMPLES_MAX. */
bool leat__page_fits(const leat__page *p, const leat_pack_sample *sample, uint64_t size);
/* Copies the sample in. The page must fit it and not be sealed. */
int leat__page_add(leat__page *p, const leat_pack_sample *sample,
                   leat_error *err) LEAT_MUST_CHECK;
/* The same for a sample that is larger than a page, into an empty page, which is sealed then:
 * its payloads are not copied but must live until the page is put or cleared. */
int leat__page_lend(leat__page *p, const leat_pack_sample *sample,
                    leat_error *err) LEAT_MUST_CHECK;
/* The bytes of a lent page in order, zeros between payloads included, piece by piece, from
 * `piece`, which returns 0 to go on. */
int leat__page_lent_bytes(const leat__page *p,
                          int (*piece)(void *cookie, const void *data, size_t len), void *cookie);
/* Checksums of samples and page. Cannot fail. */
void leat__page_seal(leat__page *p);

/* The packer's side, in order; the page may be cleared and used again afterwards. */
int leat__packer_put(leat_packer *packer, leat__page *page, leat_error *err) LEAT_MUST_CHECK;
const leat__schema *leat__packer_schema(const leat_packer *packer);
uint64_t leat__packer_page_bytes(const leat_packer *packer);
/* The pack that is appended to, or NULL. */
leat_pack *leat__packer_base(const leat_packer *packer);
/* One line about a synced page that resume found damaged; "" when there was none. */
const char *leat__packer_damage(const leat_packer *packer);

#endif
