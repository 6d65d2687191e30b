/* SPDX-License-Identifier: Apache-2.0
 *
 * Help on augmentations, out of the library's table: `leat help ops` and `leat help OP`.
 */
#ifndef LEAT_TOOLS_OP_PAGE_H
#define LEAT_TOOLS_OP_PAGE_H

#include "cli_page.h"

/* All ops, by kind, each with its parameters. */
void op_page_all(cli_writer *w);

/* One op; false when there is none of this name (upper or lower case does not matter). */
bool op_page_one(cli_writer *w, const char *name);

/* The nearest name of an op, or NULL. */
const char *op_page_nearest(const char *name);

#endif
