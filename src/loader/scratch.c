/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding memory: see scratch.h. The factors are the maximum bytes per pixel held by the codecs.
 */
#include "loader/scratch.h"

#include "base/num.h"
#include "codec/codec.h"
#include "op/head.h"
#include "pack/kind.h"

#define BAND_BYTES 256u /* per pixel of width: bands of rows in three planes, and the resizer's rows */
#define PROBES 16       /* recipes drawn to find the largest image */
#define SIDE 4096u      /* side of the image they are drawn for */
#define SMALL_SIDE 64u  /* side of a small image, from which only enlarging steps make a large one */

/* Returns extra bytes per pixel: ElasticTransform holds two shifts and a copy, AugMix a copy and sums. */
static uint32_t more_of(const leat__recipe *r)
{
    uint32_t more = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->step[i].kind == LEAT__STEP_ELASTIC) more = LEAT_MAX(more, 12u);
        if (r->step[i].kind == LEAT__STEP_BLEND_START) more = LEAT_MAX(more, 15u);
    }
    return more;
}

/* Returns the pixels of the largest image between the steps of a recipe: after the head, and after each later
 * step.
 */
static uint64_t largest_between(const leat__recipe *r)
{
    uint32_t width = r->in_width, height = r->in_height;
    uint64_t most = 0;
    leat__head h;
    for (uint32_t i = 0; i < r->count;) {
        const leat__step *const s = &r->step[i];
        if (leat__head_takes(s->kind)) {
            leat__head_fuse(&h, r, i, width, height);
            width = h.ax.count;
            height = h.ay.count;
            i += h.steps;
            if (i == r->count) break; /* written to the batch row by row */
        } else {
            if (s->kind == LEAT__STEP_PAD || s->kind == LEAT__STEP_AFFINE) {
                width = s->width;
                height = s->height;
            }
            i++;
        }
        most = LEAT_MAX(most, (uint64_t)width * height);
    }
    return most;
}

/* Returns the pixels of images that a resize enlarges; those of the output's size are small compared with the
 * batch. */
static uint64_t between_of(const leat__pipeline *pipeline)
{
    const leat__output_spec *const out = leat__pipeline_output(pipeline);
    uint64_t most = 0;
    leat__recipe recipe;
    for (uint64_t k = 0; k < PROBES; k++) {
        const leat__draw_key key = {.seed = k, .sample = k};
        if (leat__pipeline_draw(pipeline, &key, SMALL_SIDE, SMALL_SIDE, &recipe, NULL) != 0) continue;
        most = LEAT_MAX(most, largest_between(&recipe));
    }
    return most > (uint64_t)out->width * out->height ? most : 0;
}

leat__scratch_use leat__scratch_use_of(const leat__pipeline *const *pipelines, uint32_t count)
{
    leat__scratch_use use = {.views = count, .in_place = true};
    leat__recipe recipe;
    leat__head h;

    bool copies;
    use.pipelines = count;
    for (uint32_t i = 0; i < count; i++) {
        if (leat__pipeline_output(pipelines[i])->crops) use.views++; /* held for all crops */
        if (leat__pipeline_canvas(pipelines[i], SIDE, SIDE, &copies) > 0) use.canvas = pipelines;
        use.in_place &= leat__pipeline_in_place(pipelines[i]);
        use.between = LEAT_MAX(use.between, between_of(pipelines[i]));
        for (uint64_t k = 0; k < PROBES; k++) {
            leat__draw_key key = {.seed = k, .sample = k};
            if (leat__pipeline_draw(pipelines[i], &key, SIDE, SIDE, &recipe, NULL) != 0) continue;
            leat__head_fuse(&h, &recipe, 0, SIDE, SIDE);
            uint64_t first = (uint64_t)h.ax.count * h.ay.count;
            use.behind |= h.steps < recipe.count;
            use.more = LEAT_MAX(use.more, more_of(&recipe));
            use.whole |= h.steps < recipe.count && first > (uint64_t)SIDE * SIDE / 4;
        }
    }
    return use;
}

