/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader: batches of a pack, decoded and augmented, in a known order, inside a byte budget.
 *
 *     leat_loader *loader = NULL;
 *     leat_batch *batch = NULL;
 *     leat_error err;
 *     leat_loader_opts opts;
 *     leat_loader_opts_init(&opts);
 *     opts.batch_size = 256;
 *     opts.ops = "RandomResizedCrop(224); RandomHorizontalFlip()";
 *     if (leat_loader_open(&loader, "train.leat", &opts, &err) != 0) die(err.message);
 *     for (uint64_t epoch = 0; epoch < 90; epoch++) {
 *         if (leat_loader_begin(loader, epoch, &err) != 0) die(err.message);
 *         while ((rc = leat_loader_next(loader, &batch, -1, &err)) == 0 && batch != NULL) {
 *             train(batch->fields[0].data, batch->fields[1].data, batch->samples);
 *             leat_batch_release(&batch);
 *         }
 *         if (rc != 0) die(err.message);
 *     }
 *     leat_loader_close(&loader);
 *
 * What comes out is a pure function of the pack, the options, the seed and the epoch: never of
 * threads, memory, cache or timing. A batch is borrowed: its contents stay valid until it
 * is released, by any thread, even after the loader was closed. Its bytes stay charged to the budget.
 *
 * With opts.device = "cuda" batches arrive on the GPU. They are copied by a thread and a stream of
 * the loader's own while the step before runs, and are complete when next() hands them out: any stream
 * may read them at once. A batch may be released while kernels that read it are still queued, on any
 * stream: its memory is not written before they have ended.
 */
#ifndef LEAT_LOADER_H
#define LEAT_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include <leat/error.h>
#include <leat/flow.h>
#include <leat/log.h>
#include <leat/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Orders of the samples: identifier, value, name, version, shuffled. Append rows, never renumber. The
 * version is part of a loader's state: it is raised when the order gives other positions. `shuffled` is 1
 * when neighbours in an epoch are not neighbours in the pack and each epoch has another order, else 0.
 *   sequential    as packed
 *   random        a keyed shuffle of everything
 *   quasi_random  pages shuffled, samples shuffled inside windows of pages; the random order itself when
 *                 one window holds the whole pack */
#define LEAT_ORDER_MAP(X)                                                                                    \
    X(SEQUENTIAL, 0, "sequential", 1, 0)                                                                     \
    X(RANDOM, 1, "random", 1, 1)                                                                             \
    X(QUASI, 2, "quasi_random", 2, 1)

typedef enum leat_order {
#define LEAT_ORDER_ENUM(id, value, name, version, shuffled) LEAT_ORDER_##id = value,
    LEAT_ORDER_MAP(LEAT_ORDER_ENUM)
#undef LEAT_ORDER_ENUM
} leat_order;

/* What to do with a smaller last global batch (batch_size x world samples). All ranks get
 * the same number of batches in every case. */
typedef enum leat_drop {
    LEAT_DROP_NEVER, /* keep it: every sample comes once. With fewer samples than ranks, the ranks
                        without one get a batch of 0 samples */
    LEAT_DROP_LAST,  /* drop it */
    LEAT_DROP_EMPTY  /* shuffled orders drop it if a rank would get an empty batch, over which a mean
                        is NaN; the others (evaluation) keep it */
} leat_drop;

typedef enum leat_cache {
    LEAT_CACHE_OS,      /* the OS page cache, with readahead hints */
    LEAT_CACHE_PROCESS, /* direct reads and pages kept inside the budget, shared by all loaders of
                           this process that read the same pack */
    LEAT_CACHE_DEVICE   /* with opts.device: tiles stay on the device once they were copied there, as far as
                           device_memory goes; the rest is read as with LEAT_CACHE_OS. The device decodes:
                           decode auto means gpu */
} leat_cache;

typedef enum leat_on_error {
    LEAT_ON_ERROR_FAIL,   /* next() returns the error at the place of the sample */
    LEAT_ON_ERROR_SKIP,   /* the sample is left out of its batch and counted */
    LEAT_ON_ERROR_REPLACE /* another sample replaces it, the same one on every run; a bad replacement is
                             counted, too. If a remote storage fails for both, next() returns the error */
} leat_on_error;

