/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of leat_dedup_images: rows of all packs, search for pairs, clusters.
 */
#ifndef LEAT_CURATE_IMAGE_DEDUP_H
#define LEAT_CURATE_IMAGE_DEDUP_H

#include <leat/images.h>

#include "base/buf.h"
#include "curate/image_columns.h"
#include "curate/image_index.h"
#include "curate/saved.h"
#include "curate/spill.h"

typedef struct leat__image_pair {
    uint32_t a, b; /* row numbers over all packs, a < b */
    float similarity;
    uint8_t probable;    /* 1: not certain enough for a duplicate */
    uint8_t orientation; /* orientation that maps b to a */
} leat__image_pair;

/* Data kept for each row. */
typedef struct leat__dedup_row {
    uint64_t content_hash;
    double size, quality; /* number of pixels; JPEG quality, -1: not known */
    uint64_t bytes;
    uint32_t pack;
    uint32_t entry;    /* number of its first descriptor; LEAT__DEDUP_NONE: not searched */
    uint32_t entries;  /* number of descriptors: of the whole image, without borders, of windows */
    uint32_t lossless; /* 1: the format is lossless */
} leat__dedup_row;
#define LEAT__DEDUP_NONE UINT32_MAX
#define LEAT__DEDUP_ENTRIES_MAX (2 + 9) /* maximum descriptors per row */

/* A descriptor in a file. */
typedef struct leat__dedup_record {
    int8_t coarse[LEAT__COARSE_BYTES], fine[LEAT__FINE_BYTES];
    uint32_t owner, number, list, window;
} leat__dedup_record;

/* Descriptors of images. */
typedef struct leat__dedup_entries {
    uint32_t count, room;
    int8_t *coarse, *fine; /* LEAT__COARSE_BYTES, LEAT__FINE_BYTES each; windows have no fine descriptor */
    uint32_t *owner;       /* row of each */
    uint8_t *window;       /* 1: describes a window of the image */
    uint32_t *number;      /* ascending numbers; NULL: numbered from `first` on */
    uint32_t first;
} leat__dedup_entries;
#define LEAT__DEDUP_ENTRY_BYTES (LEAT__COARSE_BYTES + LEAT__FINE_BYTES + 5)
int leat__dedup_entries_grow(leat__dedup_entries *e, uint64_t room, leat_error *err) LEAT_MUST_CHECK;
void leat__dedup_entries_reset(leat__dedup_entries *e);
void leat__dedup_entries_put(leat__dedup_entries *e, uint32_t at, const leat__dedup_record *from);

typedef struct leat__dedup_rows {
    uint32_t count, packs;
    leat__dedup_row *row;
    uint32_t *first;           /* first row of each pack, and the end */
    uint32_t *first_entry;     /* first descriptor of each pack, and the end */
    uint32_t unreadable;       /* rows without a decoded image */
    uint32_t entries;          /* descriptors of all rows */
    leat__dedup_entries entry; /* in memory: all of them, or those of a block of rows */
    leat__spill *spill;        /* NULL: all descriptors are in memory */
    const char *folder;        /* folder of the spill */
    uint64_t memory;           /* planned for the whole search */
} leat__dedup_rows;

typedef struct leat__image_pairs {
    leat__image_pair *pair;
    uint64_t count, room;
} leat__image_pairs;
int leat__image_pairs_add(leat__image_pairs *p, const leat__image_pair *pair,
                          leat_error *err) LEAT_MUST_CHECK;
/* Sorts by rows. If a pair was found from both sides, keeps the more similar result. */
void leat__image_pairs_sort(leat__image_pairs *p);
/* Returns the orientation that undoes another. */
unsigned leat__orientation_inverse(unsigned orientation);
/* Makes a pair in which `a` is the lower row. */
leat__image_pair leat__image_pair_of(uint32_t row, uint32_t other, unsigned orientation, float similarity);

/* Return the memory of a search with all descriptors in memory, and the minimum memory with files. A row
 * takes its data and 16 bytes for clusters. */
