/* SPDX-License-Identifier: Apache-2.0
 *
 * How a pack was made: its provenance, and the identity that a resumed run must share.
 */
#ifndef LEAT_INGEST_SETTINGS_H
#define LEAT_INGEST_SETTINGS_H

#include <leat/ingest.h>

#include "base/buf.h"
#include "ingest/image_encode.h"
#include "ingest/source.h"

/* Writes {"kind":…,"names":[…],"settings":{…}}. Names have no folders, so that a copy of the data
 * elsewhere gives the same pack. */
int leat__ingest_provenance(const leat_ingest_opts *opts, const leat__encode_plan *plan,
                            const leat__source *source, leat__buf *out, leat_error *err) LEAT_MUST_CHECK;

/* Returns the hash of sources and settings; resuming requires the same. */
uint64_t leat__ingest_identity(const leat_ingest_opts *opts, const leat__buf *provenance);

/* Fails when the pack or the list of skipped samples would replace an input; a merged pack may replace
 * one. */
int leat__ingest_spare(const leat_ingest_opts *opts, leat_error *err) LEAT_MUST_CHECK;

#endif
