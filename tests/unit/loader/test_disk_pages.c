/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny_pack.h"

#include "base/mem.h"
#include "loader/disk_pages.h"
#include "loader/loader_run.h"

enum { SAMPLES = 600 };

/* Pages of the pack that have a sample of the subset, and where the others are. */
static void pages_without_a_sample_of_the_subset_are_unwanted(void **state)
{
    char path[64];
    uint64_t base[1] = {1000}, offset, len, subset[] = {0, 1, SAMPLES - 1};
    leat_pack *pack;
    leat_pack_info info;
    leat_pack_row row;
    (void)state;
    snprintf(path, sizeof path, "/tmp/leat-disk-pages-%d.leat", (int)getpid());
    tiny_pack(path, &(tiny_opts){.samples = SAMPLES, .classes = 3});
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    assert_true(info.pages > 3);
    leat__run_env env = {.pack = pack, .disk_base = base};
    assert_false(leat__disk_unwanted(&env, 1, &offset, &len)); /* no subset: every page is read */
    env.indices = subset;
    env.universe = 3;
    for (uint64_t page = 0; page < info.pages; page++) {
        leat_pack_page at;
        assert_ok(leat_pack_page_info(pack, page, &at, NULL));
        bool unwanted = leat__disk_unwanted(&env, page, &offset, &len), wanted = false;
        for (int i = 0; i < 3; i++) {
            assert_ok(leat_pack_rows(pack, subset[i], 1, &row, NULL));
            wanted |= row.page == page;
        }
        assert_int_equal(unwanted, !wanted);
        if (!unwanted) continue;
        assert_int_equal(offset, base[0] + at.offset);
        assert_int_equal(len, at.bytes);
    }
    leat__free(env.disk_wanted);
    leat_pack_close(&pack);
    unlink(path);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_without_a_sample_of_the_subset_are_unwanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
