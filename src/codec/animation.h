/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames of an animation, in order, each as a viewer shows it: drawn on the canvas, over the content
 * that earlier frames left there. GIF and WebP. Belongs to one thread.
 */
#ifndef LEAT_CODEC_ANIMATION_H
#define LEAT_CODEC_ANIMATION_H

#include "codec/codec.h"

typedef struct leat__anim_rect {
    uint32_t x, y, width, height;
} leat__anim_rect;

/* A zeroed struct is closed. The file is a view. */
typedef struct leat__anim {
    const struct leat__codec_ops *ops;
    const uint8_t *data;
    size_t len;
    leat__image_info info; /* 3 channels, or 4 */
    uint32_t index;        /* frames read so far */
    uint8_t *canvas;       /* the current frame: RGBA, rows without padding */
    /* private to the codec */
    size_t at;            /* offset at which to search for the next frame */
    uint8_t *under;       /* a second canvas: base of the next frame, or pixels to restore before it */
    uint8_t *work;        /* a third canvas, for the pixels of a frame */
    leat__anim_rect last; /* rectangle of the last frame */
    uint32_t dispose;     /* how the last frame is removed before the next one */
    uint32_t said;        /* the last disposal method in the file */
    uint8_t colour[4];    /* colour that replaces the last frame */
    bool key;             /* the last frame did not depend on earlier ones */
} leat__anim;

/* True when all frames of such a file can be read. */
bool leat__anim_known(leat__codec_id codec);

/* Counts the frames by headers alone; 1 if the file is damaged. Frames may still fail to decode. */
uint64_t leat__anim_count(leat__codec_id codec, const uint8_t *data, size_t len);

/* `data` must be followed by LEAT__CODEC_PADDING readable bytes and live until close. */
int leat__anim_open(leat__anim *f, leat__codec_id codec, const uint8_t *data, size_t len,
                    const leat__decode_limits *limits, leat_error *err) LEAT_MUST_CHECK;
void leat__anim_close(leat__anim *f);

/* Draws the next frame on the canvas; sets *end when there is none. */
int leat__anim_next(leat__anim *f, bool *end, leat_error *err) LEAT_MUST_CHECK;

/* Converts the canvas to planes of info.channels. */
int leat__anim_planes(const leat__anim *f, leat__planes *to, leat_error *err) LEAT_MUST_CHECK;

#endif
