/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy that bypasses the caches. The including file defines put_line, which copies a line of 64 bytes to
 * an aligned address. Three parts are copied at once: the CPU prefetches only within a page, so a single
 * stream of reads would wait for memory at each new page.
 */
#include <immintrin.h>
#include <string.h>

#define LINE ((size_t)64)
#define PARTS 3
#define SHORT ((size_t)1024) /* shorter copies do not benefit */

static void copy_out(uint8_t *to, const uint8_t *from, size_t bytes)
{
    const size_t head = (LINE - ((uintptr_t)to & (LINE - 1))) & (LINE - 1);
    if (bytes < SHORT) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, head);
    to += head;
    from += head;
    const size_t part = (bytes - head) / PARTS & ~(LINE - 1), done = PARTS * part;
    for (size_t i = 0; i < part; i += LINE)
        for (size_t k = 0; k < PARTS; k++) put_line(to + k * part + i, from + k * part + i);
    memcpy(to + done, from + done, bytes - head - done);
    _mm_sfence();
}
