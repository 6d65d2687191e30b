/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of `leat plan`: facts from a pack, and its other answers: solving for one fact, machines for a
 * dataset, the memory of fuzzy deduplication, a plan compared with a measured run.
 */
#ifndef LEAT_TOOLS_PLAN_MODES_H
#define LEAT_TOOLS_PLAN_MODES_H

#include <stdbool.h>

#include <leat/loader.h>
#include <leat/plan.h>

#include "cli.h"
#include "doctor/time_limit.h"
#include "op/pipeline.h"
#include "pack/kind.h"

/* Reads the facts of a pack: samples, bytes, pages, how its images are stored, their mean size, kind
 * and work, and its storage. Crop, output size and ISA must be set. Fails like opening a pack. A
 * prefix of images in a bucket gives only number and sizes: *listed. */
int plan_dataset(const char *path, leat_plan_facts *facts, leat__image_kind *kind, bool *listed,
                 leat_error *err) LEAT_MUST_CHECK;

/* Measures on a few images of a local pack how many bytes what-ifs would store; leaves 0 where it cannot. */
void plan_sizes(const char *path, leat_plan_facts *facts, const leat__time_limit *limit);

/* Number of index entries that plan_dataset reads, evenly spaced: enough for the means of a large pack. A
 * remote index is fetched in pieces, so they are read from PLAN_PLACES places. */
#define PLAN_CELLS 4096
#define PLAN_PLACES 8

/* Returns the field whose images are planned; -1 = the pack has none. */
int plan_first_image_field(const leat_pack *pack);

/* Computes the memory to decode images and to run this pipeline on them: of all images of the pack; in a
 * bucket of those whose index entries plan_dataset reads; without a pack (NULL) of one of the mean size.
 * `stored`: the leat__codec_id that the images will have; 0 = as they are. */
int plan_images(const char *path, uint32_t stored, const leat__pipeline *pipeline, leat_plan_facts *facts,
                leat_error *err) LEAT_MUST_CHECK;

/* Measures storage, and the loader cold and warm with one thread and with `threads`: some ten
 * seconds. `opts` defines what is delivered. */
int plan_calibrate(const char *path, const leat_loader_opts *opts, uint32_t threads, leat_plan_calibration *k,
                   leat_error *err) LEAT_MUST_CHECK;

/* Measures the bus to the GPU, if there is one. */
int plan_measure_copy(cli *c, leat_plan_calibration *k, leat_error *err) LEAT_MUST_CHECK;

/* Makes a short measurement (about a second); storage and cold reading only with `cold`. */
int plan_measure(const char *path, const leat_loader_opts *opts, uint32_t threads, bool cold,
                 leat_plan_calibration *k, leat_error *err) LEAT_MUST_CHECK;

/* Measures only the storage, for about a second. */
int plan_measure_storage(const char *path, leat_plan_calibration *k, leat_error *err) LEAT_MUST_CHECK;

/* Measures a pack in a bucket with few requests: the rate of the link and the latency of a request (unless
 * `link` is false), then the loader from memory (unless `opts` is NULL). */
int plan_measure_bucket(const char *path, const leat_loader_opts *opts, uint32_t threads, bool link,
                        bool longer, leat_plan_calibration *k, double *latency_s,
                        leat_error *err) LEAT_MUST_CHECK;

/* One of these measurements, with a time limit: two seconds, five for a bucket, a minute with `longer`. */
typedef struct plan_trial {
    const char *path;
    leat_loader_opts opts;
    uint32_t threads;
    bool cold, link, longer; /* as above */
    bool storage;            /* only storage: the loader that is planned is another */
    bool sizes;              /* also what plan_sizes measures */
    leat_plan_facts facts;   /* process_bytes and the shares are results */
    leat_plan_calibration k; /* filled */
    double latency_s;        /* filled; 0 = not measured */
} plan_trial;

/* Records the memory of this process. Call it first: reading the facts of the machine loads the GPU driver,
 * which takes 17 MB that `leat load` does not need. */
void plan_trial_note_memory(void);
/* Runs the measurement in a thread. On slow storage it uses the table and the bytes that arrived,
 * with a warning; for a bucket, never the table for storage. LEAT_ECANCELED within a second of a
 * signal. */
int plan_trial_run(cli *c, plan_trial *trial, leat_error *err) LEAT_MUST_CHECK;
/* True when the thread is still in a read and uses the options: the process must end without it. */
bool plan_trial_left(void);
/* Called in loops of a measurement: LEAT_ECANCELED when the command no longer waits for it. */
int plan_trial_check(leat_error *err);
/* Reports the measured link of a bucket, which is used even if the rest takes too long. */
void plan_trial_link(leat_plan_range bytes_per_s, double latency_s);
void plan_trial_reading(bool on); /* the next steps read from storage: the time limit applies */

/* Measures the CPU time of the ops in f->ops other than crop, resize, flip and output, on a noise
 * image of this size. */
int plan_measure_ops(const leat_plan_facts *f, uint32_t width, uint32_t height, double *us,
                     leat_error *err) LEAT_MUST_CHECK;

/* Each of these prints its answer and returns the exit code. */
int plan_solve(cli *c, const leat_plan_facts *facts, int field);
int plan_recommend(cli *c, const leat_plan_facts *facts, int kind, uint64_t amount);
/* `option`: the option that gave the memory; NULL = the machine. */
int plan_minhash(cli *c, const leat_plan_minhash_facts *facts, const char *option);
int plan_text(cli *c, const leat_plan_text_facts *facts, const char *option);
int plan_stage(cli *c, const leat_plan_facts *facts, const char *name, uint64_t amount);
int plan_compare(cli *c, const leat_plan *plan, const char *path);

#endif
