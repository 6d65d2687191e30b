/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include <math.h>
#include <string.h>

#include "loader/defaults.h"
#include "loader/remote_pages.h"
#include "loader/state.h"

/* 1,000,000 samples of 100 KB in a bucket behind a link of 100 MB/s; one dollar for 1000 requests. */
static leat_plan_facts bucket_facts(void)
{
    leat_plan_facts f = guide_facts();
    f.samples = 1000000;
    f.sample_bytes = 100000;
    f.page_bytes = 1000000;
    f.index_bytes = 1;
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
    f.nodes = 2; /* each epoch half of the samples, which are in 1023 of 1024 pages: each node fetches all */
    assert_near((double)plan_of(f).traffic.disk_saves_bytes, 1e11 * 2 * (10 * 1023.0 / 1024 - 1), 1e6);
    f.page_bytes = f.sample_bytes; /* both hold nearly all at the end */
    assert_near((double)plan_of(f).traffic.disk_saves_bytes, 1e11 * (10 - 2 * (1 - 1.0 / 1024)), 1e6);
    f.epochs = 1;
    assert_int_equal(plan_of(f).traffic.disk_saves_bytes, 0);
}

/* A random order makes one request for each sample that is not in memory. */
static void random_is_limited_by_requests(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    f.order = PLAN_ORDER(LEAT_ORDER_RANDOM);
    f.latency_s = 0.1; /* 64 in flight: 640 a second */
    f.memory_bytes = GIB;
    f.batch = 64;
    leat_plan p = plan_of(f);
    assert_near(p.speed.io.mid, 640, 5);
    assert_near((double)p.traffic.epoch_requests, 1000000, 8000);
    f.sample_bytes = 650000; /* also where a page has hardly more than one */
    f.measured.io_bytes_per_s = (leat_plan_range){1e9, 1e9, 1e9};
    assert_near(plan_of(f).speed.io.mid, 640, 5);
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

/* The budget that the plan chose counts like the same number given, and a smaller one never saves more. */
static void the_planned_budget_saves_traffic(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    f.order = PLAN_ORDER(LEAT_ORDER_RANDOM);
    f.samples = 20000;
    f.workers = 2;
    leat_plan own = plan_of(f);
    assert_true(own.speed.cached_share > 0);
    f.memory_bytes = own.config.memory_bytes;
    leat_plan given = plan_of(f);
    assert_near(given.speed.cached_share, own.speed.cached_share, 0);
    assert_int_equal(given.traffic.run_bytes, own.traffic.run_bytes);
    f.memory_bytes /= 2;
    assert_true(plan_of(f).traffic.run_bytes >= own.traffic.run_bytes);
}

/* Each node fetches for itself. 400 samples of 111 KB, 4.6 in a page: three ranks with memory for all of them
 * read 2.35 times the pack in the first epoch, and 3 times in four. */
static void each_node_fetches_its_own_pages(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    f.order = PLAN_ORDER(LEAT_ORDER_RANDOM);
    f.samples = 400;
    f.sample_bytes = 111000;
    f.page_bytes = 512 << 10;
    f.epochs = 4;
    f.nodes = 3;
    f.ram_bytes = 300 * GIB;
    f.memory_bytes = 20 * GIB;
    const double dataset = 400 * 111000.0;
    leat_plan p = plan_of(f);
    assert_near((double)p.traffic.epoch_bytes / dataset, 2.35, 0.25);
    assert_near((double)p.traffic.run_bytes / dataset, 3, 0.02);
    assert_near(p.speed.cached_share, 0.85, 0.05); /* of one node, after the first epoch */
    assert_int_equal(p.traffic.disk_saves_bytes, 0);
    f.samples = 1000000; /* a fifth fits: single samples are read, and memory fills in the first epoch */
    p = plan_of(f);
    double all = 1000000 * 111000.0, kept = p.speed.cached_share;
    assert_true(kept > 0.1 && kept < 0.3);
    assert_near((double)p.traffic.epoch_bytes / all, 1, 1e-6);
    assert_near((double)p.traffic.run_bytes / all, 1 + 3 * (1 - kept), 0.3 * kept + 0.2);
}

/* Without a shuffle a node reads the same part of the data in every epoch: all pages, if each has samples of
 * all nodes. */
static void nodes_keep_their_part_of_an_order_that_does_not_shuffle(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    f.nodes = 4;
    f.order = PLAN_ORDER(LEAT_ORDER_SEQUENTIAL);
    assert_int_equal(plan_of(f).traffic.disk_bytes, UINT64_C(100000000000));
    assert_int_equal(plan_of(f).traffic.epoch_bytes, UINT64_C(400000000000));
    f.page_bytes = f.sample_bytes;
    for (uint32_t order = 0; order < LEAT__ORDER_COUNT; order++) {
        f.order = PLAN_ORDER(order);
        leat_plan p = plan_of(f);
        uint64_t parts = leat__order_shuffled((leat_order)order) ? 1 : 4;
        assert_int_equal(p.traffic.disk_bytes, p.traffic.epoch_bytes / parts);
    }
}

static const leat_plan_what_if *memory_row(const leat_plan *p)
{
    for (uint32_t i = 0; i < p->what_if_count; i++)
        if (strncmp(p->what_ifs[i].change, "--memory ", 9) == 0) return &p->what_ifs[i];
    return NULL;
}

/* 60,000 samples in 60 pages, as measured: 37 MB, of which 6 MB are the index. */
static leat_plan_facts tiny_samples(uint32_t order)
{
    leat_plan_facts f = bucket_facts();
    f.gpus = 0;
    f.cpus = 2;
    f.samples = 60000;
    f.sample_bytes = 623;
    f.page_bytes = 512 << 10;
    f.mean_page_bytes = 623000;
    f.index_bytes = 6200000;
    f.max_sample_bytes = 2000;
    f.image = 32;
    f.element_bytes = 1;
    f.batch = 256;
    f.epochs = 1;
    f.order = PLAN_ORDER(order);
    f.latency_s = 0.15;
    f.measured.cpu_us = (leat_plan_range){6, 7, 8};
    f.measured.io_bytes_per_s = (leat_plan_range){3e8, 4e8, 5e8};
    return f;
}

/* The planned budget is one with which the loader reads whole pages, in every order. */
static void the_planned_budget_has_room_for_the_order(void **state)
{
    (void)state;
    for (uint32_t order = 0; order < LEAT__ORDER_COUNT; order++) {
        leat_plan_facts f = tiny_samples(order);
        leat_plan p = plan_of(f);
        assert_true(leat__pages_ahead((leat_order)order, 37380000, leat__plan_open_bytes(&p.facts),
                                      p.ram.page_cache) >= UINT64_C(30000000));
        assert_near(p.speed.cached_share, 1, 0);
        assert_true(p.speed.rate.mid > 30000 && p.traffic.epoch_requests <= 70);
        assert_null(memory_row(&p));
        f.memory_bytes = p.config.memory_bytes; /* and the same budget given is the same plan */
        leat_plan same = plan_of(f);
        assert_near(same.speed.rate.mid, p.speed.rate.mid, 1e-6);
        assert_int_equal(same.traffic.epoch_requests, p.traffic.epoch_requests);
        f.memory_bytes = 2 * GIB;
        assert_near(plan_of(f).speed.rate.mid, p.speed.rate.mid, 0.01 * p.speed.rate.mid);
    }
    leat_plan p = plan_of(bucket_facts()); /* 100 GB: the window, and the most that is requested ahead */
    assert_true(p.ram.page_cache >= leat__plan_open_bytes(&p.facts) + LEAT__REMOTE_BYTES / 3 * 4);
    assert_true(p.config.memory_bytes < 8 * GIB);
    assert_int_equal(p.ram.verdict, LEAT_PLAN_SAFE);
}

/* A budget that is too small for the open pages: both orders were measured with 460 and 443 samples per
 * second, and 0.8 requests per sample. The remedy is more memory, not another order. */
static void a_small_budget_reads_single_samples(void **state)
{
    static const uint32_t orders[] = {LEAT_ORDER_RANDOM, LEAT_ORDER_QUASI};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(orders); i++) {
        leat_plan_facts f = tiny_samples(orders[i]);
        f.memory_bytes = 17438251;
        leat_plan p = plan_of(f);
        assert_true(p.speed.rate.mid > 380 && p.speed.rate.mid < 600);
        assert_near((double)p.traffic.epoch_requests, 48000, 5000);
        assert_true(memory_row(&p)->gain > 50);
        for (uint32_t n = 0; n < p.what_if_count; n++)
            assert_null(strstr(p.what_ifs[n].change, "quasi_random"));
    }
    leat_plan_facts f = tiny_samples(LEAT_ORDER_SEQUENTIAL); /* needs one page at a time */
    f.memory_bytes = 17438251;
    leat_plan p = plan_of(f);
    assert_true(p.speed.rate.mid > 25000);
    assert_true(p.traffic.epoch_requests <= 70);
}

