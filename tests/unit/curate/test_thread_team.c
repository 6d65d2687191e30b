/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <stdatomic.h>

#include "curate/thread_team.h"

typedef struct count {
    _Atomic uint64_t sum, calls;
    uint32_t members;
} count;

static void add(void *cookie, uint32_t member, uint32_t members)
{
    count *c = cookie;
    assert_int_equal(members, c->members);
    atomic_fetch_add(&c->sum, member + 1);
    atomic_fetch_add(&c->calls, 1);
}

static void every_member_works_once_per_step(void **state)
{
    static const uint32_t sizes[] = {1, 2, 7};
    for (size_t s = 0; s < 3; s++) {
        leat__thread_team *crew = NULL;
        count c = {.members = sizes[s]};
        assert_ok(leat__thread_team_open(&crew, sizes[s], NULL));
        assert_int_equal(leat__thread_team_size(crew), sizes[s]);
        for (uint64_t step = 1; step <= 200; step++) {
            leat__thread_team_run(crew, add, &c);
            assert_int_equal(c.calls, step * sizes[s]);
            assert_int_equal(c.sum, step * sizes[s] * (sizes[s] + 1) / 2);
        }
        leat__thread_team_close(&crew);
        assert_null(crew);
    }
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void a_crew_without_a_step_is_closed(void **state)
{
    leat__thread_team *crew = NULL;
    assert_ok(leat__thread_team_open(&crew, 0, NULL));
    assert_true(leat__thread_team_size(crew) >= 1);
    leat__thread_team_close(&crew);
    leat__thread_team_close(&crew);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_works_once_per_step),
        cmocka_unit_test(a_crew_without_a_step_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
