/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that each format implements. codec.c checks a request and fills in its defaults before it
 * calls them, so a decoder never sees an unchecked region. Only files of this module include this header. A
 * decoder defines `const leat__codec_ops leat__codec_ops_NAME`; codec.c lists those in the build.
 */
#ifndef LEAT_CODEC_CODEC_OPS_H
#define LEAT_CODEC_CODEC_OPS_H

#include "codec/codec.h"

/* A checked request: the region is inside the (scaled) image and not empty. The image's pixels and the
 * region's bytes are within the limits, all of which are set. */
typedef struct leat__decode_job {
    const leat__image_info *info;
    const uint8_t *data;
    size_t len;
    uint32_t x, y, width, height;
    uint32_t scale_denom;        /* 1, 2, 4, 8; above 1 only if ops->scales */
    const leat__ycc_part *parts; /* also checked; NULL: pixels of the region */
    bool whole;                  /* the region is the whole image: also check the file up to its end */
    const void *tables;
    const uint8_t *entries; /* JPEG: not checked; NULL when there are none */
    size_t entries_len;
    leat__decode_limits limits;
    const leat__row_sink *sink;
} leat__decode_job;

struct leat__anim;

typedef struct leat__codec_ops {
    const char *name;
    bool scales;
    bool (*sniff)(const uint8_t *data, size_t len);
    /* `info` is zeroed except for codec, orientation 1 and bits 8. */
    int (*probe)(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err);
    /* Opens the scratch of one decoder, on first use; NULL when the codec needs none. */
    int (*open)(void **state, leat_error *err);
    void (*close)(void **state);
    int (*decode)(void *state, const leat__decode_job *job, leat_error *err);
    /* Animations (animation.h); NULL = only the first frame can be read. */
    uint64_t (*count_frames)(const uint8_t *data, size_t len);
    int (*next_frame)(struct leat__anim *f, bool *end, leat_error *err);
} leat__codec_ops;

/* Returns NULL when the format is not in this build. */
const leat__codec_ops *leat__codec_ops_for(leat__codec_id id);

/* fill sets zeroed limits to their defaults; check compares the image's pixels with them. */
void leat__decode_limits_fill(leat__decode_limits *limits);
int leat__decode_limits_check(const leat__decode_limits *limits, const leat__image_info *info,
                              leat_error *err) LEAT_MUST_CHECK;

#endif
