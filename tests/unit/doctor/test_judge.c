/* SPDX-License-Identifier: Apache-2.0
 *
 * Staged situations with known causes: every one must be named, and none wrongly with confidence,
 * also when signals are missing.
 */
#include "doctor_test.h"

static void slow_disk(leat_doctor_facts *f)
{
    starve_by_reads(f, 2500, 2600);
    f->io_deep = 2700;
    f->decode_share = 0.2;
    f->read_ms = 0.9;
    f->in_flight = 13;
    f->pressure_io = 0.4;
}

static void slow_answers(leat_doctor_facts *f)
{
    starve_by_reads(f, 1500, 1600);
    f->io_warm = 1600;
    f->io_deep = 6000;
    f->read_ms = 9;
}

static void cold_cache(leat_doctor_facts *f)
{
    slow_disk(f);
    f->dataset_bytes = 20 * GIB;
    f->cached = 0.05;
}

/* 250 requests per second: pages of many samples are as many requests as single samples are. */
static void few_requests(leat_doctor_facts *f)
{
    starve_by_reads(f, 240, 250);
    f->io_pages = 1700;
    f->dataset_bytes = 20 * GIB;
    f->cpu_used = 0.5;
    f->decode_share = 0.02;
    f->read_ms = 128;
}

/* A cgroup of 140 MB for a pack of 190 MB, on a machine with 64 GiB. */
static void limited_memory(leat_doctor_facts *f)
{
    slow_disk(f);
    f->dataset_bytes = 190e6;
    f->memory_free = 95e6;
    f->memory_limit = 140e6;
    f->memory_host = 64 * GIB;
}

static void network_disk(leat_doctor_facts *f)
{
    slow_disk(f);
    f->network = 1;
}

static void thrashing_pages(leat_doctor_facts *f)
{
    slow_disk(f);
    f->read_bytes = 400000;
    f->cache_process = 1;
}

static void decode_heavy(leat_doctor_facts *f)
{
    starve_by_cpu(f, 2800, 3000);
    f->decode_share = 0.93;
    f->jpeg = 1;
    f->tiled = 0;
}

/* A second loader of the process uses as much CPU as this one. */
static void second_loader(leat_doctor_facts *f)
{
    decode_heavy(f);
    f->siblings = 7.8;
    f->run_delay = 0.45;
    f->decode_share = 0.48;
}

static void one_cpu(leat_doctor_facts *f)
{
    decode_heavy(f);
    starve(f, 780);
    f->cpu_all = f->cpu_one = 800;
    f->cpus = f->threads = 1;
    f->cpu_used = 0.98;
}

static void one_thread(leat_doctor_facts *f)
{
    decode_heavy(f);
    starve(f, 780);
    f->cpu_all = f->cpu_one = 800;
    f->threads = 1;
    f->cpu_used = 1.05;
}

static void hog(leat_doctor_facts *f)
{
    decode_heavy(f);
    f->cpu_all = 3200;
    f->cpu_one = 500;
    f->cpu_used = 6.5;
    f->others = 9.4;
    f->run_delay = 0.55;
}

static void quota(leat_doctor_facts *f)
{
    decode_heavy(f);
    starve(f, 1500);
    f->cpu_all = 1550;
    f->cpu_one = 800;
    f->cpus = f->quota = 2;
    f->threads = 16;
    f->cpu_used = 1.98;
    f->throttled = 0.9;
}

static void huge_images(leat_doctor_facts *f)
{
    decode_heavy(f);
    f->pixels = 24e6;
    f->sample_bytes = 3e6;
    f->read_bytes = 3.1e6;
}

static void heavy_augmentation(leat_doctor_facts *f)
{
    decode_heavy(f);
    f->augment_share = 0.8;
}

static void png_images(leat_doctor_facts *f)
{
    decode_heavy(f);
    f->jpeg = 0;
    f->png = 1;
}

static void slow_trainer(leat_doctor_facts *f)
{
    f->batch_ms = 500;
    f->samples_per_s = 512;
}

static void tiny_batches(leat_doctor_facts *f)
{
    f->batch = 1;
    f->batch_ms = 0.05;
    f->handover_us = 60;
    f->delivery = 15000;
    f->cpu_all = 60000;
    f->cpu_one = 4000;
    f->io_cold = 90000;
    f->io_warm = 300000;
    f->cpu_used = 14.5;
    f->decode_ready = 0.25;
    starve(f, 11000);
}

/* The same on a busy machine: work waits for workers, but they are not decoding. */
static void tiny_batches_among_others(leat_doctor_facts *f)
{
    tiny_batches(f);
    f->decode_ready = 0.7;
    f->decode_share = 0.015;
    f->run_delay = 0.58;
    f->others = 3;
    f->cpu_used = 13;
    f->cpu_one = 200000;
    f->cpu_all = 3e6;
}

static void small_budget(leat_doctor_facts *f)
{
    starve(f, 1200);
    f->loader = 1250;
    f->budget = 0.1 * GIB;
    f->budget_peak = 0.1 * GIB;
    f->blocked = 0.85;
    f->decode_ready = 0.05;
    f->cpu_used = 1.8;
    f->decode_share = 0.12;
}

/* Other processes keep the CPUs busy, but this one hardly needs them: it waits for memory. */
static void small_budget_among_others(leat_doctor_facts *f)
{
    small_budget(f);
    f->others = 13;
    f->run_delay = 0.37;
    f->pressure_cpu = 0.9;
    f->spacious = 7000;
}

/* A bucket whose every answer takes half a second. */
static void late_server(leat_doctor_facts *f)
{
    starve(f, 150);
    f->remote = f->network = 1;
    f->io_cold = f->io_warm = f->io_deep = f->io_pages = f->cached = -1;
    f->decode_ready = 0.02;
    f->cpu_used = 0.3;
    f->read_bytes = 2 * f->sample_bytes; /* neighbours come along */
    f->remote_ms = 501;
    f->remote_few = 4;
    f->remote_many = 31;
    f->remote_few_mbs = 0.5;
    f->remote_many_mbs = 4;
}

static void full_line(leat_doctor_facts *f)
{
    late_server(f);
    f->remote_ms = 6;
    f->remote_few = 330;
    f->remote_many = 1900;
    f->remote_few_mbs = 7.8;
    f->remote_many_mbs = 8;
}

