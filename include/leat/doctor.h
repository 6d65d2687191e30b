/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the bottleneck of a training run, its cost, and remedies.
 *
 *     leat_doctor_facts facts;
 *     leat_doctor_diagnosis d;
 *     leat_doctor_facts_init(&facts);
 *     facts.steps = 200; facts.batch = 256; facts.data_ms = 41; facts.batch_ms = 48; …
 *     leat_doctor_judge(&facts, &d, sizeof d, &err);
 *     puts(d.sentence);    "CPU-bound: decode takes 81 % of worker time; the trainer waits 46 % …"
 *
 * leat_doctor_judge is a pure function from facts to a diagnosis; any thread may call it. Facts come from the
 * meters of a running loader, from measurements on a pack (leat_doctor_examine), from JSON, or from the
 * timings of any other loader. An unknown fact makes the diagnosis incomplete; it is never assumed to be
 * fine.
 */
#ifndef LEAT_DOCTOR_H
#define LEAT_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#include <leat/error.h>
#include <leat/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All facts of the doctor: X(name, meaning). All are doubles; negative = not known. Shares are 0 to 1. The
 * names are also the keys in JSON. */
#define LEAT_DOCTOR_FACT_MAP(X)                                                                              \
    /* the trainer's thread; the first step is left out */                                                   \
    X(steps, "steps measured")                                                                               \
    X(batch, "samples per batch")                                                                            \
    X(data_ms, "mean time in next(), waiting for a batch")                                                   \
    X(data_ms_p50, "its median")                                                                             \
    X(data_ms_p95, "its 95th percentile")                                                                    \
    X(prepare_ms, "mean time per step in a Python transform of the batch")                                   \
    X(batch_ms, "mean time between next() calls, less prepare_ms: the training itself")                      \
    X(batch_ms_p50, "its median")                                                                            \
    X(batch_ms_p95, "its 95th percentile")                                                                   \
    X(samples_per_s, "samples the run delivered per second")                                                 \
    X(epoch_steps, "batches per epoch")                                                                      \
    X(start_ms, "mean wait at the start of an epoch; in data_ms only when epochs have one or two batches")   \
    X(skipped, "measurements left out because the time ran out")                                             \
    X(no_files, "1 = no temporary files: other ways to store and deliver were not measured")                 \
    X(trial_batch, "samples per batch in the trial, when smaller than the batch asked for")                  \
    X(trial_step_ms, "training time of a step in the trial, when shorter than the one asked for")            \
    X(gpu_busy, "share of time the GPU was busy")                                                            \
    X(gpu_bus_in, "bytes per second into the first GPU, over its bus")                                       \
    /* what each part can do alone, in samples per second */                                                 \
    X(io_cold, "reads as the order asks for them, nothing cached")                                           \
    X(io_pages, "reads of whole pages, nothing cached")                                                      \
    X(io_deep, "as io_cold, with 64 reads in flight")                                                        \
    X(io_warm, "reads from the page cache")                                                                  \
    X(io_warm_deep, "as io_warm, with 64 reads in flight")                                                   \
    X(cpu_all, "decode and augment from memory, on all threads")                                             \
    X(cpu_one, "the same on one thread")                                                                     \
    X(delivery, "everything but reading and decoding: order, scheduling, hand-over")                         \
    X(loader, "the whole loader without a trainer between batches")                                          \
    X(spacious, "the same with memory to spare")                                                             \
    X(larger, "the same with larger batches: four times as large, at least 32")                              \
    X(larger_spread, "by how much the runs of that disagree; not known = computed from CPU time")            \
    X(loader_warm, "the same with samples that are in the page cache")                                       \
    /* the loader's stages */                                                                                \
    X(decode_ready, "share of time with tasks waiting for a decoding worker")                                \
    X(blocked, "share of time in which work waited only for memory")                                         \
    X(order_busy, "share of time the order stage, which is one thread, was busy")                            \
    X(read_share, "share of worker time spent reading")                                                      \
    X(decode_share, "share of worker time spent decoding and augmenting")                                    \
    X(augment_share, "of that, the share spent on augmentation")                                             \
    X(read_ms, "mean latency of a read")                                                                     \
    X(in_flight, "mean number of reads in flight")                                                           \
    X(handover_us, "fixed cost of one batch, whatever its size")                                             \
    X(bad, "share of samples that were damaged")                                                             \
    /* another loader than leat's, with worker processes */                                                  \
    X(workers, "its worker processes; 0 = it works in the trainer's own")                                    \
    X(plain, "1 = an iterable without options, such as a generator")                                         \
    X(worker_fetch, "share of a worker's time waiting for data")                                             \
    X(worker_decode, "share of it decoding")                                                                 \
    X(worker_augment, "share of it augmenting")                                                              \
    X(worker_python, "share of it in other Python code of a sample")                                         \
    X(worker_collate, "share of it collating")                                                               \
    X(collate_wait, "the part of worker_collate in which it waits for something else than a CPU")            \
    X(worker_transfer, "share of it sending the batch to the trainer")                                       \
    X(fetch_ms, "mean time a sample waits for its data")                                                     \
    X(stalls, "steps that waited far longer than all others; no other fact includes them")                   \
    X(stall_s, "seconds that the longest of them waited")                                                    \
    X(stall_at_s, "when it began, in seconds after the first step")                                          \
    X(stall_share, "share of the time observed that they waited")                                            \
    X(more_workers, "worker processes of the second trial")                                                  \
    X(more_workers_rate, "samples/s of the loop with those, with its step")                                  \
    X(more_workers_gain, "times the rate of the loop as it is: the median of trials in turn")                \
    X(more_workers_least, "the slowest trial with those, over the fastest as it is")                         \
    X(persistent, "1 = a DataLoader that keeps its workers between epochs")                                  \
    /* CPU */                                                                                                \
    X(cpus_host, "CPUs of the machine")                                                                      \
    X(cpus, "CPUs this process may use, with the quota's fraction")                                          \
    X(quota, "CPU quota in CPUs; 0 = none")                                                                  \
    X(threads, "decoding workers")                                                                           \
    X(cpu_used, "CPUs the process used")                                                                     \
    X(others, "CPUs that other processes used")                                                              \
    X(remedy_others, "share of the CPUs that other processes took while remedies were measured")             \
    X(siblings, "CPUs that other loaders of this process used")                                              \
    X(run_delay, "share of wanted CPU time that threads waited on the run queue")                            \
    X(throttled, "share of quota periods that were throttled")                                               \
    X(pressure_cpu, "PSI: share of time something stalled on CPU")                                           \
    /* memory */                                                                                             \
    X(budget, "bytes the loader may take")                                                                   \
    X(budget_peak, "peak bytes it took")                                                                     \
    X(memory_free, "bytes the process could still take")                                                     \
    X(memory_host, "bytes of memory the machine has")                                                        \
    X(memory_limit, "bytes a cgroup or rlimit allows in all; 0 = as many as the machine has")                \
    X(faults, "major page faults per second")                                                                \
    X(pressure_memory, "PSI: share of time something stalled on memory")                                     \
    /* storage */                                                                                            \
    X(dataset_bytes, "bytes of the pack")                                                                    \
    X(sample_bytes, "mean bytes of a sample as stored")                                                      \
    X(read_bytes, "mean bytes really read per sample")                                                       \
    X(cached, "share of the pack that is in memory now")                                                     \
    X(io_depth, "reads in flight")                                                                           \
    X(io_fixed, "1 = the user fixed the reads in flight, 0 = the controller decides")                        \
    X(prefetch, "batches made ahead")                                                                        \
    X(network, "1 = storage is on the network")                                                              \
    X(remote, "1 = the pack is in a bucket or on a web server")                                              \
    X(cache_disk, "1 = pages of a remote pack are kept on this machine's disk")                              \
    X(rotational, "1 = storage spins")                                                                       \
    X(pressure_io, "PSI: share of time something stalled on I/O")                                            \
    X(order_random, "1 = random order, 0 = another")                                                         \
    X(cache_process, "1 = cache=process, 0 = cache=os")                                                      \
    /* the data */                                                                                           \
    X(pixels, "mean pixels of a stored image")                                                               \
    X(out_pixels, "pixels of a delivered image")                                                             \
    X(out_bytes, "bytes of a delivered sample")                                                              \
    X(jpeg, "share of images stored as JPEG")                                                                \
    X(tiled, "share stored as tiles")                                                                        \
    X(raw, "share stored raw")                                                                               \
    X(png, "share stored as PNG")                                                                            \
    X(webp, "share stored as WebP")                                                                          \
    X(nhwc, "1 = images are delivered in the layout nhwc (channels_last)")                                   \
    /* batches on a device */                                                                                \
    X(copy_ms, "time per step of copies to the device, on the device")                                       \
    X(device_decode_ms, "time per step of the decoding kernels")                                             \
    X(device_overlap_ms, "part of copy_ms and device_decode_ms that overlaps with another batch")            \
    X(device_share, "share of the images that the device decodes")                                           \
    X(device_frees, "CPUs that would decode them otherwise; only where CPUs decoded some")                   \
    /* a bucket or web server, asked for ranges of the pack */                                               \
    X(remote_ms, "time of one small request")                                                                \
    X(remote_few, "small requests per second, 2 in flight")                                                  \
    X(remote_many, "the same, 16 in flight")                                                                 \
    X(remote_few_mbs, "MB/s in requests of 128 KiB, 2 in flight")                                            \
    X(remote_many_mbs, "the same, 16 in flight")                                                             \
    X(remote_most_mbs, "the same, 64 in flight; unless 16 fill the line")                                    \
    X(remote_most, "small requests per second, 64 in flight; where 64 large ones bring little more than 16") \
    X(remote_refused, "share of requests that the server refused for now (429, 503)")

