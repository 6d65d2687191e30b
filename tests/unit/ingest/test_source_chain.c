/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/source_chain.h"

/* The chain of up to `records` records of the folder "files". */
static leat__chain chain_of(uint64_t records, leat__buf *newest)
{
    const char *paths[] = {in_box("files")};
    leat_ingest_opts o;
    leat__source *s = NULL;
    leat__records_pool spare;
    leat_ingest_opts_init(&o);
    o.sources = paths;
    o.source_count = 1;
    assert_int_equal(leat__source_open(&s, &o, NULL), 0);
    leat__records_pool_init(&spare, s->field_count, 1);
    leat__chain chain = leat__chain_begin(&o);
    assert_int_equal(leat__chain_skip(&chain, s, &spare, records, newest, NULL), 0);
    assert_false(s->skim);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
    return chain;
}

static void put_files(void)
{
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "files/%03d.jpg", i);
        put_text(name, "not read");
    }
}

static void records_are_skipped(void **state)
{
    put_files();
    assert_int_equal(chain_of(0, NULL).records, 0);
    assert_int_equal(chain_of(70, NULL).records, 70);
    const leat__chain all = chain_of(UINT64_MAX, NULL), again = chain_of(200, NULL);
    assert_int_equal(all.records, 200);
    assert_true(all.value == again.value && all.value != chain_of(199, NULL).value);
}

static void changes_are_noticed(void **state)
{
    leat__buf newest;
    put_files();
    const leat__chain before = chain_of(UINT64_MAX, NULL), half = chain_of(100, NULL);
    leat__buf_init(&newest, LEAT__MEM_MISC, 1u << 20);
    put_text("files/150.jpg", "has another size");
    assert_true(chain_of(100, NULL).value == half.value);
    assert_true(chain_of(UINT64_MAX, &newest).value != before.value);
    assert_non_null(strstr(leat__buf_str(&newest), "files/150.jpg"));
    leat__buf_reset(&newest);
    put_text("files/0500.jpg", "one more");
    assert_true(chain_of(100, NULL).value != half.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_skipped),
        cmocka_unit_test(changes_are_noticed),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