/* 20 MB/s without any latency: two requests in flight fill the line, and reads in flight the budget. */
static void full_line_and_budget(leat_doctor_facts *f)
{
    full_line(f);
    starve(f, 190);
    f->remote_ms = 1;
    f->remote_few = 900;
    f->remote_many = 1000;
    f->remote_few_mbs = f->remote_many_mbs = 20;
    f->io_cold = 20e6 / f->sample_bytes;
    f->spacious = 200;
    f->blocked = 0.9;
    f->budget = f->budget_peak = 60e6;
}

/* 30 MB/s after 50 ms: 2 large requests in flight do not fill the line, 16 nearly do. */
static void full_line_and_late(leat_doctor_facts *f)
{
    late_server(f);
    f->remote_ms = 93;
    f->remote_few = 21.2;
    f->remote_many = 165;
    f->remote_few_mbs = 4.5;
    f->remote_many_mbs = 21.9;
    f->remote_most_mbs = 29.5;
    f->remote_most = 600;
}

/* 200 answers per second after 50 ms, large or small. */
static void few_answers_and_late(leat_doctor_facts *f)
{
    full_line_and_late(f);
    f->remote_many_mbs = f->remote_most_mbs = 26.2;
    f->remote_most = 200;
}

static void few_answers(leat_doctor_facts *f)
{
    late_server(f);
    f->remote_ms = 33;
    f->remote_few = f->remote_many = 60;
    f->remote_few_mbs = f->remote_many_mbs = 7.9;
}

static void refusing_server(leat_doctor_facts *f)
{
    few_answers(f);
    f->remote_refused = 0.3;
}

static void swapping(leat_doctor_facts *f)
{
    starve(f, 900);
    f->faults = 4000;
    f->pressure_memory = 0.6;
    f->memory_free = 0.1 * GIB;
    f->cpu_used = 3;
    f->decode_ready = 0.4;
}

static void bursty(leat_doctor_facts *f)
{
    f->data_ms = 8;
    f->data_ms_p50 = 0.2;
    f->data_ms_p95 = 60;
    f->samples_per_s = 4400;
}

static void bursty_among_others(leat_doctor_facts *f)
{
    bursty(f);
    f->others = 9;
    f->run_delay = 0.6;
}

static void damaged(leat_doctor_facts *f)
{
    f->bad = 0.12;
}

static void all_well(leat_doctor_facts *f)
{
    (void)f;
}

static const struct {
    const char *name;
    void (*make)(leat_doctor_facts *f);
    uint32_t limit, cause, grade;
} situations[] = {
    {"slow disk", slow_disk, LEAT_LIMIT_IO, LEAT_CAUSE_BANDWIDTH, LEAT_GRADE_CRITICAL},
    {"slow answers", slow_answers, LEAT_LIMIT_IO, LEAT_CAUSE_LATENCY, LEAT_GRADE_CRITICAL},
    {"cold cache", cold_cache, LEAT_LIMIT_IO, LEAT_CAUSE_COLD, LEAT_GRADE_CRITICAL},
    {"few requests", few_requests, LEAT_LIMIT_IO, LEAT_CAUSE_REQUESTS, LEAT_GRADE_CRITICAL},
    {"limited memory", limited_memory, LEAT_LIMIT_IO, LEAT_CAUSE_MEMORY_LIMIT, LEAT_GRADE_CRITICAL},
    {"second loader", second_loader, LEAT_LIMIT_CPU, LEAT_CAUSE_OTHER_LOADER, LEAT_GRADE_CRITICAL},
    {"network disk", network_disk, LEAT_LIMIT_IO, LEAT_CAUSE_NETWORK, LEAT_GRADE_CRITICAL},
    {"thrashing pages", thrashing_pages, LEAT_LIMIT_IO, LEAT_CAUSE_AMPLIFIED, LEAT_GRADE_CRITICAL},
    {"decode heavy", decode_heavy, LEAT_LIMIT_CPU, LEAT_CAUSE_DECODE, LEAT_GRADE_CRITICAL},
    {"one CPU", one_cpu, LEAT_LIMIT_CPU, LEAT_CAUSE_FEW_CPUS, LEAT_GRADE_CRITICAL},
    {"one thread", one_thread, LEAT_LIMIT_CPU, LEAT_CAUSE_FEW_THREADS, LEAT_GRADE_CRITICAL},
    {"CPU hog", hog, LEAT_LIMIT_CPU, LEAT_CAUSE_CONTENTION, LEAT_GRADE_CRITICAL},
    {"quota throttling", quota, LEAT_LIMIT_CPU, LEAT_CAUSE_THROTTLED, LEAT_GRADE_CRITICAL},
    {"huge images", huge_images, LEAT_LIMIT_CPU, LEAT_CAUSE_LARGE_IMAGES, LEAT_GRADE_CRITICAL},
    {"heavy augmentation", heavy_augmentation, LEAT_LIMIT_CPU, LEAT_CAUSE_AUGMENT, LEAT_GRADE_CRITICAL},
    {"PNG", png_images, LEAT_LIMIT_CPU, LEAT_CAUSE_PNG, LEAT_GRADE_CRITICAL},
    {"slow trainer", slow_trainer, LEAT_LIMIT_TRAINER, LEAT_CAUSE_TRAINER, LEAT_GRADE_FINE},
    {"tiny batches", tiny_batches, LEAT_LIMIT_DELIVERY, LEAT_CAUSE_SMALL_BATCHES, LEAT_GRADE_CRITICAL},
    {"tiny batches among others", tiny_batches_among_others, LEAT_LIMIT_DELIVERY, LEAT_CAUSE_SMALL_BATCHES,
     LEAT_GRADE_CRITICAL},
    {"small budget", small_budget, LEAT_LIMIT_MEMORY, LEAT_CAUSE_BUDGET, LEAT_GRADE_CRITICAL},
    {"small budget among others", small_budget_among_others, LEAT_LIMIT_MEMORY, LEAT_CAUSE_BUDGET,
     LEAT_GRADE_CRITICAL},
    {"late server", late_server, LEAT_LIMIT_IO, LEAT_CAUSE_LATENCY, LEAT_GRADE_CRITICAL},
    {"full line", full_line, LEAT_LIMIT_IO, LEAT_CAUSE_BANDWIDTH, LEAT_GRADE_CRITICAL},
    {"full line, late", full_line_and_late, LEAT_LIMIT_IO, LEAT_CAUSE_BANDWIDTH, LEAT_GRADE_CRITICAL},
    {"few answers, late", few_answers_and_late, LEAT_LIMIT_IO, LEAT_CAUSE_REQUESTS, LEAT_GRADE_CRITICAL},
    {"full line, budget", full_line_and_budget, LEAT_LIMIT_IO, LEAT_CAUSE_BANDWIDTH, LEAT_GRADE_CRITICAL},
    {"few answers", few_answers, LEAT_LIMIT_IO, LEAT_CAUSE_REQUESTS, LEAT_GRADE_CRITICAL},
    {"refusing server", refusing_server, LEAT_LIMIT_IO, LEAT_CAUSE_REFUSED, LEAT_GRADE_CRITICAL},
    {"swapping", swapping, LEAT_LIMIT_MEMORY, LEAT_CAUSE_SWAPPING, LEAT_GRADE_CRITICAL},
    {"bursts", bursty, LEAT_LIMIT_DELIVERY, LEAT_CAUSE_BURSTS, LEAT_GRADE_WARNING},
    {"bursts of others", bursty_among_others, LEAT_LIMIT_CPU, LEAT_CAUSE_CONTENTION, LEAT_GRADE_WARNING},
    {"damaged samples", damaged, LEAT_LIMIT_TRAINER, LEAT_CAUSE_TRAINER, LEAT_GRADE_FINE},
    {"all well", all_well, LEAT_LIMIT_TRAINER, LEAT_CAUSE_TRAINER, LEAT_GRADE_FINE},
};

