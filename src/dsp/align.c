/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable kernels and the selection of a variant: see align.h.
 */
#include "dsp/align.h"

#include <math.h>

#include "dsp/x86/align_x86.h"

#define TMPL_LANES 4
#define TMPL_MASK tmpl_int
#include "dsp/align_tmpl.h"

static inline tmpl_bits tmpl_quads(const leat__align_image *d, tmpl_int x, tmpl_int y)
{
    tmpl_bits v;
    for (int i = 0; i < TMPL_LANES; i++) v[i] = d->quad[y[i] * TMPL_SIDE + x[i]];
    return v;
}

static inline tmpl_float tmpl_pixels(const float *row, tmpl_int at)
{
    tmpl_float v;
    for (int i = 0; i < TMPL_LANES; i++) v[i] = row[at[i]];
    return v;
}

static inline tmpl_float tmpl_root(tmpl_float v)
{
    for (int i = 0; i < TMPL_LANES; i++) v[i] = sqrtf(v[i]);
    return v;
}

static inline tmpl_float tmpl_keep(tmpl_float v, tmpl_int mask)
{
    return (tmpl_float)((tmpl_int)v & mask);
}

static inline tmpl_float tmpl_max(tmpl_float v, tmpl_float other)
{
    const tmpl_int mask = v > other;
    return (tmpl_float)(((tmpl_int)v & mask) | ((tmpl_int)other & ~mask));
}

static inline tmpl_float tmpl_min(tmpl_float v, tmpl_float other)
{
    const tmpl_int mask = v < other;
    return (tmpl_float)(((tmpl_int)v & mask) | ((tmpl_int)other & ~mask));
}

static inline tmpl_int tmpl_within(tmpl_float v, float low, float high)
{
    return (v >= low) & (v < high);
}

static inline uint32_t tmpl_mask_bits(tmpl_int mask)
{
    uint32_t bits = 0;
    for (int i = 0; i < TMPL_LANES; i++) bits |= ((uint32_t)mask[i] & 1) << i;
    return bits;
}

static inline tmpl_int tmpl_bits_mask(uint32_t bits)
{
    tmpl_int mask;
    for (int i = 0; i < TMPL_LANES; i++) mask[i] = -(int32_t)(bits >> i & 1);
    return mask;
}

static inline tmpl_bits tmpl_widen_bytes(const uint8_t *from)
{
    tmpl_bits v;
    for (int i = 0; i < TMPL_LANES; i++) v[i] = from[i];
    return v;
}

static inline void tmpl_store_shorts(int16_t *to, tmpl_int v)
{
    for (int i = 0; i < TMPL_LANES; i++) to[i] = (int16_t)v[i];
}

static inline float tmpl_total(const float *column)
{
    float part[16];
    for (int i = 0; i < 16; i++) part[i] = column[i] + column[i + 16];
    for (int n = 8; n > 0; n /= 2)
        for (int i = 0; i < n; i++) part[i] += part[i + n];
    return part[0];
}

static void products_c(const int8_t *q, const int8_t *codes, size_t bytes, size_t count, int32_t *out)
{
    for (size_t n = 0; n < count; n++, codes += bytes) {
        int32_t sum = 0;
        for (size_t i = 0; i < bytes; i++) sum += q[i] * codes[i];
        out[n] = sum;
    }
}

typedef int16_t shorts __attribute__((vector_size(16)));

static tmpl_int add_halves(shorts v)
{
    const tmpl_int both = (tmpl_int)v;
    return (both >> 16) + (both << 16 >> 16);
}

/* Handles four codes at a time. Products of a byte and a signed byte fit 16 bits. */
static void group_products_c(const int8_t *q, const uint8_t *groups, size_t count, int32_t *out)
{
    enum { WORDS = LEAT__ALIGN_CODE / 4, STEP = 4 * LEAT__ALIGN_GROUP };
    shorts even[WORDS], odd[WORDS];
    int32_t sum = 0;
    for (int k = 0; k < LEAT__ALIGN_CODE; k++) sum += q[k];
    for (int k = 0; k < LEAT__ALIGN_CODE; k += 4)
        for (int i = 0; i < 8; i++) {
            even[k / 4][i] = q[k + i % 2 * 2];
            odd[k / 4][i] = q[k + i % 2 * 2 + 1];
        }
    for (size_t i = 0; i < count * LEAT__ALIGN_GROUP; i += TMPL_LANES) {
        const uint8_t *at = groups + i / LEAT__ALIGN_GROUP * STEP * WORDS + i % LEAT__ALIGN_GROUP * 4;
        tmpl_int all = {0};
        for (int k = 0; k < WORDS; k++, at += STEP) {
            tmpl_bits four;
            memcpy(&four, at, sizeof four);
            all += add_halves((shorts)(four & 0xff00ff) * even[k]);
            all += add_halves((shorts)(four >> 8 & 0xff00ff) * odd[k]);
        }
        all -= 128 * sum;
        memcpy(out + i, &all, sizeof all);
    }
}

static size_t nearer_c(const int32_t *product, const float *scale, size_t count, float own, float limit,
                       uint32_t *at, float *distance)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        distance[i] = 1 - (float)product[i] * own * scale[i];
        if (distance[i] < limit) at[n++] = (uint32_t)i;
    }
    return n;
}

static void slide_c(const int16_t *a, const int16_t *b, int n, int span, int32_t *out)
{
    for (int top = 0; top <= span; top++)
        for (int left = 0; left <= span; left++) {
            const int16_t *at = b + top * LEAT__ALIGN_COARSE + left;
            int32_t sum = 0;
            for (int y = 0; y < n; y++)
                for (int x = 0; x < n; x++)
                    sum += a[y * LEAT__ALIGN_COARSE + x] * at[y * LEAT__ALIGN_COARSE + x];
            *out++ = sum;
        }
}

static const leat__align_dsp align_c = {.isa = "scalar",
                                        .products = products_c,
                                        .group_products = group_products_c,
                                        .nearer = nearer_c,
                                        .prepare = tmpl_prepare,
                                        .shrink = tmpl_shrink,
                                        .slide = slide_c,
                                        .outlines = tmpl_outlines,
                                        .sample = tmpl_sample,
                                        .sums = tmpl_sums,
                                        .compare = tmpl_compare,
                                        .compare_sampled = tmpl_compare_sampled};

const leat__align_dsp *leat__align_dsp_for(uint32_t cpu_flags)
{
    const leat__align_dsp *best = &align_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__align_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__align_avx512;
#endif
    return best;
}
