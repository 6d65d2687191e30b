/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include "base/clock.h"
#include "doctor/kernel_counters.h"
#include "probe/tree.h"

#define S LEAT_NS_PER_S

static void window_is_two_samples(void **state)
{
    leat__kernel_counters a = {.wall_ns = 10 * S,
                               .cpu_ns = 2 * S,
                               .wait_ns = 1 * S,
                               .host_busy_ns = 5 * S,
                               .faults = 10,
                               .periods = 100,
                               .throttled = 10};
    leat__kernel_counters b = {.wall_ns = 20 * S,
                               .cpu_ns = 17 * S,
                               .wait_ns = 6 * S,
                               .host_busy_ns = 24 * S,
                               .faults = 40,
                               .periods = 200,
                               .throttled = 35};
    leat_doctor_facts f;
    (void)state;
    leat_doctor_facts_init(&f);
    leat__kernel_counters_facts(&a, &b, &f);
    assert_near(f.cpu_used, 1.5, 1e-9);
    assert_near(f.others, 0.4, 1e-9);
    assert_near(f.run_delay, 0.25, 1e-9);
    assert_near(f.throttled, 0.25, 1e-9);
    assert_near(f.faults, 3, 1e-9);
    assert_true(f.cpus > 0 && f.cpus_host >= f.cpus);
}

static void an_empty_window_says_nothing(void **state)
{
    leat__kernel_counters a = {.wall_ns = 10 * S};
    leat_doctor_facts f;
    (void)state;
    leat_doctor_facts_init(&f);
    leat__kernel_counters_facts(&a, &a, &f);
    assert_true(f.cpu_used < 0 && f.others < 0 && f.run_delay < 0);
}

/* Ended threads drop out of the sums: never negative. */
static void threads_may_end(void **state)
{
    leat__kernel_counters a = {.wall_ns = S, .wait_ns = 9 * S};
    leat__kernel_counters b = {.wall_ns = 2 * S, .cpu_ns = S, .wait_ns = 3 * S};
    leat_doctor_facts f;
    (void)state;
    leat_doctor_facts_init(&f);
    leat__kernel_counters_facts(&a, &b, &f);
    assert_near(f.run_delay, 0, 0);
}

static void work_of_this_process_is_seen(void **state)
{
    leat__kernel_counters a, b;
    leat_doctor_facts f;
    (void)state;
    leat__kernel_counters_read(&a);
    uint64_t until = leat__clock_process_ns() + 50 * LEAT_NS_PER_MS;
    while (leat__clock_process_ns() < until) continue;
    leat__kernel_counters_read(&b);
    leat_doctor_facts_init(&f);
    leat__kernel_counters_facts(&a, &b, &f);
    assert_true(f.cpu_used > 0 && f.cpu_used < 1.5);
    assert_true(f.others >= 0);
}

/* Stolen time is work of another guest of the host; idle time and waiting for disks are not work. */
static void busy_time_is_read_from_the_kernel(void **state)
{
    leat__kernel_counters s;
    (void)state;
    assert_int_equal(tree_open(NULL), 0);
    tree_file("/proc/stat", "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 100 10 20 999 888 3 4 5 0 0\nintr 5\n");
    tree_file("/proc/self/task/77/schedstat", "1000 2500 3\n");
    tree_file("/proc/self/task/78/schedstat", "10 500 3\n");
    leat__kernel_counters_read(&s);
    assert_int_equal(tree_close(NULL), 0);
    assert_int_equal(s.host_busy_ns, 142 * (S / (uint64_t)sysconf(_SC_CLK_TCK)));
    assert_int_equal(s.wait_ns, 3000);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_is_two_samples),
        cmocka_unit_test(an_empty_window_says_nothing),
        cmocka_unit_test(threads_may_end),
        cmocka_unit_test(work_of_this_process_is_seen),
        cmocka_unit_test(busy_time_is_read_from_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
