/* SPDX-License-Identifier: Apache-2.0
 *
 * When a second request for the same bytes is worth its traffic: the first takes much longer than
 * requests of its size do, and all second requests together stay within 2 % of what was read.
 * Belongs to the HTTP loop's thread.
 */
#ifndef LEAT_IO_HEDGE_H
#define LEAT_IO_HEDGE_H

#include <stdbool.h>
#include <stdint.h>

#define LEAT__HEDGE_SIZES 40

typedef struct leat__hedge {
    struct {
        double slow_ns; /* estimate of the time that 95 % of the requests do not reach */
        uint32_t seen;
    } sizes[LEAT__HEDGE_SIZES]; /* by the power of two of the bytes */
    uint64_t spent; /* bytes that second requests asked for */
} leat__hedge;

/* A request for `bytes` took `ns`. */
void leat__hedge_note(leat__hedge *h, uint64_t bytes, uint64_t ns);
/* After how many ns a request for `bytes` is late; UINT64_MAX while too little is known. */
uint64_t leat__hedge_after(const leat__hedge *h, uint64_t bytes);
/* Whether `bytes` may be asked for a second time when `total` were read; then it counts them. */
bool leat__hedge_spend(leat__hedge *h, uint64_t bytes, uint64_t total);

#endif
