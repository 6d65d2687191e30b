/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedule search: thousands of random pipelines, budgets and schedules, each a pure function
 * of its seed, against a serial model. LEAT_SCHEDULES says how many (default 3000), LEAT_SEED
 * runs one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/replay.h"
#include "pipeline.h"

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static const char *run_seed(uint64_t seed, uint64_t *moves, leat_error *err)
{
    static pipeline p;
    static pipe_expect x;
    const char *wrong = NULL;
    leat_pool *pool = NULL;
    leat_budget *budget = NULL;
    leat_flow *flow = NULL;
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    err->code = 0;
    err->message[0] = 0;
    po.threads = 1 + seed % 4;
    po.io_threads = 1 + seed / 4 % 3;
    po.gpu_threads = 1;
    po.python_threads = 1 + seed / 12 % 2;
    pipe_random(&p, seed);
    if (!pipe_model(&p, &x)) return NULL;
    uint64_t slack = pipe_mix(seed, 99);
    if (leat__replay_open(&pool, &po, seed, NULL, NULL, err) != 0) return "no pool";
    if (leat_budget_open(&budget, 1, err) != 0) return "no budget";
    if (pipe_start(&p, pool, budget, slack % 3 ? slack : 0, &flow, err) != 0) wrong = "did not start";
    if (!wrong) wrong = pipe_drive(&p, flow, &x, err);
    if (wrong) pipe_print(&p, flow);
    leat_flow_close(&flow);
    *moves += leat__replay_moves(pool);
    leat_pool_close(&pool);
    if (!wrong) wrong = pipe_after(&p, budget);
    leat_budget_close(&budget);
    return wrong;
}

static void search(void **state)
{
    (void)state;
    uint64_t count = number("LEAT_SCHEDULES", 3000), one = number("LEAT_SEED", 0);
    uint64_t first = one ? one : number("LEAT_FIRST_SEED", 1), moves = 0;
    uint64_t blocks = leat__mem_blocks();
    for (uint64_t seed = first; seed < first + (one ? 1 : count); seed++) {
        leat_error err;
        const char *wrong = run_seed(seed, &moves, &err);
        if (!wrong && leat__mem_blocks() != blocks) wrong = "memory leaked";
        if (wrong) {
            print_error("LEAT_SEED=%llu: %s (%s)\n", (unsigned long long)seed, wrong, err.message);
            fail();
        }
    }
    print_message("%llu pipelines, %llu moves\n", (unsigned long long)(one ? 1 : count),
                  (unsigned long long)moves);
}

/* The same seed gives the same moves, so a failing seed can be repeated. */
static void same_seed_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = 500; seed < 520; seed++) {
        leat_error err;
        uint64_t a = 0, b = 0;
        assert_null(run_seed(seed, &a, &err));
        assert_null(run_seed(seed, &b, &err));
        assert_int_equal(a, b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(search),
        cmocka_unit_test(same_seed_same_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
