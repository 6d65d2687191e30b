/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts what a training run needs: host and accelerator memory, its rate and bottleneck, its duration, a
 * configuration and machines. Also predicts the needs of curation.
 *
 * These are pure functions from facts to a plan: they open no files and do not inspect the machine. Facts
 * come from leat_machine_read, from a pack's index, from a short measurement, or from flags. 0 means "not
 * known"; the plan notes every default that was used. Any thread may call them; nothing is shared between
 * calls.
 */
#ifndef LEAT_PLAN_H
#define LEAT_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include <leat/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum leat_plan_precision {
    LEAT_PLAN_PRECISION_AUTO = 0, /* the best mixed precision that the GPU supports */
    LEAT_PLAN_FP32 = 1,
    LEAT_PLAN_FP16_MIXED = 2, /* fp32 weights, fp16 compute: "16-mixed" */
    LEAT_PLAN_BF16_MIXED = 3,
    LEAT_PLAN_BF16_TRUE = 4 /* everything in bf16 */
} leat_plan_precision;

typedef enum leat_plan_optimizer {
    LEAT_PLAN_OPTIMIZER_AUTO = 0, /* the one in the model's paper */
    LEAT_PLAN_SGD = 1,            /* no state */
    LEAT_PLAN_MOMENTUM = 2,       /* one value of state per parameter */
    LEAT_PLAN_ADAMW = 3           /* two values of state per parameter */
} leat_plan_optimizer;

typedef enum leat_plan_loader {
    LEAT_PLAN_LEAT = 0,   /* threads, one budget */
    LEAT_PLAN_PROCESS = 1 /* worker processes with a queue of batches each: PyTorch */
} leat_plan_loader;

typedef enum leat_plan_images {
    LEAT_PLAN_TILED = 0,
    LEAT_PLAN_KEEP = 1,
    LEAT_PLAN_RAW = 2,
    LEAT_PLAN_MIX = 3
} leat_plan_images;

typedef enum leat_plan_preset {
    LEAT_PLAN_PRESET_NONE = 0, /* (cores − devices) / devices workers */
    LEAT_PLAN_CONSERVATIVE = 1,
    LEAT_PLAN_BALANCED = 2,
    LEAT_PLAN_AGGRESSIVE = 3
} leat_plan_preset;

typedef enum leat_plan_verdict {
    LEAT_PLAN_UNKNOWN = 0, /* a limit is not known */
    LEAT_PLAN_SAFE = 1,
    LEAT_PLAN_RISKY = 2,
    LEAT_PLAN_OUT_OF_MEMORY = 3
} leat_plan_verdict;

/* A measured or modelled value with its interval; mid 0 = not known. */
typedef struct leat_plan_range {
    double low, mid, high;
} leat_plan_range;

/* Results of a short measurement on the real data, from a calibration or from flags. Ranges may be zero. */
typedef struct leat_plan_calibration {
    leat_plan_range io_bytes_per_s;  /* cold reads of the dataset */
    leat_plan_range cpu_us;          /* CPU time per sample, summed over the loader's threads */
    leat_plan_range step_ms;         /* one training step of `step_batch` samples, one GPU */
    leat_plan_range h2d_bytes_per_s; /* host to device, pinned */
    uint64_t step_batch;             /* 0 = the plan's batch */
    uint64_t sample_bytes;           /* mean bytes read per sample */
    /* Samples per second of the loader alone, without a trainer: from memory with one thread, from memory
     * with `threads` threads, and with the pack dropped from the page cache. */
    leat_plan_range rate_one, rate_all, rate_cold;
    uint32_t threads;
    uint32_t calibrated; /* bit (1 << leat_plan_resource) = measured, not given by the user */
    double cold_cpu_us;  /* CPU time of one sample that has to be read; 0 = not known */
    uint32_t cpus;       /* CPUs of the machine that was measured */
    uint32_t quick;      /* 1 = a short measurement: wider intervals */
    uint32_t failed;     /* bit (1 << leat_plan_resource): not measured, and no table replaces it */
} leat_plan_calibration;

