/* SPDX-License-Identifier: Apache-2.0
 *
 * Tile entropy decoder for AVX-512 with VBMI and VBMI2: bitmaps of eight blocks at once by vpermb, sizes by
 * vpexpandb, extra bits of 64 values at once by vpermb (to eight values per 64-bit lane) and
 * vpmultishiftqb.
 */
#include <immintrin.h>

#define TILE_OWN_BITMAPS
#include "dsp/tile_front_tmpl.h"
#include "dsp/x86/load512.h"
#include "dsp/x86/tile_variants.h"

#define BLOCKS_BEFORE UINT64_C(0x7f3f1f0f070301ff) /* a byte per block; for the first one, all blocks */
#define EACH_BYTE(x) ((x)*UINT64_C(0x0101010101010101))

/* Builds the bitmaps of eight blocks from b on, whose nibbles are adjacent from nibble `odd` of `in`.
 * `counts` has a byte for each block: its number of nibbles, at most 16. Their values begin at `value`;
 * returns their number. Reads 65 bytes. */
TILE_INLINE uint32_t eight_bitmaps(leat__tile_coefs *c, uint32_t b, const uint8_t *in, uint32_t odd,
                                   uint64_t counts, uint32_t value)
{
    const __m512i spread =
        _mm512_set_epi64(0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
                         0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m512i iota = _mm512_set1_epi64(INT64_C(0x0706050403020100));
    const uint64_t start = (EACH_BYTE(counts) << 8) + EACH_BYTE(odd);
    const uint64_t unused = EACH_BYTE(UINT64_C(64)) - (counts << 2); /* unused bits at the top */
    const __mmask8 halfway = (__mmask8)_pext_u64(start, EACH_BYTE(UINT64_C(1)));
    const __m512i byte = _mm512_add_epi8(
        iota,
        _mm512_shuffle_epi8(_mm512_set1_epi64((long long)(start >> 1 & EACH_BYTE(UINT64_C(0x7f)))), spread));
    const __m512i bits = _mm512_permutexvar_epi8(byte, _mm512_loadu_si512(in));
    const __m512i next = _mm512_permutexvar_epi8(byte, _mm512_loadu_si512(in + 1));
    /* if a bitmap begins with a high nibble: that nibble, and all but the last nibble of the next bytes */
    const __m512i all = _mm512_mask_shldi_epi64(bits, halfway, next, _mm512_slli_epi64(bits, 56), 4);
    const __m512i keep =
        _mm512_srlv_epi64(_mm512_set1_epi64(-1), _mm512_cvtepu8_epi64(_mm_cvtsi64_si128((long long)unused)));
    const __m512i mask = _mm512_and_si512(all, keep);
    _mm512_storeu_si512(c->mask + b, mask);
    /* values before each block; for the first block, which has none before it, the values of all */
    const __m512i before = _mm512_sad_epu8(
        _mm512_maskz_permutexvar_epi8(BLOCKS_BEFORE, _mm512_set1_epi64(INT64_C(0x3830282018100800)),
                                      _mm512_popcnt_epi64(mask)),
        _mm512_setzero_si512());
    const __m512i at = _mm512_set1_epi64(value);
    _mm256_storeu_si256((__m256i *)(void *)(c->first + b),
                        _mm512_cvtepi64_epi32(_mm512_mask_add_epi64(at, 0xfe, at, before)));
    return (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(before));
}

/* Of eight counts from block b on, keeps the bytes of blocks that exist. */
TILE_INLINE uint64_t existing(uint64_t counts, uint32_t b, uint32_t blocks)
{
    return blocks - b < 8 ? _bzhi_u64(counts, 8 * (blocks - b)) : counts;
}

TILE_INLINE uint32_t tile_bitmaps(leat__tile_coefs *c, const uint8_t *bytes, uint32_t blocks)
{
    uint32_t values = 0;
    for (uint32_t b = 0; b < blocks; b += 8) {
        const uint64_t groups = existing(leat__load_u64(c->groups + b), b, blocks);
        values += eight_bitmaps(c, b, bytes, 0, 2 * groups, values);
        bytes += EACH_BYTE(groups) >> 56;
    }
    return values;
}

TILE_INLINE leat__tile_damage tile_front_fast(leat__tile_coefs *c, const uint8_t *in, size_t len,
                                              const leat__tile_shape *shape, size_t *used, uint32_t *values)
{
    size_t at = (size_t)(shape->blocks + 1) / 2 * 2; /* in nibbles */
    uint32_t n = 0;
    for (uint32_t b = 0; b < shape->blocks; b += 8) {
        if (at / 2 >= len) return LEAT__TILE_SHORT;
        const uint64_t nibbles = _pdep_u64(leat__load_u32(in + b / 2), EACH_BYTE(UINT64_C(15)));
        const uint64_t counts = existing(nibbles + EACH_BYTE(UINT64_C(1)), b, shape->blocks);
        n += eight_bitmaps(c, b, in + at / 2, at & 1, counts, n);
        at += EACH_BYTE(counts) >> 56;
    }
    *used = (at + 1) / 2;
    *values = n;
    return *used <= len ? LEAT__TILE_WHOLE : LEAT__TILE_SHORT;
}

/* Computes all levels except the lowest, bottom-up: see the portable version. */
TILE_INLINE const uint8_t *upper_sizes(leat__tile_coefs *c, const tile_planes *p)
{
    const __m512i one = _mm512_set1_epi8(1);
    uint8_t *above = c->size[0], *level = c->size[1];
    memset(above, 1, p->count[p->planes - 1] + 64);
    for (uint32_t l = p->planes - 1; l-- > 1;) {
        const uint8_t *from = above;
        for (uint32_t i = 0; i < p->count[l]; i += 64) {
            uint64_t bits = leat__load_u64(p->plane[l] + i / 8);
            __m512i s = _mm512_maskz_expand_epi8(bits, load512(from));
            _mm512_storeu_si512(level + i, _mm512_add_epi8(s, one));
            from += _mm_popcnt_u64(bits);
        }
        uint8_t *swap = above;
        above = level;
        level = swap;
    }
    return above;
}

/* Eight values share a 64-bit lane. The lanes hold the eights 0 4 1 5 2 6 3 7, so that unpacking bytes to
 * words leaves 32 values in order. To find where its bits begin, each lane takes the last running sums of
 * all eights, in their order, and adds those before its own. The first lane, which begins at 0, adds all of
 * them. */
#define LAST_SUMS INT64_C(0x3f2f1f0f37271707)
#define EIGHTS_BEFORE UINT64_C(0x7f073f031f010fff)

/* Makes the extra bits of a Huffman code signed: the lower half is negative. `ones`: mask of the bits. */
TILE_INLINE __m512i amplitudes(__m512i v, __m512i ones)
{
    __mmask32 negative = _mm512_cmple_epu16_mask(v, _mm512_srli_epi16(ones, 1));
    return _mm512_mask_sub_epi16(v, negative, v, ones);
}

/* Decodes 64 values one by one, for sizes that the fast path does not support. */
static void large_values(int16_t *value, __m512i sizes, const uint8_t *extra, uint64_t pos)
{
    uint8_t size[64];
    _mm512_storeu_si512(size, sizes);
    for (int i = 0; i < 64; i++) {
        value[i] = tile_amplitude(tile_bits_at(extra, pos), size[i]);
        pos += size[i];
    }
}

/* The sizes of up to 64 values, their running sums in each lane, and the bits before each lane. */
typedef struct sized {
    __m512i sizes, in_lanes, sums, ahead;
} sized;

/* Measures the next `left` values, at most 64; `bits` are the next bits of the lowest plane. */
TILE_INLINE sized measure(uint64_t bits, const uint8_t *above, uint32_t left)
{
    const uint64_t valid = left < 64 ? _bzhi_u64(~UINT64_C(0), left) : ~UINT64_C(0);
    sized m;
    m.sizes =
        _mm512_maskz_add_epi8(valid, _mm512_maskz_expand_epi8(bits, load512(above)), _mm512_set1_epi8(1));
    m.in_lanes = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), m.sizes);
    m.sums = _mm512_mullo_epi64(m.in_lanes, _mm512_set1_epi64(INT64_C(0x0101010101010101)));
    m.ahead =
        _mm512_sad_epu8(_mm512_maskz_permutexvar_epi8(EIGHTS_BEFORE, _mm512_set1_epi64(LAST_SUMS), m.sums),
                        _mm512_setzero_si512());
    return m;
}