#define LEAT_DOCTOR_OPTIONS 8

/* An alternative way to store or deliver the data, measured on a part of it. */
typedef struct leat_doctor_option {
    char action[128];    /* "leat pack --images tiled": what to do */
    char set[64];        /* load flags that do it, "dtype=u8"; "" when it is not about loading */
    double cpu_all;      /* samples/s of decode and augment with it; negative = unchanged */
    double sample_bytes; /* stored size with it; negative = unchanged */
    double out_bytes;    /* delivered size with it; negative = unchanged */
    double whole;        /* 1 = cpu_all is scaled by the cost of the whole loader, including
                          * delivery */
    double spread;       /* by how much its measurements disagree, 0.1 = 10 %; negative = not known */
} leat_doctor_option;

#define LEAT_DOCTOR_TRIALS 6

/* A trial of load flags: the loader ran briefly with and without them, in turn. */
typedef struct leat_doctor_trial {
    char set[96]; /* "order=quasi_random", as in a remedy */
    double rate;  /* samples/s */
    double gain;  /* rate with the flags, divided by the rate without them */
    /* Relative difference between the halves of the run, or between the runs without the flags before and
     * after it; 0.1 = 10 %, negative = not known. */
    double spread;
} leat_doctor_trial;

#define LEAT_DOCTOR_DECISIONS 16

