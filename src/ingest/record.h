/* SPDX-License-Identifier: Apache-2.0
 *
 * A run: a chunk of records in flight between a source and the pack, and the task of the packing flow.
 * Its texts and bytes are in the run's buffers, addressed by offset because buffers move when they grow.
 * Runs are reused, so a steady flow allocates nothing. A run belongs to one thread at a time; the pool
 * of unused ones is shared.
 */
#ifndef LEAT_INGEST_RECORD_H
#define LEAT_INGEST_RECORD_H

#include <leat/pack.h>

#include "base/buf.h"
#include "base/thread.h"
#include "io/dir.h"

#define LEAT__RECORDS_MOST 16            /* maximum records per run */
#define LEAT__RECORDS_BYTES (512u << 10) /* a run is full when its input reaches this size */
#define LEAT__RECORDS_NOWHERE SIZE_MAX

/* The value of one field. */
typedef struct leat__item {
    bool absent;
    bool animated; /* an image with several frames, set by the encoder */
    bool coded;    /* the bytes are in run->out, from the encoder; else in run->in */
    size_t at, size;
    size_t entries_at, entries_size; /* entry points of an image, in run->out */
    size_t found;                    /* an inspector's findings, in run->found */
    int64_t i;
    double f;
    uint64_t shape[LEAT_NDIM_MAX];
    leat_pack_image image;
} leat__item;

typedef struct leat__record {
    size_t key, key_size; /* in run->text */
    size_t path;          /* in run->text: a file still to be read, or LEAT__RECORDS_NOWHERE */
    uint64_t sample;      /* number of a sample still to be read from a pack */
    uint32_t origin;      /* index of the pack that the sample is in */
    uint32_t path_field;  /* the field that gets the file's bytes */
    uint64_t size_hint;   /* bytes still to be read */
    uint64_t bytes_in;
    leat__stamp stamp;    /* stamp of the file at `path`, taken just before reading */
    uint64_t place;       /* position in its source: a line, or an offset in an archive */
    leat__item *items;    /* one per field */
    bool loaded;          /* its bytes are in run->in */
    bool failed;          /* cannot be packed */
    bool excluded;        /* does not match the condition: skipped */
    uint32_t frame_count; /* number of samples that the encoder made of it; 0 = it is one sample */
    uint32_t frame_field; /* the field whose image has these frames */
    size_t frames_at;     /* their items, in run->frames */
    leat_error *error;    /* reason of the failure; NULL when out of memory */
} leat__record;

typedef struct leat__records {
    uint32_t fields, count;
    leat__record record[LEAT__RECORDS_MOST];
    leat__item *items; /* items of all records */
    leat__buf text, in, out;
    leat__buf frames; /* leat__item of each frame */
    leat__buf found;  /* findings of inspectors, see inspect.h */
    uint64_t pending; /* bytes still to be read */
    uint64_t decode;  /* maximum memory that processing one of its images takes, besides the results */
    uint64_t result;  /* a bound on the bytes of its encoded images */
    bool large;       /* an image is too large for the flow: see pack_memory.h */
    struct leat__records *next;
} leat__records;

typedef struct leat__records_pool {
    leat__mutex lock;
    leat__records *first;
    uint32_t fields, kept, keep; /* number of fields; runs kept; maximum kept */
} leat__records_pool;

void leat__records_pool_init(leat__records_pool *spare, uint32_t fields, uint32_t keep);
void leat__records_pool_reset(leat__records_pool *spare);
leat__records *leat__records_pool_take(leat__records_pool *spare); /* empty; NULL when out of memory */
void leat__records_pool_give(leat__records_pool *spare, leat__records *run);

/* Adds a record with every value absent; returns NULL when the run is full. */
leat__record *leat__records_add(leat__records *run);
bool leat__records_full(const leat__records *run);
void leat__records_drop_last(leat__records *run);

/* Stores text with a NUL; returns its offset, or LEAT__RECORDS_NOWHERE when out of memory. */
size_t leat__records_text(leat__records *run, const char *text, size_t len);
int leat__records_key(leat__records *run, leat__record *r, const char *key, size_t len,
                      leat_error *err) LEAT_MUST_CHECK;
/* Reserves `len` payload bytes followed by readable padding, and copies `data` if given. Returns NULL
 * when out of memory. The pointer is valid until the next call. */
uint8_t *leat__records_bytes(leat__records *run, leat__item *item, const void *data, size_t len);

static inline const char *leat__records_str(const leat__records *run, size_t at)
{
    return run->text.data + at;
}
static inline const uint8_t *leat__records_data(const leat__records *run, const leat__item *item)
{
    const leat__buf *b = item->coded ? &run->out : &run->in;
    return (const uint8_t *)b->data + item->at;
}

/* Marks the record as failed with a copy of *err. The first reason is kept. */
void leat__records_fail(leat__record *r, const leat_error *err);

uint64_t leat__records_held(const leat__records *run); /* bytes of memory that the run keeps */
/* Returns by how much leat__records_held grows when `bytes` are added to a buffer of the run. Buffers double
 * when they grow. */
uint64_t leat__records_growth(const leat__buf *b, uint64_t bytes);
/* Returns the maximum memory that a run with these records requests while it is processed, including buffers
 * of its last use. `result`: bytes that encoding adds. */
uint64_t leat__records_most(const leat__records *run, uint64_t result);
/* Returns the maximum memory that a run of names keeps, including buffers of its last use. */
uint64_t leat__records_first(uint32_t fields);

#endif
