/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a plan, each a pure function of completed facts (every default filled in).
 */
#ifndef LEAT_PLAN_PARTS_H
#define LEAT_PLAN_PARTS_H

#include <stdbool.h>

#include <leat/loader.h>
#include <leat/plan.h>

#include "base/buf.h"
#include "op/pipeline.h"
#include "plan/arch.h"
#include "plan/plan_tables.h"

/* Safe shares of a limit. The peak of a process-based loader varies, so up to half is safe (tf.data's
 * rule for buffers). leat's budget is a hard limit, so up to four fifths is safe (where Dask pauses
 * its readers). Above 0.95 (where Dask kills workers) the run will fail. */
#define PLAN_SAFE_PROCESS 0.50
#define PLAN_SAFE_LEAT 0.80
#define PLAN_ALIVE 0.95

/* Margin for the allocator's rounding and fragmentation: no plan uses the last 8 % of a GPU. ResNet-152 at
 * 256 would take 94.8 % of an RTX 3090; published runs had to go down to 192. */
#define PLAN_SAFE_VRAM 0.92

/* Least share of a pack in the page cache that counts as all of it. */
#define PLAN_CACHED 0.95
/* Values of facts.cache and facts.order. */
#define PLAN_CACHE_PROCESS (1u + LEAT_CACHE_PROCESS)
#define PLAN_ORDER(order) (1u + (order))

#define PLAN_GB UINT64_C(1000000000)
/* The stored image size when none is known: ImageNet's mean. */
#define LEAT__PLAN_WIDTH 500u
#define LEAT__PLAN_HEIGHT 375u
#define LEAT__PLAN_SAMPLE 110000u /* bytes, not raw */

/* Adds a note once, in order; notes beyond the last slot are dropped. */
void leat__plan_note(leat_plan *plan, const char *fmt, ...) LEAT_PRINTF(2, 3);

/* plan_make.c: the planned order, as a value of `leat load --order`. */
leat_order leat__plan_order(const leat_plan_facts *f); /* from facts.order; 0: the default */
const char *leat__plan_order_name(const leat_plan *plan);
/* Completes plan->facts and fills in memory, rates and `fits`, which decide about a plan. */
int leat__plan_judge(leat_plan *plan, leat_error *err) LEAT_MUST_CHECK;
/* Does the same with the overlap of reading and decoding that was measured with other facts. Keeps a
 * `vram` that is already filled in: most changes of a plan do not affect the training step. */
typedef struct leat__plan_overlap leat__plan_overlap;
int leat__plan_judge_as(leat_plan *plan, const leat__plan_overlap *overlap, leat_error *err) LEAT_MUST_CHECK;
int leat__plan_judge_ram(leat_plan *plan, leat_error *err) LEAT_MUST_CHECK; /* host memory only */
/* True when the plan chooses the number of workers, to fit memory. Takes facts before their defaults. */
bool leat__plan_own_workers(const leat_plan_facts *f);
/* Returns the batch size of the run if it is not the plan's, rounded up; 0 = the plan's, or unknown. */
uint64_t leat__plan_other_batch(const leat_plan *plan, const leat_plan_run *run);

/* config.c: defaults, workers, prefetch, batch, precision, learning rate. */
int leat__plan_complete(leat_plan *plan, leat_error *err) LEAT_MUST_CHECK;
/* Returns the samples of a step on all ranks: at most those of the dataset. */
uint64_t leat__plan_total_batch(const leat_plan_facts *f, uint64_t batch, uint64_t ranks);
double leat__plan_lr(const leat_plan_facts *f, uint64_t total_batch);
uint32_t leat__plan_default_workers(uint32_t cpus, uint32_t devices);
/* Returns the CPUs left over because each GPU has the same number of workers. Takes facts before
 * their defaults, and the resulting workers. Returns 0 when that number was given, or is smaller for
 * another reason. */
uint32_t leat__plan_unused_cpus(const leat_plan_facts *given, uint32_t workers);

