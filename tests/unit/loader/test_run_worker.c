/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/mem.h"
#include "loader/loader_run.h"

static void a_worker_shrinks_and_closes(void **state)
{
    leat__run_worker *w;
    (void)state;
    assert_ok(leat__run_worker_open(&w, NULL));
    assert_non_null(w->pipeline);
    assert_ok(leat__buf_zeros(&w->spare, 1 << 20));
    uint64_t before = leat__mem_used(LEAT__MEM_CATS);
    leat__run_worker_shrink(w);
    assert_true(leat__mem_used(LEAT__MEM_CATS) + (1 << 20) <= before);
    assert_null(w->pipeline); /* made again when it is needed */
    assert_ok(leat__buf_zeros(&w->spare, 16));
    leat__run_worker_close(&w);
    assert_null(w);
    leat__run_worker_close(&w);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_worker_shrinks_and_closes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
