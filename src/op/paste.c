/* SPDX-License-Identifier: Apache-2.0
 *
 * CopyPaste: see paste.h.
 */
#include "op/paste.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

enum { PASTE_SHARE, PASTE_P };
static const leat__param paste_params[] = {
    {.name = "share",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0.5",
     .min = 0,
     .max = 1,
     .help = "probability of each object of the other sample"},
    {.name = "p",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0.5",
     .min = 0,
     .max = 1,
     .help = "probability per sample"},
};

const leat__op_def leat__ops_paste[] = {
    {"CopyPaste", "pastes boxed objects of another sample of the batch; masks and boxes follow",
     LEAT_OP_BATCH, paste_params, LEAT_COUNT(paste_params), NULL, NULL, NULL},
    {0},
};

bool leat__paste_is(const leat__op_spec *op)
{
    return op->def == &leat__ops_paste[0];
}

bool leat__paste_happens(const leat__op_spec *op, leat__rng *rng)
{
    return leat__rng_double(rng) < op->value[PASTE_P].f;
}

bool leat__paste_takes(const leat__op_spec *op, leat__rng *rng)
{
    return leat__rng_double(rng) < op->value[PASTE_SHARE].f;
}

/* Converts v to an integer from 0 to `most`; NaN becomes 0. */
static uint32_t within(float v, uint32_t most)
{
    return v > 0 ? (uint32_t)fminf(v, (float)most) : 0;
}

leat__paste_rect leat__paste_pixels(const leat__box_rule *rule, uint32_t width, uint32_t height,
                                    const float box[4])
{
    float b[4];
    memcpy(b, box, sizeof b);
    leat__box_corners(rule, width, height, b);
    const uint32_t x = within(floorf(b[0]), width), y = within(floorf(b[1]), height);
    const uint32_t right = within(ceilf(b[2]), width), bottom = within(ceilf(b[3]), height);
    return (leat__paste_rect){x, y, right > x ? right - x : 0, bottom > y ? bottom - y : 0};
}

void leat__paste_mark(uint8_t *map, uint32_t width, const leat__paste_rect *r, const uint8_t *mask)
{
    for (uint32_t y = r->y; y < r->y + r->height; y++)
        for (uint32_t x = r->x; x < r->x + r->width; x++) {
            const size_t at = (size_t)y * width + x;
            if (mask == NULL || mask[at] != 0) map[at] = 1;
        }
}

uint64_t leat__paste_marked(const uint8_t *map, uint32_t width, const leat__paste_rect *r)
{
    uint64_t n = 0;
    for (uint32_t y = r->y; y < r->y + r->height; y++)
        for (uint32_t x = r->x; x < r->x + r->width; x++) n += map[(size_t)y * width + x];
    return n;
}

void leat__paste_copy(const uint8_t *map, size_t count, size_t pixel, const uint8_t *from, uint8_t *to)
{
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && map[end] == map[i]) end++;
        if (map[i]) memcpy(to + i * pixel, from + i * pixel, (end - i) * pixel);
        i = end;
    }
}