/* In ram.c. */
/* Returns the samples of a batch: at most those of the dataset, as in the loader. */
uint64_t leat__plan_batch_samples(const leat_plan_facts *f);
uint64_t leat__plan_batch_bytes(const leat_plan_facts *f);
uint64_t leat__plan_frame_bytes(const leat_plan_facts *f); /* of leat's loader: with labels and alignment */
void leat__plan_ram_process(const leat_plan_facts *f, leat_plan_ram *ram);
void leat__plan_ram_leat(const leat_plan_facts *f, uint32_t window, leat_plan_ram *ram);
uint64_t leat__plan_dataset_bytes(const leat_plan_facts *f);

/* For the what-ifs about stored images. */
#define PLAN_SMALLER_SIDE 400
#define PLAN_LESS_QUALITY 90

/* In text_plan.c: minimum memory and largest work files of `leat dedup fuzzy`, as src/curate plans
 * them. 0 values mean its defaults. */
typedef struct leat__plan_dedup {
    uint64_t documents;
    uint32_t bands, rows, bands_at_once;
    uint64_t ram_bytes, work_bytes; /* out */
} leat__plan_dedup;
void leat__plan_dedup_needs(leat__plan_dedup *d);

/* In vram.c. The largest batch is a separate call: it takes some 25 times as long. */
int leat__plan_vram(const leat_plan_facts *f, leat_plan_vram *vram, leat_error *err) LEAT_MUST_CHECK;
int leat__plan_largest_batch(const leat_plan_facts *f, uint64_t *batch, leat_error *err) LEAT_MUST_CHECK;

/* In gpus.c: returns a row by its exact name or alias; NULL when unknown. */
const plan_gpu *leat__plan_gpu_find(const char *name);
/* Fails with LEAT_EINVAL for an unknown name, and lists similar names, or all. `others`: the options to give
 * for another GPU. */
int leat__plan_gpu_unknown(const char *name, const char *others, leat_error *err);

/* In step_rate.c: predicts the seconds per sample on one GPU; 0 when unknown. `spread`: the rate is
 * between 1/(1 + spread) and (1 + spread) times the prediction. */
double leat__plan_step_s(const leat_plan_facts *f, const leat_plan_vram *v, double *spread);

/* In op_cost.c, by the tables. op_us returns the microseconds of one op for 224 x 224 pixels and p = 1: 0 for
 * crop, resize, flip and combinators, negative when the op is not in them. ops_us adds up a pipeline, for
 * images of this size: each op counts by its probability, its arguments, the size that the image has before
 * it and the number of images that crops before it made. false: an op is not in the tables. *sure is false
 * when that size varies. cpu_times returns how much longer this CPU takes than that of the tables. */
double leat__plan_op_us(const char *name, const char *isa);
bool leat__plan_ops_us(const char *ops, const char *isa, uint32_t width, uint32_t height, double *us,
                       bool *sure);
/* Returns the mean share of an image of this size that its first ops read: what is decoded. */
double leat__plan_ops_area(const leat__pipeline *p, uint32_t width, uint32_t height);
double leat__plan_cpu_times(const leat_plan_facts *f);

/* In decode.c. */
void leat__plan_decodes(leat_plan *plan);

/* In rate.c. */
/* Returns how many of these CPUs a quota allows; quota 0 = all. */
double leat__plan_cpus(double cpus, double quota);
/* Returns the CPUs that the loader got if other processes used some during the measurement, else 0.
 * *wanted: the CPUs that it wanted. */
double leat__plan_shared_cpus(const leat_plan_facts *f, uint32_t *wanted);
/* How reading and decoding overlap, from a calibration. Reading also takes CPU time, and neither
 * hides the other completely: a sample takes the longer of both plus a share of the shorter. */
