/* SPDX-License-Identifier: Apache-2.0 */
#include "view_box.h"

static int bind(const char *columns, uint64_t *first, leat_error *err)
{
    leat_pack *pack = NULL, *beside = NULL;
    assert_ok(leat_pack_open(&pack, BOX_PACK, NULL, NULL));
    assert_ok(leat_pack_open(&beside, columns, NULL, NULL));
    int rc = leat__view_bind(pack, beside, first, err);
    leat_pack_close(&pack);
    leat_pack_close(&beside);
    return rc;
}

static void columns_of_this_pack_are_found(void **state)
{
    uint64_t first = 99;
    box_columns(BOX_COLUMNS, "a", BOX_ROWS, "{\"fingerprint\":\"%llx\"}");
    assert_ok(bind(BOX_COLUMNS, &first, NULL));
    assert_int_equal(first, 0);
    box_columns(BOX_COLUMNS, "a", BOX_ROWS + 5,
                "{\"packs\":[{\"fingerprint\":\"12\",\"samples\":5},{\"fingerprint\":\"%016llx\","
                "\"samples\":20}]}");
    assert_ok(bind(BOX_COLUMNS, &first, NULL));
    assert_int_equal(first, 5);
}

static void other_columns_are_refused(void **state)
{
    static const struct {
        uint32_t rows;
        const char *provenance;
    } bad[] = {{BOX_ROWS, "{}"},
               {BOX_ROWS, "{\"fingerprint\":\"12\"}"},
               {BOX_ROWS, "{\"fingerprint\":\"\"}"},
               {BOX_ROWS, "{\"fingerprint\":12}"},
               {BOX_ROWS, "{\"fingerprint\":\"%llxg\"}"},
               {BOX_ROWS - 1, "{\"fingerprint\":\"%llx\"}"},
               {BOX_ROWS, "{\"packs\":[]}"},
               {BOX_ROWS, "{\"packs\":[{\"fingerprint\":\"%llx\"}]}"},
               {BOX_ROWS, "{\"packs\":[{\"fingerprint\":\"%llx\",\"samples\":-20}]}"},
               {BOX_ROWS, "{\"packs\":[{\"fingerprint\":\"%llx\",\"samples\":21}]}"}};
    for (size_t i = 0; i < LEAT_COUNT(bad); i++) {
        uint64_t first;
        leat_error err = {0};
        box_columns(BOX_COLUMNS, "a", bad[i].rows, bad[i].provenance);
        assert_code(LEAT_EINVAL, bind(BOX_COLUMNS, &first, &err));
        assert_contains(err.message, "columns.leat: its columns were not made from box.leat");
    }
    assert_no_leaks();
}

static int setup(void **state)
{
    box_pack(BOX_PACK);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_of_this_pack_are_found),
                                       cmocka_unit_test(other_columns_are_refused)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
