/* SPDX-License-Identifier: Apache-2.0
 *
 * A run: a few neighbouring samples of one batch, in flight together. The feed plans it (one thread at a
 * time), the I/O lane reads it asynchronously, and a CPU worker decodes it directly into its rows of the
 * batch.
 *
 *   plan:    positions -> samples, and where their bytes are
 *   read:    from the page cache of the process, or from the file, asynchronously; bytes in the OS
 *            page cache are left there
 *   decode:  copies those bytes, verifies, runs pipelines, copies plain fields, handles bad samples
 */
#ifndef LEAT_LOADER_LOADER_RUN_H
#define LEAT_LOADER_LOADER_RUN_H

#include <stdatomic.h>

#include <leat/loader.h>

#include "base/buf.h"
#include "base/thread.h"
#include "codec/codec.h"
#include "io/aio.h"
#include "io/disk_cache.h"
#include "io/readahead.h"
#include "loader/batch.h"
#include "loader/cache.h"
#include "loader/follow.h"
#include "loader/footprint.h"
#include "loader/kept.h"
#include "loader/scratch.h"
#include "loader/shares.h"
#include "op/device_plan.h"
#include "op/pipeline.h"

/* Images made from one field: one pipeline, or several views of the same pixels. */
typedef struct leat__image_group {
    uint32_t field, cell; /* field of the pack, and its index among the cells of a sample */
    uint32_t count;
    uint32_t *columns; /* columns of the shape */
    const leat__pipeline **pipelines;
    leat__scratch_use use;
} leat__image_group;

/* Shared by all runs; constant during an epoch. */
typedef struct leat__run_env {
    leat_pack *pack;
    const leat__shape *shape;
    leat__image_group *groups;
    uint32_t group_count;
    uint32_t *fields; /* fields of the pack to read from the index */
    uint32_t field_count;
    const void **tables; /* tables of the tile codec per pack, NULL where it has none */
    leat__aio *aio;
    leat__blocks *blocks;   /* for encoded samples */
    leat__readahead *ahead; /* cache=os with pages read in order, or NULL */
    leat__kept *kept;       /* cache=os with tiny samples, or NULL */
    leat__cache *cache;     /* cache=process, or NULL */
    leat__cache_user *cache_user;
    leat__gpu *reader;    /* the device that may read pages of the cache in place, or NULL */
    bool remote;          /* a pack is read over a network: exact ranges, no page cache */
    leat__disk *disk;     /* pages cached on disk, or NULL */
    uint64_t *disk_base;  /* offset of each shard in it */
    uint8_t *disk_wanted; /* bit per page: the subset needs it; made on demand */
    leat_on_error on_error;
    leat_orientation orientation;
    uint64_t seed, epoch;
    bool hashes;
    leat__follow follow;
    bool mixed;               /* batches are mixed after their rows are complete, and hashed afterwards */
    leat_sample_fn sample_fn; /* the caller's augmentation, or NULL */
    void *sample_cookie;
    /* the samples that replacements are drawn from */
    uint64_t universe;
    const uint64_t *indices;    /* NULL = all samples */
    const leat__shares *shares; /* mixed packs: replacements come from the sample's own pack;
                                 * or NULL */
    uint64_t
        scratch_most; /* maximum memory that one image may take beyond the worker's; changes between runs */
    uint64_t scratch_rest;     /* what a budget must have besides that memory */
    leat__gate decoding;       /* taken exclusively to decode again after running out of memory */
    leat__blocks *tile_blocks; /* blocks for tiles that a device decodes; NULL = the CPU decodes everything */
    _Atomic uint32_t device_share; /* of LEAT__SHARE_WHOLE runs, how many the device decodes */
    _Atomic uint32_t run_number;
    _Atomic uint64_t device_images; /* images given to the device */
    atomic_bool tiled;              /* there was a tiled image that could be given to the device */
    _Atomic uint64_t list_ns;       /* time that workers spent listing them */
    leat__device_store *store;      /* tiles that stay on the device, or NULL */
    bool store_alone; /* samples need only their images and the index, so resident ones are not read */
    _Atomic uint64_t arena_bytes; /* estimated bytes of the tiles of a batch */
    uint64_t arena_most;          /* limit of arena_bytes, from the budget */
    atomic_bool stop;             /* the rest of the epoch is not needed */
    _Atomic uint32_t warm;        /* consecutive runs that were entirely in the OS page cache */
    _Atomic uint64_t disk_hits;
    _Atomic uint64_t read_bytes, reads, cache_hits, cache_misses, read_ns, decode_ns;
} leat__run_env;

#define LEAT__SHARE_WHOLE 16u

typedef struct leat__run leat__run;
typedef struct leat__page_ahead leat__page_ahead; /* loader/page_ahead.h */

