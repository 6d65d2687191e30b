/* SPDX-License-Identifier: Apache-2.0
 *
 * See hedge.h. The quantile estimate moves a small step towards each observed time, 19 times as far up as
 * down. It settles where one in 20 times is longer.
 */
#include "io/hedge.h"

#include "base/clock.h"
#include "base/num.h"

#define KNOWN 20u /* after this many requests of a size, later ones can count as late */
#define STEP 0.01 /* step as a share of the estimate */
#define LATE 2.0  /* a request is late after this multiple of the estimate */
#define LEAST_NS (20 * LEAT_NS_PER_MS)
#define SHARE 50u /* second requests may take 1/50 of the bytes read */

static uint32_t size_of(uint64_t bytes)
{
    uint32_t n = 0;
    while (bytes > 1 && n + 1 < LEAT__HEDGE_SIZES) bytes >>= 1, n++;
    return n;
}

void leat__hedge_note(leat__hedge *h, uint64_t bytes, uint64_t ns)
{
    uint32_t at = size_of(bytes);
    double *slow = &h->sizes[at].slow_ns, time = (double)ns;
    if (h->sizes[at].seen < KNOWN) { /* the largest time so far is a good enough start */
        h->sizes[at].seen++;
        *slow = LEAT_MAX(*slow, time);
    } else if (time > *slow) {
        *slow += LEAT_MIN(19 * STEP * *slow, time - *slow);
    } else {
        *slow -= LEAT_MIN(STEP * *slow, *slow - time);
    }
}

uint64_t leat__hedge_after(const leat__hedge *h, uint64_t bytes)
{
    uint32_t at = size_of(bytes);
    if (h->sizes[at].seen < KNOWN) return UINT64_MAX;
    double ns = LATE * h->sizes[at].slow_ns;
    return ns < (double)LEAST_NS ? LEAST_NS : ns > 1e18 ? UINT64_MAX : (uint64_t)ns;
}

bool leat__hedge_spend(leat__hedge *h, uint64_t bytes, uint64_t total)
{
    if (h->spent + bytes > total / SHARE) return false;
    h->spent += bytes;
    return true;
}
