/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares lookup tables with a plain search of the codes.
 */
#include "leat_test.h"

#include "codec/jpeg_huff.h"

/* Canonical codes by definition: finds the shortest code that is a prefix of the 16 bits. */
static uint32_t plain_code(const uint8_t counts[16], const uint8_t *symbols, uint32_t top, uint32_t *symbol)
{
    uint32_t code = 0, at = 0;
    for (uint32_t l = 1; l <= 16; l++, code <<= 1)
        for (uint32_t i = 0; i < counts[l - 1]; i++, code++, at++)
            if (top >> (16 - l) == code) {
                *symbol = symbols[at];
                return l;
            }
    return 0;
}

/* Annex K.3.2: AC of luminance, shortened to its first 40 symbols; and a table of long codes. */
static const uint8_t ac_counts[16] = {0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 3};
static const uint8_t ac_symbols[] = {0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31,
                                     0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14, 0x32,
                                     0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52,
                                     0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16};

static int32_t plain_value(uint32_t bits, uint32_t size)
{
    return bits < 1u << (size - 1) ? (int32_t)bits - (int32_t)(1u << size) + 1 : (int32_t)bits;
}

/* Replays the table's entry for the bits at the top of `seen` code by code; LEAT__HUFF_LOOK of 32 bits are
 * known. */
static void replay(leat__huff_look e, uint32_t seen, uint32_t *pairs, uint32_t *ends)
{
    uint32_t symbol = 0, length = plain_code(ac_counts, ac_symbols, seen >> 16, &symbol);
    uint32_t size = symbol & 15, taken = length + size, bits = e.bits & 63;
    if (e.last == LEAT__HUFF_NOWHERE) { /* and nothing else could be said */
        assert_true(length == 0 || length > LEAT__HUFF_LOOK || symbol == 0xf0 || taken > LEAT__HUFF_TAKE);
        return;
    }
    assert_in_range(length, 1, LEAT__HUFF_LOOK);
    assert_true(bits <= LEAT__HUFF_TAKE);
    uint32_t last = (uint32_t)((uint64_t)seen << 32 >> (64 - bits)) & e.mask;
    if (symbol == 0) {
        assert_int_equal(e.bits, LEAT__HUFF_END | length);
        assert_true(e.first == 1 && e.last == 1 && e.value == 0 && e.mask == 0);
        return;
    }
    assert_int_equal(e.first, (symbol >> 4) + 1);
    int32_t value = plain_value((seen << length) >> (32 - size), size);
    if (bits == taken) {
        assert_int_equal(e.bits, bits);
        assert_int_equal(e.last, e.first);
        assert_int_equal(leat__huff_signed(last, e.mask), value);
        return;
    }
    assert_int_equal(e.value, value);
    length = plain_code(ac_counts, ac_symbols, seen << taken >> 16, &symbol);
    size = symbol & 15;
    assert_true(taken + length <= LEAT__HUFF_LOOK); /* known bits only */
    assert_int_equal(bits, taken + length + size);
    assert_int_equal(e.last, e.first + (symbol >> 4) + 1);
    assert_int_equal((e.bits & LEAT__HUFF_END) != 0, symbol == 0);
    if (size > 0)
        assert_int_equal(leat__huff_signed(last, e.mask),
                         plain_value((seen << (taken + length)) >> (32 - size), size));
    else assert_int_equal(e.mask, 0);
    *pairs += symbol != 0;
    *ends += symbol == 0;
}

/* Lookups are correct with any bits after those of the lookup. */
static void looks_are_codes_one_by_one(void **state)
{
    static leat__huff t;
    assert_true(leat__huff_build(&t, ac_counts, ac_symbols, false));
    uint32_t pairs = 0, ends = 0, behind = 1;
    for (uint32_t i = 0; i < 1u << LEAT__HUFF_LOOK; i++)
        for (int k = 0; k < 20; k++) {
            behind = behind * 1664525u + 1013904223u;
            replay(t.look[i], i << (32 - LEAT__HUFF_LOOK) | behind >> LEAT__HUFF_LOOK, &pairs, &ends);
        }
    assert_true(pairs > 20 * 300);
    assert_true(ends > 20 * 30);
}

