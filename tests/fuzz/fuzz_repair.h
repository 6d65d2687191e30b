/* SPDX-License-Identifier: Apache-2.0
 *
 * Checksums of packs would reject nearly every mutation. So they are recomputed for the mutated bytes, and
 * hostile numbers reach the code that must survive them.
 */
#ifndef LEAT_TESTS_FUZZ_REPAIR_H
#define LEAT_TESTS_FUZZ_REPAIR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/num.h"
#include "pack/layout.h"

static void hash_chunks(uint8_t *file, uint64_t from, uint64_t bytes, uint64_t to)
{
    for (uint64_t at = 0; at < bytes; at += LEAT__PACK_CHUNK, to += 8) {
        size_t n = (size_t)LEAT_MIN(bytes - at, LEAT__PACK_CHUNK);
        leat__store_u64(file + to, leat__hash64(file + from + at, n, 0));
    }
}

/* Recomputes all checks, if the footer still gives the positions of the parts. */
static void repair(uint8_t *file, size_t size)
{
    uint8_t *foot = file + size - LEAT__PACK_BLOCK;
    uint64_t index = leat__load_u64(foot + 64), bytes = leat__load_u64(foot + 72);
    uint64_t checks = leat__load_u64(foot + 80), roots = leat__load_u64(foot + 88);
    uint64_t dir = leat__load_u64(foot + 96), sum;
    bool found = leat__add_u64(index, bytes, &sum) && leat__add_u64(sum, checks, &sum) &&
                 leat__add_u64(sum, roots, &sum) && leat__add_u64(sum, dir, &sum) &&
                 sum == size - LEAT__PACK_BLOCK && checks >= leat__ceil_div(bytes, LEAT__PACK_CHUNK) * 8 &&
                 roots >= leat__ceil_div(checks, LEAT__PACK_CHUNK) * 8;
    if (found) {
        hash_chunks(file, index, bytes, index + bytes);
        hash_chunks(file, index + bytes, checks, index + bytes + checks);
        uint64_t at = index + bytes + checks;
        leat__store_u64(foot + 112, leat__hash64(file + at, (size_t)roots, 0));
        leat__store_u64(foot + 120, leat__hash64(file + at + roots, (size_t)dir, 0));
    }
    leat__store_u64(foot + 16, size);
    memcpy(foot + 4088, "\x1a\n\rTAEL\x89", 8);
    leat__store_u64(foot, leat__hash64(foot + 8, LEAT__PACK_BLOCK - 8, 0));
    memcpy(file, "\x89LEAT\r\n\x1a", 8);
    leat__store_u64(file + 16, size);
    leat__store_u64(file + 24, leat__load_u64(foot));
    leat__store_u64(file + 4088, leat__hash64(file, 4088, 0));
}

static bool can_be_whole(size_t size)
{
    return size % LEAT__PACK_SECTION_ALIGN == 0 && size >= 2 * LEAT__PACK_BLOCK;
}

#endif
