/* SPDX-License-Identifier: Apache-2.0
 *
 * Spreading: see spread.h. Lines are moved from last to first. They only move towards the end, so no line
 * overwrites one that still has to move.
 */
#include "loader/spread.h"

#include <string.h>

#include "base/check.h"
#include "base/num.h"

/* Fills memory with copies of a value of `size` bytes. */
static void fill_with(uint8_t *to, uint64_t bytes, const uint8_t *value, uint32_t size)
{
    bool same = true;
    for (uint32_t i = 1; i < size; i++) same &= value[i] == value[0];
    if (same) {
        memset(to, value[0], bytes);
        return;
    }
    for (uint64_t at = 0; at < bytes; at += size) memcpy(to + at, value, size);
}

static void spread(const leat__column *c, uint8_t *row, leat__size own, leat__size whole)
{
    LEAT_ASSERT(own.width <= whole.width && own.height <= whole.height);
    const uint32_t size = leat_dtype_size(c->tensor.dtype);
    const uint32_t planes = c->channels > 0 && !c->channels_last ? c->channels : 1;
    const uint64_t pixel = (uint64_t)size * (c->channels_last ? c->channels : 1);
    const uint64_t line = own.width * pixel, wide = whole.width * pixel;

    if (own.width == whole.width && own.height == whole.height) return;
    for (uint32_t p = planes; p-- > 0;) {
        uint8_t *to = row + p * whole.height * wide;
        const uint8_t *from = row + p * own.height * line;
        fill_with(to + own.height * wide, (whole.height - own.height) * wide, c->fill, size);
        for (uint32_t y = own.height; y-- > 0;) {
            memmove(to + y * wide, from + y * line, line);
            fill_with(to + y * wide + line, wide - line, c->fill, size);
        }
    }
}

static void mark_seen(uint8_t *row, leat__size own, leat__size whole)
{
    LEAT_ASSERT(own.width <= whole.width && own.height <= whole.height);
    for (uint32_t y = 0; y < whole.height; y++, row += whole.width) {
        uint32_t seen = y < own.height ? own.width : 0;
        memset(row, 1, seen);
        memset(row + seen, 0, whole.width - seen);
    }
}

void leat__spread_row(leat__frame *f, uint32_t row)
{
    for (uint32_t i = 0; i < f->shape->count; i++) {
        const leat__column *c = &f->shape->columns[i];
        if (!leat__column_padded(c)) continue;
        const leat_tensor *t = &f->tensors[i];
        const uint32_t at = c->channels > 0 && !c->channels_last ? 2 : 1;
        const leat__size whole = {(uint32_t)t->shape[at + 1], (uint32_t)t->shape[at]};
        const leat__size own = *leat__frame_size_of(f, c->of, row);
        uint8_t *data = leat__frame_row(f, i, row);
        if (c->sizing == LEAT__SIZING_SEEN) mark_seen(data, own, whole);
        else spread(c, data, own, whole);
    }
}
