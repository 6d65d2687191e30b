/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader: delivers batches of a pack, decoded and augmented, in a reproducible order, within a byte
 * budget.
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
 * The output is a pure function of the pack, the options, the seed and the epoch. It never depends on
 * threads, memory, cache or timing. A batch is borrowed: its contents stay valid until some thread releases
 * it, even after the loader was closed. Until then its bytes are charged to the budget.
 *
 * With opts.device = "cuda" batches arrive on the GPU. The loader's own thread and stream copy a batch while
 * the previous step runs. It is complete when next() returns it: any stream may read it at once. A batch may
 * be released while kernels that read it are still queued on any stream: its memory is reused only after they
 * have finished.
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

/* Orders of the samples: identifier, value, name, version, shuffled. Append rows, never renumber. The version
 * is part of a loader's state. It is raised when a change to the code gives a different order. `shuffled` is
 * 1 when each epoch has a different order, in which neighbours in the pack are not neighbours; else 0.
 *   sequential    as packed
 *   random        a keyed shuffle of everything
 *   quasi_random  pages shuffled, samples shuffled inside windows of pages; the same as random when
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
    LEAT_DROP_NEVER, /* keep it: every sample is delivered once. If it has fewer samples than ranks, some
                        ranks get a batch of 0 samples */
    LEAT_DROP_LAST,  /* drop it */
    LEAT_DROP_EMPTY  /* shuffled orders drop it if a rank would get an empty batch, whose mean loss would be
                        NaN; other orders (evaluation) keep it */
} leat_drop;

typedef enum leat_cache {
    LEAT_CACHE_OS,      /* the OS page cache, with readahead hints */
    LEAT_CACHE_PROCESS, /* direct reads; pages are cached within the budget and shared by all loaders of this
                           process that read the same pack */
    LEAT_CACHE_DEVICE   /* with opts.device: tiles copied to the device stay there, up to device_memory; the
                           rest is read as with LEAT_CACHE_OS. The device decodes: LEAT_DECODE_AUTO then means
                           LEAT_DECODE_GPU */
} leat_cache;

typedef enum leat_on_error {
    LEAT_ON_ERROR_FAIL,   /* next() returns the error when it reaches the sample */
    LEAT_ON_ERROR_SKIP,   /* the sample is left out of its batch and counted */
    LEAT_ON_ERROR_REPLACE /* another sample replaces it, the same one on every run; a bad replacement is
                             counted too. If remote storage fails for both, next() returns the error */
} leat_on_error;

typedef enum leat_orientation {
    LEAT_ORIENTATION_APPLY, /* rotates and flips images as their EXIF or XMP says, like Pillow's
                               exif_transpose */
    LEAT_ORIENTATION_IGNORE /* pixels as stored, like torchvision's ImageFolder (except of TIFF: Pillow turns
                               it) */
} leat_orientation;

/* Which side decodes tiled images when batches arrive on a device. The bytes are the same. */
typedef enum leat_decode {
    LEAT_DECODE_AUTO, /* the CPUs; the device decodes the share that they are too slow for */
    LEAT_DECODE_CPU,
    LEAT_DECODE_GPU /* the device; an op that it does not support is an error */
} leat_decode;

/* One image to make from a sample. Several entries with the same field make several views of it. */
typedef struct leat_loader_image {
    const char *name;  /* name of the field in the batch; NULL = the pack field's name */
    const char *field; /* image field of the pack; NULL = the first one */
    const char *ops;   /* pipeline text (include/leat/op.h) */
} leat_loader_image;

/* A custom augmentation. The workers call it once per sample, after the pipelines, several threads at once.
 * rows[i] points to field i of this sample in the batch; write only to this sample. `random` depends on seed,
 * epoch and sample: if all random choices come from it, the same seed gives the same bytes. A non-zero return
 * value makes the sample a bad one. */
typedef int (*leat_sample_fn)(void *cookie, void *const *rows, uint32_t fields, uint64_t sample,
                              uint64_t epoch, uint64_t random);