static leat_doctor_facts staged(size_t i)
{
    leat_doctor_facts f = healthy();
    situations[i].make(&f);
    return f;
}

static void every_situation_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(situations); i++) {
        leat_doctor_diagnosis d = judge(staged(i));
        if (d.limit != situations[i].limit || d.cause != situations[i].cause ||
            d.grade != situations[i].grade)
            fail_msg("%s: %s, %s, %s: %s", situations[i].name, leat_doctor_limit_name(d.limit),
                     leat_doctor_cause_name(d.cause), leat_doctor_grade_name(d.grade), d.sentence);
        if (d.confidence < 0.5) fail_msg("%s: only %.2f sure", situations[i].name, d.confidence);
        assert_int_equal(d.complete, 1);
        assert_int_equal(d.missing_count, 0);
    }
}

/* Each fact in turn is unknown: the limit may become unsure, never wrong and sure. */
static void no_missing_fact_makes_it_confidently_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(situations); i++) {
        for (size_t row = 0; row < leat__fact_row_count; row++) {
            leat_doctor_facts f = staged(i);
            *(double *)((char *)&f + leat__fact_rows[row].offset) = -1;
            leat_doctor_diagnosis d = judge(f);
            if (d.limit != situations[i].limit && d.confidence >= 0.6)
                fail_msg("%s without %s: %s, %.2f sure", situations[i].name, leat__fact_rows[row].name,
                         leat_doctor_limit_name(d.limit), d.confidence);
        }
    }
}

/* Without one witness at a time: the rest must still not be wrong. */
static void one_witness_may_be_missing(void **state)
{
    static const char *const groups[3][8] = {
        {"io_cold", "io_warm", "io_pages", "io_deep", "cpu_all", "cpu_one", "delivery", "loader"},
        {"decode_ready", "blocked", "order_busy", "decode_share", "read_share"},
        {"cpu_used", "others", "run_delay", "pressure_io", "pressure_memory", "faults"}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(situations); i++) {
        for (size_t g = 0; g < 3; g++) {
            leat_doctor_facts f = staged(i);
            for (size_t row = 0; row < leat__fact_row_count; row++)
                for (size_t k = 0; k < 8 && groups[g][k] != NULL; k++)
                    if (strcmp(groups[g][k], leat__fact_rows[row].name) == 0)
                        *(double *)((char *)&f + leat__fact_rows[row].offset) = -1;
            leat_doctor_diagnosis d = judge(f);
            if (d.limit != situations[i].limit && d.confidence >= 0.6)
                fail_msg("%s without witness %zu: %s, %.2f sure", situations[i].name, g,
                         leat_doctor_limit_name(d.limit), d.confidence);
        }
    }
}

/* Slow reads hold a budget as well: without their rate, and without a trial of more memory, both are
 * possible. */
static void a_budget_held_by_slow_reads_does_not_limit(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    full_line_and_budget(&f);
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_null(remedy(&d, "memory="));
    f.io_cold = -1;
    assert_int_equal(judge(f).limit, LEAT_LIMIT_IO);
    f.spacious = -1;
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_MEMORY);
    assert_true(d.confidence < 0.5);
    assert_null(remedy(&d, "memory="));
    assert_contains(d.findings[0], "leat doctor PACK");
    f.io_cold = 220; /* a short trial took batches that were ready: storage does not give as many */
    f.samples_per_s = 150;
    f.spacious = 5000;
    f.trial_count = 1;
    f.trials[0] = (leat_doctor_trial){.set = "memory=239075328", .rate = 5000, .gain = 33};
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_MEMORY);
    const leat_doctor_remedy *r = remedy(&d, "memory=239075328");
    assert_non_null(r);
    assert_near(r->gain, 220.0 / 150, 0.01);
    assert_true(d.apply_gain < 1.5);
}

/* A server that answers late, and a budget full of its reads: more memory was tried and brought nothing. */
static void a_verdict_whose_trial_shows_no_gain_is_not_sure(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 900);
    f.io_cold = f.io_pages = f.io_deep = f.io_warm = f.delivery = f.loader = -1;
    f.remote = f.network = f.cache_disk = 1;
    f.remote_few = 17;
    f.remote_many = 150;
    f.remote_few_mbs = 4;
    f.remote_many_mbs = 33;
    f.read_ms = 25;
    f.in_flight = 19;
    f.decode_ready = 0.05;
    f.blocked = 0.89;
    f.cpu_used = 4;
    f.spacious = 3700;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_MEMORY);
    assert_true(d.confidence < 0.5); /* the run may have taken what was ready; nothing was tried */
    f.trial_count = 1;
    f.trials[0] = (leat_doctor_trial){.set = "memory=17179869184", .rate = 950, .gain = 1.05, .spread = 0.1};
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_int_equal(d.cause, LEAT_CAUSE_LATENCY);
    assert_true(d.confidence < 0.5); /* the run with memory to spare says the opposite */
    f.spacious = 950;
    assert_true(judge(f).confidence > 0.5);
    f.trials[0].gain = 2;
    f.spacious = 3700;
    assert_int_equal(judge(f).limit, LEAT_LIMIT_MEMORY);
    assert_true(judge(f).confidence > 0.8);

    f = healthy();
    one_thread(&f);
    assert_int_equal(judge(f).cause, LEAT_CAUSE_FEW_THREADS);
    assert_true(judge(f).confidence > 0.6);
    f.trial_count = 1;
    f.trials[0] = (leat_doctor_trial){.set = "threads=16", .rate = 790, .gain = 1.02, .spread = 0.1};
    assert_true(judge(f).confidence < 0.5);
}

