/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

static void the_plan_comes_first(void **state)
{
    leat_dedup_stats st;
    leat_error err = {0};
    make_corpus("c.jsonl", 5000);
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "x");
    o.plan_only = 1;
    dedup_ok(&o, &st);
    assert_true(st.plan_documents > 4500 && st.plan_documents < 5500);
    assert_true(st.plan_disk > 5000 * 280 && st.plan_disk < 5000 * 400);
    assert_int_equal(st.documents, 0);
    assert_int_not_equal(access(in_box("x/kept-00000.jsonl"), F_OK), 0);
    uint64_t planned = st.plan_disk;
    o.plan_only = 0;
    dedup_ok(&o, &st);
    assert_true(st.disk_bytes < planned && st.disk_bytes > planned * 8 / 10);
    o.memory = 16u << 20;
    o.replace = 1;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "of memory, the limit is"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_plan_comes_first)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
