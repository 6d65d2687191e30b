/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of pixels: what the index records, and that a field has only one kind.
 */
#include "packtest.h"

#include "base/mem.h"
#include "pack/kind.h"

static const leat_field fields[] = {{.name = "image", .type = LEAT_FIELD_IMAGE}};

static int add(leat_packer *p, const char *key, uint8_t channels, uint8_t flags, leat_error *err)
{
    leat_pack_value v = {.data = "pixels",
                         .size = 6,
                         .image = {.width = 1,
                                   .height = 1,
                                   .codec = LEAT__CODEC_RAW,
                                   .channels = channels,
                                   .orientation = 1,
                                   .flags = flags}};
    v.absent = channels == 0;
    const leat_pack_sample s = {.key = key, .key_size = strlen(key), .values = &v};
    return leat_packer_append(p, &s, err);
}

static leat_packer *writer(const char *path, bool append)
{
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    leat_error err = {0};
    o.fields = fields;
    o.field_count = 1;
    o.no_sync = 1;
    o.append = append;
    if (leat_packer_open(&p, path, &o, &err) != 0) fail_msg("%s", err.message);
    return p;
}

static void kinds_from_the_index(void **state)
{
    char text[LEAT__KIND_TEXT];
    for (uint8_t c = 1; c <= 16; c++) {
        const leat_pack_image bytes = {.channels = c},
                              words = {.channels = c, .flags = LEAT_PACK_IMAGE_U16 | 2},
                              floats = {.channels = c, .flags = LEAT_PACK_IMAGE_F32 | 1};
        const bool plain = c == 1 || c == 3 || c == 4;
        assert_int_equal(leat__kind_channels(leat__image_kind_of(&bytes)), plain ? 0 : c);
        assert_int_equal(leat__kind_channels(leat__image_kind_of(&words)), c);
        assert_int_equal(leat__kind_type(leat__image_kind_of(&words)), LEAT__SAMPLE_U16);
        assert_int_equal(leat__kind_type(leat__image_kind_of(&floats)), LEAT__SAMPLE_F32);
    }
    const leat_pack_image words = {.channels = 5, .flags = leat__kind_flags(LEAT__SAMPLE_U16)};
    assert_string_equal(leat__kind_text(leat__image_kind_of(&words), text), "uint16 images with 5 channels");
    assert_string_equal(leat__kind_text(0, text), "8-bit images of 1, 3 or 4 channels");
}

static void a_field_has_one_kind(void **state)
{
    char *dir = pt_dir(), *path = pt_path(dir, "a.leat");
    leat_error err = {0};
    leat_packer *p = writer(path, false);
    assert_int_equal(add(p, "none", 0, 0, &err), 0);
    assert_int_equal(add(p, "one", 5, LEAT_PACK_IMAGE_U16, &err), 0);
    assert_int_equal(add(p, "other", 5, LEAT_PACK_IMAGE_F32, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "sample 'other', field 'image': float32 images with 5 channels in "
                                        "a field of uint16 images with 5 channels (set by 'one')"));
    assert_int_equal(add(p, "other", 3, 0, &err), LEAT_EFORMAT);
    assert_int_equal(add(p, "two", 5, LEAT_PACK_IMAGE_U16, &err), 0);
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);

    leat_pack *pack = NULL;
    leat__image_kind kind;
    assert_int_equal(leat_pack_open(&pack, path, NULL, &err), 0);
    assert_int_equal(leat__pack_image_kind(pack, 0, &kind, &err), 0);
    assert_int_equal(leat__kind_channels(kind), 5);
    leat_pack_close(&pack);

    p = writer(path, true); /* what is appended, too */
    assert_int_equal(add(p, "three", 6, LEAT_PACK_IMAGE_U16, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "(set by 'one')"));
    assert_int_equal(add(p, "three", 5, LEAT_PACK_IMAGE_U16, &err), 0);
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);
    pt_rmdir(dir);
}

/* The index of a damaged or hostile pack is not trusted. */
static void too_many_channels_are_damage(void **state)
{
    char *dir = pt_dir(), *path = pt_path(dir, "a.leat");
    leat_error err = {0};
    leat_packer *p = writer(path, false);
    leat_pack *pack = NULL;
    leat__image_kind kind;
    assert_int_equal(add(p, "a", 200, LEAT_PACK_IMAGE_U16, &err), 0);
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);
    assert_int_equal(leat_pack_open(&pack, path, NULL, &err), 0);
    assert_int_equal(leat__pack_image_kind(pack, 0, &kind, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "200 channels, more than possible, for field 'image' of sample 0"));
    leat_pack_close(&pack);
    pt_rmdir(dir);
}

static void bytes_may_mix_one_three_and_four(void **state)
{
    char *dir = pt_dir(), *path = pt_path(dir, "a.leat");
    leat_error err = {0};
    leat_packer *p = writer(path, false);
    assert_int_equal(add(p, "a", 1, 0, &err), 0);
    assert_int_equal(add(p, "b", 3, 0, &err), 0);
    assert_int_equal(add(p, "c", 4, 0, &err), 0);
    assert_int_equal(add(p, "d", 2, 0, &err), LEAT_EFORMAT);
    leat_packer_close(&p);
    pt_rmdir(dir);
}

static void packs_that_differ_are_named(void **state)
{
    char *dir = pt_dir();
    const char *paths[] = {pt_path(dir, "a.leat"), pt_path(dir, "b.leat")};
    leat_error err = {0};
    for (int i = 0; i < 2; i++) {
        leat_packer *p = writer(paths[i], false);
        assert_int_equal(add(p, "x", 3, i == 0 ? LEAT_PACK_IMAGE_U16 : 0, &err), 0);
        assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
        leat_packer_close(&p);
    }
    leat_pack *pack = NULL;
    leat__image_kind kind;
    assert_int_equal(leat_pack_open_many(&pack, paths, 2, NULL, &err), 0);
    assert_int_equal(leat__pack_image_kind(pack, 0, &kind, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "b.leat: field 'image' has 8-bit images"));
    leat_pack_close(&pack);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_from_the_index),         cmocka_unit_test(a_field_has_one_kind),
        cmocka_unit_test(too_many_channels_are_damage), cmocka_unit_test(bytes_may_mix_one_three_and_four),
        cmocka_unit_test(packs_that_differ_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
