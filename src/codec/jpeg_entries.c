/* SPDX-License-Identifier: Apache-2.0
 *
 * Entry points: their encoding, lookup and creation. See jpeg_entries.h. Any thread; no state.
 *
 *   u8 kind = 1 | u8 components | u8 bits of a position | u8 bits of each DC, three of them |
 *   u16 zero | u32 step | records without gaps, lowest bit first, padded to a byte
 *
 * A record is the position in bits from the file's first byte, then each component's DC as a
 * signed number.
 */
#include "codec/jpeg_entries.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/jpeg_region.h"

enum { KIND = 1, FRONT = 12, POSITION_BITS_MAX = 48, DC_BITS_MAX = 16 };

static uint32_t low_bits(uint64_t v) /* number of bits that v needs */
{
    return v == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(v);
}

static uint32_t mcu_count(const leat__jpeg_scan *scan) /* at most a quarter of 65500^2 */
{
    return leat__jpeg_scan_mcus_x(scan) * leat__jpeg_scan_mcus_y(scan);
}

/* ---- reading ---- */

/* Reads up to 48 bits from bit `at` on; never reads past the records. */
static uint64_t get(const leat__jpeg_entries *e, uint64_t at, uint32_t bits)
{
    uint64_t byte = at / 8, v = 0;
    memcpy(&v, e->records + byte, (size_t)LEAT_MIN(e->bytes - byte, sizeof v));
    return v >> (at % 8) & ((UINT64_C(1) << bits) - 1);
}

bool leat__jpeg_entries_view(leat__jpeg_entries *e, const uint8_t *data, size_t len,
                             const leat__jpeg_scan *scan)
{
    if (len < FRONT || data[0] != KIND || leat__load_u16(data + 6) != 0) return false;
    *e = (leat__jpeg_entries){.records = data + FRONT,
                              .bytes = len - FRONT,
                              .step = leat__load_u32(data + 8),
                              .components = data[1],
                              .position_bits = data[2]};
    if (e->step == 0 || e->components > 3 || e->components != leat__jpeg_scan_frame(scan)->components ||
        e->position_bits == 0 || e->position_bits > POSITION_BITS_MAX)
        return false;
    e->record_bits = e->position_bits;
    for (uint32_t c = 0; c < e->components; c++) {
        e->dc_bits[c] = data[3 + c];
        if (e->dc_bits[c] == 0 || e->dc_bits[c] > DC_BITS_MAX) return false;
        e->record_bits += e->dc_bits[c];
    }
    uint64_t records = leat__ceil_div(mcu_count(scan), e->step);
    return leat__ceil_div(records * e->record_bits, 8) == e->bytes;
}

void leat__jpeg_entries_find(const leat__jpeg_entries *e, uint32_t mcu, leat__jpeg_cursor *at)
{
    uint64_t bit = (uint64_t)(mcu / e->step) * e->record_bits;
    uint64_t position = get(e, bit, e->position_bits);
    memset(at, 0, sizeof *at);
    at->byte = position / 8;
    at->bit = (uint32_t)(position % 8);
    at->mcu = mcu - mcu % e->step;
    bit += e->position_bits;
    for (uint32_t c = 0; c < e->components; bit += e->dc_bits[c], c++) {
        uint64_t sign = UINT64_C(1) << (e->dc_bits[c] - 1);
        at->dc[c] = (int16_t)((get(e, bit, e->dc_bits[c]) ^ sign) - sign);
    }
}

/* ---- making ---- */

static uint32_t choose_step(uint32_t mcus, size_t file_bytes)
{
    uint64_t step = (uint64_t)mcus * LEAT__JPEG_ENTRY_SPACING / LEAT_MAX(file_bytes, 1u);
    return (uint32_t)LEAT_MIN(LEAT_MAX(step, 1u), mcus);
}

/* Stores the cursor at every step. True when the file ends correctly after the last MCU. */
static bool walk(const leat__jpeg_scan *scan, const leat__jpeg_taker *taker, leat__jpeg_cursor *out,
                 uint32_t step)
{
    leat__jpeg_cursor at;
    size_t end;
    uint32_t mcus = mcu_count(scan);
    const bool take = taker && taker->begin(taker->ctx, scan);
    leat__jpeg_scan_begin(scan, &at);
    for (uint32_t mcu = 0; mcu < mcus; mcu += step) {
        const uint32_t n = LEAT_MIN(step, mcus - mcu);
        *out++ = at;
        if (!(take ? taker->mcus(taker->ctx, scan, &at, n) : leat__jpeg_scan_skip(scan, &at, n)))
            return false;
    }
    return leat__jpeg_scan_finish(scan, &at, &end, NULL);
}

