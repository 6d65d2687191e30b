/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of `leat plan` from its options. Functions that return int print an error and return the exit code.
 */
#ifndef LEAT_TOOLS_PLAN_FACTS_H
#define LEAT_TOOLS_PLAN_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/plan.h>

#include "base/str.h"
#include "cli.h"
#include "pack/kind.h"

#define PLAN_SAMPLES_MAX 1e14

/* Return the value of an option, 0 when it is not given. */
int64_t plan_given_int(const cli *c, const char *name);
uint64_t plan_given_bytes(const cli *c, const char *name);

/* True when a loader with worker processes is planned. */
bool plan_is_process(const cli *c);
/* True with --no-measure. */
bool plan_tables_only(cli *c);

/* Call these functions in this order: each uses the facts of those before it. */
int plan_model_facts(cli *c, leat_plan_facts *f);
int plan_machine_facts(cli *c, leat_plan_facts *f);
/* `kind`: of the images of the pack. `listed`: --dataset is a prefix of images in a bucket, not a pack. */
int plan_dataset_facts(cli *c, leat_plan_facts *f, leat__image_kind *kind, bool *listed);
int plan_loading_facts(cli *c, leat_plan_facts *f, leat__image_kind kind);
int plan_measured_facts(cli *c, leat_plan_facts *f);
/* Sets the output of --ops, and the cost of its ops when it cannot be measured on a pack. */
int plan_ops_facts(cli *c, leat_plan_facts *f, leat__image_kind kind, bool listed);
/* Sets the memory to decode the images and to run the ops on them. */
int plan_image_facts(cli *c, leat_plan_facts *f, leat__image_kind kind, bool listed);
/* Sets the share of the images that no GPU can decode, because of their ops. */
int plan_device_facts(cli *c, leat_plan_facts *f, leat__image_kind kind);

/* Writes the pipeline: --ops, or the one that the other flags describe. */
void plan_write_ops(cli *c, const leat_plan_facts *f, leat__buf *ops);

#endif