typedef enum leat_orientation {
    LEAT_ORIENTATION_APPLY, /* images are turned as their EXIF or XMP says, like Pillow's exif_transpose */
    LEAT_ORIENTATION_IGNORE /* pixels as stored, like torchvision's ImageFolder */
} leat_orientation;

/* Which side decodes tiled images when batches arrive on a device. Both give the same bytes. */
typedef enum leat_decode {
    LEAT_DECODE_AUTO, /* the CPUs; the device takes the share that they cannot decode in time */
    LEAT_DECODE_CPU,
    LEAT_DECODE_GPU /* the device; ops that it does not support are an error */
} leat_decode;

/* One image to make of a sample. Several entries with the same field are several views. */
typedef struct leat_loader_image {
    const char *name;  /* of the batch's field; NULL = the pack field's name */
    const char *field; /* image field of the pack; NULL = the first one */
    const char *ops;   /* pipeline text (include/leat/op.h) */
} leat_loader_image;

/* A custom augmentation, run on the workers once per sample, after the pipelines. rows[i] points
 * to field i of this sample in the batch; only this sample may be written. `random` depends on
 * seed, epoch and sample: draw only from it, and the same seed gives the same bytes. Several
 * threads call at once. Any result except 0 makes the sample a bad one. */
typedef int (*leat_sample_fn)(void *cookie, void *const *rows, uint32_t fields, uint64_t sample,
                              uint64_t epoch, uint64_t random);

/* How the labels of a batch that MixUp or CutMix changed are delivered. */
typedef enum leat_mix_labels {
    LEAT_MIX_LABELS_DEFAULT, /* soft */
    LEAT_MIX_LABELS_SOFT,    /* the label field is f32 [samples, classes] */
    LEAT_MIX_LABELS_PAIRS    /* the label stays; two more fields: NAME_partner (the other sample's label)
                                and NAME_lambda (f32: the weight of the sample's own) */
} leat_mix_labels;

/* What a batch makes of images. All but STACK take pipelines whose output size depends on the image (none
 * at all, Resize to one number, Pad, RandomRotation(expand)); pixels are those of the single images. Masks
 * that follow an image are collated as it is. Not with a device, sample_fn, on_error replace, MixUp and
 * CutMix. */
typedef enum leat_collate {
    LEAT_COLLATE_STACK, /* one array: the pipeline must give all images one size */
    LEAT_COLLATE_PAD,   /* one array as high and as wide as the highest and the widest image of the batch
                           (bad ones that were left out count), images in its top left corner. One more
                           field, NAME_size: i64 [samples, 2], height and width of each */
    LEAT_COLLATE_LIST,  /* as RAGGED in C; Python gets a list of arrays */
    LEAT_COLLATE_RAGGED /* adjacent, with offsets and ragged_shapes */
} leat_collate;

#define LEAT_PAD_MULTIPLE_MAX 65536

/* Global batches of images of similar shape, which pad little. An order: every sample comes once per epoch,
 * buckets are shuffled inside, and their batches among each other. What a bucket has beyond whole batches
 * comes with that of its neighbours. Shapes are those of the first image in the index, turned as its EXIF
 * says. */
typedef enum leat_bucket {
    LEAT_BUCKET_NONE,
    LEAT_BUCKET_ASPECT, /* by width / height */
    LEAT_BUCKET_SIZE    /* by width x height */
} leat_bucket;

#define LEAT_BUCKETS 8 /* default number */
#define LEAT_BUCKETS_MAX 65536

#define LEAT_SAMPLE_FN_FIELDS 64 /* most fields of a batch when there is such a function */

/* What a plugin, a shared object that is loaded only where it is asked for by name, exports under
 * the name "leat_op". Both live as long as the process. */
#define LEAT_OP_PLUGIN_ABI 1
typedef struct leat_op_plugin {
    uint32_t abi; /* LEAT_OP_PLUGIN_ABI */
    uint32_t reserved;
    const char *name, *help;
    leat_sample_fn sample;
    void *cookie;
} leat_op_plugin;

/* Several packs in one loader: concatenated, or mixed where any of these fields or of the mix options of
 * leat_loader_opts is set. Either all packs go by weight or none does. */