/* A change made by the loader's controller, with its reason. */
typedef struct leat_doctor_decision {
    double at_s;   /* since the watch was opened */
    char knob[16]; /* "threads", "io_depth" (in reads), "prefetch" (in batches) */
    uint32_t from, to;
    char reason[112];
} leat_doctor_decision;

typedef struct leat_doctor_facts {
    uint32_t struct_size;
    uint32_t option_count;
#define LEAT_DOCTOR_FACT_FIELD(name, meaning) double name;
    LEAT_DOCTOR_FACT_MAP(LEAT_DOCTOR_FACT_FIELD)
#undef LEAT_DOCTOR_FACT_FIELD
    leat_doctor_option options[LEAT_DOCTOR_OPTIONS];
    uint32_t decision_count; /* entries of `decisions`: the last ones, oldest first */
    uint32_t decisions_made; /* all decisions, also those no longer in the list */
    leat_doctor_decision decisions[LEAT_DOCTOR_DECISIONS];
    uint32_t trial_count;
    leat_doctor_trial trials[LEAT_DOCTOR_TRIALS];
} leat_doctor_facts;

/* Sets all facts to unknown. */
LEAT_API void leat_doctor_facts_init(leat_doctor_facts *facts);

/* Parses facts from a JSON object, as in a run file. Unknown keys are ignored; null = not known. LEAT_EDATA:
 * malformed JSON; LEAT_EINVAL: an impossible value. */
