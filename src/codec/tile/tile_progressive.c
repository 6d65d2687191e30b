/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes blocks as the bits of a progressive scan (ITU-T T.81, annex G): DC or AC coefficients, for the
 * first time or refined by one bit. Where the standard leaves a choice, it follows libjpeg. A run of ended
 * blocks is written when a coefficient follows, when it reaches its maximum length, before a restart marker
 * and at the end of the scan. Sixteen zeros are written only if a new coefficient follows in the block. Any
 * thread; no state.
 */
#include "codec/tile/tile_scan.h"

enum { SIXTEEN_ZEROS = 0xf0, ZEROS_MAX = 15, CHUNK = 32 };

static uint64_t code_of_run(const leat__scan_codes *ac, uint32_t log2)
{
    return log2 == 1 ? ac->run_of_two : ac->entry[log2 << 4];
}

bool leat__scan_end_run(leat__scan_queue *q, leat__scan_run *run, const leat__scan_codes *ac)
{
    if (run->blocks == 0) return true;
    uint32_t log2 = 31 - (uint32_t)__builtin_clz(run->blocks);
    uint64_t code = code_of_run(ac, log2);
    leat__scan_put_code(q, code);
    leat__scan_put_bits(q, run->blocks & ((1u << log2) - 1), log2);
    for (uint32_t i = 0; i < run->bits; i++) leat__scan_put_bits(q, run->bit[i], 1);
    run->blocks = run->bits = 0;
    return (code & LEAT__SCAN_NO_CODE) == 0;
}

/* Returns the positions of a pass with nonzero coefficients. */
static uint64_t places_of(const leat__scan_block *block, const leat__scan_pass *pass)
{
    return block->ac >> pass->first << pass->first << (63 - pass->last) >> (63 - pass->last);
}

/* Returns a magnitude, as far as this pass and earlier ones code it. */
static uint32_t magnitude(const leat__scan_block *block, uint32_t k, const leat__scan_pass *pass)
{
    return (uint32_t)abs(block->at[k]) >> pass->low;
}

static bool put_first(leat__scan_queue *q, const leat__scan_block *block, const leat__scan_pass *pass,
                      const leat__scan_codes *ac, leat__scan_run *run)
{
    uint32_t next = pass->first; /* position after the previous coefficient */
    uint64_t none = 0;
    bool good = true;
    for (uint64_t mask = places_of(block, pass); mask != 0; mask &= mask - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(mask), zeros = k - next;
        int v = (int)magnitude(block, k, pass);
        if (v == 0) continue;
        good &= leat__scan_end_run(q, run, ac);
        for (; zeros > ZEROS_MAX; zeros -= 16) {
            none |= ac->entry[SIXTEEN_ZEROS];
            leat__scan_put_code(q, ac->entry[SIXTEEN_ZEROS]);
        }
        uint64_t code = leat__scan_code_of(ac, zeros, block->at[k] < 0 ? -v : v);
        none |= code;
        leat__scan_put_code(q, code);
        next = k + 1;
    }
    if (next <= pass->last && ++run->blocks == LEAT__SCAN_RUN_BLOCKS) good &= leat__scan_end_run(q, run, ac);
    return good && (none & LEAT__SCAN_NO_CODE) == 0;
}

/* Correction bits of the current block; the first is the highest of the `n` bits. */
typedef struct corrections {
    uint64_t bits;
    uint32_t n;
} corrections;

static void put_corrections(leat__scan_queue *q, corrections *c)
{
    if (c->n > CHUNK) {
        leat__scan_put_bits(q, c->bits >> CHUNK, c->n - CHUNK);
        c->n = CHUNK;
    }
    leat__scan_put_bits(q, c->bits & ((UINT64_C(1) << c->n) - 1), c->n);
    *c = (corrections){0};
}

/* Returns the last position whose coefficient is new in this pass; 0: none. */
static uint32_t last_new(const leat__scan_block *block, const leat__scan_pass *pass, uint64_t mask)
{
    uint32_t last = 0;
    for (; mask != 0; mask &= mask - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(mask);
        if (magnitude(block, k, pass) == 1) last = k;
    }
    return last;
}

/* Ends a block: its corrections wait with the run. */
static bool add_to_run(leat__scan_queue *q, leat__scan_run *run, const corrections *c,
                       const leat__scan_codes *ac)
{
    run->blocks++;
    for (uint32_t i = c->n; i-- > 0;) run->bit[run->bits++] = (uint8_t)(c->bits >> i & 1);
    if (run->blocks < LEAT__SCAN_RUN_BLOCKS && run->bits <= LEAT__SCAN_RUN_BITS) return true;
    return leat__scan_end_run(q, run, ac);
}

static bool put_refined(leat__scan_queue *q, const leat__scan_block *block, const leat__scan_pass *pass,
                        const leat__scan_codes *ac, leat__scan_run *run)
{
    const uint64_t places = places_of(block, pass);
    const uint32_t end = last_new(block, pass, places);
    uint32_t next = pass->first, zeros = 0;
    uint64_t none = 0;
    corrections waiting = {0};
    bool good = true;
    for (uint64_t mask = places; mask != 0; mask &= mask - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(mask), v = magnitude(block, k, pass);
        if (v == 0) continue;
        zeros += k - next;
        next = k + 1;
        for (; zeros > ZEROS_MAX && k <= end; zeros -= 16) {
            good &= leat__scan_end_run(q, run, ac);
            none |= ac->entry[SIXTEEN_ZEROS];
            leat__scan_put_code(q, ac->entry[SIXTEEN_ZEROS]);
            put_corrections(q, &waiting);
        }
        if (v > 1) {
            waiting.bits = waiting.bits << 1 | (v & 1);
            waiting.n++;
            continue;
        }
        good &= leat__scan_end_run(q, run, ac);
        uint64_t code = ac->entry[zeros << 4 | 1] | (uint64_t)(block->at[k] > 0) << 8;
        none |= code;
        leat__scan_put_code(q, code);
        put_corrections(q, &waiting);
        zeros = 0;
    }
    zeros += pass->last + 1 - next;
    if (zeros > 0 || waiting.n > 0) good &= add_to_run(q, run, &waiting, ac);
    return good && (none & LEAT__SCAN_NO_CODE) == 0;
}

static bool put_mean(leat__scan_queue *q, const leat__scan_block *block, const leat__scan_pass *pass,
                     const leat__scan_codes *dc, int *guess)
{
    int v = block->dc >> pass->low;
    if (pass->refine) {
        leat__scan_put_bits(q, (uint32_t)v & 1, 1);
        return true;
    }
    uint64_t code = leat__scan_code_of(dc, 0, v - *guess);
    *guess = v;
    leat__scan_put_code(q, code);
    return (code & LEAT__SCAN_NO_CODE) == 0;
}

bool leat__scan_put_pass(leat__scan_queue *q, const leat__scan_block *block, const leat__scan_pass *pass,
                         const leat__scan_codes *dc, const leat__scan_codes *ac, int *guess,
                         leat__scan_run *run)
{
    if (pass->first == 0) return put_mean(q, block, pass, dc, guess);
    return pass->refine ? put_refined(q, block, pass, ac, run) : put_first(q, block, pass, ac, run);
}