typedef struct leat_loader_source {
    const char *path;
    double weight;   /* share of the epoch, relative to the other weights; 0 = none of it, or no weights */
    double repeat;   /* without weights: times that its samples come per epoch, also 0.5; 0 = 1 */
    uint64_t choose; /* or how many of its samples come per epoch; 0 = as repeat says */
} leat_loader_source;

#define LEAT_CHOOSE_NONE UINT64_MAX  /* leat_loader_source.choose: none of its samples */
#define LEAT_LOADER_SOURCES_MAX 1024 /* packs in one loader */

/* Which packs the samples of a batch come from when packs are mixed. A batch here is a global one: that of
 * all ranks together. */
typedef enum leat_mix_batches {
    LEAT_MIX_SHUFFLED,   /* as the shuffle has it; only the epoch has the proportions */
    LEAT_MIX_STRATIFIED, /* each has the proportions: the first n batches hold of each pack the whole
                            number nearest to its share */
    LEAT_MIX_SINGLE      /* each comes from one pack; an epoch is whole batches */
} leat_mix_batches;

/* Values for samples of packs that lack a field. INT: i; FLOAT: f; ARRAY: every element, i or f
 * by its type; others: no value. */
typedef struct leat_loader_default {
    const char *field;
    int64_t i;
    double f;
} leat_loader_default;

typedef struct leat_loader_opts {
    uint32_t struct_size;
    uint32_t batch_size;             /* samples per batch of this rank; 0 = 256 */
    const char *ops;                 /* pipeline of the first image field; NULL =
                                        "RandomResizedCrop(224); RandomHorizontalFlip(0.5)" */
    const leat_loader_image *images; /* instead of `ops`: any number of images and views */
    uint32_t image_count;
    leat_order order; /* leat_loader_opts_init: LEAT_ORDER_RANDOM */
    uint64_t seed;
    uint32_t drop_last;  /* leat_drop; leat_loader_opts_init: LEAT_DROP_EMPTY */
    uint32_t threads;    /* CPU workers; 0 = usable CPUs */
    uint64_t memory;     /* budget in bytes; 0 = half of what the process may still take */
    leat_budget *budget; /* instead of `memory`: one budget for several loaders; kept alive */
    leat_cache cache;
    leat_on_error on_error;
    uint64_t max_bad;        /* more bad samples than this per epoch fail it; 0 = no limit; not with FAIL */
    const char *quarantine;  /* bad samples are appended to this file as JSON lines; or NULL */
    uint32_t rank, world;    /* this rank's share; world 0 = 1 */
    uint32_t window_pages;   /* quasi only: pages open at once over all streams; 0 = 4096 */
    uint32_t streams;        /* quasi only: how many windows a batch draws from at once, at most
                                window_pages / 8; 0 = 64. Both are part of the order */
    uint32_t prefetch;       /* batches made ahead; 0 = decided while running */
    uint32_t io_depth;       /* reads in flight; 0 = decided while running */
    const uint64_t *indices; /* only these samples, in this order of positions; copied */
    uint64_t index_count;
    const double *weights;     /* one per sample (of the subset): draw with replacement; copied. See
                                  weight_count, at the end */
    const char *balance;       /* INT field: every value equally often, with replacement */
    uint64_t draws;            /* with weights or balance: samples per epoch; 0 = as many as there are */
    const char *const *fields; /* which fields of the pack to deliver; NULL = all */
    uint32_t field_count;
    uint32_t digest; /* 1 = every sample is hashed: leat_batch.digest */
    leat_log log;
    leat_sample_fn sample_fn; /* or NULL */
    void *sample_cookie;
    /* With MixUp or CutMix in the pipeline; without, setting one of these is an error. */
    const char *label;          /* INT field whose labels are mixed; NULL = "label" */
    uint32_t classes;           /* of soft labels; 0 = as many as the field has class names */
    leat_mix_labels mix_labels; /* how mixed labels are delivered; 0 = soft */
    /* Where batches arrive: NULL or "cpu"; "cuda:N"; or "cuda": the GPU of this process's LOCAL_RANK
     * where a launcher set it, else the one that the opening thread uses, else the first. */
    const char *device;
    uint64_t device_memory;       /* bytes of that device for batches; 0 = a quarter of what is free there */
    leat_orientation orientation; /* of images; apply */
    /* Two image fields with different random geometry are an error: their crops would not fit
     * together. 1 = they may differ. Same geometry draws the same, whatever colour ops differ. */
    uint32_t independent;
    /* Fields that follow the geometry of an image, as text: "mask; boxes = Boxes(xywh); category =
     * Labels()". A field alone follows by its type and name. Mask (an image field: u8 [samples,
     * height, width]), Boxes, Labels (rows dropped with their box) and Keypoints are described by
     * leat_op_info_at (LEAT_OP_ROLE). Coordinates are those of the image as the pipeline gets it;
     * boxes and points are delivered as f32. NULL = none. */
    const char *follow;
    /* Remote packs: folder of this machine in which pages are kept from epoch to epoch and run to run,
     * shared by all processes; NULL = none. LEAT_EINVAL with a local pack. */
    const char *disk_cache;
    uint64_t disk_cache_bytes; /* size limit of the folder; 0 = half of the free space */
    leat_decode decode;
    /* Several packs: leat_loader_open's path is NULL then. Their fields are matched by name and must have
     * the same type; sample ids count through all packs (leat_pack_part says where each begins). */
    const leat_loader_source *sources;
    uint32_t source_count; /* up to LEAT_LOADER_SOURCES_MAX */
    leat_mix_batches mix_batches;
    uint64_t epoch_size;      /* samples per epoch, with weights; 0 = as many as all packs have */
    uint32_t mix_replacement; /* 1 = samples of a pack are drawn with replacement. 0 = all of a pack's have
                                 come before one comes again, from epoch to epoch */
    uint32_t default_count;
    const leat_loader_default *defaults; /* of fields that some packs do not have */
    /* Number of weights: the samples of the pack or of the subset, else LEAT_EINVAL. Not checked
     * for callers compiled without this field. */
    uint64_t weight_count;
    leat_collate collate;
    /* With LEAT_COLLATE_PAD; else setting one of these is an error. */
    uint32_t pad_multiple; /* height and width are multiples of this; 0 = 1 */
    double pad_value;      /* beside an image, as the batch has it (after Normalize); masks have the fill
                              of their role */
    uint32_t pad_mask;     /* 1 = one more field, NAME_mask: bool [samples, height, width], true where the
                              image is */
    leat_bucket bucket;    /* with the order RANDOM; not with weights, balance and mixes */
    uint32_t bucket_count; /* buckets of equal size; 0 = LEAT_BUCKETS */
    uint32_t bucket_edge_count;
    const double *bucket_edges; /* or where one bucket ends and the next begins: values that rise */
} leat_loader_opts;