/* How the labels of a batch that MixUp or CutMix changed are delivered. */
typedef enum leat_mix_labels {
    LEAT_MIX_LABELS_DEFAULT, /* soft */
    LEAT_MIX_LABELS_SOFT,    /* the label field is f32 [samples, classes] */
    LEAT_MIX_LABELS_PAIRS    /* the label stays; two more fields: NAME_partner (the other sample's label) and
                                NAME_lambda (f32: the weight of the sample's own label) */
} leat_mix_labels;

/* How images are combined into a batch. STACK needs a pipeline with one output size. The others also accept
 * pipelines whose output size depends on the image (none at all, Resize to one number, Pad,
 * RandomRotation(expand)); they do not change the pixels. Masks that follow an image are collated like the
 * image. The others do not work with a device, sample_fn, on_error replace, MixUp or CutMix. */
typedef enum leat_collate {
    LEAT_COLLATE_STACK, /* one array: the pipeline must give all images one size */
    LEAT_COLLATE_PAD,   /* one array with the largest height and the largest width in the batch (skipped bad
                           images count too); images are in its top left corner. Adds a field NAME_size: i64
                           [samples, 2], height and width of each image */
    LEAT_COLLATE_LIST,  /* the same as RAGGED in C; Python gets a list of arrays */
    LEAT_COLLATE_RAGGED /* one image after the other, with offsets and ragged_shapes */
} leat_collate;

#define LEAT_PAD_MULTIPLE_MAX 65536

/* Groups images of similar shape into the same global batch, so that batches need little padding. Every
 * sample still comes once per epoch. Samples are shuffled within their bucket, and the batches of all buckets
 * are shuffled. Samples left over after the full batches of a bucket share batches with those of neighbouring
 * buckets. The shape is that of the sample's first image in the index, after EXIF orientation. */
typedef enum leat_bucket {
    LEAT_BUCKET_NONE,
    LEAT_BUCKET_ASPECT, /* by width / height */
    LEAT_BUCKET_SIZE    /* by width x height */
} leat_bucket;

#define LEAT_BUCKETS 8 /* default number of buckets */
#define LEAT_BUCKETS_MAX 65536

#define LEAT_SAMPLE_FN_FIELDS 64 /* maximum fields of a batch with a leat_sample_fn */

/* The object that a plugin exports under the name "leat_op". A plugin is a shared object, loaded only when
 * the user names it. Plugin and object live as long as the process. */
#define LEAT_OP_PLUGIN_ABI 1
typedef struct leat_op_plugin {
    uint32_t abi; /* LEAT_OP_PLUGIN_ABI */
    uint32_t reserved;
    const char *name, *help;
    leat_sample_fn sample;
    void *cookie;
} leat_op_plugin;

/* One of several packs in a loader. Packs are concatenated. They are mixed if any field below, or a mix
 * option of leat_loader_opts, is set. Either all packs have a weight or none has. */
typedef struct leat_loader_source {
    const char *path;
    double weight; /* share of the epoch, relative to the other weights; 0 = no samples of this pack, or (all
                      0) no weights */
    double repeat; /* without weights: how often each of its samples comes per epoch, 0.5 = half of them; 0 =
                      1 */
    uint64_t choose; /* instead of `repeat`: how many of its samples come per epoch; 0 = use `repeat` */
} leat_loader_source;

#define LEAT_CHOOSE_NONE UINT64_MAX  /* leat_loader_source.choose: none of its samples */
#define LEAT_LOADER_SOURCES_MAX 1024 /* packs in one loader */

/* How mixed packs are distributed over batches. A batch here is a global one: the samples of all ranks. */
typedef enum leat_mix_batches {
    LEAT_MIX_SHUFFLED,   /* by chance; only the whole epoch has exact proportions */
    LEAT_MIX_STRATIFIED, /* every batch has the proportions: for each n, the first n batches hold the share of
                            each pack, rounded to a whole sample */
    LEAT_MIX_SINGLE      /* every batch comes from one pack; an epoch has only full batches */
} leat_mix_batches;