/* 1200 samples of 110 KiB in pages of 1 MiB, as measured with batches of 64 images of 64 pixels. */
static leat_plan_facts photos(uint64_t mib, uint32_t threads, uint32_t order)
{
    leat_plan_facts f = tiny_samples(order);
    f.samples = 1200;
    f.sample_bytes = 111383;
    f.page_bytes = f.mean_page_bytes = 961000;
    f.index_bytes = 60000;
    f.max_sample_bytes = 615306;
    f.image = 64;
    f.batch = 64;
    f.workers = (int32_t)threads;
    f.memory_bytes = mib << 20;
    f.measured.cpu_us = (leat_plan_range){400, 400, 400};
    return f;
}

/* Measured: 192 and 380 samples per second of a server that answers after 196 ms. */
static void a_small_budget_has_few_requests_in_flight(void **state)
{
    (void)state;
    leat_plan_facts f = photos(24, 1, LEAT_ORDER_RANDOM);
    f.latency_s = 0.196;
    assert_near(plan_of(f).speed.io.mid, 192, 0.3 * 192);
    f.memory_bytes = UINT64_C(40) << 20;
    assert_near(plan_of(f).speed.io.mid, 380, 0.3 * 380);
}

/* Peak RSS in MiB of the same runs, the larger of two, with one thread and with two. */
static void planned_memory_is_that_of_the_loader(void **state)
{
    static const struct {
        uint32_t memory, order;
        double peak[2];
    } rows[] = {
        {24, LEAT_ORDER_RANDOM, {34.3, 32.8}},      {64, LEAT_ORDER_RANDOM, {72.3, 66.0}},
        {100, LEAT_ORDER_RANDOM, {98.7, 98.1}},     {160, LEAT_ORDER_RANDOM, {152.3, 148.6}},
        {24, LEAT_ORDER_SEQUENTIAL, {27.0, 28.3}},  {64, LEAT_ORDER_SEQUENTIAL, {54.6, 49.8}},
        {100, LEAT_ORDER_SEQUENTIAL, {83.5, 83.0}}, {160, LEAT_ORDER_SEQUENTIAL, {139.7, 132.3}},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++)
        for (uint32_t threads = 1; threads <= 2; threads++) {
            leat_plan p = plan_of(photos(rows[i].memory, threads, rows[i].order));
            double off = (double)p.ram.resident / (1 << 20) / rows[i].peak[threads - 1];
            print_message("%u MiB, order %u, %u threads: %.2f\n", rows[i].memory, rows[i].order, threads,
                          off);
            assert_true(off > 0.95 && off < 1.24);
        }
}

