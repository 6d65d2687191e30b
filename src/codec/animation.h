/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames of an animation, one after another, each as a viewer shows it: on the canvas, over what earlier
 * frames left there. GIF and WebP. Belongs to one thread.
 */
#ifndef LEAT_CODEC_ANIMATION_H
#define LEAT_CODEC_ANIMATION_H

#include "codec/codec.h"

typedef struct leat__anim_rect {
    uint32_t x, y, width, height;
} leat__anim_rect;

/* Zeroed is closed. The file is a view. */
typedef struct leat__anim {
    const struct leat__codec_ops *ops;
    const uint8_t *data;
    size_t len;
    leat__image_info info; /* 3 channels, or 4 */
    uint32_t index;        /* frames so far */
    uint8_t *canvas;       /* RGBA, without gaps: the frame */
    /* of the codec */
    size_t at;            /* where the next frame is looked for */
    uint8_t *under;       /* a canvas: what the next frame is drawn on, or put back before it */
    uint8_t *work;        /* another one, for the pixels of a frame */
    leat__anim_rect last; /* place of the last frame */
    uint32_t dispose;     /* what happens to it before the next one */
    uint32_t said;        /* what the file said last about that */
    uint8_t colour[4];    /* that replaces it */
    bool key;             /* the last frame depended on none before it */
} leat__anim;

/* Whether all frames of such a file can be read. */
bool leat__anim_known(leat__codec_id codec);

/* How many there are, by headers alone; 1 where the file is damaged. Frames may still fail to decode. */
uint64_t leat__anim_count(leat__codec_id codec, const uint8_t *data, size_t len);

/* `data` has LEAT__CODEC_PADDING readable bytes after it and stays until close. */
int leat__anim_open(leat__anim *f, leat__codec_id codec, const uint8_t *data, size_t len,
                    const leat__decode_limits *limits, leat_error *err) LEAT_MUST_CHECK;
void leat__anim_close(leat__anim *f);

/* The next frame onto the canvas; *end when there is none. */
int leat__anim_next(leat__anim *f, bool *end, leat_error *err) LEAT_MUST_CHECK;

/* The canvas as planes of info.channels. */
int leat__anim_planes(const leat__anim *f, leat__planes *to, leat_error *err) LEAT_MUST_CHECK;

#endif
