/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

static leat_dedup_stats st;
static leat_error err;

static int at_once(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    return 1;
}

/* An interrupted run in "s". */
static leat_dedup_opts interrupted(void)
{
    make_corpus("c.jsonl", 4000);
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "s");
    o.checkpoint_bytes = 1;
    o.replace = 1;
    o.progress = at_once;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ECANCELED);
    o.progress = NULL;
    o.replace = 0;
    return o;
}

static void other_options_are_refused(void **state)
{
    leat_dedup_opts o = interrupted();
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EEXIST);
    assert_non_null(strstr(err.message, "--resume"));
    o.resume = 1;
    o.bands = 10;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ESTATE);
    o.bands = 0;
    o.memory = 64u << 20; /* another limit is allowed */
    o.threads = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.resumed, 1);
    assert_int_equal(st.documents, 4000);
}

static void another_input_is_refused(void **state)
{
    leat_dedup_opts o = interrupted();
    make_corpus("c.jsonl", 4001);
    o.resume = 1;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ESTATE);
    assert_non_null(strstr(err.message, "other inputs"));
}

static void damage_is_detected(void **state)
{
    static const char *const damaged[] = {"", "{", "[]", "{\"version\":3}",
                                          "{\"version\":4,\"settings\":\"\"}"};
    leat_dedup_opts o = interrupted();
    o.resume = 1;
    char *whole = load_text("s/.leat-work/state.json");
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        put_text("s/.leat-work/state.json", damaged[i]);
        int rc = leat_dedup_text(&o, &st, &err);
        assert_true(rc == LEAT_EDATA || rc == LEAT_EFORMAT);
    }
    put_text("s/.leat-work/state.json", whole);
    put_text("s/.leat-work/side-0", "");
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "truncated"));
    leat__free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_options_are_refused),
        cmocka_unit_test(another_input_is_refused),
        cmocka_unit_test(damage_is_detected),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