/* Joined requests of a sequential order, measured with 151 MB and 2 GB: 101 to 109, and 58 to 75. */
static void sequential_pages_are_joined(void **state)
{
    leat_plan_facts f = tiny_samples(LEAT_ORDER_SEQUENTIAL);
    (void)state;
    f.samples = 3200;
    f.sample_bytes = 111378;
    f.mean_page_bytes = 454027;
    f.index_bytes = 388000;
    f.max_sample_bytes = 500000;
    f.image = 224;
    f.batch = 64;
    f.memory_bytes = UINT64_C(144) << 20;
    assert_near((double)plan_of(f).traffic.epoch_requests, 110, 25);
    f.memory_bytes = 2 * GIB;
    assert_near((double)plan_of(f).traffic.epoch_requests, 70, 15);
}

/* Each GPU's loader fetches the pages of its samples. */
static void each_gpu_fetches_its_own_pages(void **state)
{
    leat_plan_facts f = bucket_facts();
    (void)state;
    leat_plan one = plan_of(f);
    f.gpus = 4;
    leat_plan four = plan_of(f);
    assert_near((double)four.traffic.epoch_bytes, 4 * (1 - pow(0.75, 10)) * (double)one.traffic.epoch_bytes,
                1e6);
    assert_true(four.speed.io.mid < 0.3 * one.speed.io.mid);
    assert_int_equal(four.traffic.disk_bytes, one.traffic.disk_bytes);
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
        cmocka_unit_test(the_planned_budget_saves_traffic),
        cmocka_unit_test(each_node_fetches_its_own_pages),
        cmocka_unit_test(nodes_keep_their_part_of_an_order_that_does_not_shuffle),
        cmocka_unit_test(the_planned_budget_has_room_for_the_order),
        cmocka_unit_test(a_small_budget_reads_single_samples),
        cmocka_unit_test(a_small_budget_has_few_requests_in_flight),
        cmocka_unit_test(planned_memory_is_that_of_the_loader),
        cmocka_unit_test(sequential_pages_are_joined),
        cmocka_unit_test(each_gpu_fetches_its_own_pages),
        cmocka_unit_test(other_storage_has_no_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