#define LEAT__DEDUP_ROW_BYTES (sizeof(leat__dedup_row) + 16)
#define LEAT__DEDUP_BLOCKS_LEAST (16u << 10) /* per orientation */
uint64_t leat__dedup_rows_plan(uint64_t rows, uint64_t entries);
uint64_t leat__dedup_rows_least(uint64_t rows, uint64_t entries, uint32_t orientations);
/* Returns memory that is enough even if all rows have the maximum number of descriptors. */
uint64_t leat__dedup_rows_enough(uint64_t rows, uint32_t orientations, bool windows);
/* Fails with LEAT_EBUDGET; names an amount of memory that is enough. */
int leat__dedup_rows_refuse(uint64_t rows, uint64_t memory, uint64_t enough, leat_error *err) LEAT_MUST_CHECK;
/* Adds the number of descriptors of the columns at `path`, without windows. */
int leat__dedup_rows_entries(const char *path, uint64_t *entries, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EBUDGET when `memory` (0: no limit) is not enough even with one descriptor per row. */
int leat__dedup_rows_fit(uint64_t rows, uint32_t orientations, bool windows, uint64_t memory,
                         leat_error *err) LEAT_MUST_CHECK;

/* Reads the rows of the columns at `paths`. `windows`: also describes nine windows of each image.
 * When `memory` (0: no limit) is not enough, descriptors are stored in files in the folder `spill`. */
typedef struct leat__dedup_rows_opts {
    const char *const *paths;
    uint32_t count, orientations;
    bool windows;
    uint64_t memory;
    const char *spill;
    bool (*stop)(void *cookie); /* NULL, or returns true to stop with LEAT_ECANCELED */
    void *cookie;
} leat__dedup_rows_opts;
int leat__dedup_rows_read(leat__dedup_rows *r, const leat__dedup_rows_opts *opts,
                          leat_error *err) LEAT_MUST_CHECK;
/* Reads the descriptors of rows [first, end) into r->entry. */
int leat__dedup_rows_load(leat__dedup_rows *r, uint32_t first, uint32_t end, leat_error *err) LEAT_MUST_CHECK;
void leat__dedup_rows_reset(leat__dedup_rows *r);

/* Finds pairs of equal content, then near duplicates, sorted by rows. */
typedef struct leat__dedup_search {
    const leat_dedup_images_opts *opts;
    const char *const *columns; /* paths of the columns */
    leat__dedup_rows *rows;
    leat__image_pairs *pairs;
    uint64_t candidates; /* out: pairs compared by their thumbnails */
    leat__saved *saved;  /* state to resume from and to save to; NULL: none */
    uint32_t from;       /* out: the first row that this run searched */
    int (*tell)(void *cookie, uint64_t done, uint64_t total, uint64_t found);
    void *cookie;
} leat__dedup_search;
int leat__dedup_search_run(leat__dedup_search *s, leat_error *err) LEAT_MUST_CHECK;
/* Reports unchanged progress; returns true when the search must stop. `search` is the cookie. */
bool leat__dedup_search_stopped(void *search);

/* Sorts the packs of a search by fingerprint, so that the pairs do not depend on the order in which
 * packs are given. order[i]: the pack at place i. */
int leat__dedup_order_find(const char *const *columns, uint32_t count, uint32_t *order,
                           leat_error *err) LEAT_MUST_CHECK;
/* Renumbers rows, without their descriptors, and pairs to the order in which the packs were given. */
int leat__dedup_order_restore(leat__dedup_rows *rows, leat__image_pairs *pairs, const uint32_t *order,
                              leat_error *err) LEAT_MUST_CHECK;

/* Sets kept[row] to the row that is kept for it, itself when kept. Only certain pairs count. Supports
 * up to 2^31 rows. */
int leat__dedup_clusters(const leat__dedup_rows *rows, const leat__image_pairs *pairs, uint32_t keep,
                         uint32_t *kept, leat_error *err) LEAT_MUST_CHECK;

void leat__dedup_images_json(const leat_dedup_images_stats *stats, leat__buf *out);

#endif
