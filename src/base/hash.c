/* SPDX-License-Identifier: Apache-2.0
 *
 * XXH3 by libxxhash. Pure functions; a hasher belongs to one thread at a time.
 */
#include "base/hash.h"

#define XXH_STATIC_LINKING_ONLY /* makes XXH3_state_t complete, so that it can be a member */
#include <xxhash.h>
#ifdef LEAT_XXH_DISPATCH
#include <xxh_x86dispatch.h> /* uses the widest vectors of this CPU; the values are the same */
#endif

#include "base/mem.h"

/* libxxhash 0.8.1 returns from its wide loops without vzeroupper. Until some code clears the upper halves of
 * the vector registers, each switch between SSE and AVX code costs about 100 cycles, for example in every
 * libm call that uses FMA. That was half of the time to check small images. */
static inline void clear_uppers(void)
{
#if defined LEAT_XXH_DISPATCH && defined LEAT_X86
    if (__builtin_cpu_supports("avx")) __asm__ volatile("vzeroupper");
#endif
}

/* XXH3's state must be aligned to 64 bytes. */
struct leat__hasher {
    XXH3_state_t state;
};

uint64_t leat__hash64(const void *data, size_t len, uint64_t seed)
{
    const uint64_t h = XXH3_64bits_withSeed(data, len, seed);
    clear_uppers();
    return h;
}

leat__hash128 leat__hash128_of(const void *data, size_t len, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(data, len, seed);
    clear_uppers();
    return (leat__hash128){.low = h.low64, .high = h.high64};
}

uint64_t leat__xxh64(const void *data, size_t len)
{
    return XXH64(data, len, 0);
}

leat__hasher *leat__hasher_open(uint64_t seed)
{
    leat__hasher *h = leat__alloc_aligned(LEAT__MEM_MISC, sizeof *h, 64);
    if (h == NULL) return NULL;
    XXH3_INITSTATE(&h->state);
    leat__hasher_restart(h, seed);
    return h;
}

void leat__hasher_restart(leat__hasher *h, uint64_t seed)
{
    XXH3_128bits_reset_withSeed(&h->state, seed);
}

void leat__hasher_update(leat__hasher *h, const void *data, size_t len)
{
    XXH3_128bits_update(&h->state, data, len);
    clear_uppers();
}

uint64_t leat__hasher_value64(const leat__hasher *h)
{
    return XXH3_64bits_digest(&h->state);
}

leat__hash128 leat__hasher_value128(const leat__hasher *h)
{
    XXH128_hash_t v = XXH3_128bits_digest(&h->state);
    return (leat__hash128){.low = v.low64, .high = v.high64};
}

void leat__hasher_close(leat__hasher **h)
{
    leat__free(*h);
    *h = NULL;
}