/* The facts of a plan. Call leat_plan_facts_init, then set the fields you know. */
typedef struct leat_plan_facts {
    uint32_t struct_size;
    /* Machine, per node. */
    uint32_t nodes;          /* default 1 */
    uint32_t cpus;           /* usable by this job */
    uint32_t gpus;           /* 0 = none: data loading only */
    uint32_t whole_machine;  /* 1 = the OS is inside ram_bytes too */
    uint64_t ram_bytes;      /* the hard limit: of the cgroup, the rlimit or the host */
    uint64_t ram_used_bytes; /* used by other processes inside that limit */
    uint64_t shm_bytes;      /* /dev/shm; 0 = not known */
    uint64_t vram_bytes;     /* per GPU; 0 = from the table */
    char gpu[96];            /* "A10G", "NVIDIA H200"; "" = not known */
    char isa[32];            /* as leat_machine.isa; "" = avx2 */
    char storage[32];        /* "hdd", "ssd", "nvme", "network", "memory", "bucket"; "" = not known */
    /* Dataset. */
    uint64_t samples;
    uint64_t sample_bytes;     /* mean, as stored; default 110,000 */
    uint64_t max_sample_bytes; /* largest; default four times the mean */
    uint32_t width, height;    /* mean, as stored; default 500 × 375, or by sample_bytes */
    uint64_t page_bytes;       /* page size of the pack; default 512 KiB */
    double work; /* CPU time of a sample relative to one of the same size stored as `images`. Not 1 if some
                    are PNG or WebP; 0 = 1 */
    uint32_t images; /* leat_plan_images */
    double mix_raw;  /* share stored raw, for LEAT_PLAN_MIX; 0.5 from the
                        initializer, since 0 is a share as well */
    /* Model and training. */
    char model[48];             /* "" = resnet50 when there is a GPU */
    uint64_t params;            /* parameters of model "generic" */
    uint64_t activation_bytes;  /* per sample, of model "generic" */
    double macs;                /* multiply-adds per sample, of model "generic" */
    uint32_t precision;         /* leat_plan_precision */
    uint32_t optimizer;         /* leat_plan_optimizer */
    uint32_t image;             /* pixels a side; default 224 */
    uint32_t classes;           /* default 1000 */
    uint64_t batch;             /* per GPU; default from the preset */
    uint32_t epochs;            /* default 1 */
    uint32_t compile;           /* 1 = torch.compile */
    uint32_t unfused_attention; /* 1 = attention scores are stored */
    double lr;                  /* learning rate at lr_batch; default 0.5, AdamW 0.00025 */
    uint64_t lr_batch;          /* default 256 */
    /* Loading. */
    uint32_t loader;        /* leat_plan_loader */
    uint32_t preset;        /* leat_plan_preset */
    int32_t workers;        /* per GPU; 0 = from the preset, −1 = all usable */
    uint32_t prefetch;      /* batches ahead (per worker for processes); 0 = preset, or leat's own choice */
    uint32_t element_bytes; /* bytes of a delivered pixel value: 4 = f32, 2 = f16, 1 = u8; default 4 */
    double crop_area;       /* mean share of the image a crop covers; default 0.42 */
    uint32_t no_validation; /* 1 = no second loader (for validation) is open at the same time */
    uint64_t memory_bytes;  /* leat's budget; 0 = planned */
    leat_plan_calibration measured;
    uint64_t out_bytes;   /* bytes of a delivered sample; 0 = 3 x image x image x element_bytes */
    double ops_us;        /* CPU time per sample of ops other than crop, resize and flip; 0 = none */
    double cached;        /* share of the pack that is in the page cache now; 0 = none of it */
    uint32_t order;       /* 1 + leat_order; 0 = the plan chooses */
    uint32_t cache;       /* 1 + leat_cache; 0 = the plan chooses */
    uint32_t ops_unknown; /* 1 = the cost of some ops (other than crop, resize and flip) is unknown */
    uint32_t ops_guess;   /* 1 = ops_us is a guess: the size of the image varies before one of them */
    uint32_t wide;        /* 8-bit images of 1, 3 or 4 channels: 0. Others (uint16, float32, up to 16
                           * channels): 1 = delivered as floats, 2 = in their own type */
    char cpu[96];         /* as leat_machine.cpu_model, for the tables; "" = not known */
    double latency_s;     /* latency of one request to a bucket; 0 = from the table */
    /* US dollars for 1000 requests, and for a GB (1e9 bytes) read from another region or over the
     * internet. All 0 = not known. */
    double price_requests, price_other_region, price_internet;
    char price_date[16];    /* date of these prices */
    uint64_t process_bytes; /* memory of a process without the loader: code, libraries; 0 = the usual 9 MB */
    /* Mean and largest bytes that the loader reserves to decode an image and to run ops on it at full size,
     * in addition to the usual scratch of a thread. 0 = none. */
    uint64_t image_bytes, max_image_bytes;
    /* Values for the plan's YAML output; NULL = the default. The caller owns the strings, which must outlive
     * the plan. */
    const char *ops, *like, *crop;
    /* Measured bytes of the images with --max-side 400 and with --quality 90, as shares of the current bytes;
     * 0 = from the table. */
    double smaller_share, quality_share;
    uint64_t limit_bytes; /* memory limit of the job alone (its container's), besides ram_bytes; 0 = none. The
                             tighter of the two counts */
    double host_share; /* share of the images whose ops need CPUs, so that no GPU can decode them; 0 = none */
    double cpu_quota;  /* CPUs that a quota allows, with the fraction; 0 = no quota */
    uint64_t mean_page_bytes;                        /* bytes of the pack per page; default page_bytes */
    uint64_t index_bytes;                            /* index of the pack; default 100 bytes per sample */
    uint64_t used_image_bytes, max_used_image_bytes; /* how much of image_bytes is used; 0 = nothing */
} leat_plan_facts;