/* The value of a field for samples of packs that lack it. INT: i; FLOAT: f; ARRAY: every element is i or f,
 * by its type; other types: no value. */
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
    uint64_t memory;     /* budget in bytes; 0 = half of the memory still available to the process */
    leat_budget *budget; /* instead of `memory`: a budget shared by several loaders; stays open with them */
    leat_cache cache;
    leat_on_error on_error;
    uint64_t max_bad; /* an epoch fails with more bad samples than this; 0 = no limit; not with FAIL */
    const char
        *quarantine; /* file to which bad samples are appended as JSON lines; NULL = none; not with FAIL */
    uint32_t rank, world;  /* this rank, and the number of ranks; world 0 = 1 */
    uint32_t window_pages; /* quasi only: pages in all windows together; 0 = as many as hold 2 GiB, but 64 to
                              4096 */
    uint32_t streams;  /* quasi only: number of windows that a batch draws from, at most window_pages / 8; 0
                          = 64. window_pages and streams are part of the order */
    uint32_t prefetch; /* batches prepared ahead; 0 = the controller decides */
    uint32_t io_depth; /* reads in flight; 0 = the controller decides */
    const uint64_t *indices; /* only these samples, positions 0, 1 … of the subset; copied */
    uint64_t index_count;
    const double *weights; /* one per sample (of the subset): samples are drawn with replacement; copied. Set
                              weight_count too */
    const char *balance;   /* INT field: draws every value equally often, with replacement */
    uint64_t draws;        /* with weights or balance: samples per epoch; 0 = as many as there are */
    const char *const *fields; /* which fields of the pack to deliver; NULL = all */
    uint32_t field_count;
    uint32_t digest; /* 1 = hash every sample: leat_batch.sample_hash */
    leat_log log;
    leat_sample_fn sample_fn; /* custom augmentation, or NULL */
    void *sample_cookie;
    /* For pipelines with MixUp or CutMix; setting one of these without them is an error. */
    const char *label; /* INT field whose labels are mixed; NULL = "label" */
    uint32_t classes;  /* number of classes in soft labels; 0 = the number of the field's class names */
    leat_mix_labels mix_labels; /* how mixed labels are delivered; 0 = soft */
    /* Where batches arrive: NULL or "cpu"; "cuda:N"; or "cuda": the GPU with the number in LOCAL_RANK if a
     * launcher set it, else the one in use by the calling thread, else the first. */
    const char *device;
    uint64_t device_memory; /* bytes of the device's memory for batches; 0 = a quarter of what is free */
    leat_orientation orientation; /* default: LEAT_ORIENTATION_APPLY */
    /* 0 = image fields must have the same random geometry, else their crops would not match: an error. 1 =
     * they may differ. Equal geometry ops draw equal parameters, even if the colour ops differ. */
    uint32_t independent;
    /* Fields that follow the geometry of an image, as text: "mask; boxes = Boxes(xywh); category = Labels()".
     * Without a role, it is chosen by the field's type and name. Mask (an image field: u8 [samples, height,
     * width]), Boxes, Labels (rows dropped with their box) and Keypoints are described by leat_op_info_at
     * (LEAT_OP_ROLE). Coordinates refer to the image at the start of the pipeline; boxes and points are
     * delivered as f32. NULL = none. */
    const char *follow;
    /* Remote packs: local folder that caches pages across epochs and runs, shared by all processes; NULL =
     * none. LEAT_EINVAL with a local pack. */
    const char *disk_cache;
    uint64_t disk_cache_bytes; /* size limit of the folder; 0 = half of the free space */
    leat_decode decode;
    /* Several packs; leat_loader_open's path must then be NULL. Fields are matched by name and must have the
     * same type. Sample ids count through all packs (leat_pack_part returns where each begins). */
    const leat_loader_source *sources;
    uint32_t source_count; /* up to LEAT_LOADER_SOURCES_MAX */
    leat_mix_batches mix_batches;
    uint64_t epoch_size;      /* samples per epoch, with weights; 0 = as many as all packs have */
    uint32_t mix_replacement; /* 1 = samples of a pack are drawn with replacement. 0 = no sample comes again
                                 before all others of its pack have come, also across epochs */
    uint32_t default_count;
    const leat_loader_default *defaults; /* for fields that some packs lack */
    /* Number of weights: must be the number of samples of the pack or of the subset, else LEAT_EINVAL. Not
     * checked for callers compiled without this field. */
    uint64_t weight_count;
    leat_collate collate;
    /* For LEAT_COLLATE_PAD; setting one of these without it is an error. */
    uint32_t pad_multiple; /* rounds height and width up to multiples of this; 0 = 1 */
    double pad_value;   /* value of padding pixels in the batch (after Normalize); masks use the fill of their
                           role */
    uint32_t pad_mask;  /* 1 = adds a field NAME_mask: bool [samples, height, width], true inside the image */
    leat_bucket bucket; /* only with LEAT_ORDER_RANDOM; not with weights, balance or mixes */
    uint32_t bucket_count; /* buckets of equal size; 0 = LEAT_BUCKETS */
    uint32_t bucket_edge_count;
    const double *bucket_edges; /* instead of bucket_count: boundaries between buckets, in rising order */
} leat_loader_opts;