LEAT_API int leat_doctor_facts_parse(leat_doctor_facts *facts, const char *json, size_t len,
                                     leat_error *err) LEAT_MUST_CHECK;

/* ---- The diagnosis ---------------------------------------------------------------------- */

typedef enum leat_doctor_limit {
    LEAT_LIMIT_NONE = 0, /* the bottleneck is not known */
    LEAT_LIMIT_IO = 1,
    LEAT_LIMIT_CPU = 2,
    LEAT_LIMIT_DELIVERY = 3, /* order, scheduling, delivery */
    LEAT_LIMIT_TRAINER = 4,  /* the loader keeps up with the trainer */
    LEAT_LIMIT_MEMORY = 5,
    LEAT_LIMIT_PYTHON = 6, /* a Python transform of batches in the trainer's thread */
    LEAT_LIMIT_DEVICE = 7, /* copies to the device, or decoding on it */
    LEAT_LIMITS
} leat_doctor_limit;

/* The cause of the limit. X(name, text). */
#define LEAT_DOCTOR_CAUSE_MAP(X)                                                                             \
    X(NONE, "none")                                                                                          \
    X(COLD, "cold_cache") /* the pack would fit in memory, but is not cached yet */                          \
    X(LATENCY, "latency") /* reads are limited by latency */                                                 \
    X(BANDWIDTH, "bandwidth")                                                                                \
    X(NETWORK, "network")                                                                                    \
    X(AMPLIFIED, "read_amplification") /* more is read than is used */                                       \
    X(DECODE, "decode")                                                                                      \
    X(LARGE_IMAGES, "large_images")                                                                          \
    X(PNG, "png")                                                                                            \
    X(AUGMENT, "augment")                                                                                    \
    X(THROTTLED, "quota")                                                                                    \
    X(CONTENTION, "other_processes")                                                                         \
    X(FEW_THREADS, "few_threads")                                                                            \
    X(FEW_CPUS, "few_cpus")                                                                                  \
    X(SMALL_BATCHES, "small_batches")                                                                        \
    X(HANDOVER, "hand_over")                                                                                 \
    X(BURSTS, "bursts") /* the mean rate is enough, but some batches are late */                             \
    X(BUDGET, "budget")                                                                                      \
    X(SWAPPING, "swapping")                                                                                  \
    X(TRAINER, "trainer")                                                                                    \
    X(TRANSFORM, "transform")                                                                                \
    X(WORKERS, "worker_time") /* in workers of another loader; details unknown */                            \
    X(PYTHON, "python_code")  /* Python code per sample, in such a worker */                                 \
    X(COLLATE, "collate")                                                                                    \
    X(TRANSFER, "transfer")         /* pickling, shared memory */                                            \
    X(REQUESTS, "request_rate")     /* the server limits requests per second, whatever their size */         \
    X(MEMORY_LIMIT, "memory_limit") /* the limit is too low to cache the pack */                             \
    X(OTHER_LOADER, "other_loader") /* another loader of this process uses the CPUs */                       \
    X(REFUSED, "throttling")        /* a server refuses requests for now (429, 503) */                       \
    X(SHORT_EPOCHS, "short_epochs") /* the start of an epoch does not overlap with training */               \
    X(DEVICE_COPY, "device_copy")                                                                            \
    X(DEVICE_DECODE, "device_decode")                                                                        \
    X(WAITS, "waits") /* the code of another loader waits, and reads nothing from a disk */

typedef enum leat_doctor_cause {
#define LEAT_DOCTOR_CAUSE_ENUM(name, text) LEAT_CAUSE_##name,
    LEAT_DOCTOR_CAUSE_MAP(LEAT_DOCTOR_CAUSE_ENUM)
#undef LEAT_DOCTOR_CAUSE_ENUM
        LEAT_CAUSES
} leat_doctor_cause;

