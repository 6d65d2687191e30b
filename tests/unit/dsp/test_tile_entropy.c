/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable entropy decoder on tiles written by hand, and the tiles it refuses. tests/check compares the
 * other variants with it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dsp/tile_entropy.h"
#include "probe/cpu.h"

static leat__tile_coefs coefs;
static leat__tile_entropy_dsp dsp;
/* Grey, two adjacent blocks. */
static const leat__tile_shape two = {1, {2}, {1}, {2}, 2};

/* Values +1 -3 of block 0 at positions 0 and 5, +2 of block 1 at position 0: a difference. Counts: block 0
 * has two nibbles, block 1 one. Sizes 1 2 2. */
static const uint8_t hand[] = {
    0x01,       /* nibbles less one: 1, 0 */
    0x21, 0x01, /* bitmap nibbles 1, 2 | 1, padding */
    0x06,       /* plane 1: is size > 1? 0 1 1 */
    0x00,       /* plane 2: 0 0 */
    0x11,       /* extra: 1 | -3 -> 00 | 2 -> 10 */
};

static int setup(void **state)
{
    leat__tile_entropy_init(&dsp, LEAT__CPU_SSE42);
    return 0;
}

static leat__tile_damage decode(const uint8_t *bytes, size_t len)
{
    uint8_t padded[128] = {0};
    memcpy(padded, bytes, len);
    return dsp.decode(&coefs, padded, len, &two, NULL);
}

static void a_tile_by_hand(void **state)
{
    assert_string_equal(dsp.isa, "c");
    assert_int_equal(decode(hand, sizeof hand), LEAT__TILE_WHOLE);
    assert_int_equal(coefs.mask[0], 1 | 1 << 5);
    assert_int_equal(coefs.mask[1], 1);
    assert_int_equal(coefs.value[0], 1);
    assert_int_equal(coefs.value[1], -3);
    assert_int_equal(coefs.value[2], 2);
    assert_int_equal(coefs.dc[0], 1);
    assert_int_equal(coefs.dc[1], 3);
    assert_int_equal(coefs.first[1], 2);
    assert_int_equal(coefs.mask[2], 0); /* padding after the last block */
}

static void every_wrong_length_is_refused(void **state)
{
    uint8_t bytes[64] = {0};
    memcpy(bytes, hand, sizeof hand);
    for (size_t len = 0; len < 40; len++)
        if (len != sizeof hand) assert_int_not_equal(decode(bytes, len), LEAT__TILE_WHOLE);
}

static void planes_without_end_are_refused(void **state)
{
    uint8_t bytes[64];
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(decode(bytes, sizeof bytes), LEAT__TILE_BAD_PLANES);
}

static void an_empty_tile_is_whole(void **state)
{
    const uint8_t empty[2] = {0, 0};
    assert_int_equal(decode(empty, 2), LEAT__TILE_WHOLE);
    assert_int_equal(coefs.mask[0] | coefs.mask[1], 0);
    assert_int_equal(coefs.dc[1], 0);
}

static void damage_has_words(void **state)
{
    for (int d = LEAT__TILE_WHOLE; d <= LEAT__TILE_BAD_END; d++)
        assert_string_not_equal(leat__tile_damage_text((leat__tile_damage)d), "unknown damage");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tile_by_hand),
        cmocka_unit_test(every_wrong_length_is_refused),
        cmocka_unit_test(planes_without_end_are_refused),
        cmocka_unit_test(an_empty_tile_is_whole),
        cmocka_unit_test(damage_has_words),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