/* Sets the defaults named above and zeroes the other fields. */
LEAT_API void leat_loader_opts_init_sized(leat_loader_opts *opts, uint32_t struct_size);
#define leat_loader_opts_init(o) leat_loader_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_loader leat_loader;

/* Opens a pack (or opts->sources, with path NULL) for loading. LEAT_EINVAL: err names the wrong option.
 * LEAT_EBUDGET: err says how much more memory one batch needs. LEAT_EFORMAT, LEAT_EDATA, LEAT_EIO: opening
 * the pack failed. */
LEAT_API int leat_loader_open(leat_loader **loader, const char *path, const leat_loader_opts *opts,
                              leat_error *err) LEAT_MUST_CHECK;
/* Closes a loader in any state; borrowed batches stay valid. No other thread may be in next(). In a forked
 * child, calls on a loader of the parent return LEAT_EFORK, and close and release only clear the pointer. */
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
    /* BYTES, TEXT, JSON and RAGGED: `data` holds the elements of all samples in sequence, of type u8 (RAGGED:
     * dtype). Sample i has elements offsets[i] to offsets[i+1]. Images and masks have offsets with
     * LEAT_COLLATE_LIST and LEAT_COLLATE_RAGGED. NULL for other fields. */
    const int64_t *offsets;
    const int64_t *ragged_shapes; /* RAGGED and images with offsets: samples x ragged_ndim; else NULL */
    uint32_t ragged_ndim;
    uint32_t type; /* leat_field_type of the pack's field */
} leat_tensor;

typedef struct leat_batch {
    uint64_t epoch;
    uint64_t index;    /* number of the batch in the epoch, from 0 */
    uint64_t position; /* samples of this rank delivered before it in the epoch */
    uint32_t samples;  /* rows in it: fewer in the last batch, or when bad ones were skipped */
    uint32_t field_count;
    const leat_tensor *fields;   /* images first, in the order of the options */
    const uint64_t *sample_ids;  /* sample id of each row in the pack */
    const uint64_t *sample_hash; /* with opts.digest: XXH3 of each row's values; else NULL */
    uint32_t bad;                /* samples skipped or replaced, bad replacements included */
    uint32_t rows;               /* positions of the order that it covers: `samples` plus the skipped ones */
    void *cookie;                /* for the caller's use */
    int32_t device;              /* CUDA device of the `data` of fields without offsets; -1 = the host.
                                  * Offsets, fields that have them, sample_ids and sample_hash are on the
                                  * host */
} leat_batch;

/* Stops the current epoch and starts (or restarts) this one at its first batch. LEAT_EINVAL for epochs of
 * 2^63 and above. */
