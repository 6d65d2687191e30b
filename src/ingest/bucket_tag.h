/* SPDX-License-Identifier: Apache-2.0
 *
 * The tag that a set in a bucket gives its shards when it replaces a pack: NAME-00000-FINGERPRINT-TAG.leat.
 * It is random, so no other run has shards of these names (why that matters: bucket_pack.c). It is stored in
 * the local folder until the pack is in its bucket, so a resumed run uses the same names.
 */
#ifndef LEAT_INGEST_BUCKET_TAG_H
#define LEAT_INGEST_BUCKET_TAG_H

#include <leat/pack.h>

#include "ingest/bucket_pack.h"

/* Reads the stored tag; "" when there is none. */
void leat__bucket_tag_load(leat__bucket_pack *s);
/* Draws a new tag and stores it. */
int leat__bucket_tag_draw(leat__bucket_pack *s, leat_error *err) LEAT_MUST_CHECK;
/* Writes s->tagged, the set file with the tagged names. */
int leat__bucket_tag_apply(leat__bucket_pack *s, leat_pack *set, leat_error *err) LEAT_MUST_CHECK;
/* Removes the tag, the tagged set file and the record of its request. */
void leat__bucket_tag_drop(leat__bucket_pack *s);

/* The set file that is uploaded: with or without tagged names. */
const char *leat__bucket_tag_set(const leat__bucket_pack *s);

/* Records that the set file is about to be sent in place of the object with this tag (0: none). The request
 * of a killed run, or one whose answer was lost, may still have succeeded. */
int leat__bucket_sending(const leat__bucket_pack *s, uint64_t instead_of, leat_error *err) LEAT_MUST_CHECK;
/* True when such a request was recorded. */
bool leat__bucket_was_sent(const leat__bucket_pack *s, uint64_t *instead_of);
/* Removes the record: the server has refused the request. */
void leat__bucket_not_sent(const leat__bucket_pack *s);

#endif
