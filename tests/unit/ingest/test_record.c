/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "base/fault.h"

static void values_stay_where_they_are_put(void **state)
{
    leat__records_pool spare;
    leat__records_pool_init(&spare, 3, 4);
    leat__records *run = leat__records_pool_take(&spare);
    char block[100 * (LEAT__RECORDS_MOST + 1)];
    for (int i = 0; i < LEAT__RECORDS_MOST; i++) {
        leat__record *r = leat__records_add(run);
        char key[16];
        int n = snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(leat__records_key(run, r, key, (size_t)n, NULL), 0);
        memset(block, i, sizeof block);
        for (int f = 0; f < 2; f++)
            assert_non_null(leat__records_bytes(run, &r->items[f], block, 100 * (size_t)(i + f)));
    }
    assert_null(leat__records_add(run));
    assert_true(leat__records_full(run));
    for (int i = 0; i < LEAT__RECORDS_MOST; i++) {
        const leat__record *r = &run->record[i];
        char key[16];
        snprintf(key, sizeof key, "key %d", i);
        assert_string_equal(leat__records_str(run, r->key), key);
        assert_true(r->items[2].absent);
        for (int f = 0; f < 2; f++) {
            const leat__item *item = &r->items[f];
            assert_int_equal((uintptr_t)leat__records_data(run, item) % 16, 0);
            assert_int_equal(item->size, 100 * (i + f));
            memset(block, i, sizeof block);
            assert_memory_equal(leat__records_data(run, item), block, LEAT_MIN(item->size, 1000));
        }
    }
    assert_true(leat__records_held(run) > run->in.len);
    leat__records_pool_give(&spare, run);
    assert_ptr_equal(leat__records_pool_take(&spare), run); /* reused, and empty */
    assert_int_equal(run->count, 0);
    assert_int_equal(run->in.len, 0);
    leat__records_pool_give(&spare, run);
    leat__records_pool_reset(&spare);
}

/* What a run held before is not charged to its next task. */
static void a_run_starts_small(void **state)
{
    leat__records_pool spare;
    leat__records_pool_init(&spare, 2, 4);
    leat__records *run = leat__records_pool_take(&spare);
    for (int i = 0; i < LEAT__RECORDS_MOST; i++) {
        leat__record *r = leat__records_add(run);
        assert_non_null(leat__records_bytes(run, &r->items[0], NULL, 200000));
        assert_int_equal(leat__buf_zeros(&run->out, 100000), 0);
    }
    assert_true(leat__records_held(run) < 16 * 300100 + leat__records_first(2));
    leat__records_pool_give(&spare, run);
    assert_ptr_equal(leat__records_pool_take(&spare), run);
    assert_true(leat__records_held(run) <= leat__records_first(2) && leat__records_first(2) < 3 << 20);
    for (size_t bytes = 1; bytes < 4 << 20;
         bytes = bytes * 3 / 2 + 1) { /* and is asked for before it grows */
        leat__records_add(run);
        const uint64_t before = leat__records_held(run), asked = leat__records_growth(&run->in, 2 * bytes);
        for (int i = 0; i < 2; i++)
            assert_non_null(leat__records_bytes(run, &run->record[0].items[i], NULL, bytes));
        assert_true(leat__records_held(run) <= before + asked);
        leat__records_pool_give(&spare, run);
        run = leat__records_pool_take(&spare);
    }
    leat__records_pool_give(&spare, run);
    leat__records_pool_reset(&spare);
}

static void a_run_is_full_by_bytes_too(void **state)
{
    leat__records_pool spare;
    leat__records_pool_init(&spare, 1, 0); /* keeps none */
    leat__records *run = leat__records_pool_take(&spare);
    leat__records_add(run);
    assert_false(leat__records_full(run));
    run->pending = LEAT__RECORDS_BYTES;
    assert_true(leat__records_full(run));
    leat__records_drop_last(run);
    assert_int_equal(run->count, 0);
    leat__records_pool_give(&spare, run);
    leat__records_pool_reset(&spare);
}

static void the_first_reason_stays(void **state)
{
    leat__records_pool spare;
    leat__records_pool_init(&spare, 1, 1);
    leat__records *run = leat__records_pool_take(&spare);
    leat__record *r = leat__records_add(run);
    leat_error a = {.code = LEAT_EDATA, .message = "first"};
    leat_error b = {.code = LEAT_EIO, .message = "second"};
    leat__records_fail(r, &a);
    leat__records_fail(r, &b);
    assert_string_equal(r->error->message, "first");
    leat__record *short_of_memory = leat__records_add(run);
    if (leat__fault_available()) {
        leat__fault_arm(LEAT__FAULT_ALLOC, 1, true);
        leat__records_fail(short_of_memory, &a);
        leat__fault_disarm();
        assert_true(short_of_memory->failed);
        assert_null(short_of_memory->error);
    }
    leat__records_pool_give(&spare, run);
    leat__records_pool_reset(&spare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stay_where_they_are_put),
        cmocka_unit_test(a_run_starts_small),
        cmocka_unit_test(a_run_is_full_by_bytes_too),
        cmocka_unit_test(the_first_reason_stays),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
