/* SPDX-License-Identifier: Apache-2.0
 *
 * The Python package writes tables with pyarrow. It registers a function here.
 */
#ifndef LEAT_INGEST_TABLE_WRITER_H
#define LEAT_INGEST_TABLE_WRITER_H

#include <leat/ingest.h>

typedef int (*leat__table_writer)(const leat_export_opts *opts, leat_export_stats *stats, leat_error *err);
void leat__table_writer_register(leat__table_writer write); /* for the whole process; NULL unregisters */

#endif
