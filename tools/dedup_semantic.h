/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat dedup semantic`.
 */
#ifndef LEAT_TOOLS_DEDUP_SEMANTIC_H
#define LEAT_TOOLS_DEDUP_SEMANTIC_H

#include "cli.h"

/* Runs the command on the argument after KIND and returns the exit code. */
int dedup_semantic(cli *c, uint32_t inputs);

#endif
