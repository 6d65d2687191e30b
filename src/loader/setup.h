/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a loader, and how they are built from options. Private to the module.
 */
#ifndef LEAT_LOADER_SETUP_H
#define LEAT_LOADER_SETUP_H

#include "base/thread.h"
#include "codec/tile/tile.h"
#include "engine/sched.h"
#include "io/http.h"
#include "loader/advice.h"
#include "loader/batch.h"
#include "loader/cache.h"
#include "loader/order.h"
#include "loader/loader_run.h"
#include "loader/mixing.h"
#include "loader/state.h"
#include "loader/split.h"
#include "loader/step_spans.h"
#include "loader/steps.h"
#include "loader/to_device.h"

/* State of the flow's source: one thread at a time, passed on by the engine. */
typedef struct leat__feed {
    uint64_t at, end; /* rows of this rank in the epoch: the next one to plan, and the end */
    uint64_t begin;   /* first row to deliver; rows before it are made if they are in the same mixed batch */
    leat__frame *frame;   /* the batch being planned; a reference */
    uint32_t filled;      /* rows of it that are already planned */
    uint64_t *ids;        /* samples of the batch being planned */
    uint64_t *salts;      /* which draw of the epoch each sample is: shares.h */
    uint64_t *ragged;     /* per column: payload bytes of that batch */
    leat__size *sizes;    /* sizes of its images, if they differ: per image column, then per row; or NULL */
    leat__recipe *recipe; /* scratch to compute the sizes; or NULL */
    leat__run *next;      /* the planned run, not yet returned to the flow */
    uint64_t next_bytes;
    leat_error error; /* why there is no next run */
    int rc;
} leat__feed;

typedef struct leat__asked leat__asked; /* loader/change.c */

struct leat_loader {
    leat_loader_opts opts; /* with defaults filled in; pointers are not kept */
    leat_pack *pack;
    leat_pack_info info;
    char *quarantine;
    /* the order */
    leat__order *order;
    uint32_t *page_samples;
    uint64_t *indices;
    uint64_t universe;                  /* number of samples to choose from */
    uint64_t subset;                    /* hash of the subset; 0 = all samples */
    char subset_text[LEAT__STATE_TEXT]; /* what it is, for messages; "" = all samples */
    uint64_t *digests;                  /* digest of each pack */
    uint64_t mix;                       /* hash of how packs are mixed or of buckets, 0 = there is neither */
    char mix_text[LEAT__STATE_TEXT];    /* what it is, for messages; "" = neither */
    uint64_t count;                     /* positions per epoch, all ranks */
    uint64_t rows;                      /* samples of this rank per epoch */
    uint64_t batches;
    uint64_t used; /* positions covered by those batches: all, or all but the last ones */
    /* rows, batches and used of the current epoch: leat__loader_extent */
    uint64_t run_rows, run_batches, run_used;
    char advice[LEAT__ADVICE_MAX][LEAT__ADVICE_TEXT];
    uint32_t advice_count;
    /* the images */
    leat__pipeline **pipelines;
    uint32_t pipeline_count;
    leat__mixing mixing;
    leat__tile_tables **tables; /* the distinct tables of the packs */
    uint32_t table_count;
    /* memory and threads */
    leat_budget *budget;
    leat_pool *pool;
    leat_tuner *tuner; /* what the controller learned in earlier epochs */
    leat__frames *frames;
    leat__split split;       /* for decode=auto */
    uint64_t idle_batches;   /* decode=gpu: batches delivered before the device decoded anything */
    bool device_works;       /* the device has decoded something, or the user was told that it does not */
    leat__to_device *device; /* copies batches to a device; NULL = they stay on the host */
    leat__to_device_stats device_before; /* values at the start of this epoch, with list_ns */
    uint64_t list_ns_before;
    leat__cache_user cache_user;
    leat__run_env env;
    uint8_t *page_seen;           /* bit per page: announced this epoch */
    leat__page_ahead *page_ahead; /* requests pages of remote packs, or NULL */
    uint32_t run_samples;         /* maximum samples of a run that CPUs decode */
    uint32_t run_listed;          /* maximum samples of a run when the device decodes the whole batch */
    uint32_t run_usual;           /* usual samples of a run: converts the flow's depth to reads */
    uint64_t max_frame_bytes, max_run_bytes, floor; /* see loader/bounds.h */
    leat__budget_keeper keeper;
    leat__asked *asked;       /* options that a change starts from */
    struct leat_loader *next; /* a pending change: the new parts; or NULL */
    uint64_t kept_bytes;      /* charged for index and tiny samples that stay in memory */
    leat__mutex lock;         /* guards idle, and flow and counters against leat_loader_read */
    leat__run_worker *idle;
    leat__steps steps;
    leat__bell bell; /* rung by the flow and by leat_loader_interrupt */
    atomic_bool interrupted;
    uint32_t fork_generation;
    leat_loader_stats past; /* sums over earlier epochs */
    /* the epoch */
    leat_flow *flow;
    leat__feed feed;
    leat__http_stats traffic;   /* totals of the process when the epoch began */
    uint64_t epoch, started_at; /* started_at: row the epoch was begun at */
    uint64_t first_batch;       /* batch the epoch was begun at */
    uint64_t order_epoch;       /* the epoch `order` is set up for */
    uint64_t delivered_rows, delivered_batches, bad, wait_ns, begin_ns;
    bool begun, ended;
    bool capturing;          /* the thread that takes batches captures a CUDA graph */
    leat__step_spans *spans; /* of the consumer's stream; NULL = the stream is not known */
    uintptr_t stream;
    bool spans_failed; /* events could not be created */
    bool used_before;  /* an epoch was begun or a state restored */
    int failed;
    leat_error failure;
};