/* Sets the defaults above; 0 elsewhere. */
LEAT_API void leat_loader_opts_init_sized(leat_loader_opts *opts, uint32_t struct_size);
#define leat_loader_opts_init(o) leat_loader_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_loader leat_loader;

/* Opens a pack (or opts->sources, with path NULL) for loading. LEAT_EINVAL names the option that is wrong;
   LEAT_EBUDGET says how
 * much more memory one batch needs; LEAT_EFORMAT, LEAT_EDATA, LEAT_EIO from the pack. */
LEAT_API int leat_loader_open(leat_loader **loader, const char *path, const leat_loader_opts *opts,
                              leat_error *err) LEAT_MUST_CHECK;
/* From any state; borrowed batches stay valid. Not while another thread is in next(). In a forked
 * child, a loader of its parent returns LEAT_EFORK; close and release only drop the pointer. */
LEAT_API void leat_loader_close(leat_loader **loader);

/* ---- one epoch -------------------------------------------------------------------------- */

/* One array of a batch: row-major, first dimension the samples, data aligned to 256 bytes. */
typedef struct leat_tensor {
    const char *name;
    void *data;
    uint32_t dtype; /* leat_dtype */
    uint32_t ndim;
    int64_t shape[LEAT_NDIM_MAX];
    int64_t strides[LEAT_NDIM_MAX]; /* in elements */
    /* BYTES, TEXT, JSON and RAGGED: `data` holds the u8 (RAGGED: dtype) elements of all samples
     * in sequence; offsets[i] … offsets[i+1] are those of sample i. NULL for other fields. The
     * same for images and masks with LEAT_COLLATE_LIST and LEAT_COLLATE_RAGGED. */
    const int64_t *offsets;
    const int64_t *ragged_shapes; /* RAGGED, and such images: samples x ragged_ndim; else NULL */
    uint32_t ragged_ndim;
    uint32_t type; /* leat_field_type it came from */
} leat_tensor;

