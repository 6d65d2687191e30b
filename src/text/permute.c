/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of MinHash signatures in plain C, and the selection of the variant.
 */
#include "text/permute.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/sha1.h"
#include "probe/cpu.h"

static void prime(const uint64_t *a, const uint64_t *b, uint32_t count, const uint64_t *hash, uint32_t n,
                  uint64_t *values)
{
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < n; i++) {
            uint64_t v = leat__permute_one(hash[i], a[k], b[k]);
            values[k] = v < values[k] ? v : values[k];
        }
}

static void prime_low(const uint64_t *a, const uint64_t *b, uint32_t count, const uint64_t *hash, uint32_t n,
                      uint64_t *values)
{
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < n; i++) {
            uint64_t v = leat__permute_one(hash[i], a[k], b[k]) & UINT32_MAX;
            values[k] = v < values[k] ? v : values[k];
        }
}

static void affine(const uint64_t *a, const uint64_t *b, uint32_t count, const uint64_t *hash, uint32_t n,
                   uint64_t *values)
{
    uint32_t mixed[LEAT__PERMUTE_MOST];
    for (uint32_t i = 0; i < n; i++) mixed[i] = leat__permute_mix((uint32_t)hash[i]);
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < n; i++) {
            uint32_t v = mixed[i] * (uint32_t)a[k] + (uint32_t)b[k];
            values[k] = v < values[k] ? v : values[k];
        }
}

static void sha1(const uint8_t *const *text, const uint32_t *len, uint32_t n, uint64_t *out)
{
    uint8_t sum[LEAT__SHA1_BYTES];
    for (uint32_t i = 0; i < n; i++) {
        leat__sha1_of(text[i], len[i], sum);
        out[i] = leat__load_u32(sum);
    }
}

static void xxh64(const uint8_t *const *text, const uint32_t *len, uint32_t n, uint64_t *out)
{
    for (uint32_t i = 0; i < n; i++) out[i] = leat__xxh64(text[i], len[i]);
}

const leat__permute_dsp leat__permute_c = {"c", prime, prime_low, affine, sha1, xxh64};

const leat__permute_dsp *leat__permute_dsp_for(uint32_t cpu_flags)
{
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX512ICL) return &leat__permute_avx512;
    if (cpu_flags & LEAT__CPU_AVX2) return &leat__permute_avx2;
#endif
    return &leat__permute_c;
}

const leat__permute_dsp *leat__permute_dsp_now(void)
{
    return leat__permute_dsp_for(leat__cpu_flags());
}
