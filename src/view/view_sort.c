/* SPDX-License-Identifier: Apache-2.0
 *
 * A radix sort of pairs, 8 bits at a time. Bytes that are equal in all keys cost only one counting pass.
 * 10 million rows take about half a second; a comparison sort takes several.
 */
#include <math.h>
#include <string.h>

#include "view/view_query.h"

uint64_t leat__view_key(double value, bool descending)
{
    uint64_t bits;
    if (isnan(value)) return UINT64_MAX;
    if (value == 0) value = 0; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof bits);
    bits = bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
    return descending ? ~bits : bits;
}

leat__view_pair *leat__view_sort(leat__view_pair *from, leat__view_pair *to, uint32_t count)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        uint32_t at[256] = {0}, sum = 0;
        for (uint32_t i = 0; i < count; i++) at[from[i].key >> shift & 255]++;
        if (count == 0 || at[from[0].key >> shift & 255] == count) continue;
        for (int b = 0; b < 256; b++) {
            const uint32_t n = at[b];
            at[b] = sum;
            sum += n;
        }
        for (uint32_t i = 0; i < count; i++) to[at[from[i].key >> shift & 255]++] = from[i];
        leat__view_pair *swap = from;
        from = to;
        to = swap;
    }
    return from;
}