#define LEAT__COUNT_NOT_TOLD UINT64_MAX /* weight_count of a caller compiled without that field */

/* Like leat_loader_open, on a given pool (NULL: a private one, or the shared one). On a pool without threads
 * reads wait for leat__aio_turn, so that a whole epoch is a function of the pool's seed. */
int leat__loader_open_on(leat_loader **l, const char *path, const leat_loader_opts *opts, leat_pool *pool,
                         leat_error *err) LEAT_MUST_CHECK;

/* Fills everything except the epoch. leat_loader_close also closes a half-built loader. */
int leat__loader_setup(leat_loader *l, const char *path, const leat_loader_opts *opts,
                       leat_error *err) LEAT_MUST_CHECK;
void leat__loader_teardown(leat_loader *l);
/* Opens the device and its decoder. CUDA is not touched unless a device was requested. */
int leat__loader_set_up_device(leat_loader *l, leat_error *err) LEAT_MUST_CHECK;
int leat__loader_map_cache(leat_loader *l, leat_error *err) LEAT_MUST_CHECK; /* after both caches are known */

/* Build the parts that a change replaces. leat__loader_shape builds images and fields and fills `shape`.
 * leat__loader_frames builds frames, feed and bounds, and takes over `shape`; budget and pool must be set.
 * leat__loader_batches computes the batches of an epoch. */
int leat__loader_shape(leat_loader *l, const leat_loader_opts *given, leat__shape *shape,
                       leat_error *err) LEAT_MUST_CHECK;
int leat__loader_frames(leat_loader *l, bool repeats, leat__shape *shape, leat_error *err) LEAT_MUST_CHECK;
void leat__loader_batches(leat_loader *l);
void leat__loader_drop_frames(leat_loader *l);
void leat__loader_drop_images(leat_loader *l);

/* Sets the extent of an epoch: as in the options, or without its smaller last global batch. */
void leat__loader_extent(leat_loader *l, bool left_out);

/* Checks that a loader can be used. LEAT_EINVAL: NULL. LEAT_EFORK: in a forked child, where locks may be held
 * and threads do not exist. */
int leat__loader_check(const leat_loader *l, leat_error *err) LEAT_MUST_CHECK;

/* Adds the epoch's counters to the sums over earlier epochs. The lock is held. */
void leat__loader_remember_locked(leat_loader *l);

/* After the budget was lowered: drops cached pages and blocks. Any thread. */
void leat__loader_obey_budget(leat_loader *l);

#endif
