/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include <leat/images.h>
#include <leat/pack.h>

enum { GOOD = 30 };

static void make_photos(void)
{
    const scene s = {.seed = GOOD - 1, .zoom = 1, .gain = 0.1f};
    put_photos(GOOD);
    put_scene("photos/png.jpg.png", &s, 120, 100, 90);
}

static leat_ingest_opts opts_for(const char *const *source)
{
    leat_ingest_opts o;
    leat_ingest_opts_init(&o);
    o.sources = source;
    o.source_count = 1;
    o.output = in_box("p.leat");
    o.no_sync = o.replace = 1;
    return o;
}

static void columns_are_those_of_the_pack(void **state)
{
    static const uint32_t modes[] = {LEAT_IMAGES_TILED, LEAT_IMAGES_KEEP, LEAT_IMAGES_RAW};
    make_photos();
    const char *source = in_box("photos"), *pack = in_box("p.leat");
    for (uint32_t i = 0; i < 6; i++) {
        leat_ingest_stats st = {.struct_size = sizeof st};
        leat_check_stats found = {.struct_size = sizeof found}, again = {.struct_size = sizeof again};
        leat_error err = {0};
        leat_check_opts check;
        leat_ingest_opts o = opts_for(&source);
        o.images = modes[i / 2];
        o.threads = 1 + 2 * (i % 2);
        leat_check_opts_init(&check);
        check.output = in_box("c.leat");
        check.limits = i == 5 ? "dark=200" : NULL;
        check.csv = i == 5 ? in_box("c.csv") : NULL;
        if (leat_ingest_checked(&o, &check, &st, &found, &err) != 0) fail_msg("%s", err.message);
        assert_true(st.samples == GOOD + 2 && found.samples == GOOD + 2 && found.found > 0);
        check.sources = &pack;
        check.source_count = 1;
        check.output = in_box("again.leat");
        check.replace = check.no_sync = 1;
        if (leat_check_images(&check, &again, &err) != 0) fail_msg("%s", err.message);
        assert_true(hash_of_file(in_box("c.leat")) == hash_of_file(in_box("again.leat")));
        assert_true(found.found == again.found && found.ok == again.ok && found.bytes_in == again.bytes_in);
        assert_int_not_equal(access(in_box("c.leat.scores"), F_OK), 0);
        assert_int_equal(leat__mem_blocks(), test_blocks);
    }
}

static void wrong_options_are_refused(void **state)
{
    leat_error err = {0};
    leat_check_opts check;
    const char *source = in_box("photos");
    leat_ingest_opts o = opts_for(&source);
    leat_check_opts_init(&check);
    assert_code(LEAT_EINVAL, leat_ingest_checked(&o, &check, NULL, NULL, &err));
    assert_contains(err.message, "no output of the check");
    assert_code(LEAT_EINVAL, leat_ingest_checked(&o, NULL, NULL, NULL, &err));
    check.output = o.output;
    assert_code(LEAT_EINVAL, leat_ingest_checked(&o, &check, NULL, NULL, &err));
    assert_contains(err.message, "is the name of two results");
    check.output = in_box("new.leat");
    check.sources = &source;
    check.source_count = 1;
    assert_code(LEAT_EINVAL, leat_ingest_checked(&o, &check, NULL, NULL, &err));
    check.source_count = 0;
    o.merge = LEAT_MERGE_FIRST;
    assert_code(LEAT_EINVAL, leat_ingest_checked(&o, &check, NULL, NULL, &err));
    assert_contains(err.message, "check: has no effect on a pack");
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

/* A source that fails leaves nothing beside the columns. */
static void a_failed_run_leaves_no_scores(void **state)
{
    leat_error err = {0};
    leat_check_opts check;
    put_text("bad/a.jpg", "not an image");
    const char *source = in_box("bad");
    leat_ingest_opts o = opts_for(&source);
    leat_check_opts_init(&check);
    check.output = in_box("never.leat");
    assert_true(leat_ingest_checked(&o, &check, NULL, NULL, &err) != 0);
    assert_int_not_equal(access(in_box("never.leat"), F_OK), 0);
    assert_int_not_equal(access(in_box("never.leat.scores.journal"), F_OK), 0);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_are_those_of_the_pack),
                                       cmocka_unit_test(wrong_options_are_refused),
                                       cmocka_unit_test(a_failed_run_leaves_no_scores)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