typedef enum leat_doctor_grade {
    LEAT_GRADE_UNKNOWN = 0, /* the share of lost time is not known */
    LEAT_GRADE_FINE = 1,    /* under 5 % of the step is lost */
    LEAT_GRADE_WARNING = 2, /* 5 to 20 %, or more in fewer than 20 steps or with an unknown limit */
    LEAT_GRADE_CRITICAL = 3
} leat_doctor_grade;

typedef enum leat_doctor_basis {
    LEAT_BASIS_MEASURED = 0, /* the loader ran with the remedy, on this data and machine */
    LEAT_BASIS_MODEL = 1,    /* estimated: computed from measured rates, not tried */
    LEAT_BASIS_GUIDE = 2     /* estimated: from published guides, not measured here */
} leat_doctor_basis;

typedef struct leat_doctor_remedy {
    char action[160];
    char set[96];   /* load flags, "cache=process,memory=4G"; "" = load flags cannot apply it */
    uint32_t basis; /* leat_doctor_basis */
    uint32_t next;  /* leat_doctor_limit: the next bottleneck */
    double rate;    /* predicted samples/s */
    double gain;    /* predicted rate divided by the current one */
} leat_doctor_remedy;

#define LEAT_DOCTOR_REMEDIES 12
#define LEAT_DOCTOR_LINES 12

typedef struct leat_doctor_diagnosis {
    uint32_t struct_size;
    uint32_t limit;    /* leat_doctor_limit */
    uint32_t cause;    /* leat_doctor_cause */
    uint32_t next;     /* leat_doctor_limit: the bottleneck once `limit` is removed */
    uint32_t grade;    /* leat_doctor_grade */
    uint32_t complete; /* 0 = the facts in `missing` could change the diagnosis */
    double confidence; /* 0 to 1: how much evidence there is, and how well it agrees */
    double lost;       /* share of the step spent waiting; negative = not known */
    /* Samples/s: the current rate, and the highest possible rate of each part. Negative = not known. */
    double rate, io, cpu, delivery, memory, trainer, device;
    uint32_t missing_count, evidence_count, finding_count, remedy_count;
    char sentence[320];
    char missing[LEAT_DOCTOR_LINES][80];
    char evidence[LEAT_DOCTOR_LINES][160];
    char findings[LEAT_DOCTOR_LINES][160];             /* other problems: bad samples, throttling … */
    leat_doctor_remedy remedies[LEAT_DOCTOR_REMEDIES]; /* the largest gain first */
    /* The remedies that are load flags, combined. */
    char apply[256];               /* "cache=process,threads=8"; "" = nothing to set */
    double apply_rate, apply_gain; /* predicted; the gain is 1 when no flag helps */
    uint32_t apply_basis;          /* leat_doctor_basis of that gain */
    leat_doctor_facts facts;
} leat_doctor_diagnosis;

/* Computes the diagnosis. LEAT_EINVAL: err names an impossible fact (a share above 1). */
LEAT_API int leat_doctor_judge(const leat_doctor_facts *facts, leat_doctor_diagnosis *d, size_t size,
                               leat_error *err) LEAT_MUST_CHECK;

LEAT_API const char *leat_doctor_limit_name(uint32_t limit); /* "io", "cpu" … */
LEAT_API const char *leat_doctor_cause_name(uint32_t cause);
LEAT_API const char *leat_doctor_grade_name(uint32_t grade);
LEAT_API const char *leat_doctor_basis_name(uint32_t basis);

typedef enum leat_doctor_format {
    LEAT_DOCTOR_PAGE = 0, /* for people, with bars */
    LEAT_DOCTOR_PAGE_ASCII = 1,
    LEAT_DOCTOR_JSON = 2, /* one line */
    LEAT_DOCTOR_YAML = 3  /* the load flags of `apply` */
} leat_doctor_format;