/* After a few steps, most of what was read waits in memory. */
static void read_ahead_does_not_amplify(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    thrashing_pages(&f);
    assert_int_equal(judge(f).cause, LEAT_CAUSE_AMPLIFIED);
    f.read_bytes = 27 * f.sample_bytes;
    f.steps = 3;
    assert_int_not_equal(judge(f).cause, LEAT_CAUSE_AMPLIFIED);
    f.steps = 25;
    f.read_bytes = 3 * f.sample_bytes;
    f.budget_peak = 26 * f.batch * 2 * f.sample_bytes;
    assert_int_not_equal(judge(f).cause, LEAT_CAUSE_AMPLIFIED);
    f.steps = 1000;
    assert_int_equal(judge(f).cause, LEAT_CAUSE_AMPLIFIED);
}

/* A pack of a server that fits the loader's memory: after the first epoch nothing is fetched. */
static void a_server_is_not_blamed_for_what_memory_gives(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    slow_disk(&f);
    f.remote = 1;
    f.read_bytes = f.sample_bytes;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_true(d.confidence >= 0.5);
    f.read_bytes = f.sample_bytes / 16;
    d = judge(f);
    assert_true(d.limit != LEAT_LIMIT_IO || d.confidence < 0.5);
}

static void nothing_known_is_incomplete_and_says_nothing(void **state)
{
    leat_doctor_facts f;
    (void)state;
    leat_doctor_facts_init(&f);
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_NONE);
    assert_int_equal(d.complete, 0);
    assert_int_equal(d.grade, LEAT_GRADE_UNKNOWN);
    assert_true(d.missing_count >= 5);
    assert_true(d.confidence == 0);
    assert_contains(d.sentence, "INCOMPLETE");
    assert_int_equal(d.remedy_count, 0);
}

/* Half of each step is lost, but no part was measured. */
static void an_unknown_limit_is_at_most_a_warning(void **state)
{
    leat_doctor_facts f;
    (void)state;
    leat_doctor_facts_init(&f);
    f.steps = 200;
    f.batch = 256;
    f.data_ms = f.batch_ms = 50;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_NONE);
    assert_near(d.lost, 0.5, 1e-9);
    assert_int_equal(d.grade, LEAT_GRADE_WARNING);
}

static void few_steps_are_at_most_a_warning(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    decode_heavy(&f);
    f.steps = 19;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.grade, LEAT_GRADE_WARNING);
    assert_true(d.confidence < 0.6);
    assert_contains(d.sentence, "few steps");
    f.steps = 20;
    assert_int_equal(judge(f).grade, LEAT_GRADE_CRITICAL);
}

/* 10 images in batches of 4, two epochs: the threads of a start are busy, and no step was timed. */
static void without_a_step_busy_threads_are_not_a_bottleneck(void **state)
{
    leat_doctor_facts f;
    (void)state;
    leat_doctor_facts_init(&f);
    f.steps = 0;
    f.batch = 4;
    f.order_busy = 0.9;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_NONE);
    assert_int_equal(d.cause, LEAT_CAUSE_NONE);
    assert_contains(d.sentence, "Unknown (few steps, a first impression): no step was measured, too few");
    f.order_busy = -1;
    f.cpu_used = f.cpus = f.threads = 2; /* busy, but not with images */
    f.decode_share = 0.1;
    assert_int_equal(judge(f).limit, LEAT_LIMIT_NONE);
    f.steps = 3; /* timed steps: the waiting decides */
    f.data_ms = 0;
    f.batch_ms = 8000;
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_TRAINER);
    assert_true(d.confidence < 0.6);
    f.data_ms = 8000; /* it waits: the busy threads count */
    assert_int_equal(judge(f).limit, LEAT_LIMIT_DELIVERY);
}

static void the_bands_are_5_and_20_percent(void **state)
{
    static const struct {
        double data_ms;
        uint32_t grade;
    } rows[] = {{2.5, LEAT_GRADE_FINE},
                {2.7, LEAT_GRADE_WARNING},
                {12.4, LEAT_GRADE_WARNING},
                {12.6, LEAT_GRADE_CRITICAL}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_doctor_facts f = healthy();
        f.data_ms = rows[i].data_ms;
        assert_int_equal(judge(f).grade, rows[i].grade);
    }
}

/* Without a step time the loader's own limit is named, and the verdict is incomplete. */
static void no_trainer_is_incomplete(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    decode_heavy(&f);
    f.batch_ms = f.batch_ms_p50 = f.batch_ms_p95 = f.data_ms = f.data_ms_p50 = f.data_ms_p95 = -1;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_CPU);
    assert_int_equal(d.complete, 0);
    assert_int_equal(d.grade, LEAT_GRADE_UNKNOWN);
    assert_contains(d.missing[0], "step time");
}

/* A step time and measured rates, no run: the share lost follows from the rates. */
static void rates_alone_give_the_share_lost(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.data_ms = f.data_ms_p50 = f.data_ms_p95 = f.samples_per_s = f.loader = -1;
    f.cpu_all = 2560;
    leat_doctor_diagnosis d = judge(f);
    assert_near(d.lost, 0.5, 1e-9);
    assert_near(d.rate, 2560, 1e-9);
    assert_int_equal(d.limit, LEAT_LIMIT_CPU);
    assert_int_equal(d.next, LEAT_LIMIT_TRAINER);
}

static void shares_above_one_are_refused(void **state)
{
    leat_doctor_facts f = healthy();
    leat_doctor_diagnosis d;
    leat_error err;
    (void)state;
    f.blocked = 1.5;
    assert_code(LEAT_EINVAL, leat_doctor_judge(&f, &d, sizeof d, &err));
    assert_contains(err.message, "blocked");
}

/* 60 ms of a transform in each step of 65: Python, not the trainer. */
static void a_slow_transform_is_named(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.prepare_ms = 60;
    f.batch_ms = f.batch_ms_p50 = f.batch_ms_p95 = 5;
    f.data_ms = 0.1;
    f.samples_per_s = 256e3 / 65.1;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_PYTHON);
    assert_int_equal(d.cause, LEAT_CAUSE_TRANSFORM);
    assert_int_equal(d.grade, LEAT_GRADE_CRITICAL);
    assert_contains(d.sentence, "transform= takes 60.0 ms of each step of 65.1 ms");
    assert_contains(d.sentence, "the trainer waits 0 % of each step, transform= takes 92 %");
    assert_contains(d.remedies[0].action, "transform=");
    /* without it the 12,000 samples/s of decoding are the next limit, not the 51,200 of the trainer */
    assert_near(d.remedies[0].gain, 12000 / f.samples_per_s, 0.4);
    for (uint32_t i = 1; i < d.remedy_count; i++) /* remedies for the training step gain little */
        assert_true(d.remedies[i].gain < 1.1);
}

