/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "ingest/sandbox.h"

#include "ingest/settings.h"

static leat_ingest_opts opts_for(const char *const *source)
{
    leat_ingest_opts o;
    leat_ingest_opts_init(&o);
    o.sources = source;
    o.source_count = 1;
    o.output = in_box("out.leat");
    return o;
}

static void names_and_settings_are_told(void **state)
{
    leat__buf text;
    leat__source *s = NULL;
    put_image("photos/a/1.jpg", LEAT__CODEC_JPEG, 32, 24, 1);
    const char *source = in_box("photos");
    leat_ingest_opts o = opts_for(&source);
    const leat__encode_plan plan = {.images = LEAT_IMAGES_KEEP};
    o.quality = 80;
    o.skip_errors = 1;
    leat__buf_init(&text, LEAT__MEM_INGEST, 1u << 20);
    assert_int_equal(leat__source_open(&s, &o, NULL), 0);
    assert_int_equal(leat__ingest_provenance(&o, &plan, s, &text, NULL), 0);
    assert_string_equal(leat__buf_str(&text), "{\"kind\":\"folder\",\"names\":[\"photos\"],"
                                              "\"settings\":{\"images\":\"keep\",\"quality\":80,"
                                              "\"checked\":true}}");
    const uint64_t id = leat__ingest_identity(&o, &text);
    o.keys = "keys.txt";
    assert_true(leat__ingest_identity(&o, &text) != id);
    o.keys = NULL;
    o.max_pixels++;
    assert_true(leat__ingest_identity(&o, &text) != id);
    leat__source_close(&s);
    leat__buf_reset(&text);
}

static void inputs_are_spared(void **state)
{
    leat_error err = {0};
    put_text("in.leat", "x");
    put_text("list.csv", "x");
    const char *source = in_box("in.leat");
    leat_ingest_opts o = opts_for(&source);
    assert_int_equal(leat__ingest_spare(&o, &err), 0);
    o.output = source;
    assert_int_equal(leat__ingest_spare(&o, &err), LEAT_EINVAL);
    assert_contains(err.message, "in.leat: is also an input");
    o.merge = LEAT_MERGE_FIRST;
    assert_int_equal(leat__ingest_spare(&o, &err), LEAT_EINVAL);
    o.merge = 0;
    o.output = in_box("out.leat");
    o.select = o.report = in_box("list.csv");
    assert_int_equal(leat__ingest_spare(&o, &err), LEAT_EINVAL);
    o.select = NULL;
    o.keys = in_box("list.csv");
    assert_int_equal(leat__ingest_spare(&o, &err), LEAT_EINVAL);
    o.keys = NULL;
    assert_int_equal(leat__ingest_spare(&o, &err), LEAT_EINVAL); /* any other file, too */
    o.report = in_box("new.csv");
    assert_int_equal(leat__ingest_spare(&o, &err), 0);
    o.report = o.output;
    assert_int_equal(leat__ingest_spare(&o, &err), LEAT_EINVAL);
    assert_contains(err.message, "is the name of two results");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_and_settings_are_told),
                                       cmocka_unit_test(inputs_are_spared)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