#define leat_plan_facts_init(facts) leat_plan_facts_init_sized((facts), sizeof *(facts))
LEAT_API void leat_plan_facts_init_sized(leat_plan_facts *facts, size_t size);

/* Host memory of one node, in bytes. The parts add up to `total`. */
typedef struct leat_plan_ram {
    uint64_t batch;      /* one batch as delivered */
    uint64_t queue;      /* batches waiting */
    uint64_t assembling; /* batches being made */
    uint64_t pinned;     /* batches held by the trainer: pinned copies (processes), borrowed buffers (leat) */
    uint64_t workers;    /* private memory of worker processes; scratch of leat's threads */
    uint64_t pages;      /* leat: encoded samples in flight, pages in the window */
    uint64_t os, framework, used;
    uint64_t total;
    uint64_t budget;   /* leat: the value for --memory; process loader: 0 */
    uint64_t resident; /* leat: memory of the process with every queue full; less when the trainer is the
                          faster side and queues are empty */
    uint64_t with_validation; /* total with a second loader open, as persistent workers keep it */
    uint64_t shm;             /* the part of `total` in /dev/shm */
    uint64_t limit;
    /* The single-GPU guide's own figures, for comparison (process loaders). */
    uint64_t guide_batch, guide_buffer, guide_total;
    uint32_t verdict;    /* leat_plan_verdict */
    uint32_t shm_short;  /* 1 = /dev/shm is too small for the queue */
    uint64_t cache;      /* the part of `total` that the loader's page cache keeps (buckets, cache=process) */
    uint64_t uncharged;  /* the part of `workers` outside the budget */
    uint64_t page_cache; /* the most that one loader's page cache may take of the budget */
    uint64_t reading;    /* of a bucket: what the budget of one loader then has for single samples */
} leat_plan_ram;

/* Peak memory of one GPU during a step; the parts add up to `total`. */
typedef struct leat_plan_vram {
    uint64_t weights, gradients, optimizer, activations, batch, workspace, context;
    uint64_t total;
    uint64_t limit;
    uint64_t params;
    uint64_t largest_batch; /* largest batch that fits; 0 when none does or the limit is not known */
    double macs;            /* multiply-adds of one forward pass of one sample */
    double traffic_bytes;   /* device memory traffic of one step of one sample */
    uint32_t verdict;
    uint32_t reserved;
    double step_s;      /* modelled time of a step, per sample on one GPU; 0 = not known */
    double step_spread; /* uncertainty of step_s: 0.3 = from 1/1.3 to 1.3 times as fast */
} leat_plan_vram;

