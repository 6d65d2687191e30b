/* SPDX-License-Identifier: Apache-2.0
 *
 * MixUp and CutMix on a whole batch, in place. A thread handles the same element of every row, from the last
 * row to the first. So each row reads the one before it, which is still unchanged. The arithmetic is that of
 * blend_*_c in src/dsp/pixel.c, bit for bit, without contraction to FMA.
 */

#define MIX_AHEAD 8 /* rows read before the first of them is written, so that reads overlap */

DEVICE uint32_t half_of(float v)
{
    const uint32_t u = bits_of_float(v), sign = u >> 16 & 0x8000, mag = u & 0x7fffffff;
    if (mag > 0x7f800000) return sign | 0x7e00;
    if (mag >= 0x477ff000) return sign | 0x7c00;
    if (mag < 0x38800000) return sign | (bits_of_float(float_of_bits(mag) + 0.5f) - bits_of_float(0.5f));
    return sign | (mag - 0x38000000 + 0xfff + (mag >> 13 & 1)) >> 13;
}

DEVICE float float_of_half(uint32_t v)
{
    const uint32_t sign = (v & 0x8000) << 16, exponent = v >> 10 & 31, fraction = v & 0x3ff;
    if (exponent == 31) return float_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent > 0) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float f = (float)fraction * (1.0f / 16777216.0f);
    return sign ? -f : f;
}

DEVICE uint32_t bfloat_of(float v)
{
    const uint32_t u = bits_of_float(v);
    if ((u & 0x7fffffff) > 0x7f800000) return u >> 16 | 0x40;
    return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

/* Blends an element with its partner's; both are given and returned as bits. */
DEVICE uint32_t blend_bits(const leat_job_mix *m, uint32_t a, uint32_t b)
{
    if (m->dtype == LEAT_JOB_U8) return (uint32_t)(m->weight * (float)a + m->rest * (float)b + 0.5f) & 255;
    if (m->dtype == LEAT_JOB_F32)
        return bits_of_float(float_of_bits(b) * m->rest + float_of_bits(a) * m->weight);
    if (m->dtype == LEAT_JOB_F16) {
        const uint32_t x = half_of(float_of_half(a) * m->weight), y = half_of(float_of_half(b) * m->rest);
        return half_of(float_of_half(y) + float_of_half(x));
    }
    const uint32_t x = bfloat_of(float_of_bits(a << 16) * m->weight);
    const uint32_t y = bfloat_of(float_of_bits(b << 16) * m->rest);
    return bfloat_of(float_of_bits(y << 16) + float_of_bits(x << 16));
}

DEVICE uint32_t load_element(const leat_job_mix *m, uint64_t at)
{
    const uint8_t *const data = (const uint8_t *)m->data;
    if (m->dtype == LEAT_JOB_U8) return data[at];
    if (m->dtype == LEAT_JOB_F32) return ((const uint32_t *)(const void *)data)[at];
    return ((const uint16_t *)(const void *)data)[at];
}

DEVICE void store_element(const leat_job_mix *m, uint64_t at, uint32_t bits)
{
    uint8_t *const data = (uint8_t *)m->data;
    if (m->dtype == LEAT_JOB_U8) data[at] = (uint8_t)bits;
    else if (m->dtype == LEAT_JOB_F32) ((uint32_t *)(void *)data)[at] = bits;
    else ((uint16_t *)(void *)data)[at] = (uint16_t)bits;
}

/* Returns the position within the row of element `i` of those that change. */
DEVICE uint32_t place_in_row(const leat_job_mix *m, uint32_t i)
{
    if (!m->paste) return i;
    if (m->nhwc) {
        const uint32_t wide = m->wide * m->channels, y = i / wide;
        return ((m->y + y) * m->width + m->x) * m->channels + (i - y * wide);
    }
    const uint32_t area = m->wide * m->high, c = i / area, in = i - c * area, y = in / m->wide;
    return (c * m->height + m->y + y) * m->width + m->x + (in - y * m->wide);
}

/* Mixes one element of all rows. */
DEVICE void mix_element(const leat_job_mix *m, uint32_t i)
{
    const uint64_t at = place_in_row(m, i), pitch = m->row_elements;
    const uint32_t last = load_element(m, at + (m->rows - 1) * pitch);
    uint32_t own = last;
    for (uint32_t row = m->rows; row > 0;) {
        const uint32_t count = row < MIX_AHEAD ? row : MIX_AHEAD;
        uint32_t before[MIX_AHEAD];
        UNROLL
        for (uint32_t k = 0; k < MIX_AHEAD; k++)
            before[k] = k < count && row - k > 1 ? load_element(m, at + (row - k - 2) * pitch) : last;
        UNROLL
        for (uint32_t k = 0; k < MIX_AHEAD; k++) {
            if (k >= count) break;
            const uint32_t bits = m->paste ? before[k] : blend_bits(m, own, before[k]);
            store_element(m, at + (row - k - 1) * pitch, bits);
            own = before[k];
        }
        row -= count;
    }
}

/* True when an image of the batch is damaged; then the host handles it and mixes. For thread `tid` of a block
 * of `threads`. */
DEVICE bool any_damage(const leat_job *job, uint32_t tid, uint32_t threads)
{
    bool bad = false;
    for (uint32_t i = tid; i < job->image_count; i += threads) bad |= job->status[i] != LEAT_JOB_NO_DAMAGE;
    return ANY_OF_BLOCK(bad);
}
