/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of `leat plan`: facts from a pack, and its other answers: one fact solved for, machines
 * by dataset, the memory of fuzzy deduplication, a plan against a run that was measured.
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

/* Facts of a pack: samples, bytes, pages, how its images are stored, their mean size, kind and work, and
 * its storage. Crop, output size and ISA have to be there. LEAT_E… as opening a pack gives. A prefix of
 * images in a bucket has number and sizes only: *listed. */
int plan_dataset(const char *path, leat_plan_facts *facts, leat__image_kind *kind, bool *listed,
                 leat_error *err) LEAT_MUST_CHECK;

/* Measures on a few images of a local pack how many bytes what-ifs would store; leaves 0 what it cannot. */
void plan_sizes(const char *path, leat_plan_facts *facts, const leat__time_limit *limit);

/* Memory of the images that this pipeline works on: of the pack's, or without a pack (NULL, or in a bucket)
 * of one of the mean size. */
int plan_images(const char *path, const leat__pipeline *pipeline, leat_plan_facts *facts,
                leat_error *err) LEAT_MUST_CHECK;

/* Measures storage, and the loader cold and warm with one thread and with `threads`: some ten seconds.
 * `opts` says what is delivered. */
int plan_calibrate(const char *path, const leat_loader_opts *opts, uint32_t threads, leat_plan_calibration *k,
                   leat_error *err) LEAT_MUST_CHECK;

/* The bus to the GPU, where there is one. */
int plan_measure_copy(cli *c, leat_plan_calibration *k, leat_error *err) LEAT_MUST_CHECK;

/* The same in short (about a second); storage and the loader reading from it only when
 * `cold`. */
int plan_measure(const char *path, const leat_loader_opts *opts, uint32_t threads, bool cold,
                 leat_plan_calibration *k, leat_error *err) LEAT_MUST_CHECK;

/* Of a pack in a bucket, by few requests: the rate of the link and the latency of a request (unless
 * `link` is false), then the loader from memory. */
int plan_measure_bucket(const char *path, const leat_loader_opts *opts, uint32_t threads, bool link,
                        bool longer, leat_plan_calibration *k, double *latency_s,
                        leat_error *err) LEAT_MUST_CHECK;

/* One of these measurements, with a ceiling: two seconds, five of a bucket, a minute when `longer`. */
typedef struct plan_trial {
    const char *path;
    leat_loader_opts opts;
    uint32_t threads;
    bool cold, link, longer; /* as above */
    bool sizes;              /* also what plan_sizes measures */
    leat_plan_facts facts;   /* its process_bytes and shares are filled */
    leat_plan_calibration k; /* filled */
    double latency_s;        /* filled; 0 = not measured */
} plan_trial;

/* Runs it in a thread. On slow storage the table and the bytes that arrived are used, with a warning;
 * of a bucket, never the table for storage.
 * LEAT_ECANCELED within a second of a signal. */
int plan_trial_run(cli *c, plan_trial *trial, leat_error *err) LEAT_MUST_CHECK;
/* The thread is still in a read, and uses the options: the process has to end without it. */
bool plan_trial_left(void);
/* For loops of a measurement: LEAT_ECANCELED when the command no longer waits for it. */
int plan_trial_check(leat_error *err);
/* The link of a bucket is measured: used also where the rest takes too long. */
void plan_trial_link(leat_plan_range bytes_per_s, double latency_s);
void plan_trial_reading(bool on); /* what follows reads from storage: the ceiling counts */

/* CPU time of those ops of a pipeline that are neither crop, resize, flip nor output, on an image of
 * noise of this size. */
int plan_measure_ops(const char *ops, uint32_t width, uint32_t height, double *us,
                     leat_error *err) LEAT_MUST_CHECK;

/* Each prints its answer and returns the exit code. */
int plan_solve(cli *c, const leat_plan_facts *facts, int field);
int plan_recommend(cli *c, const leat_plan_facts *facts, int kind, uint64_t amount);
/* `option`: which one gave the memory; NULL = the machine. */
int plan_minhash(cli *c, const leat_plan_minhash_facts *facts, const char *option);
int plan_text(cli *c, const leat_plan_text_facts *facts, const char *option);
int plan_stage(cli *c, const leat_plan_facts *facts, const char *name, uint64_t amount);
int plan_compare(cli *c, const leat_plan *plan, const char *path);

#endif