/* A transform of a millisecond in a step of 50 does not matter. */
static void quick_transform_is_not_the_limit(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.prepare_ms = 1;
    assert_int_equal(judge(f).limit, LEAT_LIMIT_TRAINER);
}

/* Workers of another loader: their activity is named when it was seen, and not called decode
 * otherwise. */
static void worker_time_is_split_by_what_was_seen(void **state)
{
    static const struct {
        size_t fact;
        uint32_t cause;
        const char *words;
    } rows[] = {
        {offsetof(leat_doctor_facts, worker_decode), LEAT_CAUSE_DECODE, "decode takes 70 %"},
        {offsetof(leat_doctor_facts, worker_augment), LEAT_CAUSE_AUGMENT, "augmentation takes 70 %"},
        {offsetof(leat_doctor_facts, worker_python), LEAT_CAUSE_PYTHON, "code of the dataset takes 70 %"},
        {offsetof(leat_doctor_facts, worker_collate), LEAT_CAUSE_COLLATE, "collate_fn takes 70 %"},
        {offsetof(leat_doctor_facts, worker_transfer), LEAT_CAUSE_TRANSFER, "to the trainer takes 70 %"},
        {offsetof(leat_doctor_facts, worker_fetch), LEAT_CAUSE_WORKERS, "worker time: the workers run 93 %"},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_doctor_facts f = healthy();
        starve(&f, 2560);
        f.cpu_all = 2600;
        f.decode_ready = 0.95;
        f.decode_share = 0.93;
        f.cpu_used = 15.8;
        f.workers = 16;
        *(double *)((char *)&f + rows[i].fact) = 0.7;
        leat_doctor_diagnosis d = judge(f);
        assert_int_equal(d.limit, LEAT_LIMIT_CPU);
        assert_int_equal(d.cause, rows[i].cause);
        assert_contains(d.sentence, rows[i].words);
    }
}

/* Workers that sleep in collate_fn: neither storage nor more CPUs would help. */
static void a_collate_that_waits_is_named(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 300);
    f.io_cold = f.io_warm = f.io_pages = f.io_deep = f.delivery = f.read_ms = -1;
    f.cpu_all = 310;
    f.cpu_one = -1;
    f.decode_ready = 0.95;
    f.decode_share = 0.93;
    f.cpu_used = 0.1;
    f.threads = f.workers = 2;
    f.worker_collate = 0.98;
    f.collate_wait = 0.97;
    f.worker_fetch = 0.001;
    f.fetch_ms = 0;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_COLLATE);
    assert_true(d.confidence > 0.7);
    assert_contains(d.sentence, "collate_fn takes 98 % of worker time, most of it waiting");
    for (uint32_t i = 0; i < d.remedy_count; i++) assert_null(strstr(d.remedies[i].action, "machine with"));
}

static const char *finding(const leat_doctor_diagnosis *d, const char *part)
{
    for (uint32_t i = 0; i < d->finding_count; i++)
        if (strstr(d->findings[i], part) != NULL) return d->findings[i];
    return NULL;
}

/* Decoding alone is not slower than the whole run: that measurement was disturbed. */
static void a_part_slower_than_the_run_is_not_believed(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 2950);
    f.cpu_all = 751;
    f.cpu_one = 190;
    f.decode_ready = 0.3; /* nothing else points anywhere */
    f.cpu_used = 11;
    leat_doctor_diagnosis d = judge(f);
    assert_true(d.confidence < 0.5);
    assert_true(d.cpu < 0 || d.cpu >= f.samples_per_s);
    assert_contains(finding(&d, "measurements disagree"), "decode and augmentation alone 751");
    assert_contains(finding(&d, "measurements disagree"), "the machine was busy");
    f.decode_ready = 0.95; /* the queues and the CPUs say it clearly */
    f.decode_share = 0.93;
    f.cpu_used = 15.8;
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_CPU);
    assert_true(d.confidence >= 0.5 && d.confidence < 0.8);
    assert_memory_equal(&d.facts, &f, sizeof f);
    f.cpu_all = 2900; /* within the noise */
    d = judge(f);
    assert_null(finding(&d, "measurements disagree"));
    assert_true(d.confidence > 0.8);
}

/* The run filled the page cache: it is faster than cold reads, and nothing was disturbed. */
static void a_run_that_warmed_the_pack_does_not_disagree(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 2950);
    f.io_cold = f.io_pages = f.io_deep = 900;
    leat_doctor_diagnosis d = judge(f);
    assert_null(finding(&d, "measurements disagree"));
    if (d.limit == LEAT_LIMIT_IO) assert_true(d.confidence < 0.5);
}

/* Pixels at 60 MB/s: the second epoch of the run came from memory, so it was faster than the disk. */
static void a_second_epoch_from_memory_does_not_disprove_the_disk(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    slow_disk(&f);
    starve(&f, 3700);
    f.dataset_bytes = 20 * GIB;
    assert_int_equal(judge(f).cause, LEAT_CAUSE_BANDWIDTH); /* one epoch: reads alone were disturbed */
    f.steps = 180;
    f.epoch_steps = 101;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_int_equal(d.cause, LEAT_CAUSE_COLD);
    assert_true(d.confidence >= 0.6);
    assert_true(d.io > f.samples_per_s);
    assert_null(finding(&d, "measurements disagree"));
    f.dataset_bytes = 80 * GIB; /* does not fit: every epoch reads all of it */
    assert_true(judge(f).confidence < 0.8);
}

/* PNG at 5 MB/s: no time was left to measure cold reads, warm ones were measured. */
static void a_cold_pack_is_named_without_a_rate_of_cold_reads(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    cold_cache(&f);
    f.io_cold = f.io_pages = f.io_deep = -1;
    f.skipped = 2;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_int_equal(d.cause, LEAT_CAUSE_COLD);
    f.io_warm = -1;
    f.loader_warm = 58; /* the loader from memory, and no step of the run ended */
    f.samples_per_s = f.loader = -1;
    f.in_flight = 12;
    f.steps = 0;
    assert_int_equal(judge(f).cause, LEAT_CAUSE_COLD);
    cold_cache(&f);
    f.steps = 200;
    f.io_cold = f.io_pages = f.io_deep = f.loader_warm = -1;
    f.io_warm = 1.2 * f.samples_per_s; /* memory is no faster */
    assert_int_equal(judge(f).cause, LEAT_CAUSE_BANDWIDTH);
    limited_memory(&f);
    f.io_cold = f.io_pages = f.io_deep = -1;
    f.io_warm = 80000;
    assert_int_equal(judge(f).cause, LEAT_CAUSE_MEMORY_LIMIT);
}

