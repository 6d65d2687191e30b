/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages requested ahead of the runs. A pack on disk stands for a remote one: the way of its pages is the
 * same.
 */
#define PLAIN_SAMPLES 601
#include "tiny_loader.h"

#include "io/file.h"
#include "io/inject.h"
#include "loader/feed.h"
#include "loader/page_ahead.h"
#include "loader/setup.h"

static leat_loader *open_with(leat_loader_opts *o, bool ahead)
{
    leat_loader *l;
    o->cache = LEAT_CACHE_PROCESS;
    assert_ok(leat_loader_open(&l, plain, o, NULL));
    if (ahead) assert_ok(leat__page_ahead_open(&l->page_ahead, l->info.pages, l->budget, NULL));
    return l;
}

/* Orders, worlds and epochs: the same samples, every page read once, the same counts. */
static void samples_and_counts_stay_the_same(void **state)
{
    static const leat_order orders[] = {LEAT_ORDER_SEQUENTIAL, LEAT_ORDER_RANDOM, LEAT_ORDER_QUASI};
    (void)state;
    for (int k = 0; k < 6; k++) {
        leat_loader_stats s[2][2];
        outcome r[2] = {0};
        leat_loader_opts o = base_opts();
        set_order(&o, orders[k % 3]);
        o.world = k < 3 ? 1 : 3;
        o.rank = k < 3 ? 0 : 1;
        for (int ahead = 0; ahead < 2; ahead++) {
            leat_loader *l = open_with(&o, ahead);
            for (uint64_t epoch = 0; epoch < 2; epoch++) {
                assert_ok(leat_loader_begin(l, epoch, NULL));
                drain(l, &r[ahead]);
                assert_ok(r[ahead].rc);
                assert_ok(leat_loader_read(l, &s[ahead][epoch], sizeof s[0][0]));
            }
            leat_loader_close(&l);
        }
        assert_true(r[0].digest == r[1].digest);
        for (int epoch = 0; epoch < 2; epoch++) {
            assert_int_equal(s[0][epoch].reads, s[1][epoch].reads);
            assert_int_equal(s[0][epoch].read_bytes, s[1][epoch].read_bytes);
            assert_int_equal(s[0][epoch].cache_hits, s[1][epoch].cache_hits);
            assert_int_equal(s[0][epoch].cache_misses, s[1][epoch].cache_misses);
        }
    }
    assert_no_leaks();
}

/* While the reader of the first batch waits for its page, pages of later batches are read. */
static void pages_are_read_before_their_runs(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader_stats s;
    leat_batch *b;
    (void)state;
    set_order(&o, LEAT_ORDER_SEQUENTIAL);
    o.io_depth = 1;
    o.prefetch = 1;
    leat_loader *l = open_with(&o, true);
    assert_true(l->info.pages > 8);
    assert_ok(leat_loader_begin(l, 0, NULL));
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    leat_batch_release(&b);
    /* the look from the first batch alone reaches this far */
    for (int i = 0; i < 2000; i++) {
        assert_ok(leat_loader_read(l, &s, sizeof s));
        if (s.reads > 4) break;
        usleep(1000);
    }
    assert_true(s.reads > 4);
    leat_loader_close(&l);
    assert_no_leaks();
}

/* Reads fail at first: what was asked for ahead is asked for again by the run that needs it. */
static void a_request_that_failed_is_made_again(void **state)
{
    (void)state;
    leat_loader_opts o = base_opts();
    outcome plainly = run_with(plain, &o, 0), r = {0};
    leat__inject_rule rule = {.path = plain, .sys_errno = 5, .times = 3};
    leat_loader *l = open_with(&o, true);
    assert_ok(leat__io_inject(&rule, NULL));
    assert_ok(leat_loader_begin(l, 0, NULL));
    drain(l, &r);
    leat__io_inject_clear();
    assert_ok(r.rc);
    assert_true(r.digest == plainly.digest);
    leat_loader_close(&l);
    assert_no_leaks();
}

