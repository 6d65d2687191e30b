/* SPDX-License-Identifier: Apache-2.0
 *
 * A run: a few records on their way from a source to the pack, the task of the packing flow.
 * Their texts and bytes lie in buffers of the run, addressed by offset because buffers move
 * when they grow. Runs are reused, so a steady flow allocates nothing. A run belongs to one
 * thread at a time; the shelf of unused ones is shared.
 */
#ifndef LEAT_INGEST_RECORD_H
#define LEAT_INGEST_RECORD_H

#include <leat/pack.h>

#include "base/buf.h"
#include "base/thread.h"
#include "io/dir.h"

#define LEAT__RUN_RECORDS 16         /* at most */
#define LEAT__RUN_BYTES (512u << 10) /* a run is full when its inputs reach this */
#define LEAT__RUN_NOWHERE SIZE_MAX

/* The value of one field. */
typedef struct leat__item {
    bool absent;
    bool animated; /* an image with further frames, set by the encoder */
    bool coded; /* the bytes are in run->out, made by the encoder; else in run->in */
    size_t at, size;
    size_t entries_at, entries_size; /* entry points of an image, in run->out */
    int64_t i;
    double f;
    uint64_t shape[LEAT_NDIM_MAX];
    leat_pack_image image;
} leat__item;

typedef struct leat__record {
    size_t key, key_size; /* in run->text */
    size_t path;          /* in run->text: a file still to be read, or LEAT__RUN_NOWHERE */
    uint64_t sample;      /* in a pack still to be read */
    uint32_t origin;      /* which of several packs */
    uint32_t path_field;  /* where the file's bytes go */
    uint64_t size_hint;   /* bytes that are still to be read */
    uint64_t bytes_in;
    leat__stamp stamp;    /* of the file at `path`, taken just before it was read */
    uint64_t place;       /* where it stands in its source: a line, a byte of an archive */
    leat__item *items;    /* one per field */
    bool loaded;          /* its bytes are in run->in */
    bool failed;          /* cannot be packed */
    bool excluded;        /* does not meet the condition: passed over */
    leat_error *error;    /* why; NULL when memory was short, too */
} leat__record;

typedef struct leat__run {
    uint32_t fields, count;
    leat__record record[LEAT__RUN_RECORDS];
    leat__item *items; /* of all records */
    leat__buf text, in, out;
    uint64_t pending;  /* bytes still to be read */
    uint64_t decode;   /* memory that decoding and encoding its images will take */
    bool large;        /* an image is too large for the flow: see allowance.h */
    struct leat__run *next;
} leat__run;

typedef struct leat__shelf {
    leat__mutex lock;
    leat__run *first;
    uint32_t fields, kept, keep; /* of how many fields; how many are kept, at most */
} leat__shelf;

void leat__shelf_init(leat__shelf *shelf, uint32_t fields, uint32_t keep);
void leat__shelf_reset(leat__shelf *shelf);
leat__run *leat__shelf_take(leat__shelf *shelf); /* empty; NULL when out of memory */
void leat__shelf_give(leat__shelf *shelf, leat__run *run);

/* A fresh record with every value absent; NULL when the run is full. */
leat__record *leat__run_add(leat__run *run);
bool leat__run_full(const leat__run *run);
void leat__run_drop_last(leat__run *run);

/* Text with a NUL behind it; its offset, or LEAT__RUN_NOWHERE when out of memory. */
size_t leat__run_text(leat__run *run, const char *text, size_t len);
int leat__run_key(leat__run *run, leat__record *r, const char *key, size_t len,
                  leat_error *err) LEAT_MUST_CHECK;
/* Room for `len` payload bytes with readable bytes behind; writes them when `data` is given.
 * NULL when out of memory. The pointer is good until the next call. */
uint8_t *leat__run_bytes(leat__run *run, leat__item *item, const void *data, size_t len);

static inline const char *leat__run_str(const leat__run *run, size_t at)
{
    return run->text.data + at;
}
static inline const uint8_t *leat__run_data(const leat__run *run, const leat__item *item)
{
    const leat__buf *b = item->coded ? &run->out : &run->in;
    return (const uint8_t *)b->data + item->at;
}

/* The record cannot be packed, and why: copies *err. The first reason stays. */
void leat__run_fail(leat__record *r, const leat_error *err);

uint64_t leat__run_held(const leat__run *run); /* bytes of memory it keeps */

#endif
