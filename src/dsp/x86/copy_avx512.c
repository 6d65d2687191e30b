/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies that bypass the caches, for AVX-512: see copy_tmpl.h.
 */
#include <immintrin.h>

#include "dsp/x86/copy_x86.h"

static inline __attribute__((always_inline)) void put_line(uint8_t *to, const uint8_t *from)
{
    _mm512_stream_si512((__m512i *)(void *)to, _mm512_loadu_si512(from));
}

#include "dsp/x86/copy_tmpl.h"

const leat__copy_dsp leat__copy_avx512 = {.isa = "avx512", .out = copy_out};