static uint64_t codec_bytes_per_pixel(const leat_pack_cell *cell)
{
    const bool entries = cell->image.codec == LEAT__CODEC_JPEG && cell->image.flags & LEAT_PACK_IMAGE_ENTRIES;
    return entries ? 0 : leat__codec_facts_of(cell->image.codec)->memory;
}

/* Returns the memory of images after a crop or resize. An image of fixed size is small compared with its
 * batch; one that may be enlarged without limit is not. */
static uint64_t bytes_behind(const leat_pack_image *im, const leat__scratch_use *use)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < use->views; i++) {
        uint32_t w[2], h[2]; /* as stored, and rotated */
        leat__pipeline_reach(use->any_size[i], im->width, im->height, &w[0], &h[0]);
        leat__pipeline_reach(use->any_size[i], im->height, im->width, &w[1], &h[1]);
        most = LEAT_MAX(most, (uint64_t)w[0] * h[0]);
        most = LEAT_MAX(most, (uint64_t)w[1] * h[1]);
    }
    return (9 + (uint64_t)use->more) * most; /* the image, its next step, a copy */
}

/* Returns the memory of an image that an op enlarges: the result, and copies if later ops need them. */
static uint64_t canvas_bytes(const leat_pack_image *im, const leat__scratch_use *use)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < use->pipelines && use->canvas != NULL; i++) {
        bool copies;
        uint64_t bytes, pixels = leat__pipeline_canvas(use->canvas[i], im->width, im->height, &copies);
        const uint64_t each = copies ? 9 + (uint64_t)use->more : 3;
        if (!leat__mul_u64(pixels, each, &bytes)) return UINT64_MAX;
        most = LEAT_MAX(most, bytes);
    }
    return most;
}

/* Returns the memory of a wide image (uint16 or float32). It is held as decoded and after the next step, both
 * in its type; as floats for a resize, before it and between its passes; and as the decoder's copy. */
static uint64_t wide_bytes(const leat_pack_image *im, uint64_t pixels, const leat__scratch_use *use)
{
    const leat__image_kind kind = leat__image_kind_of(im);
    const uint64_t channels = leat__kind_channels(kind), size = leat__sample_bytes(leat__kind_type(kind));
    uint64_t bytes;
    if (use->any_size != NULL) pixels += bytes_behind(im, use) / 9;
    pixels += LEAT_MIN(canvas_bytes(im, use) / 3, UINT64_MAX / 4);
    return leat__mul_u64(pixels, channels * (4 * size + 2 * sizeof(float)), &bytes) ? bytes : UINT64_MAX;
}

uint64_t leat__scratch_bytes(const leat_pack_cell *cell, const leat__scratch_use *use)
{
    uint64_t pixels = (uint64_t)cell->image.width * cell->image.height, bytes;
    uint64_t each = codec_bytes_per_pixel(cell), side;
    const uint64_t image = use->in_place ? 3 : 9 + (uint64_t)use->more; /* the image, its next step, a copy */

    if (cell->absent || cell->length == 0) return 0;
    if (leat__image_kind_of(&cell->image) != 0) return wide_bytes(&cell->image, pixels, use);
    if (cell->image.orientation >= 5) each += 6; /* rotated as a whole: three planes twice */
    else if (use->views > 1) each += 3;          /* held for all views */
    if (use->whole) each += image;
    side = LEAT_MAX(cell->image.width, cell->image.height);
    if (!leat__mul_u64(pixels, each, &bytes) || !leat__add_u64(bytes, side * BAND_BYTES, &bytes))
        return UINT64_MAX;
    if (!leat__add_u64(bytes, canvas_bytes(&cell->image, use), &bytes)) return UINT64_MAX;
    if (use->any_size == NULL && !leat__add_u64(bytes, image * use->between, &bytes)) return UINT64_MAX;
    if (use->any_size != NULL && use->behind &&
        !leat__add_u64(bytes, bytes_behind(&cell->image, use), &bytes))
        return UINT64_MAX;
    return bytes;
}
