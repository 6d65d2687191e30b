/* SPDX-License-Identifier: Apache-2.0
 *
 * The other questions `leat plan` answers: one fact solved for, machines by dataset, the memory
 * of fuzzy deduplication, and a plan against a run that was measured.
 */
#ifndef LEAT_TOOLS_PLAN_MODES_H
#define LEAT_TOOLS_PLAN_MODES_H

#include <leat/plan.h>

#include "cli.h"

/* Each prints its answer and returns the exit code. */
int plan_solve(cli *c, const leat_plan_facts *facts, int field);
int plan_recommend(cli *c, const leat_plan_facts *facts, int kind, uint64_t amount);
int plan_minhash(cli *c, const leat_plan_minhash_facts *facts);
int plan_compare(cli *c, const leat_plan *plan, const char *path);

#endif
