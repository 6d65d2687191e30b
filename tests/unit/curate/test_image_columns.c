/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include <math.h>

#include "curate/image_columns.h"

static leat__image_looker *looker;

static leat__image_facts facts_of(const char *key, const void *data, size_t len)
{
    leat__image_facts f;
    uint8_t *copy = calloc(1, len + LEAT__CODEC_PADDING);
    assert_non_null(copy);
    memcpy(copy, data, len);
    assert_ok(leat__image_facts_make(looker, key, copy, len, NULL, &f, NULL));
    free(copy);
    return f;
}

static void verdicts(void **state)
{
    const uint64_t misnamed = UINT64_C(1) << LEAT__ISSUE_EXTENSION;
    scene s = plain_scene;
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 90, 70, 90),
              png = encode_scene(&s, LEAT__CODEC_PNG, 90, 70, 0);
    leat__image_facts f = facts_of("a.jpg", jpeg.data, jpeg.len);
    assert_int_equal(f.verdict, LEAT__VERDICT_OK);
    assert_true(f.issues == 0 && f.is_signed && f.width == 90 && f.height == 70 && f.bytes == jpeg.len);
    assert_true(facts_of("a.PNG", jpeg.data, jpeg.len).issues == misnamed);
    assert_true(facts_of("noextension", jpeg.data, jpeg.len).issues == 0);
    assert_true(facts_of("a.jpeg", png.data, png.len).issues == misnamed);
    f = facts_of("a.jpg", jpeg.data, jpeg.len / 2);
    assert_int_equal(f.verdict, LEAT__VERDICT_TRUNCATED);
    assert_true(f.reason[0] != 0 && f.issues == UINT64_C(1) << LEAT__ISSUE_TRUNCATED && f.width == 90);
    for (int i = 0; i < LEAT__LOOKS; i++) assert_true(isnan(f.score[i]));
    assert_int_equal(facts_of("a.png", png.data, png.len - 20).verdict, LEAT__VERDICT_TRUNCATED);
    png.data[png.len / 2] ^= 0x55;
    assert_int_equal(facts_of("a.png", png.data, png.len).verdict, LEAT__VERDICT_DAMAGED);
    assert_int_equal(facts_of("a.jpg", "hello", 5).verdict, LEAT__VERDICT_NOT_IMAGE);
    f = facts_of("a.jpg", "", 0);
    assert_int_equal(f.verdict, LEAT__VERDICT_TRUNCATED);
    assert_string_equal(f.reason, "an empty file");
    leat__buf_reset(&jpeg);
    leat__buf_reset(&png);
    leat__image_looker_close(&looker);
    assert_no_leaks();
}

/* Damage of entropy-coded data that libjpeg decodes without a warning. */
static void damaged_jpegs_are_found(void **state)
{
    scene s = plain_scene;
    uint32_t found = 0, quiet = 0;
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 320, 240, 95);
    for (uint32_t i = 0; i < 60; i++) { /* 16 bytes in the scan */
        leat__buf bad = encode_scene(&s, LEAT__CODEC_JPEG, 320, 240, 95);
        const size_t at = bad.len / 4 + i * (bad.len / 2) / 60;
        for (uint32_t k = 0; k < 16; k++) bad.data[at + k] = (char)((i * 16 + k) * 2654435761u >> 24);
        const leat__image_facts f = facts_of("a.jpg", bad.data, bad.len);
        const bool ours = strstr(f.reason, "64 coefficients") || strstr(f.reason, "more blocks");
        found += f.verdict == LEAT__VERDICT_DAMAGED;
        quiet += ours;
        assert_true(f.verdict == LEAT__VERDICT_OK || isnan(f.score[LEAT__LOOK_BLUR]));
        leat__buf_reset(&bad);
    }
    assert_true(found >= 35 && quiet >= 15);
    leat__buf_reset(&jpeg);
    leat__image_looker_close(&looker);
}

/* Rows of blocks below the image, as in a file whose header says too few lines. */
static void surplus_rows_are_damage(void **state)
{
    static const uint32_t less[] = {16, 32, 120, 180, 239};
    scene s = plain_scene;
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    for (size_t i = 0; i < LEAT_COUNT(less); i++) {
        leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 320, 240, 95);
        char *frame = memmem(jpeg.data, jpeg.len, "\xff\xc0", 2);
        assert_non_null(frame);
        frame[6] = (char)(240 - less[i]); /* the height; its first byte is 0 */
        const leat__image_facts f = facts_of("a.jpg", jpeg.data, jpeg.len);
        assert_int_equal(f.verdict, LEAT__VERDICT_DAMAGED);
        assert_non_null(strstr(f.reason, "more blocks than the image has"));
        leat__buf_reset(&jpeg);
    }
    leat__image_looker_close(&looker);
    assert_no_leaks();
}

