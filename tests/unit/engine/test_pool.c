/* SPDX-License-Identifier: Apache-2.0
 *
 * The random pipelines on real threads: results against the serial model, several flows at once
 * on one pool and one budget, cancelled and closed at random times. LEAT_SOAK_SECONDS (default 2)
 * and LEAT_CANCELS (default 300) make it longer; LEAT_SEED repeats one pipeline.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pipeline.h"

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static leat_pool *open_pool(uint32_t threads)
{
    leat_pool *pool = NULL;
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    po.threads = threads;
    po.io_threads = 3;
    po.python_threads = 2;
    assert_int_equal(leat_pool_open(&pool, &po, NULL), 0);
    return pool;
}

static const char *run_seed(leat_pool *pool, pipeline *p, pipe_expect *x, uint64_t seed, leat_error *err)
{
    const char *wrong = NULL;
    leat_budget *budget = NULL;
    leat_flow *flow = NULL;
    err->message[0] = 0;
    pipe_random(p, seed);
    p->later_per_1000 /= 20; /* each costs 10 ms of real time */
    if (!pipe_model(p, x)) return NULL;
    uint64_t slack = pipe_mix(seed, 99);
    if (leat_budget_open(&budget, 1, err) != 0) return "no budget";
    if (pipe_start(p, pool, budget, slack % 3 ? slack : 0, &flow, err) != 0) wrong = "did not start";
    if (!wrong) wrong = pipe_drive(p, flow, x, err);
    leat_flow_close(&flow);
    if (!wrong) wrong = pipe_after(p, budget);
    leat_budget_close(&budget);
    return wrong;
}

static void soak(void **state)
{
    (void)state;
    static pipeline p;
    static pipe_expect x;
    uint64_t until = leat__clock_ns() + number("LEAT_SOAK_SECONDS", 2) * LEAT_NS_PER_S;
    uint64_t one = number("LEAT_SEED", 0), seed = one ? one : 1, blocks = leat__mem_blocks();
    uint64_t first = seed;
    while (leat__clock_ns() < until) {
        leat_pool *pool = open_pool(1 + seed % 5);
        for (int i = 0; i < 200 && leat__clock_ns() < until; i++) {
            leat_error err;
            const char *wrong = run_seed(pool, &p, &x, seed, &err);
            if (wrong) {
                print_error("LEAT_SEED=%llu: %s (%s)\n", (unsigned long long)seed, wrong, err.message);
                fail();
            }
            seed += !one;
        }
        leat_pool_close(&pool);
    }
    assert_int_equal(leat__mem_blocks(), blocks);
    print_message("%llu pipelines\n", (unsigned long long)(seed - first));
}

/* Several consumers, each with flow after flow, on one pool and one budget that is just large
 * enough for all their floors. */
typedef struct consumer {
    leat__thread thread;
    leat_pool *pool;
    leat_budget *budget;
    uint64_t seed, until;
    uint64_t done;
    const char *wrong;
    leat_error err;
    pipeline p;
    pipe_expect x;
} consumer;

static void consume(void *arg)
{
    consumer *c = arg;
    while (!c->wrong && leat__clock_ns() < c->until) {
        leat_flow *flow = NULL;
        pipe_random(&c->p, c->seed);
        c->p.later_per_1000 /= 20;
        c->seed += 4;
        if (!pipe_model(&c->p, &c->x)) continue;
        int rc = pipe_start(&c->p, c->pool, c->budget, UINT64_MAX, &flow, &c->err);
        if (rc == LEAT_EBUDGET) continue; /* the others' floors leave no room at this time */
        if (rc != 0) c->wrong = "did not start";
        if (!c->wrong) c->wrong = pipe_drive(&c->p, flow, &c->x, &c->err);
        leat_flow_close(&flow);
        if (atomic_load(&c->p.live) != 0) c->wrong = "items leaked";
        c->done++;
    }
}

static void several_flows_share_pool_and_budget(void **state)
{
    (void)state;
    static consumer c[4];
    uint64_t until = leat__clock_ns() + number("LEAT_SOAK_SECONDS", 2) * LEAT_NS_PER_S / 2;
    leat_pool *pool = open_pool(3);
    leat_budget *budget = NULL;
    assert_int_equal(leat_budget_open(&budget, 60000, NULL), 0);
    for (int i = 0; i < 4; i++) {
        c[i].pool = pool;
        c[i].budget = budget;
        c[i].seed = 1 + (uint64_t)i;
        c[i].until = until;
        assert_int_equal(leat__thread_start(&c[i].thread, "consumer", consume, &c[i], NULL), 0);
    }
    uint64_t done = 0;
    for (int i = 0; i < 4; i++) {
        leat__thread_join(&c[i].thread);
        if (c[i].wrong)
            print_error("seed %llu: %s (%s)\n", (unsigned long long)c[i].seed - 4, c[i].wrong,
                        c[i].err.message);
        assert_null(c[i].wrong);
        assert_true(c[i].done > 0);
        done += c[i].done;
    }
    leat_budget_stats stats;
    leat_budget_read(budget, &stats);
    assert_int_equal(stats.used, 0);
    assert_true(stats.peak <= 60000);
    leat_pool_close(&pool);
    leat_budget_close(&budget);
    print_message("%llu pipelines side by side\n", (unsigned long long)done);
}