/* Decodes 64 values from pos on, low and high bytes separately. Returns the bits used. There is no branch for
 * sizes above 8, which one vector in seven has in photographs. */
TILE_INLINE uint64_t values64(int16_t *value, const sized *m, const uint8_t *extra, uint64_t pos)
{
    const __m512i to_bytes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8));
    const __m512i iota = _mm512_set1_epi64(INT64_C(0x0706050403020100));
    const __m512i low_ones =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 3, 7, 15, 31, 63, 127, -1, -1, -1, -1, -1, -1, -1, -1));
    const __m512i high_ones =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 7, 15, 31, 63, 127));
    uint64_t used = (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(m->ahead));
    /* A lane's bits must be within 8 bytes after a shift of up to 7. */
    if (__builtin_expect(
            _mm512_mask_cmpgt_epu8_mask(UINT64_C(0x8080808080808080), m->sums, _mm512_set1_epi8(57)) != 0,
            0)) {
        large_values(value, m->sizes, extra, pos);
        return used;
    }
    __m512i odd = _mm512_set1_epi64((long long)(pos & 7));
    __m512i start = _mm512_mask_add_epi64(odd, 0xfe, m->ahead, odd);
    __m512i byte = _mm512_add_epi8(_mm512_shuffle_epi8(_mm512_srli_epi64(start, 3), to_bytes), iota);
    __m512i bits = _mm512_permutexvar_epi8(byte, _mm512_loadu_si512(extra + (pos >> 3)));
    __m512i shift =
        _mm512_add_epi8(_mm512_slli_epi64(m->sums, 8),
                        _mm512_shuffle_epi8(_mm512_and_si512(start, _mm512_set1_epi64(7)), to_bytes));
    __m512i ones0 = _mm512_shuffle_epi8(low_ones, m->in_lanes);
    __m512i ones1 = _mm512_shuffle_epi8(high_ones, m->in_lanes);
    __m512i v0 = _mm512_and_si512(_mm512_multishift_epi64_epi8(shift, bits), ones0);
    shift = _mm512_add_epi8(shift, _mm512_set1_epi8(8));
    __m512i v1 = _mm512_and_si512(_mm512_multishift_epi64_epi8(shift, bits), ones1);
    _mm512_storeu_si512(value, amplitudes(_mm512_unpacklo_epi8(v0, v1), _mm512_unpacklo_epi8(ones0, ones1)));
    _mm512_storeu_si512(value + 32,
                        amplitudes(_mm512_unpackhi_epi8(v0, v1), _mm512_unpackhi_epi8(ones0, ones1)));
    return used;
}

/* Measures each vector while the previous one is unpacked. A separate function: inlined into the front, GCC
 * 12 makes both slower (15 % of the front). */
static __attribute__((noinline)) void values(leat__tile_coefs *c, const tile_planes *p)
{
    const uint8_t *above = upper_sizes(c, p), *plane = p->plane[0];
    const uint32_t n = p->values;
    uint64_t pos = 0, bits = leat__load_u64(plane);
    sized m = measure(bits, above, n);
    for (uint32_t i = 0;; i += 64) {
        if (n - i <= 64) {
            values64(c->value + i, &m, p->extra, pos);
            return;
        }
        above += _mm_popcnt_u64(bits);
        bits = leat__load_u64(plane += 8);
        const sized next = measure(bits, above, n - i - 64);
        pos += values64(c->value + i, &m, p->extra, pos);
        m = next;
    }
}

TILE_ENTROPY_VARIANT(leat__tile_decode_avx512)
{
    tile_planes p;
    leat__tile_damage damage = tile_front(coefs, in, len, shape, codes, &p);
    if (damage != LEAT__TILE_WHOLE) return damage;
    if (p.values > 0) values(coefs, &p);
    tile_finish(coefs, shape);
    return LEAT__TILE_WHOLE;
}
