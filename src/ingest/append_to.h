/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends to an existing pack: labels get the numbers of its class names, images are stored like its
 * images, and samples whose keys exist are refused, skipped or updated.
 */
#ifndef LEAT_INGEST_APPEND_TO_H
#define LEAT_INGEST_APPEND_TO_H

#include "ingest/image_encode.h"
#include "ingest/source.h"

typedef struct leat__base_classes {
    int64_t *relabel; /* class number in the source -> in the pack; NULL without class names */
    uint64_t count;
} leat__base_classes;

/* Adds new class names of the source after the pack's own. */
int leat__append_classes(leat__base_classes *c, leat_packer *packer, const leat__source *source,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__append_classes_reset(leat__base_classes *c);
/* Renumbers the label of a sample in place. */
void leat__append_relabel(const leat__base_classes *c, const leat__source *source, leat_pack_value *values);

/* Chooses the image settings stored in the pack's provenance, unless the options set them. */
int leat__append_images(const leat_pack *base, const leat_ingest_opts *opts, leat__encode_plan *plan,
                        leat_error *err) LEAT_MUST_CHECK;

/* Decides whether to append the sample, and counts samples whose key exists. LEAT_EEXIST: not allowed. */
int leat__append_admit(leat_packer *packer, uint32_t mode, const leat_pack_sample *sample, bool *wanted,
                       uint64_t *existing, leat_error *err) LEAT_MUST_CHECK;

#endif