typedef struct leat__run_sample {
    leat__run *run;
    uint64_t id, salt;
    leat_pack_row row;
    leat_pack_page page;   /* known when whole pages are read */
    leat_pack_cell *cells; /* index entries of env->fields */
    bool listed;           /* the device has its bytes or reads them from the cache, so the host does not */
    uint32_t uses;         /* uses of its page, announced with this sample; 0 = already announced */
    bool counted;          /* its page was counted as missing when it was requested ahead */
    const uint8_t *data;   /* where the sample's bytes are, once read */
    bool claimed;          /* this sample's request fetches its page for the disk cache */
    leat__disk_waiter disk_waiter; /* another thread or process fetches the page */
    leat__disk_saver saver;        /* stores the page in `direct` */
    bool from_disk;                /* the bytes come from the disk cache */
    bool later;                    /* in the OS page cache: copied when it is decoded */
    int rc;                        /* why it could not be read */
    uint64_t scratch;              /* bytes that decoding it takes */
    leat__cached *cached;
    leat__block direct; /* separate block for a direct read without the cache */
    leat__aio_req req;
    leat__cache_waiter waiter;
    leat_error *error; /* details of rc, or NULL */
} leat__run_sample;

/* Memory for lists of tiles: per sample, enough for most images; and per run, for one large image. */
#define LEAT__LIST_BYTES UINT64_C(4096)
#define LEAT__LIST_LARGE (UINT64_C(16) << 10)

struct leat__run {
    leat__run_env *env;
    leat__frame *frame;     /* a reference */
    uint32_t first, count;  /* rows of the frame */
    bool last;              /* last run of its batch */
    uint64_t encoded_bytes; /* bytes of encoded samples, charged while reading */
    uint64_t share_bytes;   /* its share of the batch's bytes; stays charged with the batch */
    uint64_t scratch_bytes; /* memory for its largest image, in addition to the worker's own; charged until it
                               is decoded */
    leat__block buf;        /* cache=os: the prefetched samples */
    leat__block hand;       /* the sample being decoded, if it was in the OS page cache */
    uint64_t hand_bytes;
    bool on_device;          /* tiled images are listed for the device, not decoded */
    bool reads;              /* the device may read cached pages in place */
    uint64_t list_bytes;     /* charged for the lists until they are made */
    uint64_t tile_bytes;     /* charged for the finished lists; stays charged with the batch */
    leat__page_ahead *ahead; /* set when the run only requests a page ahead; else NULL */
    leat_task *task;
    _Atomic uint32_t pending;
    leat__run_sample sample[];
};

/* Scratch of one worker. */
typedef struct leat__run_worker {
    struct leat__run_worker *next;
    int32_t node; /* NUMA node its memory is on, -1 = any */
    leat__pipeline_worker *pipeline;
    leat__buf spare; /* bytes of replacements */
    leat__follow_scratch follow;
    leat__device_chunk chunk; /* images of the current run for the device */
    leat__buf chunk_ids;      /* their samples: leat__device_id */
    leat__buf chunk_keep;     /* their claims in the store: leat__device_entry * */
    leat__buf chunk_pages;    /* pinned cached pages that the device will read: leat__cached * */
} leat__run_worker;

int leat__run_worker_open(leat__run_worker **w, leat_error *err) LEAT_MUST_CHECK;
void leat__run_worker_close(leat__run_worker **w);
void leat__run_worker_shrink(leat__run_worker *w); /* frees its memory; its pipeline is NULL afterwards */

/* Looks up the samples `ids` in the index; `salts` (shares.h) belong to them. Damage in the index fails the
 * sample, not the run. */
int leat__run_open(leat__run **r, leat__run_env *env, const uint64_t *ids, const uint64_t *salts,
                   uint32_t count, leat_error *err) LEAT_MUST_CHECK;
void leat__run_close(leat__run *r);
void leat__run_shorten(leat__run *r, uint32_t count); /* keeps the first `count` samples; before it is read */

/* Fills the rows. Fails only for reasons unrelated to a sample (out of memory, the epoch is
 * over). */
int leat__run_decode(leat__run *r, leat__run_worker *w, leat_error *err) LEAT_MUST_CHECK;

/* Returns the key of a sample's random augmentations. A sample that comes again in an epoch has another salt,
 * and so another key. */
leat__draw_key leat__sample_key(const leat__run_env *env, uint64_t id, uint64_t salt);

/* Returns the time that workers of all loaders of this process spent in leat__run_decode. Any thread. */
uint64_t leat__run_decode_ns_all(void);

/* Decodes sample `id` again for `row` of the batch, on the CPU, after the device found damage in it. Bad
 * samples are handled as in decode. */
int leat__run_again(leat__run_env *env, leat__frame *f, leat__run_worker *w, leat__device_id id, uint32_t row,
                    leat_error *err) LEAT_MUST_CHECK;

#endif
