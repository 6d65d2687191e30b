/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when a second request for the same bytes is worth its traffic: when the first takes
 * much longer than other requests of its size, and all second requests together stay within 2 %
 * of the bytes read. Used only by the HTTP loop's thread.
 */
#ifndef LEAT_IO_HEDGE_H
#define LEAT_IO_HEDGE_H

#include <stdbool.h>
#include <stdint.h>

#define LEAT__HEDGE_SIZES 40

typedef struct leat__hedge {
    struct {
        double slow_ns; /* estimate of the 95th percentile of the time */
        uint32_t seen;
    } sizes[LEAT__HEDGE_SIZES]; /* indexed by the power of two of the bytes */
    uint64_t spent;             /* bytes of second requests */
} leat__hedge;

/* Records that a request for `bytes` took `ns`. */
void leat__hedge_note(leat__hedge *h, uint64_t bytes, uint64_t ns);
/* Returns after how many ns a request for `bytes` is late; UINT64_MAX while too little is known. */
uint64_t leat__hedge_after(const leat__hedge *h, uint64_t bytes);
/* True when `bytes` may be requested a second time after `total` were read; then they are
 * counted. */
bool leat__hedge_spend(leat__hedge *h, uint64_t bytes, uint64_t total);

#endif
