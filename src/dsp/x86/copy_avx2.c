/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies that bypass the caches, for AVX2: see copy_tmpl.h.
 */
#include <immintrin.h>

#include "dsp/x86/copy_x86.h"

static inline __attribute__((always_inline)) void put_line(uint8_t *to, const uint8_t *from)
{
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)from);
    const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(from + 32));
    _mm256_stream_si256((__m256i *)(void *)to, a);
    _mm256_stream_si256((__m256i *)(void *)(to + 32), b);
}

#include "dsp/x86/copy_tmpl.h"

const leat__copy_dsp leat__copy_avx2 = {.isa = "avx2", .out = copy_out};