typedef enum leat_plan_resource {
    LEAT_PLAN_NOTHING = 0,
    LEAT_PLAN_IO = 1,
    LEAT_PLAN_CPU = 2,
    LEAT_PLAN_H2D = 3,
    LEAT_PLAN_GPU = 4
} leat_plan_resource;

/* Samples per second of one node, and derived figures. */
typedef struct leat_plan_speed {
    leat_plan_range io, io_cached, cpu, h2d, gpu; /* mid 0 = not known */
    leat_plan_range rate; /* rate of the planned run: `later`, or `first_epoch` if there is only one epoch */
    leat_plan_range first_epoch; /* nothing cached yet */
    uint32_t limit, next;        /* leat_plan_resource: bottleneck of `rate`, and the next one */
    uint32_t incomplete;         /* 1 = a rate that could limit is not known */
    uint32_t gpu_measured;       /* 1 = the GPU's rate is a measurement, not the model */
    double cached_share;         /* share of the dataset that is cached after the first epoch */
    double cpu_us;               /* CPU time per sample */
    leat_plan_range epoch_s;     /* an epoch after the first, or the only one */
    leat_plan_range total_s; /* all epochs; epoch_s and total_s are 0 when the trainer's rate is not known */
    uint64_t iterations;     /* full batches per epoch */
    double needed;           /* samples/s needed to keep the node's GPUs busy */
    double cores_needed;     /* CPU cores needed for that rate */
    const char *sources[5];  /* by leat_plan_resource: the source of its rate; static text,
                              * NULL when the rate is not known */
    uint32_t first_limit;    /* leat_plan_resource: bottleneck of the first epoch */
    uint32_t later_limit;    /* leat_plan_resource: bottleneck of later epochs */
    leat_plan_range later;   /* from the second epoch on, when as much is cached as fits */
} leat_plan_speed;

typedef struct leat_plan_config {
    uint32_t workers; /* per GPU (processes) or threads per process (leat) */
    uint32_t prefetch;
    uint64_t batch, total_batch;
    uint32_t precision;
    uint32_t cache_process; /* 0 = "os", 1 = "process" */
    uint32_t quasi_random;  /* 0 = "random" */
    uint32_t page_window;   /* pages shuffled together */
    uint32_t compile;
    uint32_t reserved;
    uint64_t memory_bytes; /* leat's budget per process */
    double lr;
} leat_plan_config;

/* One row of the multi-GPU table, for `gpus` in all. */
typedef struct leat_plan_scale {
    uint32_t gpus, nodes;
    uint32_t workers;
    uint32_t fits; /* 1 = fits the memory of node and GPU, by leat's figures */
    uint64_t total_batch;
    uint64_t guide_buffer; /* 8 GB × GPUs, as the guide rounds it */
    uint64_t guide_ram;    /* 8 GB × GPUs + 5 GB */
    uint64_t ram;          /* leat's figure, per node */
    double lr;
    double rate;          /* samples/s by all known limits; 0 = the GPU's rate is not known */
    uint32_t unused_cpus; /* per node: left over after giving each GPU the same number of workers */
    uint32_t reserved;
} leat_plan_scale;

typedef struct leat_plan_what_if {
    char change[64];
    double rate, gain; /* samples/s, and that divided by the plan's rate */
    uint32_t limit;
    uint32_t reserved;
    uint64_t dataset_bytes; /* size of the dataset with the change; 0 = unchanged */
} leat_plan_what_if;

/* Tiles decoded by CPUs, by the GPU that trains, or by both (`leat load --device cuda --decode`). */
typedef struct leat_plan_decode {
    char decode[8];        /* "cpu", "gpu", "auto" */
    uint32_t threads;      /* threads per GPU that keep it busy */
    uint32_t estimated;    /* 1 = estimated from the memory bandwidth, because this card was not measured */
    double rate;           /* samples/s of one GPU with the planned threads */
    double share;          /* `rate` as a share of the GPU's rate when it never waits */
    uint64_t device_bytes; /* memory of the GPU for batches and tiles */
} leat_plan_decode;

