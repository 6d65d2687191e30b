/* SPDX-License-Identifier: Apache-2.0
 *
 * TFRecord frames and the tf.train.Example messages in them: only the part of protobuf that they
 * use. All results are views into the record.
 */
#ifndef LEAT_INGEST_TF_EXAMPLE_H
#define LEAT_INGEST_TF_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Returns the checksum of a frame: CRC-32C, rotated and offset as the format requires. */
uint32_t leat__tf_checksum(const void *data, size_t len);

typedef enum leat__tf_kind { LEAT__TF_NONE, LEAT__TF_BYTES, LEAT__TF_FLOATS, LEAT__TF_INTS } leat__tf_kind;

typedef struct leat__tf_feature {
    const char *name;
    size_t name_len;
    leat__tf_kind kind;
    size_t count;        /* number of values */
    const uint8_t *list; /* the encoded list, for the functions below */
    size_t list_len;
} leat__tf_feature;

/* Calls `each` for every feature of an Example. Fails when the message is malformed. */
typedef int (*leat__tf_fn)(void *cookie, const leat__tf_feature *f, leat_error *err);
int leat__tf_example(const void *data, size_t len, leat__tf_fn each, void *cookie,
                     leat_error *err) LEAT_MUST_CHECK;

/* Returns value `i` of a bytes list; NULL when there is none. */
const uint8_t *leat__tf_bytes(const leat__tf_feature *f, size_t i, size_t *len);
/* Copy all f->count values of a list of numbers. */
void leat__tf_floats(const leat__tf_feature *f, float *to);
void leat__tf_ints(const leat__tf_feature *f, int64_t *to);

#endif