/* An epoch that is given up ends with requests in flight, and the next one begins. */
static void an_epoch_can_be_given_up(void **state)
{
    (void)state;
    leat_loader_opts o = base_opts();
    leat__inject_rule rule = {.path = plain, .delay_ns = 20000000};
    leat_loader *l = open_with(&o, true);
    outcome again = {0}, plainly = run_with(plain, &o, 1);
    assert_ok(leat__io_inject(&rule, NULL));
    assert_ok(leat_loader_begin(l, 0, NULL));
    leat_loader_stop(l);
    leat__io_inject_clear();
    assert_ok(leat_loader_begin(l, 1, NULL));
    drain(l, &again);
    assert_ok(again.rc);
    assert_true(again.digest == plainly.digest);
    leat_loader_close(&l);
    assert_no_leaks();
}

/* A page is announced for the rows of its rank, so it makes room when those were delivered. */
static void uses_are_those_of_the_rank(void **state)
{
    static const leat_order orders[] = {LEAT_ORDER_SEQUENTIAL, LEAT_ORDER_RANDOM, LEAT_ORDER_QUASI};
    (void)state;
    for (uint32_t k = 0; k < 9; k++) {
        leat_loader_opts o = base_opts();
        set_order(&o, orders[k % 3]);
        o.world = 3;
        o.rank = k / 3;
        leat_loader *l = open_with(&o, true);
        assert_ok(leat_loader_begin(l, 1, NULL));
        for (uint64_t page = 0; page < l->info.pages; page++) {
            leat_pack_page info;
            uint32_t uses = 0;
            assert_ok(leat_pack_page_info(l->pack, page, &info, NULL));
            for (uint64_t row = 0; row < l->feed.end; row++) {
                uint64_t sample = leat__order_at(l->order, row * o.world + o.rank);
                uses += sample >= info.first && sample - info.first < info.samples;
            }
            assert_int_equal(leat__feed_uses(l, &info), uses);
        }
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

/* Runs that wait for pages begin batches, which take memory: with pages requested ahead few of them are
 * enough. */
static void few_runs_wait_for_pages(void **state)
{
    (void)state;
    leat_loader_opts o = base_opts();
    leat_flow_opts flow, without;
    leat_flow_opts_init(&flow);
    leat_flow_opts_init(&without);
    leat_loader *l = open_with(&o, true);
    leat__page_ahead *ahead = l->page_ahead;
    leat__page_ahead_begin(l);
    leat__page_ahead_depth(l, &flow);
    l->page_ahead = NULL;
    leat__page_ahead_depth(l, &without);
    l->page_ahead = ahead;
    assert_int_equal(flow.io_depth_max, flow.io_depth_first);
    assert_true(without.io_depth_max > flow.io_depth_max);
    leat_loader_close(&l);
    assert_no_leaks();
}

/* Memory for a small part of the pack: pages are not requested when they could not stay. */
static void nothing_is_requested_that_does_not_fit(void **state)
{
    (void)state;
    leat_loader_opts o = base_opts();
    outcome plainly = run_with(plain, &o, 0), r = {0};
    leat_loader *l = open_with(&o, true);
    l->cache_user.cap = 128 << 10;
    assert_ok(leat_loader_begin(l, 0, NULL));
    drain(l, &r);
    assert_ok(r.rc);
    assert_true(r.digest == plainly.digest);
    leat_loader_close(&l);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_and_counts_stay_the_same),
        cmocka_unit_test(pages_are_read_before_their_runs),
        cmocka_unit_test(a_request_that_failed_is_made_again),
        cmocka_unit_test(an_epoch_can_be_given_up),
        cmocka_unit_test(uses_are_those_of_the_rank),
        cmocka_unit_test(few_runs_wait_for_pages),
        cmocka_unit_test(nothing_is_requested_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, make_pack, drop_pack);
}