static void means_are_codes_of_sizes(void **state)
{
    static leat__huff t;
    static const uint8_t counts[16] = {0, 1, 5, 1, 1, 1, 1, 1, 1}; /* Annex K.3.1 */
    static const uint8_t symbols[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    assert_true(leat__huff_build(&t, counts, symbols, true));
    uint32_t longer = 0;
    for (uint32_t i = 0; i < 1u << LEAT__HUFF_LOOK_DC; i++) {
        uint32_t size = 0, length = plain_code(counts, symbols, i << (16 - LEAT__HUFF_LOOK_DC), &size);
        leat__huff_mean e = t.mean[i];
        bool seen = length > 0 && length <= LEAT__HUFF_LOOK_DC;
        assert_int_equal(e.bits, seen ? length + size : 0);
        if (seen) assert_true(e.code == length && e.size == size);
        longer += !seen;
    }
    assert_int_equal(longer, 1); /* all ones */
}

static void symbols_with_two_codes_are_seen(void **state)
{
    static leat__huff t;
    const uint8_t counts[16] = {1, 1}, one[] = {5, 6}, two[] = {5, 5};
    assert_true(leat__huff_build(&t, counts, one, false));
    assert_true(t.unique);
    assert_true(leat__huff_build(&t, counts, two, false));
    assert_false(t.unique);
}

static void any_code_is_found(void **state)
{
    static leat__huff t;
    assert_true(leat__huff_build(&t, ac_counts, ac_symbols, false));
    uint32_t none = 0;
    for (uint32_t top = 0; top < 1 << 16; top++) {
        uint32_t want = 0, got = 0;
        uint32_t length = plain_code(ac_counts, ac_symbols, top, &want);
        assert_int_equal(leat__huff_code(&t, (uint64_t)top << 48, &got), length);
        if (length > 0) assert_int_equal(got, want);
        none += length == 0;
    }
    assert_true(none > 0);
}

static void extra_bits_are_values(void **state)
{
    for (uint32_t size = 1; size <= 15; size++)
        for (uint32_t bits = 0; bits < 1u << size; bits++)
            assert_int_equal(leat__huff_extend((uint64_t)bits << (64 - size) | 0xff, size),
                             plain_value(bits, size));
    assert_int_equal(leat__huff_extend(UINT64_MAX, 0), 0);
    assert_int_equal(leat__huff_extend(0, 0), 0);
}

static void tables_that_libjpeg_refuses(void **state)
{
    static leat__huff t;
    uint8_t symbols[256] = {0}, counts[16] = {0};
    for (int i = 0; i < 256; i++) symbols[i] = (uint8_t)i;
    counts[0] = 2; /* 0 and 1: the second is all ones */
    assert_false(leat__huff_build(&t, counts, symbols, false));
    counts[0] = 1;
    counts[1] = 1;
    assert_true(leat__huff_build(&t, counts, symbols, false));
    counts[1] = 3; /* more codes than bits */
    assert_false(leat__huff_build(&t, counts, symbols, false));
    counts[1] = 1;
    symbols[1] = 16; /* no size of a DC difference */
    assert_false(leat__huff_build(&t, counts, symbols, true));
    assert_true(leat__huff_build(&t, counts, symbols, false));
    memset(counts, 20, sizeof counts); /* more than 256 */
    assert_false(leat__huff_build(&t, counts, symbols, false));
}

static void the_same_table_is_kept(void **state)
{
    static leat__huff t;
    assert_true(leat__huff_build(&t, ac_counts, ac_symbols, false));
    t.look[0].mask = 12345; /* would be overwritten */
    assert_true(leat__huff_build(&t, ac_counts, ac_symbols, false));
    assert_int_equal(t.look[0].mask, 12345);
    uint8_t other[sizeof ac_symbols];
    memcpy(other, ac_symbols, sizeof other);
    other[39] ^= 1;
    assert_true(leat__huff_build(&t, ac_counts, other, false));
    assert_int_not_equal(t.look[0].mask, 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_are_codes_one_by_one),      cmocka_unit_test(means_are_codes_of_sizes),
        cmocka_unit_test(symbols_with_two_codes_are_seen), cmocka_unit_test(any_code_is_found),
        cmocka_unit_test(extra_bits_are_values),           cmocka_unit_test(tables_that_libjpeg_refuses),
        cmocka_unit_test(the_same_table_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
