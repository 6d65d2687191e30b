/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <unistd.h>

#include <leat/pack.h>

#include "plan_modes.h"

enum { JPEG = 1, RAW = 4, TILES = 5 };

static char path[256];

/* Ten images of 400 × 300 and 600 × 500 in turn, the first `raw` of them raw, then `codec`. */
static void write_pack(int raw, uint8_t codec)
{
    static const uint8_t bytes[5000];
    const leat_field fields[] = {{.name = "label", .type = LEAT_FIELD_INT},
                                 {.name = "image", .type = LEAT_FIELD_IMAGE}};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    leat_packer_stats stats;
    leat_error err = {0};
    opts.fields = fields;
    opts.field_count = 2;
    opts.page_bytes = 65536;
    opts.replace = opts.no_sync = 1;
    assert_ok(leat_packer_open(&p, path, &opts, &err));
    for (int i = 0; i < 10; i++) {
        char key[8];
        leat_pack_value values[2] = {{.i = i}, {.data = bytes, .size = sizeof bytes}};
        values[1].image = (leat_pack_image){.width = i % 2 ? 600 : 400,
                                            .height = i % 2 ? 500 : 300,
                                            .codec = i < raw ? RAW : codec,
                                            .channels = 3,
                                            .orientation = 1};
        int size = snprintf(key, sizeof key, "k%d", i);
        leat_pack_sample sample = {.key = key, .key_size = (size_t)size, .values = values};
        assert_ok(leat_packer_append(p, &sample, &err));
    }
    assert_ok(leat_packer_finish(p, &stats, &err));
    leat_packer_close(&p);
}

static leat_plan_facts facts_of(void)
{
    leat_plan_facts f;
    leat_error err = {0};
    leat__image_kind kind = 1;
    bool listed = true;
    leat_plan_facts_init(&f);
    int rc = plan_dataset(path, &f, &kind, &listed, &err);
    if (rc != 0) fail_msg("%s", err.message);
    assert_false(listed);
    assert_int_equal(kind, 0);
    return f;
}

static void a_pack_without_images_is_refused(void **state)
{
    const leat_field field = {.name = "label", .type = LEAT_FIELD_INT};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    leat_packer_stats stats;
    leat_plan_facts f;
    leat_error err = {0};
    leat__image_kind kind = 0;
    bool listed = false;
    (void)state;
    opts.fields = &field;
    opts.field_count = 1;
    opts.replace = opts.no_sync = 1;
    assert_ok(leat_packer_open(&p, path, &opts, &err));
    leat_pack_value value = {.i = 1};
    leat_pack_sample sample = {.key = "k", .key_size = 1, .values = &value};
    assert_ok(leat_packer_append(p, &sample, &err));
    assert_ok(leat_packer_finish(p, &stats, &err));
    leat_packer_close(&p);
    leat_plan_facts_init(&f);
    assert_int_equal(plan_dataset(path, &f, &kind, &listed, &err), LEAT_EINVAL);
    assert_contains(err.message, "there is no image field");
}

static void the_index_gives_samples_sizes_and_pages(void **state)
{
    (void)state;
    write_pack(0, TILES);
    leat_plan_facts f = facts_of();
    assert_int_equal(f.samples, 10);
    assert_int_equal(f.width, 500);
    assert_int_equal(f.height, 400);
    assert_int_equal(f.page_bytes, 65536);
    assert_true(f.sample_bytes >= 5000 && f.sample_bytes < 50000);
    assert_int_equal(f.images, LEAT_PLAN_TILED);
    assert_no_leaks();
}

static void the_way_images_are_stored_is_seen(void **state)
{
    (void)state;
    write_pack(0, JPEG);
    assert_int_equal(facts_of().images, LEAT_PLAN_KEEP);
    write_pack(10, JPEG);
    assert_int_equal(facts_of().images, LEAT_PLAN_RAW);
    write_pack(4, TILES);
    assert_int_equal(facts_of().images, LEAT_PLAN_MIX);
    assert_true(facts_of().mix_raw == 0.4);
}

/* Images that cannot be decoded: the table decides. */
static void sizes_that_cannot_be_measured_stay_unknown(void **state)
{
    (void)state;
    write_pack(0, JPEG);
    leat_plan_facts f = facts_of();
    const leat__time_limit limit = {.until_ns = UINT64_MAX};
    plan_sizes(path, &f, &limit);
    assert_true(f.smaller_share == 0 && f.quality_share == 0);
    f.width = f.height = 5000; /* too large to be stored again in time */
    plan_sizes("/nowhere/at.leat", &f, &limit);
    assert_true(f.smaller_share == 0 && f.quality_share == 0);
    assert_no_leaks();
}

static void a_missing_pack_is_an_error(void **state)
{
    leat_plan_facts f;
    leat_error err = {0};
    leat__image_kind kind;
    bool listed;
    (void)state;
    leat_plan_facts_init(&f);
    assert_code(LEAT_ENOENT, plan_dataset("/nowhere/at.leat", &f, &kind, &listed, &err));
    assert_contains(err.message, "/nowhere/at.leat");
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pack_without_images_is_refused),
        cmocka_unit_test(the_index_gives_samples_sizes_and_pages),
        cmocka_unit_test(the_way_images_are_stored_is_seen),
        cmocka_unit_test(sizes_that_cannot_be_measured_stay_unknown),
        cmocka_unit_test(a_missing_pack_is_an_error),
    };
    char dir[] = "/tmp/leat_plan_XXXXXX";
    if (mkdtemp(dir) == NULL) return 1;
    snprintf(path, sizeof path, "%s/a.leat", dir);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(dir);
    return failed;
}