/* Passes the text to `write` in one or more pieces; a non-zero return stops and is returned. */
LEAT_API int leat_doctor_write(const leat_doctor_diagnosis *d, leat_doctor_format format,
                               int (*write)(void *cookie, const char *text, size_t len), void *cookie,
                               leat_error *err) LEAT_MUST_CHECK;

/* ---- Watching a loader ------------------------------------------------------------------ */

/* The activity of a loader in one interval, for plots and live views. */
typedef struct leat_doctor_frame {
    double at_s; /* since the watch was opened */
    double samples_per_s, read_bytes_per_s, batches_per_s;
    double lost;                      /* share of the interval spent waiting in next() */
    double cpu_used;                  /* CPUs */
    double busy[LEAT_LOADER_STAGES];  /* mean workers busy: order, read, decode, collate */
    double ready[LEAT_LOADER_STAGES]; /* share of the interval with tasks waiting there */
    uint32_t waiting[LEAT_LOADER_STAGES], running[LEAT_LOADER_STAGES]; /* now */
    double blocked; /* share of the interval with work blocked only by the memory budget */
    uint64_t budget_used, budget_limit, cache_bytes;
    uint32_t threads, io_depth, prefetch;
    uint64_t epoch, samples, bad; /* totals so far */
} leat_doctor_frame;

typedef struct leat_doctor_watch leat_doctor_watch;

/* Starts a thread that samples the loader every `interval_ms` (0 = 250) and keeps about the last hour. Close
 * the watch before the loader. Any thread may call the functions below. */
