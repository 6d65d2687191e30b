/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include "doctor/doctor_flags.h"

static void every_flag_a_remedy_can_write_has_an_effect(void **state)
{
    leat_loader_opts from;
    (void)state;
    leat_loader_opts_init(&from);
    leat_loader_opts to = leat__doctor_apply(
        &from, "order=quasi_random,cache=process,memory=62914560,threads=3,prefetch=8,io-depth=64");
    assert_int_equal(to.order, LEAT_ORDER_QUASI);
    assert_int_equal(to.cache, LEAT_CACHE_PROCESS);
    assert_int_equal(to.memory, 62914560);
    assert_int_equal(to.threads, 3);
    assert_int_equal(to.prefetch, 8);
    assert_int_equal(to.io_depth, 64);
    assert_int_equal(leat__doctor_apply(&to, "cache=os").cache, LEAT_CACHE_OS);
}

static void unknown_keys_change_nothing(void **state)
{
    leat_loader_opts from;
    (void)state;
    leat_loader_opts_init(&from);
    from.threads = 5;
    leat_loader_opts to = leat__doctor_apply(&from, "dtype=u8,threads=many,thr=2,=3,threads,");
    assert_int_equal(to.threads, 5);
    assert_memory_equal(&to, &from, sizeof to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flag_a_remedy_can_write_has_an_effect),
        cmocka_unit_test(unknown_keys_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