/* Three batches of huge images: what was read ahead was not read twice. */
static void bytes_read_ahead_are_not_read_amplification(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    thrashing_pages(&f);
    assert_int_equal(judge(f).cause, LEAT_CAUSE_AMPLIFIED);
    f.steps = 2;
    f.batch = 4;
    f.prefetch = 4;
    f.dataset_bytes = 20 * GIB;
    assert_int_equal(judge(f).cause, LEAT_CAUSE_COLD);
}

/* A web server: threads are woken together and wait for each other, while the CPUs have nothing to do. */
static void waiting_for_idle_cpus_is_not_a_lack_of_cpus(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 360);
    f.io_cold = f.io_warm = f.io_deep = f.io_pages = f.delivery = f.cached = -1;
    f.remote = f.network = 1;
    f.remote_few = 3.7;
    f.remote_many = 14.6;
    f.remote_few_mbs = 0.5;
    f.remote_many_mbs = 4;
    f.remote_ms = 523;
    f.decode_ready = 0.09;
    f.decode_share = 0.09;
    f.cpu_used = 3;
    f.others = 1.1;
    f.run_delay = 0.86;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_int_equal(d.cause, LEAT_CAUSE_LATENCY);
    f.others = 12.9; /* others have the CPUs that it waits for */
    f.cpu_one = 130;
    f.cpu_all = 2000;
    f.decode_ready = 0.9;
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_CPU);
    assert_int_equal(d.cause, LEAT_CAUSE_CONTENTION);
}

/* A trainer that keeps a CPU busy, beside other processes: its loader is ten times faster, and nothing
 * measured the delivery. */
static void what_is_left_over_is_not_sure(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.cpus = f.cpus_host = 2;
    f.threads = f.workers = 1;
    f.batch = 8;
    f.data_ms = 14;
    f.batch_ms = 93;
    f.samples_per_s = 75;
    f.io_cold = f.io_warm = f.io_deep = f.io_pages = f.delivery = f.loader = f.cpu_one = f.order_busy = -1;
    f.cpu_all = 800;
    f.decode_ready = 0.9;
    f.decode_share = 0.05;
    f.cpu_used = 0.4;
    f.others = 1.68;
    f.run_delay = 0.74;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_CONTENTION);
    f.others = 0.3; /* the trainer and its worker fill both CPUs */
    f.cpu_used = 1.7;
    f.run_delay = 0.1;
    assert_true(judge(f).confidence < 0.5);
    f.workers = -1; /* the same with leat's loader, which runs without an examination */
    d = judge(f);
    assert_true(d.confidence < 0.5);
    if (strstr(d.sentence, "delivery reach") != NULL) fail_msg("%s", d.sentence);
}

/* An iterable that sleeps, and one that reads from a disk. */
static void waiting_is_not_storage(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve_by_reads(&f, 210, 220);
    f.workers = f.threads = 2;
    f.read_ms = f.io_depth = f.io_deep = f.io_pages = f.io_warm = f.cached = f.sample_bytes = -1;
    f.read_bytes = 0;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_int_equal(d.cause, LEAT_CAUSE_WAITS);
    assert_true(d.confidence <= 0.75);
    assert_non_null(finding(&d, "cannot be seen from outside"));
    for (uint32_t i = 0; i < d.remedy_count; i++) assert_null(strstr(d.remedies[i].action, "storage"));
    f.read_bytes = 1e5;
    assert_int_equal(judge(f).cause, LEAT_CAUSE_BANDWIDTH);
    f.read_bytes = 0;
    f.worker_fetch = 0.8;
    assert_int_equal(judge(f).limit, LEAT_LIMIT_IO);
    f.io_cold = 48900; /* a slow trainer on a busy machine: the data is there */
    assert_int_not_equal(judge(f).limit, LEAT_LIMIT_IO);
}

static void skipped_measurements_lower_the_confidence(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    decode_heavy(&f);
    f.cpu_all = f.cpu_one = -1;
    assert_true(judge(f).confidence >= 0.5);
    f.skipped = 2;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_CPU);
    assert_true(d.confidence < 0.5);
    assert_contains(d.sentence, "not sure");
}

static void numbers_are_plain(void **state)
{
    char text[24];
    leat_doctor_facts f = healthy();
    (void)state;
    assert_string_equal(leat__doctor_speed(12.5e9, text, sizeof text), "12.5 GB/s");
    assert_string_equal(leat__doctor_speed(75.8e6, text, sizeof text), "75.8 MB/s");
    assert_string_equal(leat__doctor_speed(999.7e6, text, sizeof text), "1 GB/s");
    hog(&f);
    f.others = 22; /* of a machine with more CPUs than this process may use */
    leat_doctor_diagnosis d = judge(f);
    assert_contains(d.sentence, "other processes use 16.0 of the 16.0 usable CPUs");
    f.threads = 1;
    d = judge(f);
    bool one = false;
    for (uint32_t i = 0; i < d.evidence_count; i++)
        one |= strstr(d.evidence[i], "samples/s on one thread") != NULL;
    assert_true(one);
}

/* A pack in the page cache, and idle workers: not storage, whose rate was that of the run itself. */
static void a_pack_in_memory_is_not_limited_by_storage(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 690);
    f.cached = 1;
    f.decode_ready = 0.02;
    f.cpu_used = 0.4;
    for (int i = 0; i < 2; i++) {
        leat_doctor_diagnosis d = judge(f);
        assert_true(d.limit != LEAT_LIMIT_IO || d.confidence < 0.5);
        f.io_cold = f.io_warm = f.io_deep = f.io_pages = f.cpu_all = f.delivery = -1;
    }
    f.io_warm = f.io_cold = 700; /* measured: even the cache answers late */
    f.cpu_all = 12000;
    f.delivery = 100000;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_true(d.confidence >= 0.5);
}

/* A watched loader of tiles in memory, with a step of 0.1 ms: no part was measured alone. Other processes
 * make the pressure that the kernel reports. */
