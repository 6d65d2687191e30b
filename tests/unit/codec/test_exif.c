/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/make_image.h"

#include "codec/exif.h"

/* Writes a TIFF with two entries: another tag, then the orientation. */
static size_t make_tiff(uint8_t *out, int big, uint16_t type, uint32_t value)
{
    uint8_t *p = out;
#define PUT16(v)                                                                                             \
    (big ? (*p++ = (uint8_t)((v) >> 8), *p++ = (uint8_t)(v))                                                 \
         : (*p++ = (uint8_t)(v), *p++ = (uint8_t)((v) >> 8)))
    *p++ = big ? 'M' : 'I';
    *p++ = big ? 'M' : 'I';
    PUT16(42);
    if (big) {
        PUT16(0);
        PUT16(8);
    } else {
        PUT16(8);
        PUT16(0);
    }
    PUT16(2);
    PUT16(0x010f);
    PUT16(2);
    if (big) {
        PUT16(0);
        PUT16(4);
    } else {
        PUT16(4);
        PUT16(0);
    }
    PUT16(0x4142);
    PUT16(0x4344);
    PUT16(0x0112);
    PUT16(type);
    if (big) {
        PUT16(0);
        PUT16(1);
    } else {
        PUT16(1);
        PUT16(0);
    }
    int longs = type == 4 || type == 9 || type == 13;
    if (longs && big) {
        PUT16(0);
        PUT16(value);
    } else {
        PUT16(value);
        PUT16(0);
    }
    PUT16(0);
    PUT16(0);
#undef PUT16
    return (size_t)(p - out);
}

static void reads_both_orders_and_types(void **state)
{
    static const uint16_t types[] = {3, 4, 8, 9, 13}; /* SHORT, LONG, signed ones, IFD */
    uint8_t tiff[64], with_prefix[70];
    for (int big = 0; big < 2; big++)
        for (uint32_t o = 1; o <= 8; o++)
            for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
                uint16_t type = types[i];
                size_t n = make_tiff(tiff, big, type, o);
                assert_int_equal(leat__exif_orientation(tiff, n), o);
                memcpy(with_prefix, "Exif\0\0", 6);
                memcpy(with_prefix + 6, tiff, n);
                assert_int_equal(leat__exif_orientation(with_prefix, n + 6), o);
            }
}

static void other_types_and_nonsense(void **state)
{
    uint8_t tiff[64];
    size_t n = make_tiff(tiff, 0, 3, 9);
    assert_int_equal(leat__exif_orientation(tiff, n), 1);
    n = make_tiff(tiff, 0, 3, 0);
    assert_int_equal(leat__exif_orientation(tiff, n), 1);
    const uint16_t others[] = {0, 1, 2, 5, 7, 10, 11, 12, 14, 999}; /* as Pillow: no BYTE */
    n = make_tiff(tiff, 0, 6, 6);                                   /* a signed byte */
    assert_int_equal(leat__exif_orientation(tiff, n), 6);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        n = make_tiff(tiff, 0, others[i], 6);
        assert_int_equal(leat__exif_orientation(tiff, n), 1);
    }
    assert_int_equal(leat__exif_orientation(NULL, 0), LEAT__EXIF_NONE);
    assert_int_equal(leat__exif_orientation((const uint8_t *)"GIF89a__", 8), LEAT__EXIF_NONE);
}

static uint32_t in_xmp(const char *text)
{
    return leat__xmp_orientation((const uint8_t *)text, strlen(text));
}

static void xmp_is_searched_as_pillow_does(void **state)
{
    assert_int_equal(in_xmp("<a tiff:Orientation=\"6\"/>"), 6);
    assert_int_equal(in_xmp("<tiff:Orientation>3</tiff:Orientation>"), 3);
    assert_int_equal(in_xmp("tiff:Orientation tiff:Orientation='5' tiff:Orientation>8"), 8);
    assert_int_equal(in_xmp("tiff:Orientation>9"), 1); /* the first digit counts, sense or not */
    assert_int_equal(in_xmp("tiff:Orientation>"), LEAT__EXIF_NONE);
    assert_int_equal(in_xmp("tiff:Orientation=\""), LEAT__EXIF_NONE);
    assert_int_equal(in_xmp("tiff:Orientation"), LEAT__EXIF_NONE);
    assert_int_equal(in_xmp(""), LEAT__EXIF_NONE);
}

static void raw_profiles_are_read(void **state)
{
    uint8_t block[LEAT__EXIF_MINIMAL];
    char text[128] = "\nexif\n      32\n";
    size_t n = strlen(text);
    leat__exif_minimal(7, block);
    for (size_t i = 0; i < sizeof block; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, i == 20 ? "\n%02x" : "%02x", block[i]);
    assert_int_equal(leat__profile_orientation((const uint8_t *)text, n), 7);
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *copy = malloc(cut + 1);
        memcpy(copy, text, cut);
        uint32_t o = leat__profile_orientation(copy, cut);
        assert_true(o == LEAT__EXIF_NONE || o == 7);
        free(copy);
    }
}

static void exif_counts_before_profile_and_xmp(void **state)
{
    assert_int_equal(leat__orientation_of(&(leat__exif_seen){0}), 1);
    assert_int_equal(leat__orientation_of(&(leat__exif_seen){.xmp = 4}), 4);
    assert_int_equal(leat__orientation_of(&(leat__exif_seen){.profile = 3, .xmp = 4}), 3);
    leat__exif_seen all = {.has_exif = true, .exif = 2, .profile = 3, .xmp = 4};
    assert_int_equal(leat__orientation_of(&all), 2);
    all.exif = LEAT__EXIF_NONE; /* EXIF without the tag: XMP, not the profile */
    assert_int_equal(leat__orientation_of(&all), 4);
}

/* Tests every truncation and every changed byte, in blocks of exactly that size, so that a sanitizer detects
 * any access outside. */
static void every_cut_and_byte_is_safe(void **state)
{
    uint8_t tiff[64];
    size_t n = make_tiff(tiff, 1, 3, 6);
    for (size_t cut = 0; cut <= n; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);
        memcpy(copy, tiff, cut);
        uint32_t o = leat__exif_orientation(copy, cut);
        assert_true(o == LEAT__EXIF_NONE || o == 6);
        assert_true(cut < n - 6 ? o == LEAT__EXIF_NONE : 1);
        for (size_t i = 0; i < cut; i++)
            for (int bit = 0; bit < 8; bit++) {
                copy[i] ^= (uint8_t)(1 << bit);
                o = leat__exif_orientation(copy, cut);
                assert_true(o <= 8);
                copy[i] ^= (uint8_t)(1 << bit);
            }
        free(copy);
    }
}

static void minimal_reads_back(void **state)
{
    for (uint32_t o = 1; o <= 8; o++) {
        uint8_t block[LEAT__EXIF_MINIMAL];
        assert_int_equal(leat__exif_minimal(o, block), LEAT__EXIF_MINIMAL);
        assert_int_equal(leat__exif_orientation(block, sizeof block), o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_both_orders_and_types),        cmocka_unit_test(other_types_and_nonsense),
        cmocka_unit_test(every_cut_and_byte_is_safe),         cmocka_unit_test(minimal_reads_back),
        cmocka_unit_test(xmp_is_searched_as_pillow_does),     cmocka_unit_test(raw_profiles_are_read),
        cmocka_unit_test(exif_counts_before_profile_and_xmp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
