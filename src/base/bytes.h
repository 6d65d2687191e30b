/* SPDX-License-Identifier: Apache-2.0
 *
 * Unaligned little-endian loads and stores. leat's formats are little-endian, and so is every machine it
 * builds for (checked below), so these are plain copies.
 */
#ifndef LEAT_BASE_BYTES_H
#define LEAT_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

#define LEAT_BYTES_PAIR(bits)                                                                                \
    static inline uint##bits##_t leat__load_u##bits(const void *p)                                           \
    {                                                                                                        \
        uint##bits##_t v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                             \
        return v;                                                                                            \
    }                                                                                                        \
    static inline void leat__store_u##bits(void *p, uint##bits##_t v)                                        \
    {                                                                                                        \
        memcpy(p, &v, sizeof v);                                                                             \
    }
LEAT_BYTES_PAIR(16)
LEAT_BYTES_PAIR(32)
LEAT_BYTES_PAIR(64)
#undef LEAT_BYTES_PAIR

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "leat needs a little-endian machine"
#endif

#endif