typedef struct leat_batch {
    uint64_t epoch;
    uint64_t index;    /* of the batch in the epoch */
    uint64_t position; /* samples of this rank delivered before it in the epoch */
    uint32_t samples;  /* rows in it: fewer in the last batch, or when bad ones were skipped */
    uint32_t field_count;
    const leat_tensor *fields;   /* images first, in the order of the options */
    const uint64_t *sample_ids;  /* which sample of the pack each row is */
    const uint64_t *sample_hash; /* with opts.digest: XXH3 of each row's values; else NULL */
    uint32_t bad;                /* samples skipped or replaced, bad replacements included */
    uint32_t rows;               /* positions of the order that it covers: `samples` and the skipped ones */
    void *cookie;                /* the caller's */
    int32_t device;              /* CUDA device of the `data` of fields without offsets; -1 = the host.
                                  * Offsets, fields that have them, sample_ids and sample_hash are on the
                                  * host */
} leat_batch;

/* Starts (or restarts) an epoch at its first batch, stopping the current one. LEAT_EINVAL for epochs
 * of 2^63 and above. */
LEAT_API int leat_loader_begin(leat_loader *loader, uint64_t epoch, leat_error *err) LEAT_MUST_CHECK;

/* When a change of a loader takes effect. */
typedef enum leat_when {
    LEAT_WHEN_EPOCH, /* with the next begin() or restore() */
    LEAT_WHEN_BATCH  /* with the next batch; what was made ahead is made again. A batch size changes where
                        its batches would begin: the next one may be smaller. A change that waits for
                        begin() takes effect with it */
} leat_when;

/* What to change: progressive resizing, growing batches. */
typedef struct leat_loader_change {
    uint32_t struct_size;
    leat_when when;
    uint32_t batch_size; /* 0 = as it is */
    uint32_t image_count;
    const char *ops;                 /* pipeline of the first image field; NULL = as it is */
    const leat_loader_image *images; /* or all images; NULL = as they are */
} leat_loader_change;
#define LEAT_LOADER_CHANGE_INIT                                                                              \
    {                                                                                                        \
        .struct_size = sizeof(leat_loader_change)                                                            \
    }

/* Changes pipelines or batch size of an open loader: packs, cache, threads and what the controller learned
 * stay. A change that cannot be is refused here (as leat_loader_open would) and changes nothing; one that
 * waits is replaced by the next. The facts below are those of the change from now on. A state holds the
 * batch size of its epoch, not the pipelines: restore it with both as they were. LEAT_ENOTSUP with a device,
 * and for the batch size of stratified or single-source mixes and of buckets, whose order depends on
 * it. The thread that
 * calls next(). */
LEAT_API int leat_loader_set(leat_loader *loader, const leat_loader_change *change,
                             leat_error *err) LEAT_MUST_CHECK;

/* Stops the current epoch and frees its memory. The state does not change: continue with
 * leat_loader_restore, or begin another epoch. */
LEAT_API void leat_loader_stop(leat_loader *loader);

/* The next batch, NULL after the last one of the epoch. A new loader begins epoch 0; after
 * leat_loader_stop it is LEAT_ESTATE until an epoch is begun or a state restored. Waits up to
 * timeout_ms (-1 = no limit): LEAT_ETIMEDOUT, LEAT_EAGAIN after leat_loader_interrupt,
 * LEAT_EBUDGET (not final) when borrowed batches hold all memory of the host or of the device, or
 * the error that ends the epoch; LEAT_EBUDGET with err.sample >= 0, when decoding that sample
 * needs more than the budget, is one of those. One thread at a time. */