static leat_doctor_facts light_step(void)
{
    leat_doctor_facts f = healthy();
    f.io_cold = f.io_warm = f.io_deep = f.io_pages = f.delivery = f.loader = f.sample_bytes = f.cached = -1;
    f.steps = 999;
    f.batch = 32;
    f.batch_ms = f.batch_ms_p50 = f.batch_ms_p95 = 0.1;
    f.cpu_one = 12500;
    f.cpu_all = 200000;
    starve(&f, 57000);
    f.loader = -1;
    f.decode_ready = 0.05;
    f.decode_share = 0.28;
    f.cpu_used = 4.45;
    f.read_ms = 0.03;
    f.in_flight = 1.7;
    f.io_depth = 32;
    f.pressure_io = 0.4;
    return f;
}

static void reads_from_memory_do_not_limit(void **state)
{
    leat_doctor_facts f = light_step();
    (void)state;
    leat_doctor_diagnosis d = judge(f);
    assert_int_not_equal(d.limit, LEAT_LIMIT_IO);
    assert_true(d.confidence < 0.5 && d.io < 0);
    assert_non_null(finding(&d, "leat doctor PACK, with the same options"));
    assert_int_equal(d.remedy_count, 0);
    f.read_ms = 1.5; /* cache=process: few reads, all of them in the first epoch */
    f.in_flight = 0.2;
    f.read_bytes = 1116;
    assert_int_not_equal(judge(f).limit, LEAT_LIMIT_IO);
    f.read_ms = 850; /* huge images: few reads have ended */
    f.in_flight = 0.53;
    f.read_bytes = -1;
    assert_int_equal(judge(f).limit, LEAT_LIMIT_IO);
    f.read_ms = 0.5; /* storage has reads all the time */
    f.in_flight = 29;
    f.read_bytes = 112000;
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_true(d.confidence >= 0.5 && d.io < 0); /* the rate of reads alone stays unknown */
}

static void the_device_limits(void **state)
{
    leat_doctor_facts f = light_step();
    (void)state;
    f.copy_ms = 0.22; /* of a step of 0.56 ms */
    f.device_decode_ms = 0.35;
    f.device_overlap_ms = 0.05;
    f.device_share = 1;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_DEVICE);
    assert_int_equal(d.cause, LEAT_CAUSE_DEVICE_DECODE);
    assert_true(d.confidence >= 0.6);
    assert_near(d.device, f.samples_per_s, 1); /* 0.57 ms, of which no more than the step can be */
    assert_contains(d.sentence,
                    "Device-bound: decoding on the device takes 0.35 ms of each step there, copies 0.22");
    f.copy_ms = 0.4;
    f.device_decode_ms = 0.1;
    f.device_overlap_ms = 0.04;
    d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_DEVICE_COPY);
    assert_contains(d.sentence, "copying to the device takes 0.40 ms");
    f.copy_ms = 0.05; /* of 0.56 ms: the device waits, too */
    assert_int_not_equal(judge(f).limit, LEAT_LIMIT_DEVICE);
    f.copy_ms = 0.42; /* 67 % of a step of 0.7 ms: under the rule of 80 % */
    f.device_overlap_ms = 0.05;
    f.samples_per_s = 32e3 / 0.7;
    f.data_ms = 0.4;
    assert_int_not_equal(judge(f).limit, LEAT_LIMIT_DEVICE);
}

/* Four batches are decoded side by side: their times add up to three steps, and half of the device is idle.
 */
static void a_device_that_decodes_side_by_side_does_not_limit(void **state)
{
    leat_doctor_facts f = light_step();
    (void)state;
    f.batch = 64;
    f.samples_per_s = 387e3; /* a step of 0.165 ms */
    f.batch_ms = f.batch_ms_p50 = 0.02;
    f.data_ms = 0.145;
    f.copy_ms = 0.01;
    f.device_decode_ms = 0.5;
    f.device_overlap_ms = 0.44;
    f.device_share = 1;
    leat_doctor_diagnosis d = judge(f);
    assert_int_not_equal(d.limit, LEAT_LIMIT_DEVICE);
    assert_true(d.device >= f.samples_per_s);
    f.device_decode_ms = 0.23; /* the same rate with half of the work there */
    f.copy_ms = 0.05;
    f.device_overlap_ms = 0.13;
    assert_int_not_equal(judge(f).limit, LEAT_LIMIT_DEVICE);
    f.device_decode_ms = 0.64; /* all four at work all the time */
    assert_int_equal(judge(f).limit, LEAT_LIMIT_DEVICE);
}

/* Ten steps per epoch and nothing else that is known to limit. */
static void starts_are_named_beside_a_light_step(void **state)
{
    leat_doctor_facts f = light_step();
    (void)state;
    f.epoch_steps = 10;
    f.start_ms = 3;
    leat_doctor_diagnosis d =
        judge(f); /* 0.46 ms of waiting, and 0.25 for the starts, beside 0.1 of training */
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_true(d.confidence > 0.3 && d.confidence < 0.5);
    assert_non_null(finding(&d, "one long epoch settles"));
    f.start_ms = 8; /* most of what is lost */
    d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_true(d.confidence >= 0.6);
    f.start_ms = 1.2; /* the CPUs are busy with delivery */
    f.cpu_used = 15.8;
    d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_true(d.confidence < 0.5); /* the rate of delivery was not measured */
    f.delivery = 1.1 * f.samples_per_s;
    d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_true(d.confidence >= 0.5);
    f.delivery = -1;
    f.decode_ready = 0.95; /* the CPUs are known to limit */
    f.cpu_one = 3600;
    f.cpu_all = 57600;
    f.decode_share = 0.93;
    f.cpu_used = 15.8;
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_CPU);
    assert_non_null(finding(&d, "epoch starts cost"));
}

/* 4.45 of 16 CPUs: the rate of decoding alone was disturbed by another process. */
static void idle_cpus_do_not_limit(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 2950);
    f.cpu_all = 3000;
    f.cpu_one = 190;
    f.cpu_used = 4.45;
    f.decode_ready = 0.3;
    leat_doctor_diagnosis d = judge(f);
    assert_true(d.limit != LEAT_LIMIT_CPU || d.confidence < 0.5);
}

/* As with cache=device: the storage is slow, but the run reads 162 bytes per sample. */
static void storage_that_is_not_read_does_not_limit(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 690);
    f.cached = 0;
    f.io_cold = f.io_warm = f.io_deep = 700;
    f.sample_bytes = 110e3;
    f.read_bytes = 110e3;
    assert_int_equal(judge(f).limit, LEAT_LIMIT_IO);
    f.read_bytes = 162;
    assert_int_not_equal(judge(f).limit, LEAT_LIMIT_IO);
}