LEAT_API int leat_loader_begin(leat_loader *loader, uint64_t epoch, leat_error *err) LEAT_MUST_CHECK;

/* When a change of a loader takes effect. */
typedef enum leat_when {
    LEAT_WHEN_EPOCH, /* with the next begin() or restore() */
    LEAT_WHEN_BATCH  /* with the next batch; prefetched batches are made again. Batches begin at multiples of
                        the batch size, so the first one after a change of it may be smaller. A change that
                        waits for begin() takes effect too */
} leat_when;

/* What to change in an open loader, for progressive resizing or growing batches. */
typedef struct leat_loader_change {
    uint32_t struct_size;
    leat_when when;
    uint32_t batch_size; /* 0 = unchanged */
    uint32_t image_count;
    const char *ops;                 /* pipeline of the first image field; NULL = unchanged */
    const leat_loader_image *images; /* instead of `ops`: all images; NULL = unchanged */
} leat_loader_change;
#define LEAT_LOADER_CHANGE_INIT                                                                              \
    {                                                                                                        \
        .struct_size = sizeof(leat_loader_change)                                                            \
    }

/* Changes pipelines or batch size of an open loader. Packs, cache, threads and the controller's memory are
 * kept. An invalid change fails with the errors of leat_loader_open and changes nothing. A waiting change is
 * replaced by the next one. leat_loader_field and the other facts below describe the loader after the change.
 * A state holds the batch size of its epoch, but not the pipelines: set both before restoring it.
 * LEAT_ENOTSUP: the device decodes or caches images; also for the batch size of stratified or single-source
 * mixes and of buckets, whose order depends on it. Call it from the thread that calls next(). */
LEAT_API int leat_loader_set(leat_loader *loader, const leat_loader_change *change,
                             leat_error *err) LEAT_MUST_CHECK;

/* Stops the current epoch and frees its memory. The state does not change: continue with
 * leat_loader_restore, or begin another epoch. */
LEAT_API void leat_loader_stop(leat_loader *loader);

/* Returns the next batch, or NULL after the last one of the epoch. A new loader begins epoch 0. Waits up to
 * timeout_ms (-1 = no limit). One thread at a time.
 *   LEAT_ETIMEDOUT  no batch in time
 *   LEAT_EAGAIN     leat_loader_interrupt was called
 *   LEAT_ESTATE     after leat_loader_stop, until an epoch is begun or a state restored
 *   LEAT_EBUDGET    with err.sample < 0 (not final): borrowed batches hold all memory of host or device;
 *                   with err.sample >= 0: decoding that sample needs more than the budget
 * Any other error, and LEAT_EBUDGET with err.sample >= 0, ends the epoch. */