/* US dollars, by where the machine is relative to the bucket. */
typedef struct leat_plan_price {
    double same_region, other_region, internet;
} leat_plan_price;

/* What all nodes together read from a bucket; all 0 for other storage. */
typedef struct leat_plan_traffic {
    uint64_t epoch_bytes, epoch_requests; /* traffic of the first epoch */
    uint64_t run_bytes, run_requests;     /* traffic of all epochs */
    uint64_t disk_bytes;                  /* bytes of a disk cache with the whole dataset, per node */
    uint64_t disk_saves_bytes;            /* how much of run_bytes the disk cache saves */
    leat_plan_price epoch, run, disk_saves;
    uint32_t priced; /* 0 = the prices are not known */
    uint32_t reserved;
} leat_plan_traffic;

#define LEAT_PLAN_DECODES 3
#define LEAT_PLAN_SCALES 8
#define LEAT_PLAN_WHAT_IFS 12
#define LEAT_PLAN_NOTES 12

typedef struct leat_plan {
    uint32_t struct_size;
    uint32_t fits;         /* 0 = no, 1 = yes, 2 = a limit is not known */
    leat_plan_facts facts; /* with every default filled in */
    leat_plan_config config;
    leat_plan_ram ram;         /* for the loader in `facts` */
    leat_plan_ram ram_process; /* for a process loader with the same workers, prefetch and batch */
    leat_plan_vram vram;
    leat_plan_speed speed;
    uint32_t scale_count, what_if_count, note_count;
    uint32_t reserved;
    leat_plan_scale scales[LEAT_PLAN_SCALES];
    leat_plan_what_if what_ifs[LEAT_PLAN_WHAT_IFS];
    char notes[LEAT_PLAN_NOTES][160]; /* defaults that were taken, rules that were broken */
    char fix[320];                    /* the smallest change that fits; "" when it fits */
    char no_gain[512];                /* changes that would gain less than 5 %, separated by semicolons */
    uint32_t decode_count;            /* 0 = the GPU cannot decode these images, or its rate is not known */
    uint32_t reserved2;
    leat_plan_decode decodes[LEAT_PLAN_DECODES];
    leat_plan_traffic traffic; /* for a dataset in a bucket */
} leat_plan;

/* Makes the plan. LEAT_EINVAL: err names the fact that is impossible or unknown. A plan that does not fit is
 * not an error: see `fits` and `fix`. */
LEAT_API int leat_plan_make(const leat_plan_facts *facts, leat_plan *plan, size_t plan_size,
                            leat_error *err) LEAT_MUST_CHECK;

#define LEAT_PLAN_BATCH_MOST (UINT64_C(1) << 24) /* larger batches are not planned */

typedef enum leat_plan_field {
    LEAT_PLAN_SOLVE_BATCH = 0, /* largest batch per GPU that is safe in RAM and VRAM, up to facts.samples */
    LEAT_PLAN_SOLVE_RAM = 1,   /* minimum RAM per node that is safe, in bytes */
    LEAT_PLAN_SOLVE_GPUS = 2,  /* maximum GPUs per node that its CPUs can feed, safe in RAM and VRAM */
    LEAT_PLAN_SOLVE_CPUS = 3   /* fewest CPUs that feed the GPUs and are safe */
} leat_plan_field;

/* Computes one fact from the others. *value is 0 when no value is safe. LEAT_EINVAL: facts that it needs are
 * missing. */
LEAT_API int leat_plan_solve(const leat_plan_facts *facts, leat_plan_field field, uint64_t *value,
                             leat_error *err) LEAT_MUST_CHECK;

/* ---- Machines by dataset ---- */

typedef enum leat_plan_kind {
    LEAT_PLAN_KIND_IMAGES = 0, /* amount: images or video frames */
    LEAT_PLAN_KIND_TEXT = 1,   /* amount: bytes */
    LEAT_PLAN_KIND_VIDEO = 2   /* amount: videos */
} leat_plan_kind;

