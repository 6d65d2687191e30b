/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats read outside this library: the Python package registers an opener for those that need a
 * library (Parquet, Arrow) or are simple in Python (FFCV, MDS, LitData, LMDB, COCO, VOC). Their
 * rows then pass through the same flow as every other source.
 */
#ifndef LEAT_INGEST_SOURCE_READER_H
#define LEAT_INGEST_SOURCE_READER_H

#include "ingest/source.h"

typedef struct leat__row {
    const char *key;
    size_t key_size;
    const char *path;              /* NULL, or the file of the first image field, which is read later */
    const leat_pack_value *values; /* one per field; their data is copied */
    const char *wrong;             /* NULL, or the reason why this sample cannot be packed */
} leat__row;

typedef struct leat__reader_classes {
    const char *const *names;
    uint64_t count;
} leat__reader_classes;

typedef struct leat__reader {
    char kind[16];
    const leat_field *fields; /* owned by the reader until close, like all below */
    uint32_t field_count;
    const leat__reader_classes *classes; /* class names of the fields, or NULL; only int fields have some */
    uint64_t total;                      /* 0 = unknown */
    uint64_t ignored;                    /* files of the folder that are not part of the data set */
    char ignored_first[64];              /* the first of them, or "" */
    void *cookie;
    /* Returns the next row, which is valid until the next call. One thread at a time. An error ends
     * the run. */
    int (*next)(void *cookie, leat__row *row, bool *end, leat_error *err);
    void (*close)(void *cookie);
} leat__reader;

/* Opens the paths with the columns of the list `members`, NULL = all. Returns LEAT_EAGAIN when they are not
 * one of its formats. */
typedef int (*leat__reader_opener)(leat__reader *r, const char *const *paths, uint32_t count,
                                   const char *members, leat_error *err);
void leat__reader_register(leat__reader_opener open); /* for the whole process; NULL unregisters */

/* Opens the paths with the registered opener. LEAT_EAGAIN: not one of its formats, or no opener is
 * registered. */
int leat__source_reader(leat__source **s, const leat_ingest_opts *opts, leat_error *err) LEAT_MUST_CHECK;
bool leat__reader_registered(void);

#endif
