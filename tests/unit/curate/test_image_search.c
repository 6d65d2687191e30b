/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include "curate/image_dedup.h"

static int tell(void *cookie, uint64_t done, uint64_t total, uint64_t found)
{
    return 0;
}

/* Equal content makes pairs without a search, even for flat images. Across packs each row has a pair with a
 * row of another one. */
static void equal_content_makes_pairs(void **state)
{
    scene s = plain_scene;
    const char *paths[2];
    s.gain = 0;
    for (int p = 0; p < 2; p++) {
        leat_check_opts o;
        const char *src[] = {in_box(p ? "b" : "a")};
        put_scene(p ? "b/1.jpg" : "a/1.jpg", &s, 40, 40, 90);
        put_scene(p ? "b/2.jpg" : "a/2.jpg", &s, 40, 40, 90);
        leat_check_opts_init(&o);
        o.sources = src;
        o.source_count = 1;
        o.output = paths[p] = in_box(p ? "b.leat" : "a.leat");
        o.no_sync = 1;
        assert_ok(leat_check_images(&o, NULL, NULL));
    }
    for (uint32_t across = 0; across < 2; across++) {
        leat__dedup_rows rows;
        leat__image_pairs pairs = {0};
        leat_dedup_images_opts o;
        leat_dedup_images_opts_init(&o);
        o.orientations = 2;
        o.across = across;
        o.threshold = 0.7;
        o.probable = 0.6;
        assert_ok(leat__dedup_rows_read(
            &rows, &(leat__dedup_rows_opts){.paths = paths, .count = 2, .orientations = 2}, NULL));
        leat__dedup_search search = {
            .opts = &o, .columns = paths, .rows = &rows, .pairs = &pairs, .tell = tell};
        assert_ok(leat__dedup_search_run(&search, NULL));
        assert_int_equal(pairs.count, 3);
        uint32_t seen = 0;
        for (uint64_t i = 0; i < pairs.count; i++) {
            const leat__image_pair *p = &pairs.pair[i];
            assert_true(p->similarity == 1 && !p->probable);
            assert_true(across ? p->a < 2 && p->b >= 2 : p->a == 0);
            seen |= 1u << p->a | 1u << p->b;
        }
        assert_int_equal(seen, 15);
        leat__free(pairs.pair);
        leat__dedup_rows_reset(&rows);
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_content_makes_pairs)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