/* Bytes that no pixel depends on. */
static void odd_jpegs_are_ok(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool after; /* the end marker */
    } odd[] = {{"\0\0\0\0\0\0\0\0\0\0\0\0", 12, false},
               {"\xff\xff\xff", 3, false},
               {"camera 1", 8, false},
               {"\xff\xd9", 2, true},
               {"\0\0\0\0", 4, true},
               {"camera 1", 8, true}};
    scene s = plain_scene;
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    for (size_t i = 0; i < LEAT_COUNT(odd); i++) {
        leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 320, 240, 95), made;
        const size_t at = odd[i].after ? jpeg.len : jpeg.len - 2;
        leat__buf_init(&made, LEAT__MEM_MISC, 1u << 26);
        leat__buf_append(&made, jpeg.data, at);
        leat__buf_append(&made, odd[i].bytes, odd[i].size);
        leat__buf_append(&made, jpeg.data + at, jpeg.len - at);
        assert_int_equal(facts_of("a.jpg", made.data, made.len).verdict, LEAT__VERDICT_OK);
        leat__buf_reset(&made);
        leat__buf_reset(&jpeg);
    }
    leat__image_looker_close(&looker);
    assert_no_leaks();
}

/* The thumbnail of a row is the expected one, also when nothing of the index is kept. */
static void assert_thumb(const char *path, uint64_t row, const uint8_t *expected)
{
    static const uint64_t caches[] = {0, 1, UINT64_MAX};
    for (size_t i = 0; i < LEAT_COUNT(caches); i++) {
        leat_pack *pack = NULL;
        uint8_t thumb[LEAT__THUMB_BYTES];
        leat__buf room;
        leat__buf_init(&room, LEAT__MEM_CURATE, 1 << 20);
        assert_ok(leat__image_columns_pack(&pack, path, caches[i], NULL));
        assert_ok(leat__image_columns_thumb(pack, row, &room, thumb, NULL));
        assert_memory_equal(thumb, expected, sizeof thumb);
        assert_code(LEAT_EINVAL, leat__image_columns_thumb(pack, 2, &room, thumb, NULL));
        leat__buf_reset(&room);
        leat_pack_close(&pack);
    }
}

static void rows_come_back(void **state)
{
    scene s = plain_scene;
    leat_packer *p = NULL;
    leat__image_columns c;
    leat__image_facts f, g;
    s.border = 30;
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 290, 270, 90);
    assert_ok(leat__image_columns_create(&p, in_box("c.leat"), "{}", false, true, NULL));
    f = facts_of("a.jpg", jpeg.data, jpeg.len);
    assert_true(f.sign.has_trimmed);
    assert_ok(leat__image_columns_append(p, "a.jpg", 5, &f, NULL));
    g = facts_of("b.jpg", jpeg.data, 100);
    assert_ok(leat__image_columns_append(p, "b.jpg", 5, &g, NULL));
    assert_ok(leat_packer_finish(p, NULL, NULL));
    leat_packer_close(&p);
    leat__image_facts back;
    assert_ok(leat__image_columns_open(&c, in_box("c.leat"), NULL));
    assert_int_equal(c.count, 2);
    assert_ok(leat__image_columns_read(&c, 0, &back, NULL));
    assert_memory_equal(&back.sign.coarse, &f.sign.coarse, sizeof f.sign.coarse);
    assert_memory_equal(&back.sign.trimmed, &f.sign.trimmed, sizeof f.sign.trimmed);
    assert_memory_equal(&back.sign.thumb, &f.sign.thumb, sizeof f.sign.thumb);
    assert_memory_equal(back.score, f.score, sizeof f.score);
    assert_true(back.content_hash == f.content_hash && back.file_hash == f.file_hash && back.is_signed);
    assert_ok(leat__image_columns_read(&c, 1, &back, NULL));
    assert_false(back.is_signed);
    assert_string_equal(back.reason, g.reason);
    leat__image_columns_close(&c);
    assert_thumb(in_box("c.leat"), 0, f.sign.thumb);
    assert_thumb(in_box("c.leat"), 1, (uint8_t[LEAT__THUMB_BYTES]){0});
    leat__buf_reset(&jpeg);
    leat__image_looker_close(&looker);
    assert_no_leaks();
}

static void other_packs_are_refused(void **state)
{
    leat__image_columns c;
    leat_packer *p = NULL;
    const leat_field field = {.name = "x", .type = LEAT_FIELD_INT};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    const leat_pack_value v = {.i = 1};
    o.fields = &field;
    o.field_count = 1;
    o.no_sync = 1;
    assert_ok(leat_packer_open(&p, in_box("other.leat"), &o, NULL));
    assert_ok(leat_packer_append(p, &(leat_pack_sample){.key = "k", .key_size = 1, .values = &v}, NULL));
    assert_ok(leat_packer_finish(p, NULL, NULL));
    leat_packer_close(&p);
    assert_code(LEAT_EFORMAT, leat__image_columns_open(&c, in_box("other.leat"), NULL));
    assert_code(LEAT_ENOENT, leat__image_columns_open(&c, in_box("none.leat"), NULL));
    leat_pack *pack = NULL;
    assert_code(LEAT_EFORMAT, leat__image_columns_pack(&pack, in_box("other.leat"), 0, NULL));
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(damaged_jpegs_are_found),
        cmocka_unit_test(surplus_rows_are_damage),
        cmocka_unit_test(odd_jpegs_are_ok),
        cmocka_unit_test(rows_come_back),
        cmocka_unit_test(other_packs_are_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
