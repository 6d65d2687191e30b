/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/device_store.c: claims, what is kept, and what happens when it is full.
 */
#include "gpu/fake_driver.h"

#include "base/mem.h"
#include "loader/device_store.h"

enum { IMAGES = 10, RESERVE = 1 << 14, EXTRAS = 1 << 17 };

static leat__gpu *gpu;
static leat__gpu_stream *stream;
static leat__device_pool *pool;
static leat_budget *budget;

static leat__device_store *open_store(uint64_t limit)
{
    leat__device_store *s;
    const leat__device_store_opts opts = {.pool = pool,
                                          .budget = budget,
                                          .images = IMAGES,
                                          .limit = limit,
                                          .reserve = RESERVE,
                                          .extras = EXTRAS};
    assert_ok(leat__device_store_open(&s, &opts, NULL));
    return s;
}

static int begin(void **state)
{
    if (find_fake(state) != 0) return -1;
    go_wrong("");
    assert_ok(leat__gpu_open(&gpu, 0, fake_path, NULL));
    assert_ok(leat__gpu_stream_open(&stream, gpu, NULL));
    assert_ok(leat__device_pool_open(&pool, gpu, 1 << 20, NULL));
    assert_ok(leat_budget_open(&budget, 1 << 18, NULL));
    return 0;
}

static int end(void **state)
{
    leat_budget_stats b;
    leat_budget_read(budget, &b);
    assert_int_equal(b.used, 0);
    leat__device_pool_close(&pool);
    leat__gpu_stream_close(&stream);
    leat__gpu_close(&gpu);
    leat_budget_close(&budget);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
    return 0;
}

static void one_claims_and_all_find(void **state)
{
    leat__device_store *s = open_store(1 << 19);
    leat__device_store_stats stats;
    const uint8_t header[] = "a header";
    assert_null(leat__device_store_find(s, 3));
    leat__device_entry *e = leat__device_store_claim(s, 3, header, sizeof header, 1000);
    assert_non_null(e);
    assert_null(leat__device_store_claim(s, 3, header, sizeof header, 1000)); /* it is in flight */
    assert_null(leat__device_store_find(s, 3));
    leat__device_store_drop(s, e); /* its batch failed: the next one may try */
    assert_ptr_equal(leat__device_store_claim(s, 3, header, sizeof header, 1000), e);
    leat__gpu_memory at = leat__device_store_take(s, 5000, stream);
    assert_true(at != 0 && at % 256 == 0);
    leat__device_store_keep(s, e, at + 16);
    const leat__device_entry *found = leat__device_store_find(s, 3);
    assert_ptr_equal(found, e);
    assert_int_equal(found->address, at + 16);
    assert_int_equal(found->bytes, 1000);
    assert_memory_equal(found->header, header, sizeof header);
    assert_null(leat__device_store_claim(s, 3, header, sizeof header, 1000));
    assert_int_equal(leat__device_store_take(s, 5000, stream), at + 5120);
    leat__device_store_read(s, &stats);
    assert_int_equal(stats.images, 1);
    assert_int_equal(stats.bytes, 2 * 5120);
    leat__device_store_drop(s, NULL);
    leat__device_store_close(&s);
}

static void a_full_store_takes_no_more(void **state)
{
    leat__device_store *s = open_store(1 << 18);
    const uint8_t header[8] = {0};
    assert_true(leat__device_store_take(s, 200000, stream) != 0);
    assert_int_equal(leat__device_store_take(s, 200000, stream), 0);
    assert_null(leat__device_store_claim(s, 1, header, sizeof header, 8));
    leat__device_store_close(&s);
    s = open_store(1 << 22); /* the pool has less than the limit says */
    assert_int_equal(leat__device_store_take(s, 1 << 21, stream), 0);
    assert_null(leat__device_store_claim(s, 1, header, sizeof header, 8));
    leat__device_store_close(&s);
}

/* Batches fill the budget for a while: images are taken again later. */
static void headers_wait_for_the_budget(void **state)
{
    leat__device_store *s = open_store(1 << 18);
    static const uint8_t large[RESERVE], small[64];
    leat_budget_stats b;
    leat_budget_read(budget, &b);
    const uint64_t rest = b.limit - b.used;
    assert_ok(leat_budget_try(budget, LEAT_BUDGET_BATCH, rest));
    assert_non_null(leat__device_store_claim(s, 1, small, sizeof small, 8)); /* of what is reserved */
    assert_null(leat__device_store_claim(s, 2, large, sizeof large, 8));
    assert_non_null(leat__device_store_claim(s, 3, small, sizeof small, 8));
    leat_budget_release(budget, LEAT_BUDGET_BATCH, rest);
    assert_non_null(leat__device_store_claim(s, 2, large, sizeof large, 8));
    leat__device_store_close(&s);
}

/* The rest of the budget is for batches. */
static void headers_have_a_limit(void **state)
{
    leat__device_store *s = open_store(1 << 18);
    static const uint8_t large[1 << 16];
    assert_non_null(leat__device_store_claim(s, 1, large, sizeof large - 64, 8));
    assert_null(leat__device_store_claim(s, 2, large, sizeof large, 8));
    leat__device_store_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_claims_and_all_find, begin, end),
        cmocka_unit_test_setup_teardown(a_full_store_takes_no_more, begin, end),
        cmocka_unit_test_setup_teardown(headers_wait_for_the_budget, begin, end),
        cmocka_unit_test_setup_teardown(headers_have_a_limit, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
