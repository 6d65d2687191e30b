/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable kernels and the choice: see align.h.
 */
#include "dsp/align.h"

#include <math.h>

#include "dsp/x86/align_x86.h"

#define TMPL_LANES 4
#include "dsp/align_tmpl.h"

static tmpl_int tmpl_gather(const uint32_t *from, tmpl_int at)
{
    tmpl_int v;
    for (int i = 0; i < TMPL_LANES; i++) v[i] = (int32_t)from[at[i]];
    return v;
}

static tmpl_float tmpl_root(tmpl_float v)
{
    for (int i = 0; i < TMPL_LANES; i++) v[i] = sqrtf(v[i]);
    return v;
}

static void products_c(const int8_t *q, const int8_t *codes, size_t bytes, size_t count, int32_t *out)
{
    for (size_t n = 0; n < count; n++, codes += bytes) {
        int32_t sum = 0;
        for (size_t i = 0; i < bytes; i++) sum += q[i] * codes[i];
        out[n] = sum;
    }
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
                                        .prepare = tmpl_prepare,
                                        .shrink = tmpl_shrink,
                                        .slide = slide_c,
                                        .sample = tmpl_sample,
                                        .sums = tmpl_sums,
                                        .compare = tmpl_compare};

const leat__align_dsp *leat__align_dsp_for(uint32_t cpu_flags)
{
    const leat__align_dsp *best = &align_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__align_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__align_avx512;
#endif
    return best;
}
