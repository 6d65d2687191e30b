/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of animations. See animation.h; the formats are in gif_decode.c and webp_decode.c.
 */
#include "codec/animation.h"

#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"

bool leat__anim_known(leat__codec_id codec)
{
    const leat__codec_ops *ops = leat__codec_ops_for(codec);
    return ops && ops->next_frame;
}

uint64_t leat__anim_count(leat__codec_id codec, const uint8_t *data, size_t len)
{
    const leat__codec_ops *ops = leat__codec_ops_for(codec);
    return ops && ops->count_frames ? LEAT_MAX(ops->count_frames(data, len), UINT64_C(1)) : 1;
}

int leat__anim_open(leat__anim *f, leat__codec_id codec, const uint8_t *data, size_t len,
                    const leat__decode_limits *limits, leat_error *err)
{
    *f = (leat__anim){.ops = leat__codec_ops_for(codec), .data = data, .len = len};
    if (!leat__anim_known(codec))
        return leat__fail(err, LEAT_ENOTSUP, "frames of %s files cannot be read", leat__codec_name(codec));
    LEAT_TRY(leat__codec_probe(codec, data, len, &f->info, err));
    LEAT_TRY(leat__decode_limits_whole(limits, &f->info, err));
    const size_t bytes = (size_t)f->info.width * f->info.height * 4; /* the limits bound it */
    f->canvas = leat__zalloc(LEAT__MEM_CODEC, bytes);
    f->under = leat__zalloc(LEAT__MEM_CODEC, bytes);
    f->work = leat__alloc(LEAT__MEM_CODEC, bytes);
    if (f->canvas && f->under && f->work) return 0;
    leat__anim_close(f);
    return leat__fail_nomem(err, 3 * bytes, "the canvas of an animation");
}

void leat__anim_close(leat__anim *f)
{
    leat__free(f->canvas);
    leat__free(f->under);
    leat__free(f->work);
    *f = (leat__anim){0};
}

int leat__anim_next(leat__anim *f, bool *end, leat_error *err)
{
    *end = false;
    LEAT_TRY(f->ops->next_frame(f, end, err));
    if (!*end) f->index++;
    return 0;
}

int leat__anim_planes(const leat__anim *f, leat__planes *to, leat_error *err)
{
    const leat__image_info *const i = &f->info;
    LEAT_TRY(leat__planes_resize(to, i->width, i->height, i->channels, err));
    for (uint32_t y = 0; y < i->height; y++) {
        const uint8_t *from = f->canvas + (size_t)y * i->width * 4;
        for (uint32_t c = 0; c < i->channels; c++) {
            uint8_t *const row = to->plane[c] + y * to->stride;
            for (uint32_t x = 0; x < i->width; x++) row[x] = from[4 * (size_t)x + c];
        }
    }
    return 0;
}
