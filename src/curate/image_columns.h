/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about an image, as a row of a pack: the columns that `leat check` writes.
 */
#ifndef LEAT_CURATE_IMAGE_COLUMNS_H
#define LEAT_CURATE_IMAGE_COLUMNS_H

#include <leat/pack.h>

#include "base/buf.h"
#include "curate/image_issue.h"
#include "curate/image_score.h"
#include "curate/image_sign.h"

typedef struct leat__image_facts {
    leat__verdict verdict;
    uint64_t issues; /* bits of leat__issue */
    uint32_t width, height, channels, orientation;
    leat__codec_id codec; /* as stored */
    uint64_t bytes;       /* as stored */
    uint64_t file_hash;   /* hash of the stored bytes */
    uint64_t content_hash;
    double score[LEAT__LOOKS]; /* NaN unless the verdict is ok */
    bool is_signed;            /* has a signature */
    leat__image_sign sign;
    char reason[200]; /* why the verdict is not ok */
} leat__image_facts;

/* Collects all facts about one image. Its faults are part of the result; the only error is
 * LEAT_ENOMEM. `key` is the name whose extension is checked. */
int leat__image_facts_make(leat__image_looker *looker, const char *key, const uint8_t *data, size_t len,
                           const leat__tile_tables *tables, leat__image_facts *facts,
                           leat_error *err) LEAT_MUST_CHECK;
/* Sets the verdict and the reason; all scores become NaN. */
void leat__image_facts_fail(leat__image_facts *facts, leat__verdict verdict, const char *reason);

#define LEAT__COLUMNS_KIND "leat check 1" /* stored in the provenance */

/* Opens a packer with these columns. `provenance` is JSON. */
int leat__image_columns_create(leat_packer **packer, const char *path, const char *provenance, bool replace,
                               bool no_sync, leat_error *err) LEAT_MUST_CHECK;
int leat__image_columns_append(leat_packer *packer, const void *key, size_t key_size,
                               const leat__image_facts *facts, leat_error *err) LEAT_MUST_CHECK;

typedef struct leat__image_columns {
    leat_pack *pack;
    uint64_t count;
    struct leat__columns_window *window; /* cells of the rows read next */
    leat__buf room;                      /* memory for a row */
} leat__image_columns;

/* True when a pack has these columns. */
bool leat__image_columns_are(const leat_pack *pack);
/* Opens columns for reading. LEAT_EFORMAT: the pack does not have these columns. */
int leat__image_columns_open(leat__image_columns *c, const char *path, leat_error *err) LEAT_MUST_CHECK;
void leat__image_columns_close(leat__image_columns *c);
/* Opens columns for reading keys and thumbnails from any number of threads. `cache`: bytes of the
 * index to keep in memory. */
#define LEAT__COLUMNS_CACHE (4u << 20) /* for all columns open at the same time */
int leat__image_columns_pack(leat_pack **pack, const char *path, uint64_t cache,
                             leat_error *err) LEAT_MUST_CHECK;
/* Reads the facts of a row. Reading consecutive rows is faster. */
int leat__image_columns_read(leat__image_columns *c, uint64_t row, leat__image_facts *facts,
                             leat_error *err) LEAT_MUST_CHECK;
/* Reads only the thumbnail; zeros when the row has none. `room` is memory for a row. */
int leat__image_columns_thumb(leat_pack *pack, uint64_t row, leat__buf *room,
                              uint8_t thumb[LEAT__THUMB_BYTES], leat_error *err) LEAT_MUST_CHECK;

#endif