LEAT_API int leat_loader_next(leat_loader *loader, leat_batch **batch, int64_t timeout_ms,
                              leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_batch_release(leat_batch **batch); /* any thread; NULL is fine */
/* With a device: pass 1 before the thread that calls next() captures a CUDA graph, 0 afterwards. Otherwise
 * the driver would end the capture with an error. Not needed if no batch is taken during the capture, or if
 * the captured stream was made without cudaStreamNonBlocking. Call it from the thread that calls next(). */
LEAT_API void leat_loader_capturing(leat_loader *loader, uint32_t on);
/* With a device: names the CUDA stream (CUstream) that uses the batches from now on. Events on it tell the
 * doctor how long a step takes on the device. Without them, steps of a loop that does not wait for its device
 * seem to take no time. LEAT_STREAM_UNKNOWN: forget the stream. Call it from the thread that calls next(). */
#define LEAT_STREAM_UNKNOWN UINTPTR_MAX
LEAT_API void leat_loader_stream(leat_loader *loader, uintptr_t stream);
/* Makes the waiting (or else the next) leat_loader_next return LEAT_EAGAIN. Any thread may call it; it is
 * async-signal-safe. */
LEAT_API void leat_loader_interrupt(leat_loader *loader);

/* ---- facts ------------------------------------------------------------------------------ */

LEAT_API uint64_t leat_loader_samples(const leat_loader *loader); /* samples per epoch of this rank */
LEAT_API uint64_t leat_loader_batches(const leat_loader *loader); /* per epoch, the same on all ranks */

/* Returns line i = 0, 1 … of the advice for the user; NULL after the last. leat_loader_open logs the same
 * lines as warnings: an order that reads slowly here, ranks with an empty batch. leat_loader_next may add
 * one: decode = gpu or cache = device is set, but the device decodes nothing. */
LEAT_API const char *leat_loader_advice(const leat_loader *loader, uint32_t i);

LEAT_API leat_pack *leat_loader_pack(leat_loader *loader);     /* borrowed: do not close */
LEAT_API leat_budget *leat_loader_budget(leat_loader *loader); /* borrowed: do not close */

/* Changes the byte budget. Any thread may call it, also while an epoch runs. After lowering, cached buffers
 * are freed at once and those in flight after delivery; until then nothing new is read. LEAT_EBUDGET, and no
 * change, when the loader or the running epoch needs more; LEAT_EINVAL for 0. */
LEAT_API int leat_loader_memory_set(leat_loader *loader, uint64_t bytes, leat_error *err) LEAT_MUST_CHECK;

/* Looks up the sample at a position of this rank in an epoch, without changing the loader's state.
 * LEAT_ESTATE: another epoch is running. */
LEAT_API int leat_loader_sample_at(leat_loader *loader, uint64_t epoch, uint64_t position, uint64_t *sample,
                                   leat_error *err) LEAT_MUST_CHECK;
/* Looks up `count` positions from `position` on; faster than single calls when many packs are mixed. */
LEAT_API int leat_loader_samples_at(leat_loader *loader, uint64_t epoch, uint64_t position, uint64_t count,
                                    uint64_t *samples, leat_error *err) LEAT_MUST_CHECK;

/* The fields of the batches after the next begin(). Shapes start with the batch size and have -1 where
 * batches differ; data is NULL. */
LEAT_API uint32_t leat_loader_field_count(const leat_loader *loader);
LEAT_API const leat_tensor *leat_loader_field(const leat_loader *loader, uint32_t field);

/* The CUDA device that batches arrive on; -1 = the host. */
LEAT_API int32_t leat_loader_device(const leat_loader *loader);

#define LEAT_LOADER_STAGES 4

typedef struct leat_loader_stats {
    uint32_t struct_size;
    uint32_t threads;                 /* now; before the first start, those it will have */
    uint32_t io_depth, prefetch;      /* now */
    uint64_t epoch, batches, samples; /* delivered in this epoch */
    uint64_t bad_samples;             /* skipped or replaced in the delivered batches of this epoch */
    uint64_t read_bytes, reads;       /* from the file, this epoch */
    uint64_t cache_hits, cache_misses, cache_bytes;
    uint64_t read_ns, decode_ns; /* all workers together */
    uint64_t wait_ns;            /* time the caller waited in next() */
    uint64_t elapsed_ns;
    uint64_t budget_limit, budget_used, budget_peak; /* used: without budget_kept */
    /* Steps of the caller's thread. The first step of each epoch is left out, because it includes the start
     * of the epoch, unless epochs have one or two steps. */
    uint64_t steps;
    double data_ms, data_ms_p50, data_ms_p95;    /* in next(), waiting for a batch */
    double batch_ms, batch_ms_p50, batch_ms_p95; /* between next() calls: the training */
    uint64_t blocked_ns;  /* this epoch: time with work blocked only by the memory budget */
    uint64_t floor_bytes; /* minimum budget that the loader can run with */
    leat_stage_stats stages[LEAT_LOADER_STAGES]; /* order, read, decode, collate */
    double prepare_ms; /* mean per step, as reported by leat_loader_prepared; not in batch_ms */
    /* With opts.device; else 0. */
    uint32_t page_locked; /* 1 = batches on the host and cached pages that the device reads are in page-locked
                             memory */
    uint32_t device_blocks;                          /* number of batches that the device memory holds */
    uint64_t device_limit, device_used, device_peak; /* bytes on the device */
    uint64_t copied_bytes, copy_ns; /* copies to the device, this epoch: bytes, and time on the device */
    uint64_t copy_wait_ns;          /* time that ready batches waited for device memory */
    /* Remote packs, this epoch: requests of the whole process, retried requests, and bytes received. 0 for
     * local packs. */
    uint64_t remote_requests, remote_retries, remote_bytes;
    uint64_t disk_cache_hits;   /* pages and samples that came from opts.disk_cache */
    uint64_t device_images;     /* images decoded by the device, this epoch */
    uint64_t device_decode_ns;  /* time of the decoding kernels on the device */
    double device_share;        /* share of the images in recent batches that the device decoded, 0 to 1 */
    uint64_t remote_hedged;     /* remote packs, this epoch: second requests sent for slow ranges */
    uint64_t device_overlap_ns; /* part of copy_ns and device_decode_ns that overlaps with the copies and
                                   kernels of the previous batch */
    uint64_t device_list_ns;    /* part of decode_ns that workers spent listing tiles for the device */
    /* with LEAT_CACHE_DEVICE: images and bytes cached on the device */
    uint64_t device_cached_images, device_cached_bytes;
    uint64_t budget_kept; /* memory kept for reuse: charged in addition to budget_used, freed when needed */
    /* Memory really allocated under the budget, and its peak. The charged bytes are more: bytes of samples
     * are reserved before they are read, so that no task waits for memory halfway. */
    uint64_t budget_memory, budget_memory_peak;
    /* Batches per epoch, and the wait at the start of each epoch after the first. Means over all epochs, also
     * in leat_loader_read; 0 = only one epoch has begun. */
    double epoch_steps, start_ms;
    double device_step_ms; /* with leat_loader_stream: time of a step on the device; 0 = not known */
} leat_loader_stats;
/* Read the statistics: `read` of the current epoch, `read_all` since the loader was opened. Any thread may
 * call them, also while another one is in next(). */
LEAT_API int leat_loader_read(leat_loader *loader, leat_loader_stats *stats,
                              uint32_t struct_size) LEAT_MUST_CHECK;
LEAT_API int leat_loader_read_all(leat_loader *loader, leat_loader_stats *stats,
                                  uint32_t struct_size) LEAT_MUST_CHECK;

/* Reports that the caller's thread spent `ns` on preparing the last batch (a Python transform, a copy to a
 * device). Meters and doctor then do not count that time as training. May be called several times per batch,
 * from the thread that calls next(). */
LEAT_API void leat_loader_prepared(leat_loader *loader, uint64_t ns);

/* Reads the changes the controller made in all epochs, with reasons, like leat_tuner_read. io_depth is in
 * reads. Any thread may call it. */
LEAT_API uint32_t leat_loader_decisions(leat_loader *loader, uint64_t first, leat_decision *out,
                                        uint32_t max);

/* ---- state ------------------------------------------------------------------------------ */

#define LEAT_LOADER_STATE_MAX 32768 /* maximum bytes of a state */

/* Writes the position of this loader to `text`: one line of JSON with a NUL, a few hundred bytes, plus 20 per
 * pack. *size gets the length without the NUL, also when it did not fit (LEAT_ELIMIT). `delivered`: how many
 * rows count as done, of those returned by next() since begin() or restore() (sum of leat_batch.rows);
 * UINT64_MAX = all of them. */
LEAT_API int leat_loader_state(leat_loader *loader, uint64_t delivered, char *text, size_t capacity,
                               size_t *size, leat_error *err) LEAT_MUST_CHECK;

/* Resumes from a state: next() continues with the batch that would have followed. Pack, order, seed, subset
 * and global batch must be the same as in the state; rank and world may differ. LEAT_EINVAL: err says what
 * differs. LEAT_EDATA: the state is malformed. */
LEAT_API int leat_loader_restore(leat_loader *loader, const char *state, leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
