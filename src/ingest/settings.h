/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pack says of how it was made, and what a resumed run must have in common with it.
 */
#ifndef LEAT_INGEST_SETTINGS_H
#define LEAT_INGEST_SETTINGS_H

#include <leat/ingest.h>

#include "base/buf.h"
#include "ingest/image_encode.h"
#include "ingest/source.h"

/* {"kind":…,"names":[…],"settings":{…}}: names without folders, so that a copy of the same data
 * elsewhere gives the same pack. */
int leat__ingest_provenance(const leat_ingest_opts *opts, const leat__encode_plan *plan,
                            const leat__source *source, leat__buf *out, leat_error *err) LEAT_MUST_CHECK;

/* Resume requires the same sources and settings. */
uint64_t leat__ingest_identity(const leat_ingest_opts *opts, const leat__buf *provenance);

/* Neither the pack nor the list of skipped samples may replace what is read; a merged pack may. */
int leat__ingest_spare(const leat_ingest_opts *opts, leat_error *err) LEAT_MUST_CHECK;

#endif