typedef struct leat_plan_machine {
    char name[48]; /* "g4dn.xlarge"; "" when the guide names none */
    char gpu[32];
    char note[96];
    char source[160];
    uint32_t row;        /* row of the guide's table, from 0 */
    uint32_t raised;     /* rows skipped because they do not fit by the memory model */
    uint32_t fits;       /* 0 = even the largest row does not fit: see `note` */
    uint32_t open_ended; /* 1 = the guide says "or more" */
    uint32_t nodes_low, nodes_high, gpus_low, gpus_high;
    uint32_t cpus;
    uint32_t reserved;
    uint64_t ram_bytes, ram_needed_bytes, vram_bytes, vram_needed_bytes;
    uint64_t rule_ram_bytes, rule_vram_bytes; /* 4 GB and 2 GB per vCPU */
    leat_plan_range rate;                     /* images: samples/s on this machine; mid 0 = not known */
    leat_plan_range total_s;                  /* time of facts.epochs epochs */
    uint32_t limit;                           /* leat_plan_resource */
    uint32_t incomplete;                      /* 1 = a rate that could limit is not known */
} leat_plan_machine;

/* Recommends the guide's machine for `amount`, or the first larger one that satisfies the memory model.
 * Images: `facts` gives model, batch and loader. Text: facts->samples is the number of documents (0 = from
 * the bytes). For other kinds `facts` may be NULL. */
LEAT_API int leat_plan_recommend(leat_plan_kind kind, uint64_t amount, const leat_plan_facts *facts,
                                 leat_plan_machine *machine, leat_error *err) LEAT_MUST_CHECK;

/* Returns the number of frames of videos: hours × 3600 × fps. */
LEAT_API uint64_t leat_plan_frames(double hours, double fps);

/* ---- Curation ---- */

/* A stage of a curation pipeline on GPUs, from the guide's table. */
typedef struct leat_plan_stage {
    char name[32];  /* "QualityClassifier" */
    char unit[16];  /* "documents" or "clips" */
    uint32_t batch; /* recommended by the guide */
    uint32_t gpus;
    uint64_t vram_bytes; /* needed per GPU */
    uint64_t vram_limit; /* memory of one GPU; 0 = not known */
    double per_s;        /* documents or clips per second, all GPUs together */
    double seconds;      /* for the amount; 0 = not asked */
    uint32_t fits;       /* 0 = the GPU is too small; 1 = fits, or not known */
    char source[160];
} leat_plan_stage;

/* Plans the stage with this name, or a short form of it ("quality", "caption"), on facts->gpus GPUs of the
 * kind facts->gpu or with facts->vram_bytes each. facts may be NULL. `amount`: documents or clips; 0 = none.
 * LEAT_EINVAL: the name is unknown; err lists the known ones. */
LEAT_API int leat_plan_stage_make(const char *name, uint64_t amount, const leat_plan_facts *facts,
                                  leat_plan_stage *stage, leat_error *err) LEAT_MUST_CHECK;

/* Text curation with `leat filter` and `leat dedup fuzzy`. 0 means the default that the comment names. */
typedef struct leat_plan_text_facts {
    uint64_t text_bytes;          /* needed */
    uint64_t documents;           /* default: text_bytes / 4000 */
    uint64_t memory_bytes;        /* limit of a machine; default: no limit */
    double disk_bytes_per_s;      /* of a machine's disk, reading or writing; default: NVMe, 2.5e9 */
    uint32_t cpus;                /* CPUs of a machine; default: 1 */
    uint32_t nodes;               /* machines; default: 1. Deduplication uses only one */
    uint32_t bands, rows;         /* default: 14 bands of 8 rows */
    uint32_t bands_per_iteration; /* default: all */
    double cpu_quota;             /* CPUs that a quota allows, with the fraction; 0 = no quota */
} leat_plan_text_facts;

typedef struct leat_plan_text_stage {
    double seconds;
    double cpu_seconds, disk_seconds; /* of a machine; the longer one is the bottleneck */
    double serial_seconds;            /* single-threaded work afterwards */
    uint64_t ram_bytes;               /* minimum memory of a machine */
    uint64_t work_bytes;              /* temporary files on a machine's disk, without the output */
    uint64_t output_bytes;            /* output of all machines */
    uint32_t limit;                   /* leat_plan_resource: LEAT_PLAN_IO or LEAT_PLAN_CPU */
    uint32_t passes;                  /* over the text */
    uint32_t nodes;                   /* that share the work */
    uint32_t fits;                    /* memory and number of documents: 0, 1, 2 = no limit known */
} leat_plan_text_stage;

