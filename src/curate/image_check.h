/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of leat_check_images shared by the command and the Python package, and its first half,
 * which deduplication also needs.
 */
#ifndef LEAT_CURATE_IMAGE_CHECK_H
#define LEAT_CURATE_IMAGE_CHECK_H

#include <leat/images.h>

#include "base/buf.h"
#include "curate/image_columns.h"
#include "curate/image_spool.h"
#include "ingest/source_chain.h"

#define LEAT__CHECK_CSV "key,verdict," /* first bytes of the CSV file */

/* Writes the statistics as JSON. Reads the keys of examples from the columns at `output`; NULL omits them. */
void leat__check_json(const leat_check_stats *stats, const char *output, leat__buf *out);

void leat__check_count(leat__check_counts *counts, const leat__image_facts *facts);

/* Runs the second half of leat_check_images; `spool` has the facts of all rows. */
int leat__check_scored(const leat_check_opts *opts, leat__image_spool *spool,
                       const leat__check_counts *counts, leat_check_stats *stats,
                       leat_error *err) LEAT_MUST_CHECK;

/* Computes the chain over all records of the sources by listing them, without reading any. */
int leat__check_chain(const leat_check_opts *opts, leat__chain *chain, leat_error *err) LEAT_MUST_CHECK;
/* Returns an amount of memory that is enough to check these sources; inspects many of their images. */
uint64_t leat__check_enough(const leat_check_opts *opts);

#endif