static void starts_of_short_epochs_are_named(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.data_ms = f.data_ms_p50 = 10;
    f.samples_per_s = 256e3 / 60;
    f.loader = f.samples_per_s; /* it restarts as often */
    f.epoch_steps = 1;
    f.start_ms = 10;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_DELIVERY);
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_near(d.lost, 1 / 6.0, 1e-9); /* data_ms has them already */
    assert_contains(d.sentence, "each epoch has 1 batch: its start takes 10.0 ms and cannot be hidden");
    f.cpu_all = 4500; /* slower than the trainer: longer epochs would not be enough */
    assert_int_not_equal(judge(f).cause, LEAT_CAUSE_SHORT_EPOCHS);
}

/* Starts that cost less than a tenth of the time do not make it sure, whatever else is unknown. */
static void few_starts_are_not_sure(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.data_ms = f.data_ms_p50 = f.start_ms = 4;
    f.samples_per_s = f.loader = 256e3 / 54;
    f.epoch_steps = 1;
    f.delivery = f.io_warm = f.io_cold = f.io_pages = f.io_deep = -1;
    assert_true(judge(f).confidence <= 0.45);
}

/* Five batches per epoch, from memory: reads alone are slower than the trainer, but most of the loss was
 * measured at the starts. */
static void most_of_the_loss_at_starts_is_named(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.batch_ms = f.batch_ms_p50 = 0.6;
    f.data_ms = f.data_ms_p50 = 0.1;
    f.batch = 64;
    f.epoch_steps = 5;
    f.start_ms = 2.3;
    f.cached = 1;
    f.io_cold = 61.2e3;
    f.io_warm = 78.1e3;
    f.read_ms = 0.02;
    f.in_flight = 0.84;
    f.cpu_all = 511e3;
    f.delivery = 216e3;
    f.samples_per_s = f.loader = 56.4e3;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_true(d.confidence <= 0.75);
    f.start_ms = 0.7; /* no longer most of it */
    d = judge(f);
    assert_int_not_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
}

/* Four steps per epoch: data_ms leaves the first out, the verdict does not. */
static void starts_of_epochs_count_as_lost(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.epoch_steps = 4;
    f.start_ms = 50.2;
    leat_doctor_diagnosis d = judge(f);
    assert_near(d.lost, 12.7 / 62.7, 1e-6);
    assert_int_equal(d.grade, LEAT_GRADE_CRITICAL);
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_contains(d.evidence[1], "epoch starts cost 20.0 % of the time: 50.2 ms each, 4 steps per epoch");
    f.epoch_steps = 400;
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_TRAINER);
    assert_int_equal(d.grade, LEAT_GRADE_FINE);
    f.epoch_steps = 30;
    d = judge(f);
    assert_non_null(finding(&d, "epoch starts cost 3 %"));
}

/* A report that is judged again, for its page, gives the same verdict: facts are returned
 * unchanged. */
static void judging_twice_says_the_same(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 2560);
    f.io_cold = f.io_warm = f.io_deep = f.cpu_all = f.cpu_one = f.delivery = -1;
    f.decode_ready = 0.02;
    f.cpu_used = 1;
    f.read_ms = 4;
    f.in_flight = 14;
    leat_doctor_diagnosis d = judge(f), again = judge(d.facts);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_memory_equal(&d.facts, &f, sizeof f);
    assert_string_equal(again.sentence, d.sentence);
    assert_true(again.confidence == d.confidence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judging_twice_says_the_same),
        cmocka_unit_test(a_part_slower_than_the_run_is_not_believed),
        cmocka_unit_test(a_run_that_warmed_the_pack_does_not_disagree),
        cmocka_unit_test(a_second_epoch_from_memory_does_not_disprove_the_disk),
        cmocka_unit_test(a_cold_pack_is_named_without_a_rate_of_cold_reads),
        cmocka_unit_test(bytes_read_ahead_are_not_read_amplification),
        cmocka_unit_test(waiting_for_idle_cpus_is_not_a_lack_of_cpus),
        cmocka_unit_test(skipped_measurements_lower_the_confidence),
        cmocka_unit_test(a_pack_in_memory_is_not_limited_by_storage),
        cmocka_unit_test(reads_from_memory_do_not_limit),
        cmocka_unit_test(the_device_limits),
        cmocka_unit_test(a_device_that_decodes_side_by_side_does_not_limit),
        cmocka_unit_test(a_collate_that_waits_is_named),
        cmocka_unit_test(starts_are_named_beside_a_light_step),
        cmocka_unit_test(idle_cpus_do_not_limit),
        cmocka_unit_test(what_is_left_over_is_not_sure),
        cmocka_unit_test(waiting_is_not_storage),
        cmocka_unit_test(numbers_are_plain),
        cmocka_unit_test(storage_that_is_not_read_does_not_limit),
        cmocka_unit_test(starts_of_short_epochs_are_named),
        cmocka_unit_test(few_starts_are_not_sure),
        cmocka_unit_test(most_of_the_loss_at_starts_is_named),
        cmocka_unit_test(starts_of_epochs_count_as_lost),
        cmocka_unit_test(worker_time_is_split_by_what_was_seen),
        cmocka_unit_test(a_slow_transform_is_named),
        cmocka_unit_test(quick_transform_is_not_the_limit),
        cmocka_unit_test(every_situation_is_named),
        cmocka_unit_test(no_missing_fact_makes_it_confidently_wrong),
        cmocka_unit_test(one_witness_may_be_missing),
        cmocka_unit_test(a_budget_held_by_slow_reads_does_not_limit),
        cmocka_unit_test(a_verdict_whose_trial_shows_no_gain_is_not_sure),
        cmocka_unit_test(read_ahead_does_not_amplify),
        cmocka_unit_test(a_server_is_not_blamed_for_what_memory_gives),
        cmocka_unit_test(nothing_known_is_incomplete_and_says_nothing),
        cmocka_unit_test(an_unknown_limit_is_at_most_a_warning),
        cmocka_unit_test(few_steps_are_at_most_a_warning),
        cmocka_unit_test(without_a_step_busy_threads_are_not_a_bottleneck),
        cmocka_unit_test(the_bands_are_5_and_20_percent),
        cmocka_unit_test(no_trainer_is_incomplete),
        cmocka_unit_test(rates_alone_give_the_share_lost),
        cmocka_unit_test(shares_above_one_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