/* Cancels from another thread, or closes directly, at a random time; borrowed results are
 * released afterwards. */
typedef struct canceler {
    leat_flow *flow;
    uint64_t delay_ns;
} canceler;

static void cancel_later(void *arg)
{
    canceler *c = arg;
    leat__sleep_ns(c->delay_ns);
    leat_flow_cancel(c->flow);
}

static void cancel_at_any_time(void **state)
{
    (void)state;
    static pipeline p;
    uint64_t count = number("LEAT_CANCELS", 300), slowest = 0;
    uint64_t blocks = leat__mem_blocks();
    leat_pool *pool = open_pool(2);
    for (uint64_t i = 0; i < count; i++) {
        leat_budget *budget = NULL;
        leat_flow *flow = NULL;
        leat_error err;
        leat_task *held[3] = {NULL};
        pipe_random(&p, 7000000 + i);
        p.roots = 100000; /* never finishes by itself */
        assert_int_equal(leat_budget_open(&budget, 1, NULL), 0);
        assert_int_equal(pipe_start(&p, pool, budget, i, &flow, &err), 0);
        canceler c = {.flow = flow, .delay_ns = pipe_mix(i, 3) % 400000};
        leat__thread thread = {0};
        bool other = i % 2;
        if (other) assert_int_equal(leat__thread_start(&thread, "cancel", cancel_later, &c, NULL), 0);
        uint64_t pulls = other ? UINT64_MAX : pipe_mix(i, 4) % 20;
        int rc = 0;
        for (uint64_t k = 0; k < pulls && rc == 0; k++) {
            if (p.sink) {
                rc = leat_flow_wait(flow, other ? -1 : (int64_t)(k % 2), &err);
                if (rc == LEAT_ETIMEDOUT && !other) rc = 0;
                continue;
            }
            leat_task *task = NULL;
            rc = leat_flow_next(flow, &task, -1, &err);
            if (!task) break;
            uint32_t at = (uint32_t)(k % p.opts.loans);
            leat_task_release(held[at]);
            held[at] = task;
            if (p.opts.loans > 1) {
                uint32_t next = (uint32_t)((k + 1) % p.opts.loans);
                leat_task_release(held[next]);
                held[next] = NULL;
            } else {
                leat_task_release(held[at]);
                held[at] = NULL;
            }
        }
        if (other) leat__thread_join(&thread);
        uint64_t begin = leat__clock_ns();
        leat_flow_close(&flow);
        slowest = LEAT_MAX(slowest, leat__clock_ns() - begin);
        for (int k = 0; k < 3; k++) leat_task_release(held[k]);
        const char *wrong = pipe_after(&p, budget);
        if (wrong) print_error("seed %llu: %s\n", (unsigned long long)(7000000 + i), wrong);
        assert_null(wrong);
        leat_budget_close(&budget);
    }
    leat_pool_close(&pool);
    assert_int_equal(leat__mem_blocks(), blocks);
    print_message("%llu cancelled, slowest close %.2f ms\n", (unsigned long long)count,
                  (double)slowest / 1e6);
}

static void shared_pool_is_one(void **state)
{
    (void)state;
    leat_pool *a = NULL, *b = NULL;
    assert_int_equal(leat_pool_shared(&a, NULL), 0);
    assert_int_equal(leat_pool_shared(&b, NULL), 0);
    assert_ptr_equal(a, b);
    assert_true(leat_pool_threads(a) >= 1);
    leat_pool_close(&a);
    leat_pool_close(&b);
    assert_null(b);
}

static void active_has_a_range(void **state)
{
    (void)state;
    leat_pool *pool = open_pool(3);
    leat_error err;
    assert_int_equal(leat_pool_set_active(pool, 1, &err), 0);
    assert_int_equal(leat_pool_set_active(pool, 3, &err), 0);
    assert_int_equal(leat_pool_set_active(pool, 0, &err), LEAT_EINVAL);
    assert_int_equal(leat_pool_set_active(pool, 4, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "the pool has 3"));
    leat_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(soak),
        cmocka_unit_test(several_flows_share_pool_and_budget),
        cmocka_unit_test(cancel_at_any_time),
        cmocka_unit_test(shared_pool_is_one),
        cmocka_unit_test(active_has_a_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