LEAT_API int leat_loader_next(leat_loader *loader, leat_batch **batch, int64_t timeout_ms,
                              leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_batch_release(leat_batch **batch); /* any thread; NULL is fine */
/* With a device: 1 while the thread that calls next() captures a CUDA graph, then 0 again. Not needed where
 * it takes no batch during the capture, or where the captured stream was made without
 * cudaStreamNonBlocking. The driver would end the capture with an error. The thread that calls next(). */
LEAT_API void leat_loader_capturing(leat_loader *loader, uint32_t on);
/* With a device: the CUDA stream (CUstream) that works on the batches from now on. Events on it tell the
 * doctor how long a step takes there. Without them, a loop that does not wait for its device seems to have
 * steps of no time. LEAT_STREAM_UNKNOWN: none again. The thread that calls next(). */
#define LEAT_STREAM_UNKNOWN UINTPTR_MAX
LEAT_API void leat_loader_stream(leat_loader *loader, uintptr_t stream);
/* The waiting (or else the next) leat_loader_next returns LEAT_EAGAIN. Any thread, and any signal
 * handler: it is async-signal-safe. */
LEAT_API void leat_loader_interrupt(leat_loader *loader);

/* ---- facts ------------------------------------------------------------------------------ */

LEAT_API uint64_t leat_loader_samples(const leat_loader *loader); /* of this rank per epoch */
LEAT_API uint64_t leat_loader_batches(const leat_loader *loader); /* per epoch, alike on all ranks */

/* Advice for the user, one line for each i = 0, 1 …; NULL after the last. The same lines were
 * logged as warnings by leat_loader_open: an order that reads slowly here, ranks with an empty batch. One may
 * follow in leat_loader_next: decode = gpu or cache = device, and the device decodes nothing. */
LEAT_API const char *leat_loader_advice(const leat_loader *loader, uint32_t i);

LEAT_API leat_pack *leat_loader_pack(leat_loader *loader);     /* view */
LEAT_API leat_budget *leat_loader_budget(leat_loader *loader); /* view */

/* Changes the byte budget, from any thread, also while an epoch runs. Cached buffers are freed at
 * once, those in flight after delivery; meanwhile nothing new is read. LEAT_EBUDGET, and no
 * change, when the loader or the running epoch needs more; LEAT_EINVAL for 0. */
LEAT_API int leat_loader_memory_set(leat_loader *loader, uint64_t bytes, leat_error *err) LEAT_MUST_CHECK;

/* The sample at a position of this rank in an epoch: the order as a pure function. It changes nothing
 * that a state holds. While an epoch runs, LEAT_ESTATE for any other. */
LEAT_API int leat_loader_sample_at(leat_loader *loader, uint64_t epoch, uint64_t position, uint64_t *sample,
                                   leat_error *err) LEAT_MUST_CHECK;
/* `count` of them from `position` on; faster than single calls when many packs are mixed. */
LEAT_API int leat_loader_samples_at(leat_loader *loader, uint64_t epoch, uint64_t position, uint64_t count,
                                    uint64_t *samples, leat_error *err) LEAT_MUST_CHECK;

/* What the next begin() would fill: shapes with the batch size in front, -1 where batches differ, data
 * NULL. */
LEAT_API uint32_t leat_loader_field_count(const leat_loader *loader);
LEAT_API const leat_tensor *leat_loader_field(const leat_loader *loader, uint32_t field);

/* The CUDA device that batches arrive on; -1 = the host. */
LEAT_API int32_t leat_loader_device(const leat_loader *loader);

#define LEAT_LOADER_STAGES 4

typedef struct leat_loader_stats {
    uint32_t struct_size;
    uint32_t threads, io_depth, prefetch; /* now */
    uint64_t epoch, batches, samples;     /* delivered in this epoch */
    uint64_t bad_samples;                 /* of this epoch, among what was delivered */
    uint64_t read_bytes, reads;           /* from the file, this epoch */
    uint64_t cache_hits, cache_misses, cache_bytes;
    uint64_t read_ns, decode_ns; /* all workers together */
    uint64_t wait_ns;            /* the caller waited in next() */
    uint64_t elapsed_ns;
    uint64_t budget_limit, budget_used, budget_peak; /* used: without what is kept for reuse */
    /* The caller's thread, step by step. The first step of each epoch is left out, because it pays for
     * the start, unless epochs have one or two steps. */
    uint64_t steps;
    double data_ms, data_ms_p50, data_ms_p95;    /* in next(), waiting for a batch */
    double batch_ms, batch_ms_p50, batch_ms_p95; /* between next() calls: the training */
    uint64_t blocked_ns;  /* of this epoch: time with work blocked only by the memory budget */
    uint64_t floor_bytes; /* least budget it can run with */
    leat_stage_stats stages[LEAT_LOADER_STAGES]; /* order, read, decode, collate */
    double prepare_ms; /* of a step, told by leat_loader_prepared; not in batch_ms */
    /* With opts.device; else 0. */
    uint32_t page_locked;                            /* 1 = batches of the host are in page-locked memory, and
                                                        so are cached pages that a device reads */
    uint32_t device_blocks;                          /* batches for which there is memory on the device */
    uint64_t device_limit, device_used, device_peak; /* bytes on the device */
    uint64_t copied_bytes, copy_ns;                  /* to the device, this epoch; time on the device */
    uint64_t copy_wait_ns;                           /* a batch was ready, and the device's memory was not */
    /* Remote packs, this epoch: requests of the whole process, those that were repeated, and bytes
     * received. 0 for local packs. */
    uint64_t remote_requests, remote_retries, remote_bytes;
    uint64_t disk_cache_hits;   /* pages and samples that came from opts.disk_cache */
    uint64_t device_images;     /* with opts.device, this epoch: decoded by the device */
    uint64_t device_decode_ns;  /* time on the device of the kernels that decode */
    double device_share;        /* of the images of the last batches: decoded by the device, 0 to 1 */
    uint64_t remote_hedged;     /* remote packs, this epoch: second requests for ranges that were late */
    uint64_t device_overlap_ns; /* of copy_ns and device_decode_ns: beside those of the batch before */
    uint64_t device_list_ns;    /* of the time in decode: workers listed tiles for the device */
    uint64_t device_cached_images, device_cached_bytes; /* with LEAT_CACHE_DEVICE: that stay there */
    uint64_t budget_kept; /* beside budget_used: memory kept for reuse, charged too, given up when needed */
    /* Memory that was allocated under the budget, and its peak. What is charged is more: the bytes of
     * samples are reserved before they are read, so that no task waits for memory halfway. */
    uint64_t budget_memory, budget_memory_peak;
    /* Batches of an epoch, and the wait at the start of each one after the first. Means of all epochs, also
     * in `read`; 0 = only one has begun. */
    double epoch_steps, start_ms;
    double device_step_ms; /* with leat_loader_stream: what the device takes for a step; 0 = not known */
} leat_loader_stats;
/* Statistics: `read` covers the current epoch, `read_all` everything since the loader was opened. Any
 * thread may call, also while another one is in next(). */
LEAT_API int leat_loader_read(leat_loader *loader, leat_loader_stats *stats,
                              uint32_t struct_size) LEAT_MUST_CHECK;
LEAT_API int leat_loader_read_all(leat_loader *loader, leat_loader_stats *stats,
                                  uint32_t struct_size) LEAT_MUST_CHECK;

/* Reports that the caller's thread spent `ns` on preparing the batch it was handed last (a transform in
 * Python, a copy to a device), so that meters and doctor count it apart from the training. May be called
 * several times for a batch; from the thread that calls leat_loader_next. */
LEAT_API void leat_loader_prepared(leat_loader *loader, uint64_t ns);

/* What the controller changed and why, over all epochs: as leat_tuner_read, io_depth in reads.
 * Any thread. */
LEAT_API uint32_t leat_loader_decisions(leat_loader *loader, uint64_t first, leat_decision *out,
                                        uint32_t max);

/* ---- state ------------------------------------------------------------------------------ */

#define LEAT_LOADER_STATE_MAX 32768 /* bytes that hold any state */

/* The position of this loader as one line of JSON (a few hundred bytes, and 20 for each of several packs):
 * after the batches that next() has handed out. Into `text` with a NUL; *size gets the length without it,
 * also when
 * it did not fit (LEAT_ELIMIT). `delivered` batches may be given as fewer samples than were
 * handed out: samples of this rank that count as done; UINT64_MAX = all. */
LEAT_API int leat_loader_state(leat_loader *loader, uint64_t delivered, char *text, size_t capacity,
                               size_t *size, leat_error *err) LEAT_MUST_CHECK;

/* Resumes from a state: next() continues with the batch that would have come. The state's pack, order,
 * seed, subset and global batch must be the loader's; rank and world may differ.
 * LEAT_EINVAL says what differs; LEAT_EDATA malformed. */
LEAT_API int leat_loader_restore(leat_loader *loader, const char *state, leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