typedef struct leat_plan_text {
    uint64_t documents;
    leat_plan_text_stage filter, dedup;
    char source[512]; /* where the rates come from */
} leat_plan_text;

LEAT_API int leat_plan_text_make(const leat_plan_text_facts *facts, leat_plan_text *plan,
                                 leat_error *err) LEAT_MUST_CHECK;

typedef struct leat_plan_minhash_facts {
    uint64_t documents;
    uint64_t dataset_bytes;       /* 0 = not known: the guide's band table is not used */
    uint64_t memory_bytes;        /* limit */
    uint32_t hashes;              /* default 260 for the guide, 14 x 8 for leat */
    uint32_t bands;               /* default 20 for the guide */
    uint32_t bands_per_iteration; /* 0 = as many as fit */
    uint32_t overhead_bytes;      /* per document besides the hashes; default 16 */
} leat_plan_minhash_facts;

typedef struct leat_plan_minhash {
    uint64_t guide_bytes;     /* documents × (8 × hashes + overhead) × bpi / bands */
    uint64_t guide_all_bytes; /* with every band at once */
    uint32_t bands_per_iteration, passes;
    uint32_t guide_bands_low, guide_bands_high; /* the guide's bands at once for this dataset size; 0 =
                                                   dataset_bytes is not known */
    uint64_t ram_bytes;                         /* leat: minimum memory */
    uint64_t work_bytes;                        /* leat: peak of the files on disk */
    uint32_t leat_passes; /* leat: passes over the text, including the pass that writes */
    uint32_t fits;        /* leat fits the limit: 0, 1, 2 = no limit known */
    uint32_t guide_fits;  /* one band at a time fits by the guide's formula: 0, 1, 2 */
} leat_plan_minhash;

LEAT_API int leat_plan_minhash_make(const leat_plan_minhash_facts *facts, leat_plan_minhash *plan,
                                    leat_error *err) LEAT_MUST_CHECK;

/* ---- After a run ---- */

/* Sums over the epochs of one run, from `leat load --json`. */
typedef struct leat_plan_run {
    uint64_t epochs, samples;
    double seconds, samples_per_s, cpu_seconds;
    double wait_seconds; /* time the consumer waited for batches */
    uint64_t peak_rss_bytes;
    uint64_t batches; /* 0 = not known */
} leat_plan_run;

typedef struct leat_plan_error_row {
    char what[32];
    double predicted, measured;
    double error;    /* (predicted − measured) / measured */
    uint32_t bytes;  /* 1 = both are bytes */
    uint32_t inside; /* 1 = the measurement is in the predicted interval (rates) */
} leat_plan_error_row;

#define LEAT_PLAN_ERROR_ROWS 6
/* Fills rows for quantities known on both sides; returns their number. */
LEAT_API uint32_t leat_plan_compare(const leat_plan *plan, const leat_plan_run *run,
                                    leat_plan_error_row rows[LEAT_PLAN_ERROR_ROWS]);

/* ---- Names ---- */

LEAT_API const char *leat_plan_verdict_name(uint32_t verdict);     /* "safe", "risky" … */
LEAT_API const char *leat_plan_resource_name(uint32_t resource);   /* "io", "cpu" … */
LEAT_API const char *leat_plan_precision_name(uint32_t precision); /* "bf16-mixed" … */

/* ---- Output ---- */

typedef enum leat_plan_format {
    LEAT_PLAN_PAGE = 0, /* for people, with bars */
    LEAT_PLAN_PAGE_ASCII = 1,
    LEAT_PLAN_JSON = 2, /* one line */
    LEAT_PLAN_YAML = 3  /* keys of `leat load`, readable by `leat load --config` */
} leat_plan_format;

/* Passes the text to `write` in one or more pieces; a non-zero return stops and is returned. */
LEAT_API int leat_plan_write(const leat_plan *plan, leat_plan_format format,
                             int (*write)(void *cookie, const char *text, size_t len), void *cookie,
                             leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
