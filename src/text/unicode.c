/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of properties, and the UTF-8 check. The check skips ASCII 32 or eight bytes at a time; other
 * code points are checked one at a time.
 */
#include "text/unicode.h"

#include "base/bytes.h"
#include "unicode_tables.h"

const uint8_t *const leat__unicode_index = unicode_index;
const uint8_t (*const leat__unicode_block)[128] = unicode_block;
const uint8_t *const leat__unicode_case_index = unicode_case_index;
const int32_t (*const leat__unicode_case)[128] = unicode_case;

static inline int continues(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

/* Returns the length of the valid code point at p, which has `left` bytes; 0 when it is not valid. */
static size_t valid_length(const uint8_t *p, size_t left)
{
    uint8_t c = p[0];
    if (c < 0xc2) return 0;
    if (c < 0xe0) return left >= 2 && continues(p[1]) ? 2 : 0;
    if (c < 0xf0) {
        if (left < 3 || !continues(p[1]) || !continues(p[2])) return 0;
        if (c == 0xe0 && p[1] < 0xa0) return 0; /* overlong */
        if (c == 0xed && p[1] > 0x9f) return 0; /* surrogate */
        return 3;
    }
    if (c > 0xf4 || left < 4 || !continues(p[1]) || !continues(p[2]) || !continues(p[3])) return 0;
    if (c == 0xf0 && p[1] < 0x90) return 0; /* overlong */
    if (c == 0xf4 && p[1] > 0x8f) return 0; /* past U+10FFFF */
    return 4;
}

static inline int is_ascii32(const uint8_t *p)
{
    uint64_t all =
        leat__load_u64(p) | leat__load_u64(p + 8) | leat__load_u64(p + 16) | leat__load_u64(p + 24);
    return (all & UINT64_C(0x8080808080808080)) == 0;
}

size_t leat__utf8_check(const uint8_t *p, size_t len)
{
    size_t i = 0;
    while (i < len) {
        while (i + 32 <= len && is_ascii32(p + i)) i += 32;
        while (i + 8 <= len && (leat__load_u64(p + i) & UINT64_C(0x8080808080808080)) == 0) i += 8;
        while (i < len && p[i] < 0x80) i++;
        while (i < len && p[i] >= 0x80) {
            size_t n = valid_length(p + i, len - i);
            if (n == 0) return i;
            i += n;
        }
    }
    return len;
}
