/* SPDX-License-Identifier: Apache-2.0 */
#include "view_box.h"

#include "base/fault.h"
#include "base/num.h"
#include "view/view_select.h"

static atomic_bool stopping;

static void a_selection_is_saved_and_loaded(void **state)
{
    leat_pack *pack = NULL;
    leat__view_selection s, again;
    char *path = NULL, *second = NULL;
    box_pack(BOX_PACK);
    assert_ok(leat_pack_open(&pack, BOX_PACK, NULL, NULL));
    assert_ok(leat__view_selection_init(&s, BOX_ROWS, NULL));
    leat__view_select(&s, 3, true);
    leat__view_select(&s, 19, true);
    leat__view_select(&s, 19, true);
    leat__view_select(&s, 8, true);
    leat__view_select(&s, 8, false);
    assert_int_equal(s.count, 2);
    assert_ok(leat__view_selection_save(&s, pack, "chosen", &stopping, &path, NULL));
    assert_string_equal(path, "chosen.leat");
    assert_ok(leat__view_selection_save(&s, pack, "chosen", &stopping, &second, NULL));
    assert_string_equal(second, "chosen-2.leat"); /* nothing is replaced */
    assert_ok(leat__view_selection_init(&again, BOX_ROWS, NULL));
    assert_ok(leat__view_selection_load(&again, pack, path, NULL));
    assert_int_equal(again.count, 2);
    assert_memory_equal(again.bits, s.bits, (BOX_ROWS + 7) / 8);
    leat__free(path);
    leat__free(second);
    leat__view_selection_reset(&s);
    leat__view_selection_reset(&again);
    leat_pack_close(&pack);
    assert_no_leaks();
}

static void selections_of_other_packs_are_refused(void **state)
{
    leat_pack *pack = NULL;
    leat__view_selection s;
    leat_error err = {0};
    box_pack(BOX_PACK);
    assert_ok(leat_pack_open(&pack, BOX_PACK, NULL, NULL));
    assert_ok(leat__view_selection_init(&s, BOX_ROWS, NULL));
    box_columns("other.leat", "selected", BOX_ROWS, "{\"fingerprint\":\"12\"}");
    assert_code(LEAT_EINVAL, leat__view_selection_load(&s, pack, "other.leat", &err));
    box_columns("nothing.leat", "a", BOX_ROWS, "{\"fingerprint\":\"%llx\"}");
    assert_code(LEAT_EINVAL, leat__view_selection_load(&s, pack, "nothing.leat", &err));
    assert_contains(err.message, "has no int field 'selected' or 'keep'");
    box_columns("keep.leat", "keep", BOX_ROWS, "{\"fingerprint\":\"%llx\"}");
    assert_ok(leat__view_selection_load(&s, pack, "keep.leat", &err));
    assert_int_equal(s.count, BOX_ROWS);
    leat__view_selection_reset(&s);
    leat_pack_close(&pack);
    assert_no_leaks();
}

static void a_stopped_save_leaves_nothing(void **state)
{
    leat_pack *pack = NULL;
    leat__view_selection s;
    char *path;
    box_pack(BOX_PACK);
    assert_ok(leat_pack_open(&pack, BOX_PACK, NULL, NULL));
    assert_ok(leat__view_selection_init(&s, BOX_ROWS, NULL));
    atomic_store(&stopping, true);
    assert_code(LEAT_ECANCELED, leat__view_selection_save(&s, pack, "stopped", &stopping, &path, NULL));
    assert_int_not_equal(access("stopped.leat", F_OK), 0);
    assert_int_not_equal(access("stopped.leat.partial", F_OK), 0);
    leat__view_selection_reset(&s);
    leat_pack_close(&pack);
    assert_no_leaks();
}

/* Each write fails in turn. */
static void a_full_disk_leaves_nothing(void **state)
{
    leat_pack *pack = NULL;
    leat__view_selection s;
    char *path = NULL;
    int rc = -1;
    if (!leat__fault_available()) skip();
    box_pack(BOX_PACK);
    assert_ok(leat_pack_open(&pack, BOX_PACK, NULL, NULL));
    assert_ok(leat__view_selection_init(&s, BOX_ROWS, NULL));
    atomic_store(&stopping, false);
    uint64_t n = 1;
    for (; rc != 0 && n < 1000; n++) {
        leat__fault_arm(LEAT__FAULT_WRITE, n, false);
        rc = leat__view_selection_save(&s, pack, "full", &stopping, &path, NULL);
        leat__fault_disarm();
        if (rc == 0) break;
        static const char *const left[] = {"full.leat", "full.leat.journal", "full.leat.partial"};
        for (size_t i = 0; i < LEAT_COUNT(left); i++)
            if (access(left[i], F_OK) == 0)
                fail_msg("write %llu: %s is left", (unsigned long long)n, left[i]);
    }
    assert_true(rc == 0 && n > 4);
    leat__free(path);
    leat__view_selection_reset(&s);
    leat_pack_close(&pack);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_selection_is_saved_and_loaded),
                                       cmocka_unit_test(selections_of_other_packs_are_refused),
                                       cmocka_unit_test(a_stopped_save_leaves_nothing),
                                       cmocka_unit_test(a_full_disk_leaves_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
