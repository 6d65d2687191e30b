/* SPDX-License-Identifier: Apache-2.0
 *
 * A 64-byte load that stays a separate instruction. Compilers fold loads into vpexpandb and vpexpandw,
 * whose memory forms are microcode on Zen 4: 5 cycles, compared with 1.4 for two separate instructions.
 */
#ifndef LEAT_DSP_X86_LOAD512_H
#define LEAT_DSP_X86_LOAD512_H

#include <immintrin.h>

static inline __attribute__((always_inline)) __m512i load512(const void *p)
{
    __m512i v = _mm512_loadu_si512(p);
    __asm__("" : "+v"(v));
    return v;
}

#endif
