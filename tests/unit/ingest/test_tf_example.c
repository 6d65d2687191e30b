/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/tf_example.h"

/* Example { features { feature { key: "a", value { int64_list { value: [1, -1] } } } } }, packed */
static const uint8_t packed[] = {0x0a, 0x16, 0x0a, 0x14, 0x0a, 0x01, 0x61, 0x12, 0x0f, 0x1a, 0x0d, 0x0a,
                                 0x0b, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
/* "b": floats [1.5, 2.5], not packed; "c": bytes ["x", ""] */
static const uint8_t loose[] = {0x0a, 0x21, 0x0a, 0x11, 0x0a, 0x01, 0x62, 0x12, 0x0c, 0x12, 0x0a, 0x0d,
                                0x00, 0x00, 0xc0, 0x3f, 0x0d, 0x00, 0x00, 0x20, 0x40, 0x0a, 0x0c, 0x0a,
                                0x01, 0x63, 0x12, 0x07, 0x0a, 0x05, 0x0a, 0x01, 0x78, 0x0a, 0x00};

typedef struct seen {
    int count;
    leat__tf_feature f[4];
} seen;

static int see(void *cookie, const leat__tf_feature *f, leat_error *err)
{
    seen *s = cookie;
    (void)err;
    assert_true(s->count < 4);
    s->f[s->count++] = *f;
    return 0;
}

static void lists_of_each_kind(void **state)
{
    seen s = {0};
    int64_t ints[2];
    float floats[2];
    size_t len;
    (void)state;
    assert_int_equal(leat__tf_example(packed, sizeof packed, see, &s, NULL), 0);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.f[0].kind, LEAT__TF_INTS);
    assert_int_equal(s.f[0].count, 2);
    leat__tf_ints(&s.f[0], ints);
    assert_int_equal(ints[0], 1);
    assert_int_equal(ints[1], -1);
    s = (seen){0};
    assert_int_equal(leat__tf_example(loose, sizeof loose, see, &s, NULL), 0);
    assert_int_equal(s.count, 2);
    assert_int_equal(s.f[0].kind, LEAT__TF_FLOATS);
    assert_int_equal(s.f[0].count, 2);
    leat__tf_floats(&s.f[0], floats);
    assert_true(floats[0] == 1.5f && floats[1] == 2.5f);
    assert_int_equal(s.f[1].kind, LEAT__TF_BYTES);
    assert_int_equal(s.f[1].count, 2);
    assert_memory_equal(leat__tf_bytes(&s.f[1], 0, &len), "x", 1);
    assert_non_null(leat__tf_bytes(&s.f[1], 1, &len));
    assert_int_equal(len, 0);
    assert_null(leat__tf_bytes(&s.f[1], 2, &len));
}

/* Every truncation and every changed byte gives a result, and no read goes past the record. */
static void damage_is_detected_or_harmless(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < sizeof packed; cut++) {
        uint8_t *copy = malloc(cut + 1);
        seen s = {0};
        memcpy(copy, packed, cut);
        int rc = leat__tf_example(copy, cut, see, &s, NULL);
        assert_int_equal(rc, cut == 0 ? 0 : LEAT_EDATA);
        free(copy);
    }
    for (size_t at = 0; at < sizeof loose; at++)
        for (int bit = 0; bit < 8; bit++) {
            uint8_t *copy = malloc(sizeof loose);
            seen s = {0};
            memcpy(copy, loose, sizeof loose);
            copy[at] ^= (uint8_t)(1 << bit);
            (void)!leat__tf_example(copy, sizeof loose, see, &s, NULL);
            free(copy);
        }
}

static void checksums_of_known_bytes(void **state)
{
    (void)state;
    /* CRC-32C of "123456789" is e3069283 (RFC 3720); rotated and offset */
    uint32_t crc = 0xe3069283u;
    assert_int_equal(leat__tf_checksum("123456789", 9), ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
    uint8_t zeros[32] = {0};
    crc = 0x8a9136aau;
    assert_int_equal(leat__tf_checksum(zeros, 32), ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_each_kind),
        cmocka_unit_test(damage_is_detected_or_harmless),
        cmocka_unit_test(checksums_of_known_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
