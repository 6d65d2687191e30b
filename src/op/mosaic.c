/* SPDX-License-Identifier: Apache-2.0
 *
 * Mosaic: see mosaic.h.
 */
#include "op/mosaic.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

enum { MOSAIC_CENTER, MOSAIC_P };
static const leat__param mosaic_params[] = {
    {.name = "center",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0.3,0.7",
     .min = 0,
     .max = 1,
     .arity = 2,
     .help = "where the four samples meet: lowest and highest share of width and of height"},
    {.name = "p",
     .kind = LEAT__PARAM_FLOAT,
     .def = "1",
     .min = 0,
     .max = 1,
     .help = "probability per sample"},
};

static int mosaic_check(const leat__op_spec *op, leat_error *err)
{
    const double *const center = op->value[MOSAIC_CENTER].list;
    if (center[0] <= center[1]) return 0;
    return leat__fail(err, LEAT_EINVAL, "Mosaic.center: the first number is the larger one");
}

const leat__op_def leat__ops_mosaic[] = {
    {"Mosaic", "puts parts of four samples of a batch into one image; masks and boxes follow", LEAT_OP_BATCH,
     mosaic_params, LEAT_COUNT(mosaic_params), mosaic_check, NULL, NULL},
    {0},
};

bool leat__mosaic_is(const leat__op_spec *op)
{
    return op->def == &leat__ops_mosaic[0];
}

void leat__mosaic_draw(leat__mosaic *m, uint32_t n, const leat__op_spec *op, uint32_t width, uint32_t height,
                       leat__rng *rng)
{
    const double *const center = op->value[MOSAIC_CENTER].list;
    for (uint32_t i = 0; i < n; i++) {
        m[i].active = leat__rng_double(rng) < op->value[MOSAIC_P].f;
        m[i].x = (uint32_t)(width * leat__rng_range(rng, center[0], center[1]));
        m[i].y = (uint32_t)(height * leat__rng_range(rng, center[0], center[1]));
    }
}

void leat__mosaic_plane(const leat__mosaic *m, uint32_t width, uint32_t height, size_t pixel,
                        const uint8_t *const part[LEAT__MOSAIC_PARTS], uint8_t *out)
{
    const size_t pitch = width * pixel, left = m->x * pixel, right = pitch - left;
    for (uint32_t y = 0; y < height; y++) {
        const int row = y < m->y ? 0 : 2;
        const size_t from = (row ? y - m->y : y + height - m->y) * pitch;
        memcpy(out + y * pitch, part[row] + from + right, left);
        memcpy(out + y * pitch + left, part[row + 1] + from, right);
    }
}

bool leat__mosaic_box(const leat__mosaic *m, uint32_t width, uint32_t height, int part,
                      const leat__box_rule *rule, float box[4])
{
    const float w = (float)width, h = (float)height, x = (float)m->x, y = (float)m->y;
    const float dx = part % 2 ? x : x - w, dy = part / 2 ? y : y - h;
    const float low[2] = {part % 2 ? x : 0, part / 2 ? y : 0}, high[2] = {part % 2 ? w : x, part / 2 ? h : y};
    leat__box_corners(rule, width, height, box);
    const double before = ((double)box[2] - (double)box[0]) * ((double)box[3] - (double)box[1]);
    for (int i = 0; i < 4; i++) {
        box[i] += i % 2 ? dy : dx;
        box[i] = fminf(fmaxf(box[i], low[i % 2]), high[i % 2]);
    }
    const float bw = box[2] - box[0], bh = box[3] - box[1];
    const double left = (double)bw * (double)bh;
    const bool keep = bw > 0 && bh > 0 && bw >= rule->min_size && bh >= rule->min_size &&
                      left >= (double)rule->min_visible * before;
    leat__box_format_of(rule, width, height, box);
    return keep;
}
