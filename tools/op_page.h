/* SPDX-License-Identifier: Apache-2.0
 *
 * Help on augmentations, from the library's table: `leat help ops` and `leat help OP`.
 */
#ifndef LEAT_TOOLS_OP_PAGE_H
#define LEAT_TOOLS_OP_PAGE_H

#include "cli_page.h"

/* Writes all ops by kind, each with its parameters. */
void op_page_all(cli_writer *w);

/* Writes one op; returns false when there is none of this name (ignoring case). */
bool op_page_one(cli_writer *w, const char *name);

/* Returns the nearest name of an op, or NULL. */
const char *op_page_nearest(const char *name);

#endif