static void choose_bits(leat__jpeg_entries *e, const leat__jpeg_cursor *at, size_t count)
{
    e->position_bits = low_bits(at[count - 1].byte * 8 + 7); /* positions only increase */
    e->record_bits = e->position_bits;
    for (uint32_t c = 0; c < e->components; c++) {
        uint32_t most = 0;
        for (size_t i = 0; i < count; i++)
            most = LEAT_MAX(most, low_bits((uint64_t)(at[i].dc[c] < 0 ? ~at[i].dc[c] : at[i].dc[c])));
        e->dc_bits[c] = most + 1;
        e->record_bits += e->dc_bits[c];
    }
}

/* Writes `bits` bits to a zeroed stream. */
static void put(uint8_t *out, uint64_t *at, uint64_t v, uint32_t bits)
{
    v &= (UINT64_C(1) << bits) - 1;
    for (v <<= *at % 8, out += *at / 8; v != 0; v >>= 8) *out++ |= (uint8_t)v;
    *at += bits;
}

static int append(const leat__jpeg_entries *e, const leat__jpeg_cursor *at, size_t count, leat__buf *out,
                  leat_error *err)
{
    size_t from = out->len;
    size_t bytes = FRONT + (size_t)leat__ceil_div((uint64_t)count * e->record_bits, 8);
    if (leat__buf_zeros(out, bytes) != 0) return leat__fail_nomem(err, bytes, "entry points");
    uint8_t *front = (uint8_t *)out->data + from;
    front[0] = KIND;
    front[1] = (uint8_t)e->components;
    front[2] = (uint8_t)e->position_bits;
    for (uint32_t c = 0; c < e->components; c++) front[3 + c] = (uint8_t)e->dc_bits[c];
    leat__store_u32(front + 8, e->step);
    uint64_t bit = 0;
    for (size_t i = 0; i < count; i++) {
        put(front + FRONT, &bit, at[i].byte * 8 + at[i].bit, e->position_bits);
        for (uint32_t c = 0; c < e->components; c++)
            put(front + FRONT, &bit, (uint64_t)(int64_t)at[i].dc[c], e->dc_bits[c]);
    }
    return 0;
}

/* True for a file that leat decodes itself and that is within the limits. */
static bool is_ours(leat__jpeg_scan *scan, const uint8_t *data, size_t len, const leat__decode_limits *limits)
{
    leat__raster_shape shape;
    leat__decode_limits bounds = {0};
    if (limits) bounds = *limits;
    leat__decode_limits_fill(&bounds);
    if (!leat__jpeg_scan_start(scan, data, len)) return false;
    if (!leat__jpeg_region_shape(leat__jpeg_scan_frame(scan), &shape)) return false;
    leat__image_info info = {.width = shape.width, .height = shape.height};
    return leat__decode_limits_check(&bounds, &info, NULL) == 0 &&
           (uint64_t)shape.width * shape.height * shape.components <= bounds.max_out_bytes;
}

int leat__jpeg_entries_make(leat__jpeg_scan *scan, const uint8_t *data, size_t len,
                            const leat__decode_limits *limits, const leat__jpeg_taker *taker, leat__buf *out,
                            bool *whole, leat_error *err)
{
    *whole = false;
    if (!is_ours(scan, data, len, limits)) return 0;
    uint32_t mcus = mcu_count(scan);
    leat__jpeg_entries e = {.components = leat__jpeg_scan_frame(scan)->components,
                            .step = choose_step(mcus, len)};
    size_t count = (size_t)leat__ceil_div(mcus, e.step);
    int rc = 0;
    leat__jpeg_cursor *at = LEAT_NEW_ARRAY(CODEC, leat__jpeg_cursor, count);
    if (at == NULL) return leat__fail_nomem(err, count * sizeof *at, "entry points");
    *whole = walk(scan, taker, at, e.step);
    if (*whole && count > 1) {
        choose_bits(&e, at, count);
        rc = append(&e, at, count, out, err);
    }
    leat__free(at);
    return rc;
}
