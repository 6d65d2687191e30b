/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing into a pack that is there: labels get the numbers that its class names have, images are
 * stored as its images are, and samples whose keys it has are refused, passed over or updated.
 */
#ifndef LEAT_INGEST_APPEND_TO_H
#define LEAT_INGEST_APPEND_TO_H

#include "ingest/image_encode.h"
#include "ingest/source.h"

typedef struct leat__base_classes {
    int64_t *relabel; /* class number of the source -> of the pack; NULL when there are no names */
    uint64_t count;
} leat__base_classes;

/* Adds the source's class names that the pack does not have behind those that it has. */
int leat__append_classes(leat__base_classes *c, leat_packer *packer, const leat__source *source,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__append_classes_reset(leat__base_classes *c);
/* The label of a sample, in place. */
void leat__append_relabel(const leat__base_classes *c, const leat__source *source, leat_pack_value *values);

/* Stores images as the settings in the pack's provenance say, unless the options say how. */
int leat__append_images(const leat_pack *base, const leat_ingest_opts *opts, leat__encode_plan *plan,
                        leat_error *err) LEAT_MUST_CHECK;

/* Whether the sample is to be appended; counts those whose key is there. LEAT_EEXIST: it must not be. */
int leat__append_admit(leat_packer *packer, uint32_t mode, const leat_pack_sample *sample, bool *wanted,
                       uint64_t *existing, leat_error *err) LEAT_MUST_CHECK;

#endif