LEAT_API int leat_doctor_watch_open(leat_doctor_watch **watch, leat_loader *loader, uint32_t interval_ms,
                                    leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_doctor_watch_close(leat_doctor_watch **watch);

/* Reads the facts since the watch was opened. A running loader does not reveal the highest rate of each part;
 * set those with leat_doctor_watch_known, and all later results use them. */
LEAT_API int leat_doctor_watch_facts(leat_doctor_watch *watch, leat_doctor_facts *facts,
                                     leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_doctor_watch_known(leat_doctor_watch *watch, const leat_doctor_facts *facts);

/* Copies the last `count` frames, oldest first; returns how many there were. */ LEAT_API size_t
leat_doctor_watch_frames(leat_doctor_watch *watch, leat_doctor_frame *frames, size_t count);

/* Records every frame, and a diagnosis every second, in a run file: JSON lines for leat_doctor_run_open,
 * `leat top` and `leat doctor --attach`. The file is created or truncated, and truncated again at 32 MiB.
 * `path` NULL, or closing the watch, ends the recording with a last diagnosis. A failed write also ends it; a
 * call with `path` NULL then returns its error. */
LEAT_API int leat_doctor_watch_record(leat_doctor_watch *watch, const char *path,
                                      leat_error *err) LEAT_MUST_CHECK;

/* ---- Following a run file --------------------------------------------------------------- */

typedef struct leat_doctor_run leat_doctor_run;

/* Follows a run file, from any process; one thread at a time. The file may be created later. `path` NULL: all
 * text comes from leat_doctor_run_feed. */
LEAT_API int leat_doctor_run_open(leat_doctor_run **run, const char *path, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_doctor_run_close(leat_doctor_run **run);

/* Reads the lines added since the last call. A truncated file is read from its beginning; a new run in it
 * replaces the old one. LEAT_ENOENT: the file does not exist (yet); LEAT_EDATA: not a run file. *news (may be
 * NULL) is 1 when there was something new. */
LEAT_API int leat_doctor_run_look(leat_doctor_run *run, uint32_t *news, leat_error *err) LEAT_MUST_CHECK;
/* Reads text from memory instead. An incomplete last line waits for the next call. */
LEAT_API int leat_doctor_run_feed(leat_doctor_run *run, const char *text, size_t len,
                                  leat_error *err) LEAT_MUST_CHECK;

/* Returns the last diagnosis, computed from the recorded facts; NULL before the first. Valid until the next
 * look or feed. */
LEAT_API const leat_doctor_diagnosis *leat_doctor_run_diagnosis(const leat_doctor_run *run);
/* Copies the last `count` frames, oldest first; returns how many there were. */ LEAT_API size_t
leat_doctor_run_frames(const leat_doctor_run *run, leat_doctor_frame *frames, size_t count);
LEAT_API uint32_t leat_doctor_run_ended(const leat_doctor_run *run); /* 1 = its last line was read */

/* ---- Views ------------------------------------------------------------------------------ */

/* Writes the diagnosis and the frames (may be none) as one self-contained HTML page with plots and without
 * scripts. `title` is the heading. Uses `write` like leat_doctor_write. */
LEAT_API int leat_doctor_report(const leat_doctor_diagnosis *d, const leat_doctor_frame *frames, size_t count,
                                const char *title, int (*write)(void *cookie, const char *text, size_t len),
                                void *cookie, leat_error *err) LEAT_MUST_CHECK;

/* Writes the diagnosis as one line of JSON, with the frame (may be NULL) under the key "frame". Uses `write`
 * like leat_doctor_write. */
LEAT_API int leat_doctor_write_now(const leat_doctor_diagnosis *d, const leat_doctor_frame *frame,
                                   int (*write)(void *cookie, const char *text, size_t len), void *cookie,
                                   leat_error *err) LEAT_MUST_CHECK;

/* Writes a view for a terminal: stages, queues, rates, memory and the current diagnosis, in lines of at most
 * `columns` columns. Without frames it shows only the diagnosis. */
LEAT_API int leat_doctor_top(const leat_doctor_diagnosis *d, const leat_doctor_frame *frames, size_t count,
                             uint32_t columns, uint32_t ascii,
                             int (*write)(void *cookie, const char *text, size_t len), void *cookie,
                             leat_error *err) LEAT_MUST_CHECK;

/* ---- A page on the loopback interface --------------------------------------------------- */

typedef struct leat_doctor_server leat_doctor_server;

/* Serves the live page of a watch on 127.0.0.1 from separate threads: / (the page), /body (its changing
 * part), /doctor.json, /frames.json, /metrics (OpenMetrics). port 0 = any free port. Close it before the
 * watch. LEAT_ENOTSUP: libmicrohttpd is missing; LEAT_EEXIST: the port is in use. */
LEAT_API int leat_doctor_serve(leat_doctor_server **server, leat_doctor_watch *watch, uint16_t port,
                               leat_error *err) LEAT_MUST_CHECK;
LEAT_API uint16_t leat_doctor_server_port(const leat_doctor_server *server);
LEAT_API void leat_doctor_server_close(leat_doctor_server **server);

/* ---- Examining a pack ------------------------------------------------------------------- */

typedef struct leat_doctor_examine_opts {
    uint32_t struct_size;
    uint32_t spin;  /* 1 = the simulated trainer keeps one CPU busy, as a training loop may */
    double step_ms; /* time of one training step; 0 = not known */
    /* Time for the measurements; 0 = 8. They take at most 2 * seconds + 5: measurements that do not fit are
     * shortened or skipped (see the facts trial_batch, trial_step_ms and skipped). */
    double seconds;
    /* Called from time to time; return non-zero to stop. `watch` is set while a loader runs. Before the watch
     * is closed, one call passes NULL: close everything that uses the watch. During a call, the caller may
     * copy `facts`, which has the measurements so far. Closing a loader takes as long as its reads in flight,
     * which cannot be stopped. */
    int (*progress)(void *cookie, const char *what, double done, leat_doctor_watch *watch);
    void *cookie;
} leat_doctor_examine_opts;
#define LEAT_DOCTOR_EXAMINE_OPTS_INIT                                                                        \
    {                                                                                                        \
        .struct_size = sizeof(leat_doctor_examine_opts)                                                      \
    }

/* Measures the rate of each part alone on the user's data, and runs the loader with a simulated trainer. Only
 * reads the pack, and leaves the page cache nearly unchanged. LEAT_ECANCELED: progress stopped it; `facts`
 * has the measurements so far. Other errors as leat_loader_open. */
LEAT_API int leat_doctor_examine(const char *pack, const leat_loader_opts *loader,
                                 const leat_doctor_examine_opts *opts, leat_doctor_facts *facts,
                                 leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
