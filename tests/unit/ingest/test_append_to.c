/* SPDX-License-Identifier: Apache-2.0
 *
 * Appending to an existing pack: class numbers, image storage, existing keys.
 */
#include "sandbox.h"

#include <leat/pack.h>

#include "ingest/append_to.h"
#include "pack/page.h"

static leat_packer *begin(const char *path, bool append)
{
    static const leat_field fields[] = {{.name = "label", .type = LEAT_FIELD_INT}};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    leat_error err;
    o.fields = fields;
    o.field_count = 1;
    o.append = append;
    o.no_sync = 1;
    o.provenance = "{\"settings\":{\"images\":\"mix\",\"mix_raw\":0.25}}";
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    return p;
}

static void put(leat_packer *p, const char *key, int64_t label)
{
    leat_pack_value v = {.i = label};
    leat_pack_sample s = {.key = key, .key_size = strlen(key), .values = &v};
    leat_error err;
    assert_int_equal(leat_packer_append(p, &s, &err), 0);
}

static void base(const char *path, const char *const *classes, uint64_t count)
{
    leat_error err;
    leat_packer *p = begin(path, false);
    assert_int_equal(leat_packer_classes(p, 0, classes, count, &err), 0);
    put(p, "a", 0);
    put(p, "b", 1);
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);
}

static void test_classes_and_keys(void **state)
{
    const char *path = in_box("p.leat");
    const char *had[] = {"dog", "cat"};
    static char ant[] = "ant", cat[] = "cat", dog[] = "dog";
    char *has[] = {ant, cat, dog};
    leat__source source = {.label_field = 0, .classes = has, .class_count = 3};
    leat__base_classes c = {0};
    leat_error err;
    base(path, had, 2);
    leat_packer *p = begin(path, true);
    assert_int_equal(leat__append_classes(&c, p, &source, &err), 0);
    const int64_t want[] = {2, 1, 0};
    for (int64_t i = -1; i < 4; i++) {
        leat_pack_value v = {.i = i};
        leat__append_relabel(&c, &source, &v);
        assert_int_equal(v.i, i >= 0 && i < 3 ? want[i] : i);
    }
    uint64_t existing = 0;
    bool wanted;
    leat_pack_sample s = {.key = "b", .key_size = 1};
    assert_int_equal(leat__append_admit(p, LEAT_APPEND_FAIL, &s, &wanted, &existing, &err), LEAT_EEXIST);
    assert_int_equal(leat__append_admit(p, LEAT_APPEND_SKIP, &s, &wanted, &existing, &err), 0);
    assert_false(wanted);
    assert_int_equal(leat__append_admit(p, LEAT_APPEND_UPDATE, &s, &wanted, &existing, &err), 0);
    assert_true(wanted);
    assert_int_equal(existing, 2);
    s.key = "c";
    assert_int_equal(leat__append_admit(p, LEAT_APPEND_FAIL, &s, &wanted, &existing, &err), 0);
    assert_true(wanted);
    leat__append_classes_reset(&c);
    leat_packer_close(&p);
}

static void test_images_are_stored_as_the_pack_says(void **state)
{
    const char *path = in_box("p.leat");
    leat_pack *pack;
    leat_error err;
    base(path, NULL, 0);
    assert_int_equal(leat_pack_open(&pack, path, NULL, &err), 0);
    leat_ingest_opts o;
    leat_ingest_opts_init(&o);
    leat__encode_plan plan = {.images = LEAT_IMAGES_TILED};
    assert_int_equal(leat__append_images(pack, &o, &plan, &err), 0);
    assert_int_equal(plan.images, LEAT_IMAGES_MIX);
    assert_true(plan.mix_raw == 0.25);
    o.images = LEAT_IMAGES_RAW;
    plan.images = LEAT_IMAGES_RAW;
    assert_int_equal(leat__append_images(pack, &o, &plan, &err), 0);
    assert_int_equal(plan.images, LEAT_IMAGES_RAW);
    leat_pack_close(&pack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_classes_and_keys, sandbox_open, sandbox_close),
        cmocka_unit_test_setup_teardown(test_images_are_stored_as_the_pack_says, sandbox_open, sandbox_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
