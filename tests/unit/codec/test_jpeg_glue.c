/* SPDX-License-Identifier: Apache-2.0
 *
 * The policy on damage: which damage is an error, which is accepted, and that nothing crashes.
 */
#include "codec/make_image.h"

#include "codec/jpeg_header.h"

static leat__decoder *decoder;

static int open_decoder(void **state)
{
    return leat__decoder_open(&decoder, NULL);
}

static int close_decoder(void **state)
{
    leat__decoder_close(&decoder);
    return 0;
}

static int decode(bytes b, leat__planes *out, leat_error *err)
{
    leat__image_info info;
    int rc = leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, err);
    if (rc != 0) return rc;
    return leat__codec_decode_planes(decoder, &info, b.data, b.len, NULL, out, err);
}

/* Returns the file with `extra` inserted at `at`. */
static bytes with_inserted(bytes b, size_t at, const void *extra, size_t n)
{
    bytes r = {malloc(b.len + n + LEAT__CODEC_PADDING), b.len + n};
    memcpy(r.data, b.data, at);
    memcpy(r.data + at, extra, n);
    memcpy(r.data + at + n, b.data + at, b.len - at + LEAT__CODEC_PADDING);
    return r;
}

static size_t find_marker(bytes b, uint8_t low, uint8_t high, size_t from)
{
    for (size_t i = from; i + 1 < b.len; i++)
        if (b.data[i] == 0xff && b.data[i + 1] >= low && b.data[i + 1] <= high) return i;
    fail_msg("no marker");
    return 0;
}

static void stray_bytes_before_the_end_are_accepted(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 60, 50, 90, 1);
    leat__planes good = {0}, out = {0};
    assert_int_equal(decode(b, &good, NULL), 0);
    bytes padded = with_inserted(b, b.len - 2, "\0\0\0\0\0\0\0", 7);
    bytes after = with_inserted(b, b.len, "trailing", 8);
    assert_int_equal(decode(padded, &out, NULL), 0);
    assert_memory_equal(out.block, good.block, good.capacity);
    assert_int_equal(decode(after, &out, NULL), 0);
    assert_memory_equal(out.block, good.block, good.capacity);
    leat__planes_reset(&good);
    leat__planes_reset(&out);
    free(padded.data);
    free(after.data);
    free(b.data);
}

static void damage_between_restarts_is_an_error(void **state)
{
    const jpeg_kind *kind = &jpeg_kinds[15];
    assert_true(kind->restart_rows == 1);
    bytes b = make_jpeg(kind, 60, 90, 90, 1);
    leat__jpeg_header h;
    assert_int_equal(leat__jpeg_header_read(b.data, b.len, &h, NULL), 0);
    size_t rst = find_marker(b, 0xd0, 0xd7, h.scan_offset);
    leat__planes out = {0};
    leat_error err = {0};
    bytes extra = with_inserted(b, rst, "\1\2\3\4\5\6", 6);
    assert_int_equal(decode(extra, &out, &err), LEAT_EDATA);
    assert_true(err.offset > (int64_t)h.scan_offset);
    free(extra.data);
    b.data[rst + 1] = 0xd0 | ((b.data[rst + 1] + 3) & 7); /* out of turn */
    assert_int_equal(decode(b, &out, &err), LEAT_EDATA);
    leat__planes_reset(&out);
    free(b.data);
}

static void a_scan_that_ends_early_is_an_error(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 200, 150, 90, 1);
    leat__jpeg_header h;
    assert_int_equal(leat__jpeg_header_read(b.data, b.len, &h, NULL), 0);
    size_t middle = (h.scan_offset + b.len) / 2;
    leat__planes out = {0};
    leat_error err = {0};
    b.data[middle] = 0xff;
    b.data[middle + 1] = 0xd9;
    assert_int_equal(decode(b, &out, &err), LEAT_EDATA);
    assert_true(err.offset > (int64_t)h.scan_offset && err.offset <= (int64_t)middle + 2);
    assert_non_null(strstr(err.message, "premature end"));
    leat__planes_reset(&out);
    free(b.data);
}

static void twelve_bits_are_refused_by_name(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 60, 50, 90, 1);
    leat__planes out = {0};
    leat_error err = {0};
    b.data[find_marker(b, 0xc0, 0xc0, 2) + 4] = 12;
    assert_int_equal(decode(b, &out, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "precision"));
    leat__planes_reset(&out);
    free(b.data);
}

static void random_damage_never_crashes(void **state)
{
    uint32_t s = 5;
    leat__planes out = {0};
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        bytes b = make_jpeg(&jpeg_kinds[k], 70, 50, 75, 2);
        uint8_t *copy = malloc(b.len);
        memcpy(copy, b.data, b.len);
        for (int i = 0; i < 400; i++) {
            for (int n = 0; n < 3; n++) b.data[dice_below(&s, (uint32_t)b.len)] = (uint8_t)dice(&s);
            leat_error err = {0};
            int rc = decode(b, &out, &err);
            if (rc != 0) {
                assert_int_equal(rc, err.code);
                assert_true(err.message[0] != 0);
                assert_true(rc == LEAT_EDATA || rc == LEAT_EFORMAT || rc == LEAT_ELIMIT);
            }
            memcpy(b.data, copy, b.len);
        }
        free(copy);
        free(b.data);
    }
    leat__planes_reset(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stray_bytes_before_the_end_are_accepted),
        cmocka_unit_test(damage_between_restarts_is_an_error),
        cmocka_unit_test(a_scan_that_ends_early_is_an_error),
        cmocka_unit_test(twelve_bits_are_refused_by_name),
        cmocka_unit_test(random_damage_never_crashes),
    };
    return cmocka_run_group_tests(tests, open_decoder, close_decoder);
}
