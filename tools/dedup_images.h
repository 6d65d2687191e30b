/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat dedup images`.
 */
#ifndef LEAT_TOOLS_DEDUP_IMAGES_H
#define LEAT_TOOLS_DEDUP_IMAGES_H

#include "cli.h"

/* Returns CLI_USAGE, after a message, when an option of another kind is given. */
int dedup_kind_check(cli *c);
/* Runs the command and returns the exit code. */
int dedup_images(cli *c, const char *const *inputs, uint32_t count);

#endif
