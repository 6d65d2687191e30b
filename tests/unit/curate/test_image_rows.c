/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include "curate/image_dedup.h"

static void rows_of_all_packs_are_read(void **state)
{
    leat__dedup_rows r;
    leat_error err = {0};
    scene s = plain_scene;
    put_scene("a/1.jpg", &s, 80, 60, 90);
    s.border = 20;
    put_scene("a/2.jpg", &s, 200, 200, 90);
    s.border = 0;
    s.gain = 0;
    put_scene("b/flat.jpg", &s, 80, 60, 90);
    for (int i = 0; i < 2; i++) {
        leat_check_opts o;
        const char *src[] = {in_box(i ? "b" : "a")};
        leat_check_opts_init(&o);
        o.sources = src;
        o.source_count = 1;
        o.output = in_box(i ? "b.leat" : "a.leat");
        o.no_sync = 1;
        assert_ok(leat_check_images(&o, NULL, NULL));
    }
    const char *paths[] = {in_box("a.leat"), in_box("b.leat")};
    leat__dedup_rows_opts o = {.paths = paths, .count = 2, .orientations = 2};
    assert_ok(leat__dedup_rows_read(&r, &o, NULL));
    assert_true(r.count == 3 && r.first[1] == 2 && r.row[2].pack == 1);
    assert_int_equal(r.entries, 3); /* one of them trimmed; the flat image has none */
    assert_true(r.row[1].entry == 1 && r.row[1].entries == 2 && r.entry.owner[2] == 1);
    assert_true(r.row[2].entry == LEAT__DEDUP_NONE && r.row[2].entries == 0);
    assert_true(r.memory == leat__dedup_rows_plan(3, 3) && !r.spill);
    leat__dedup_rows_reset(&r);
    o.windows = true;
    assert_ok(leat__dedup_rows_read(&r, &o, NULL));
    assert_int_equal(r.entries, 3 + 18);
    assert_true(r.entry.window[r.entries - 1] == 1 && r.entry.window[0] == 0);
    leat__dedup_rows_reset(&r);
    o.memory = 100; /* not enough for files either */
    o.spill = in_box("spill");
    assert_code(LEAT_EBUDGET, leat__dedup_rows_read(&r, &o, &err));
    leat__dedup_rows_reset(&r);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_all_packs_are_read)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
