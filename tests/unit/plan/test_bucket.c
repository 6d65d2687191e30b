/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include "loader/defaults.h"
#include "loader/state.h"

/* 1,000,000 samples of 100 KB in a bucket behind a link of 100 MB/s; one dollar for 1000 requests. */
static leat_plan_facts bucket_facts(void)
{
    leat_plan_facts f = guide_facts();
    f.samples = 1000000;
    f.sample_bytes = 100000;
    f.page_bytes = 1000000;
    f.epochs = 10;
    f.no_validation = 1;
    f.order = PLAN_ORDER(LEAT_ORDER_QUASI);
    snprintf(f.storage, sizeof f.storage, "bucket");
    f.measured.io_bytes_per_s = (leat_plan_range){100e6, 100e6, 100e6};
    f.measured.cpu_us = (leat_plan_range){100, 100, 100};
    f.measured.step_ms = (leat_plan_range){10, 10, 10};
    f.price_requests = 1;
    f.price_other_region = 0.02;
    f.price_internet = 0.1;
    snprintf(f.price_date, sizeof f.price_date, "2025-01");
    return f;
}

static void every_epoch_comes_over_the_link(void **state)
{
    leat_plan p = plan_of(bucket_facts());
    (void)state;
    assert_near(p.speed.cached_share, 0, 0); /* 62 GiB of memory do not help: no page cache */
    assert_near(p.speed.rate.mid, 1000, 1);
    assert_int_equal(p.speed.limit, LEAT_PLAN_IO);
    assert_near(p.speed.epoch_s.mid, 1000, 1);
    assert_int_equal(p.traffic.epoch_bytes, UINT64_C(100000000000));
    assert_int_equal(p.traffic.epoch_requests, 100000); /* pages of ten samples */
    assert_int_equal(p.traffic.run_bytes, UINT64_C(1000000000000));
    assert_int_equal(p.traffic.run_requests, 1000000);
}

static void prices_are_those_of_the_facts(void **state)
{
    leat_plan p = plan_of(bucket_facts());
    (void)state;
    assert_int_equal(p.traffic.priced, 1);
    assert_near(p.traffic.epoch.same_region, 100, 1e-6);
    assert_near(p.traffic.run.same_region, 1000, 1e-6);
    assert_near(p.traffic.run.other_region, 1000 + 20, 1e-6);
    assert_near(p.traffic.run.internet, 1000 + 100, 1e-6);
    leat_plan_facts f = bucket_facts();
    f.price_requests = f.price_other_region = f.price_internet = 0;
    assert_int_equal(plan_of(f).traffic.priced, 0);
}

static void a_disk_cache_saves_all_epochs_but_the_first(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    leat_plan_traffic t = plan_of(f).traffic;
    assert_int_equal(t.disk_bytes, UINT64_C(100000000000));
    assert_near((double)t.disk_saves_bytes, 9e11, 1);
    assert_near(t.disk_saves.internet, 900 + 90, 1e-6);
    f.nodes = 2; /* each epoch half of the samples: both nodes hold nearly all at the end */
    assert_near((double)plan_of(f).traffic.disk_saves_bytes, 1e11 * (10 - 2 * (1 - 1.0 / 1024)), 1e6);
    f.epochs = 1;
    assert_int_equal(plan_of(f).traffic.disk_saves_bytes, 0);
}

/* A random order makes one request a sample. */
static void random_is_limited_by_requests(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    f.order = PLAN_ORDER(LEAT_ORDER_RANDOM);
    f.latency_s = 0.1; /* 64 in flight: 640 a second */
    leat_plan p = plan_of(f);
    assert_near(p.speed.io.mid, 640, 1e-6);
    assert_int_equal(p.traffic.epoch_requests, 1000000);
    f.sample_bytes = 650000; /* also where a page has hardly more than one */
    f.measured.io_bytes_per_s = (leat_plan_range){1e9, 1e9, 1e9};
    assert_near(plan_of(f).speed.io.mid, 640, 1e-6);
    f = bucket_facts();
    f.latency_s = 0.1;
    f.order = PLAN_ORDER(LEAT_ORDER_QUASI); /* 640 pages a second are more than the link carries */
    assert_near(plan_of(f).speed.io.mid, 1000, 1e-6);
    f.latency_s = 1;
    assert_near(plan_of(f).speed.io.mid, 640, 1e-6);
}

/* Pages that the loader keeps in its own budget are not read again. */
static void memory_of_the_loader_saves_traffic(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    f.ram_bytes = 300 * GIB;
    f.memory_bytes = 200 * GIB;
    leat_plan p = plan_of(f);
    assert_near(p.speed.cached_share, 1, 0);
    assert_int_equal(p.traffic.run_bytes, p.traffic.epoch_bytes);
    f.memory_bytes = 50 * GIB; /* half: each page is evicted before it comes again */
    assert_near(plan_of(f).speed.cached_share, 0, 0);
    f.order = PLAN_ORDER(LEAT_ORDER_RANDOM); /* pages stay */
    assert_near(plan_of(f).speed.cached_share, 0.5, 0.05);
}

/* Without a shuffle a node reads the same part of the data in every epoch. */
static void nodes_keep_their_part_of_an_order_that_does_not_shuffle(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    f.nodes = 4;
    for (uint32_t order = 0; order < LEAT__ORDER_COUNT; order++) {
        f.order = PLAN_ORDER(order);
        leat_plan p = plan_of(f);
        uint64_t parts = leat__order_shuffled((leat_order)order) ? 1 : 4;
        assert_int_equal(p.traffic.disk_bytes, p.traffic.epoch_bytes / parts);
    }
}

static void other_storage_has_no_traffic(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    snprintf(f.storage, sizeof f.storage, "nvme");
    assert_int_equal(plan_of(f).traffic.epoch_bytes, 0);
    assert_int_equal(plan_of(f).traffic.priced, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_epoch_comes_over_the_link),
        cmocka_unit_test(prices_are_those_of_the_facts),
        cmocka_unit_test(a_disk_cache_saves_all_epochs_but_the_first),
        cmocka_unit_test(random_is_limited_by_requests),
        cmocka_unit_test(memory_of_the_loader_saves_traffic),
        cmocka_unit_test(nodes_keep_their_part_of_an_order_that_does_not_shuffle),
        cmocka_unit_test(other_storage_has_no_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