struct leat__plan_overlap {
    double read_us;  /* CPU time per byte read */
    double io_scale; /* time of the loader's reads relative to plain reads */
    double beside;   /* share of the shorter that is not hidden: 0 to 1 */
};
leat__plan_overlap leat__plan_overlap_of(const leat_plan_facts *f);
void leat__plan_speed(const leat_plan_facts *f, const leat__plan_overlap *overlap, const leat_plan_ram *ram,
                      const leat_plan_vram *vram, leat_plan_speed *speed);
/* True for a random order, with both loaders: it reads each sample separately. Other orders read
 * whole pages. */
bool leat__plan_reads_single(const leat_plan_facts *f);
/* True when a model is trained without a GPU: the time of a step is then unknown. */
bool leat__plan_trainer_unknown(const leat_plan_facts *f);
bool leat__plan_in_memory(const leat_plan_facts *f); /* nothing is read from storage */
bool leat__plan_remote(const leat_plan_facts *f);    /* read from a bucket, by requests */
/* True when leat's loader keeps pages in its own budget: from a bucket, or with cache=process. */
bool leat__plan_own_pages(const leat_plan_facts *f);
/* Returns the most reads per second of the storage, of any size; 0 = no limit. */
double leat__plan_read_limit(const char *storage);
/* Returns the share of time that workers decode while the pack is read from storage. */
double leat__plan_busy(const leat_plan_facts *f);
/* Return the CPU time of a sample in microseconds from the table: sample_us for one stored with
 * `method` of data/plan/costs.txt in this many bytes and pixels, table_us for a mean sample of the
 * facts. */
double leat__plan_sample_us(const leat_plan_facts *f, const char *method, double bytes, double pixels);
double leat__plan_table_us(const leat_plan_facts *f);
/* Returns the bytes of a mean sample if the images were stored in this way. */
uint64_t leat__plan_stored_bytes(const leat_plan_facts *f, uint32_t images, double mix);
double leat__plan_quality_share(uint32_t quality); /* share of the original's bytes */

/* In what_if.c: `given` are the facts without defaults that depend on other facts. */
void leat__plan_what_ifs(leat_plan *plan, const leat_plan_facts *given);

/* In bucket.c: how the loader reads a dataset in a bucket with the page cache that its budget has. */
typedef struct leat__plan_reads {
    double kept;           /* share of the dataset that stays in memory */
    double single;         /* share of the samples that are read alone, in the first epoch */
    double times;          /* bytes read in an epoch, relative to the dataset */
    double requests;       /* of a first epoch */
    double later_requests; /* of a later epoch, if nothing were kept */
    double ahead;          /* most bytes of pages in flight */
    double at_once;        /* requests in flight */
} leat__plan_reads;
leat__plan_reads leat__plan_reads_of(const leat_plan_facts *f, const leat_plan_ram *ram);
/* Returns the bytes of the pages that the order reads from at a time. */
uint64_t leat__plan_open_bytes(const leat_plan_facts *f);
/* Returns samples per second from a bucket over a link of these bytes per second. `later`: of the samples
 * that are not kept, in an epoch after the first. */
leat_plan_range leat__plan_bucket_rate(const leat_plan_facts *f, const leat__plan_reads *r,
                                       leat_plan_range link, bool later);
/* Returns the share of the dataset in a bucket that one node has read after `epochs`. */
double leat__plan_seen_share(const leat_plan_facts *f, const leat__plan_reads *r, double epochs);
/* For a dataset in a bucket; call it after leat__plan_speed. */
void leat__plan_traffic(leat_plan *plan);

/* In solve.c. */
void leat__plan_scales(leat_plan *plan, const leat_plan_facts *given); /* `given` as for the what-ifs */
int leat__plan_fix(leat_plan *plan, const leat_plan_facts *given, leat_error *err) LEAT_MUST_CHECK;

/* In plan_page.c and plan_json.c. */
void leat__plan_page(const leat_plan *plan, leat__buf *out, bool ascii);
void leat__plan_json(const leat_plan *plan, leat__buf *out);
void leat__plan_yaml(const leat_plan *plan, leat__buf *out);

#endif
