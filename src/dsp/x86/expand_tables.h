/* SPDX-License-Identifier: Apache-2.0
 *
 * Shuffles that spread the first bytes (or words) of a register to the places of the set bits
 * of a byte, zeros elsewhere: what vpexpand does where there is none. Written out by the
 * preprocessor; static, so each ISA file has its own copy.
 */
#ifndef LEAT_DSP_X86_EXPAND_TABLES_H
#define LEAT_DSP_X86_EXPAND_TABLES_H

#include <stdint.h>

#define EXPAND_ONES(x)                                                                                       \
    (((x)&1) + ((x) >> 1 & 1) + ((x) >> 2 & 1) + ((x) >> 3 & 1) + ((x) >> 4 & 1) + ((x) >> 5 & 1) +          \
     ((x) >> 6 & 1))
/* Which source goes to place i: the number of bits set below it. */
#define EXPAND_FROM(m, i) EXPAND_ONES((m) & ((1 << (i)) - 1))
#define EXPAND_BYTE(m, i) ((m) >> (i)&1 ? EXPAND_FROM(m, i) : 0x80)
#define EXPAND_WORD(m, i)                                                                                    \
    ((m) >> (i)&1 ? 2 * EXPAND_FROM(m, i) : 0x80), ((m) >> (i)&1 ? 2 * EXPAND_FROM(m, i) + 1 : 0x80)

#define EXPAND_BYTES_OF(m)                                                                                   \
    {                                                                                                        \
        EXPAND_BYTE(m, 0), EXPAND_BYTE(m, 1), EXPAND_BYTE(m, 2), EXPAND_BYTE(m, 3), EXPAND_BYTE(m, 4),       \
            EXPAND_BYTE(m, 5), EXPAND_BYTE(m, 6), EXPAND_BYTE(m, 7)                                          \
    }
#define EXPAND_WORDS_OF(m)                                                                                   \
    {                                                                                                        \
        EXPAND_WORD(m, 0), EXPAND_WORD(m, 1), EXPAND_WORD(m, 2), EXPAND_WORD(m, 3), EXPAND_WORD(m, 4),       \
            EXPAND_WORD(m, 5), EXPAND_WORD(m, 6), EXPAND_WORD(m, 7)                                          \
    }
#define EXPAND_4(of, m) of(m), of((m) + 1), of((m) + 2), of((m) + 3)
#define EXPAND_16(of, m) EXPAND_4(of, m), EXPAND_4(of, (m) + 4), EXPAND_4(of, (m) + 8), EXPAND_4(of, (m) + 12)
#define EXPAND_64(of, m)                                                                                     \
    EXPAND_16(of, m), EXPAND_16(of, (m) + 16), EXPAND_16(of, (m) + 32), EXPAND_16(of, (m) + 48)
#define EXPAND_256(of) EXPAND_64(of, 0), EXPAND_64(of, 64), EXPAND_64(of, 128), EXPAND_64(of, 192)

#endif
