/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

/* Starved by reads: 2,600 samples/s cold while the trainer needs 5,120. */
static leat_doctor_facts starved_by_reads(void)
{
    leat_doctor_facts f = healthy();
    starve_by_reads(&f, 2600, 2600);
    f.io_pages = 9000;
    return f;
}

static leat_doctor_facts starved_by_cpu(void)
{
    leat_doctor_facts f = healthy();
    starve_by_cpu(&f, 2560, 2560);
    return f;
}

/* One thread of 16 CPUs: others would be as idle as the 15 that there are. */
static void more_cpus_do_not_help_few_threads(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    leat_doctor_diagnosis d = judge(f);
    assert_non_null(remedy(&d, "a machine with 32 CPUs"));
    f.threads = 1;
    f.cpu_all = f.cpu_one = 2560;
    f.cpu_used = 1;
    d = judge(f);
    assert_non_null(remedy(&d, "16 threads"));
    assert_null(remedy(&d, "a machine with"));
    f.cpus_host = 32;
    d = judge(f);
    assert_null(remedy(&d, "let this process use all 32 CPUs"));
    f.quota = 16;
    d = judge(f);
    assert_null(remedy(&d, "raise the CPU quota"));
}

static void a_pack_that_fits_memory_stays_there(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    f.dataset_bytes = 30 * GIB;
    f.cached = 0.1;
    f.io_cold = 2400; /* so that with a tenth in memory it is near the measured rate */
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "page cache holds the pack");
    assert_non_null(r);
    assert_near(r->rate, 5120, 1);
    assert_int_equal(r->next, LEAT_LIMIT_TRAINER);
    assert_int_equal(r->basis, LEAT_BASIS_MODEL);
    assert_null(remedy(&d, "cache=process"));
    f.loader_warm = 4000; /* the loader itself, from memory */
    d = judge(f);
    r = remedy(&d, "page cache holds the pack");
    assert_non_null(r);
    assert_near(r->rate, 4000, 1);
    assert_int_equal(r->basis, LEAT_BASIS_MEASURED);
}

static void a_pack_larger_than_memory_gets_a_cache_that_never_evicts(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    f.dataset_bytes = 128 * GIB; /* 0.6 of 64 GiB free: 30 % */
    f.budget_peak = 0;
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "cache=process");
    assert_non_null(r);
    assert_null(remedy(&d, "page cache holds the pack"));
    double expected = 1 / (0.3 / 80000 + 0.7 / 2600);
    assert_near(r->rate, expected, 1);
    assert_near(r->gain, expected / 2600, 1e-3);
}

static void whole_pages_are_priced_by_their_measurement(void **state)
{
    leat_doctor_diagnosis d = judge(starved_by_reads());
    const leat_doctor_remedy *r = remedy(&d, "quasi_random");
    (void)state;
    assert_non_null(r);
    assert_near(r->rate, 5120, 1); /* 9,000 is more than the trainer needs */
    assert_contains(d.apply, "order=quasi_random");
    assert_true(d.apply_gain >= r->gain - 1e-9);
}

static void set_trial(leat_doctor_facts *f, const char *set, double gain)
{
    leat_doctor_trial *t = &f->trials[f->trial_count++];
    snprintf(t->set, sizeof t->set, "%s", set);
    t->gain = gain;
    t->rate = gain * f->samples_per_s;
}

/* 250 requests per second: whole pages read directly predicted a gain of 6.87, the loader reached
 * 1.38. */
static void tried_rates_override_computed_ones(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "quasi_random");
    assert_non_null(r);
    assert_int_equal(r->basis, LEAT_BASIS_MODEL); /* an estimate until it is tried */
    f.memory_free = 0.01 * GIB;                   /* no memory for a cache */
    set_trial(&f, "order=quasi_random", 1.38);
    d = judge(f);
    r = remedy(&d, "quasi_random");
    assert_non_null(r);
    assert_near(r->gain, 1.38, 1e-9);
    assert_near(r->rate, 1.38 * 2600, 1);
    assert_int_equal(r->basis, LEAT_BASIS_MEASURED);
    assert_near(d.apply_gain, 1.38, 1e-9);
    f.trials[0].gain = 1.01;
    d = judge(f);
    assert_null(remedy(&d, "quasi_random"));
    assert_string_equal(d.apply, "");
    assert_near(d.apply_gain, 1, 0);
}

/* In a memory cgroup, order and cache together made the run wait for memory. */
static void flags_worse_together_are_not_combined(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    f.dataset_bytes = 128 * GIB;
    f.io_pages = 3900;
    leat_doctor_diagnosis d = judge(f);
    assert_contains(d.apply, "order=quasi_random");
    assert_contains(d.apply, ",cache=process,memory=");
    set_trial(&f, "order=quasi_random", 1.5);
    set_trial(&f, d.apply, 1.32);
    d = judge(f);
    assert_string_equal(d.apply, "order=quasi_random");
    assert_near(d.apply_gain, 1.5, 1e-9);
}

static void a_cache_that_leaves_no_memory_for_batches_is_not_offered(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    f.dataset_bytes = 300e6;
    f.memory_free = 100e6;
    f.budget_peak = 58e6; /* 0.6 of the free memory is hardly more than batches need */
    leat_doctor_diagnosis d = judge(f);
    assert_null(remedy(&d, "cache=process"));
    f.budget_peak = 10e6;
    d = judge(f);
    assert_non_null(remedy(&d, "cache=process"));
    f.cache_process = 1; /* it already does that */
    f.budget = 60e6;
    d = judge(f);
    assert_null(remedy(&d, "cache=process"));
    f.cache_process = 0;
    set_trial(&f, "cache=process,memory=60000000", 0.5);
    d = judge(f); /* tried, and harmful */
    assert_null(remedy(&d, "cache=process"));
}

static void a_memory_limit_is_to_be_raised_for_the_page_cache(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    f.dataset_bytes = 300e6;
    f.memory_free = 90e6;
    f.memory_limit = 140e6;
    f.io_pages = f.io_cold;
    f.memory_host = 64 * GIB;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_MEMORY_LIMIT);
    const leat_doctor_remedy *r = remedy(&d, "raise the memory limit");
    assert_non_null(r);
    assert_near(r->rate, 5120, 1);
}

static void a_remote_pack_is_kept_on_disk(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    f.io_cold = f.io_pages = f.io_deep = f.io_warm = f.cached = -1; /* nothing is read beside the loader */
    f.read_ms = 40;
    f.in_flight = 60;
    f.remote = f.network = 1;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_int_equal(d.cause, LEAT_CAUSE_NETWORK);
    const leat_doctor_remedy *r = remedy(&d, "--cache disk:DIR");
    assert_non_null(r);
    assert_near(r->rate, 5120, 1);
    assert_int_equal(r->basis, LEAT_BASIS_MODEL);
    assert_null(remedy(&d, "page cache"));
    f.cache_disk = 1;
    d = judge(f);
    assert_null(remedy(&d, "--cache disk:DIR"));
}

/* Each limit of a server has its own remedy. */
static void a_server_gets_the_remedy_of_its_limit(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    f.remote = f.network = 1;
    f.cached = f.io_cold = f.io_warm = f.io_deep = f.io_pages = -1;
    f.sample_bytes = 60000;
    f.remote_ms = 500;
    f.remote_few = 4;
    f.remote_many = 32;
    f.remote_few_mbs = 0.5;
    f.remote_many_mbs = 4;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_LATENCY);
    assert_non_null(remedy(&d, "io-depth=256"));
    assert_int_equal(remedy(&d, "io-depth=256")->basis, LEAT_BASIS_MODEL);
    assert_null(remedy(&d, "ask less often"));
    assert_near(remedy(&d, "io-depth=256")->gain, 2, 0.05);
    f.remote_most_mbs = 6.4; /* 64 in flight bring 1.6 times as much as 16: 256 no more than that again */
    d = judge(f);
    assert_near(remedy(&d, "io-depth=256")->gain, 1.6, 0.01);
    f.remote_most_mbs = 4.5; /* the line is full */
    f.remote_most = 120;
    d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_BANDWIDTH);
    assert_null(remedy(&d, "io-depth=256"));
    f.remote_most_mbs = f.remote_most = -1;
    set_trial(&f, "io-depth=256", 1.0); /* tried, and no faster */
    d = judge(f);
    assert_null(remedy(&d, "io-depth=256"));
    f.trial_count = 0;
    f.remote_refused = 0.5;
    d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_REFUSED);
    assert_non_null(remedy(&d, "ask less often"));
    assert_null(remedy(&d, "io-depth=256"));
    f.remote_refused = 0;
    f.remote_few = 30;
    f.remote_many = 40;
    f.remote_many_mbs = 1000;
    d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_REQUESTS);
    assert_non_null(remedy(&d, "quasi_random"));
}

/* Measurements that disagree by more than 15 % make a gain an estimate, of flags and of other packs. */
static void a_gain_is_as_sure_as_its_measurements(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    set_trial(&f, "order=quasi_random", 1.38);
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(remedy(&d, "order=quasi_random")->basis, LEAT_BASIS_MEASURED);
    assert_string_equal(d.apply, "order=quasi_random");
    assert_int_equal(d.apply_basis, LEAT_BASIS_MEASURED);
    f.trials[0].spread = 0.2;
    d = judge(f);
    assert_int_equal(remedy(&d, "order=quasi_random")->basis, LEAT_BASIS_MODEL);
    assert_near(remedy(&d, "order=quasi_random")->gain, 1.38, 1e-9);
    assert_int_equal(d.apply_basis, LEAT_BASIS_MODEL);
    f.trials[0].spread = -1; /* too few batches to tell */
    d = judge(f);
    assert_int_equal(remedy(&d, "order=quasi_random")->basis, LEAT_BASIS_MODEL);
    assert_int_equal(d.apply_basis, LEAT_BASIS_MODEL);
    f.trials[0].spread = 0;
    f.remedy_others = 0.2; /* other processes had a fifth of the CPUs meanwhile */
    d = judge(f);
    assert_int_equal(remedy(&d, "order=quasi_random")->basis, LEAT_BASIS_MODEL);
    assert_int_equal(d.apply_basis, LEAT_BASIS_MODEL);

    f = healthy();
    starve(&f, 1000);
    f.cpu_all = 1000;
    f.cpu_one = 260;
    f.decode_ready = 0.9;
    f.option_count = 1;
    f.options[0] = (leat_doctor_option){.action = "store pixels",
                                        .cpu_all = 2000,
                                        .sample_bytes = -1,
                                        .out_bytes = -1,
                                        .whole = 1,
                                        .spread = 0.1};
    d = judge(f);
    assert_int_equal(remedy(&d, "store pixels")->basis, LEAT_BASIS_MEASURED);
    f.remedy_others = 0.2;
    d = judge(f);
    assert_int_equal(remedy(&d, "store pixels")->basis, LEAT_BASIS_MODEL);
    f.remedy_others = 0.1;
    f.options[0].spread = 0.16;
    d = judge(f);
    assert_int_equal(remedy(&d, "store pixels")->basis, LEAT_BASIS_MODEL);
}

/* 2 reads in flight get 1.7 MB/s, 16 get 13.6 and 64 get 40: 64 are worth 23.5 times 2, not twice. */
static void a_fixed_depth_is_priced_by_the_server(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    starve(&f, 12);
    f.remote = f.network = f.io_fixed = 1;
    f.cached = f.io_cold = f.io_warm = f.io_deep = f.io_pages = -1;
    f.io_depth = 2;
    f.remote_ms = f.read_ms = 155;
    f.remote_few = 12.9;
    f.remote_many = 90.7;
    f.remote_few_mbs = 1.7;
    f.remote_many_mbs = 13.6;
    f.remote_most_mbs = 40;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_LATENCY);
    assert_near(remedy(&d, "64 reads in flight")->gain, 40 / 1.7, 0.01);
    f.remote_most_mbs = -1; /* no time for it: as many as 16 get, at least */
    d = judge(f);
    assert_near(remedy(&d, "64 reads in flight")->gain, 13.6 / 1.7, 0.01);
    f.io_depth = 16; /* and no more is known */
    d = judge(f);
    assert_null(remedy(&d, "64 reads in flight"));
    f.remote_most_mbs = 14; /* the line is full */
    f.io_depth = 2;
    d = judge(f);
    assert_near(remedy(&d, "64 reads in flight")->gain, 14 / 1.7, 0.01);
}

/* 4 reads in flight of 114 ms each fetch 35 samples/s, however much memory there is. */
static void reads_in_flight_bound_the_gain_of_memory(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 7);
    f.remote = f.network = 1;
    f.io_cold = f.io_deep = 400;
    f.io_warm = f.io_pages = f.cached = -1;
    f.budget = f.budget_peak = 16 * 1048576.0;
    f.blocked = 0.85;
    f.decode_ready = 0.05;
    f.decode_share = 0.02;
    f.cpu_used = 0.2;
    f.read_ms = 114;
    f.io_depth = 4;
    f.io_fixed = 1;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_BUDGET);
    assert_non_null(remedy(&d, "memory=67108864"));
    assert_near(remedy(&d, "memory=67108864")->gain, 4 / 0.114 / 7, 1e-3);
    assert_true(d.apply_gain < 6);
    f.io_fixed = 0; /* the controller asks for more at once */
    d = judge(f);
    assert_true(remedy(&d, "memory=67108864")->gain > 40);
}

static void another_loader_is_to_be_stopped(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    f.siblings = 8;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_OTHER_LOADER);
    const leat_doctor_remedy *r = remedy(&d, "other loaders");
    assert_non_null(r);
    assert_near(r->gain, 2, 0.01);
}

static void more_reads_in_flight_help_against_latency(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    f.io_deep = 4000;
    leat_doctor_diagnosis d = judge(f);
    assert_null(remedy(&d, "io-depth=64")); /* the controller would have done it */
    f.io_fixed = 1;
    d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "io-depth=64");
    assert_non_null(r);
    assert_near(r->gain, 4000 / 2600.0, 1e-3);
    assert_int_equal(r->next, LEAT_LIMIT_IO);
    f.cached = 1; /* if even the cache answers late, the rates measured there count */
    f.io_warm = 2600;
    f.io_warm_deep = 4200;
    d = judge(f);
    r = remedy(&d, "io-depth=64");
    assert_non_null(r);
    assert_near(r->gain, 4200 / 2600.0, 1e-3);
}

static void remedies_without_gain_are_not_offered(void **state)
{
    leat_doctor_diagnosis d = judge(starved_by_cpu());
    (void)state;
    assert_int_equal(d.limit, LEAT_LIMIT_CPU);
    assert_null(remedy(&d, "quasi_random"));
    assert_null(remedy(&d, "storage"));
    assert_null(remedy(&d, "precision"));
    assert_non_null(remedy(&d, "a machine with 32 CPUs"));
    /* also if the run reaches less than its smallest part could */
    leat_doctor_facts f = starved_by_cpu();
    f.cpu_all = 3200;
    f.io_depth = 8;
    f.io_fixed = 1;
    f.io_deep = 2 * f.io_cold;
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_CPU);
    assert_null(remedy(&d, "io-depth=64"));
}

/* A generator has no options: the remedy says what its user can do, and sets nothing. */
static void a_generator_is_told_how_to_use_more_cpus(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    starve(&f, 160);
    f.threads = f.plain = 1;
    f.cpu_all = f.cpu_one = 160;
    f.cpu_used = 1;
    leat_doctor_diagnosis d = judge(f);
    assert_true(d.remedy_count > 0);
    assert_contains(d.remedies[0].action, "make batches in 16 worker processes");
    for (uint32_t i = 0; i < d.remedy_count; i++) assert_string_equal(d.remedies[i].set, "");
    assert_string_equal(d.apply, "");
}

static void missing_threads_are_priced_by_cpus(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    starve(&f, 640);
    f.threads = 4;
    f.cpu_all = 640;
    f.cpu_used = 4;
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "threads=16");
    assert_non_null(r);
    assert_near(r->gain, 4, 0.01);
    assert_int_equal(r->next, LEAT_LIMIT_CPU);
    assert_contains(d.apply, "threads=16");
}

static void a_measured_option_is_priced_as_measured(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    f.option_count = 2;
    f.options[0] = (leat_doctor_option){
        .action = "leat pack --images tiled", .cpu_all = 3840, .sample_bytes = 110000, .out_bytes = -1};
    f.options[1] = (leat_doctor_option){.action = "deliver u8, normalise on the GPU",
                                        .set = "dtype=u8",
                                        .cpu_all = 2816,
                                        .sample_bytes = -1,
                                        .out_bytes = 150528};
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *tiled = remedy(&d, "tiled"), *u8 = remedy(&d, "dtype=u8");
    assert_non_null(tiled);
    assert_near(tiled->gain, 1.5, 1e-6);
    assert_non_null(u8);
    assert_near(u8->gain, 1.1, 1e-6);
    assert_true(tiled < u8);               /* ranked */
    assert_null(strstr(d.apply, "dtype")); /* visible to a trainer: never set
                                            * automatically */
}

static void copies_from_memory_are_part_of_the_cost(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    f.cached = 1;
    f.io_warm = 12000; /* 1.3 GB/s on one thread; five times the bytes would be 2,400 */
    f.sample_bytes = 110000;
    f.option_count = 1;
    f.options[0] = (leat_doctor_option){.action = "leat pack --images raw",
                                        .cpu_all = 3840,
                                        .sample_bytes = 550000,
                                        .out_bytes = -1,
                                        .whole = 1};
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *raw = remedy(&d, "raw");
    assert_non_null(raw);
    assert_near(raw->gain, 1.5, 1e-6);
    f.io_warm = f.io_cold = 8000; /* too slow for a copy: a network file system */
    d = judge(f);
    assert_null(remedy(&d, "raw"));
}

static void fewer_bytes_do_not_reduce_latency(void **state)
{
    leat_doctor_facts f = starved_by_reads();
    (void)state;
    f.io_deep = 4000;
    f.option_count = 1;
    f.options[0] = (leat_doctor_option){.action = "at lower quality",
                                        .cpu_all = f.cpu_all,
                                        .sample_bytes = f.sample_bytes / 2,
                                        .out_bytes = -1,
                                        .whole = 1};
    leat_doctor_diagnosis d = judge(f);
    assert_non_null(remedy(&d, "lower quality")); /* the controller already uses the best depth */
    f.io_fixed = 1;
    d = judge(f);
    assert_null(remedy(&d, "lower quality"));
}

static void a_small_budget_is_raised(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 1000);
    f.budget = f.budget_peak = 0.25 * GIB;
    f.blocked = 0.9;
    f.decode_ready = 0.02;
    f.cpu_used = 1.5;
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "memory=1073741824");
    assert_non_null(r);
    assert_near(r->rate, 5120, 1);
    assert_contains(d.apply, "memory=1073741824");
    f.spacious = 4000; /* memory without limit was tried: this budget was not */
    d = judge(f);
    r = remedy(&d, "memory=1073741824");
    assert_near(r->rate, 4000, 1);
    assert_int_equal(r->basis, LEAT_BASIS_MODEL);
    set_trial(&f, "memory=1073741824", 1.39);
    d = judge(f);
    r = remedy(&d, "memory=1073741824");
    assert_near(r->gain, 1.39, 1e-9);
    assert_int_equal(r->basis, LEAT_BASIS_MODEL); /* a trial is too short to tell */
}

/* A trial of two threads instead of one was 2.28 times as fast on a shared host; the run gained 1.79. */
static void threads_gain_no_more_than_their_number(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    f.threads = 8;
    set_trial(&f, "threads=16", 2.28);
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "threads=16");
    assert_non_null(r);
    assert_near(r->gain, 2, 1e-9);
    assert_int_equal(r->basis, LEAT_BASIS_MEASURED);
}

/* In a group of 120 MB a larger budget leaves the page cache less: it is not written unless it was tried. */
static void a_guessed_budget_does_not_take_the_page_cache_of_a_group(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 1000);
    f.budget = f.budget_peak = 0.25 * GIB;
    f.blocked = 0.9;
    f.decode_ready = 0.02;
    f.cpu_used = 1.5;
    f.memory_free = 2 * GIB;
    f.memory_limit = 3 * GIB;
    f.dataset_bytes = 4 * GIB;
    leat_doctor_diagnosis d = judge(f);
    assert_non_null(remedy(&d, "memory=1073741824"));
    assert_string_equal(d.apply, "");
    set_trial(&f, "memory=1073741824", 1.39);
    d = judge(f);
    assert_string_equal(d.apply, "memory=1073741824");
    f.trial_count = 0;
    f.dataset_bytes = 1 * GIB; /* both fit */
    d = judge(f);
    assert_contains(d.apply, "memory=1073741824");
}

/* Decoding alone was measured slower than the whole loader, so its rate is not known: the loader's own holds.
 */
static void faster_training_gains_no_more_than_the_loader_makes(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.cpu_all = 638;
    f.loader = 6000;
    leat_doctor_diagnosis d = judge(f);
    assert_false(known(d.cpu));
    const leat_doctor_remedy *r = remedy(&d, "mixed precision");
    assert_non_null(r);
    assert_near(r->rate, 6000, 1);
    assert_int_equal(r->next, LEAT_LIMIT_CPU);
    f.loader = 5000; /* as fast as the trainer, within the noise */
    d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_TRAINER);
    assert_true(d.confidence <= 0.5);
    assert_contains(d.sentence, "the loader makes about as many (5.00k without a trainer)");
    assert_int_equal(d.remedy_count, 0);
}

static void the_trainer_is_sped_up_to_the_next_limit(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.cpu_all = 7000; /* mixed precision alone would need 10,240 */
    f.loader = 6900;
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "mixed precision");
    assert_non_null(r);
    assert_near(r->gain, 7000 / 5120.0, 1e-6);
    assert_near(r->rate, r->gain * 5100, 1); /* of the rate reached, as the gain is */
    assert_int_equal(r->next, LEAT_LIMIT_CPU);
    assert_int_equal(r->basis, LEAT_BASIS_GUIDE);
    assert_near(remedy(&d, "torch.compile")->gain, 1.2, 0.002); /* 0.4 % of the step is lost, and stays so */
    assert_non_null(remedy(&d, "channels_last"));
    leat_doctor_facts nhwc = d.facts;
    nhwc.nhwc = 1; /* it has that already */
    leat_doctor_diagnosis has = judge(nhwc);
    assert_null(remedy(&has, "channels_last"));
    assert_string_equal(d.apply, "");
    assert_near(d.apply_gain, 1, 1e-9);
}

/* 28 % of the step is lost: no remedy gains more than 1.40, whatever the rates or a trial say. */
static void no_gain_exceeds_what_is_lost(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    starve(&f, 0.72 * 5120);
    f.cpu_all = 3000;
    f.batch_ms *= 0.5; /* an overestimated trainer: 7,373 was possible with the clocks below */
    f.data_ms = f.batch_ms * 0.28 / 0.72;
    set_trial(&f, "threads=16", 3.2);
    f.threads = 8;
    leat_doctor_diagnosis d = judge(f);
    assert_near(d.lost, 0.28, 1e-9);
    assert_true(d.remedy_count > 0);
    for (uint32_t i = 0; i < d.remedy_count; i++) {
        assert_true(d.remedies[i].gain <= 1 / 0.72 + 1e-9);
        assert_true(d.remedies[i].gain >= 1);
        assert_near(d.remedies[i].rate, d.remedies[i].gain * f.samples_per_s, 1e-6);
    }
    assert_true(d.apply_gain <= 1 / 0.72 + 1e-9);
}

/* A tester's run: decoding alone gave 751 samples/s while the run reached 2,950. */
static void rates_below_the_run_give_no_gains(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    starve(&f, 2950);
    f.cpu_all = 751;
    f.others = 8;
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "a machine with 32 CPUs");
    assert_non_null(r);
    assert_near(r->gain, 1 / (1 - d.lost), 0.01);
    for (uint32_t i = 0; i < d.remedy_count; i++) assert_true(d.remedies[i].rate > f.samples_per_s);
}

static void short_epochs_are_to_be_longer(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.epoch_steps = 4;
    f.start_ms = 50;
    f.samples_per_s = 256e3 / (50.2 + 49.8 / 4);
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_int_equal(d.remedy_count, 1);
    assert_contains(d.remedies[0].action, "longer epochs");
    assert_int_equal(d.remedies[0].next, LEAT_LIMIT_TRAINER);
    assert_true(d.remedies[0].gain > 1.2 && d.remedies[0].gain <= 1 / (1 - d.lost) + 1e-9);
    assert_string_equal(d.apply, "");
}

static void workers_of_short_epochs_are_to_be_kept(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.epoch_steps = 4;
    f.start_ms = 50;
    f.samples_per_s = 256e3 / (50.2 + 49.8 / 4);
    f.io_cold = f.io_deep = f.io_warm = f.io_pages = f.cpu_all = f.cpu_one = f.delivery = -1; /* not seen */
    f.workers = 2;
    f.persistent = 0;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_int_equal(d.remedy_count, 1);
    assert_contains(d.remedies[0].action, "persistent_workers=True");
    assert_contains(d.remedies[0].action, "up to this gain, a guess");
    assert_int_equal(d.remedies[0].basis, LEAT_BASIS_MODEL);
    f.persistent = 1;
    assert_contains(judge(f).remedies[0].action, "num_workers=0, or longer epochs");
    f.workers = 0;
    assert_contains(judge(f).remedies[0].action, "longer epochs (more samples");
}

/* A quota of 0.2 CPUs, of which 0.141 were used: 3.88 times was promised. */
static void no_more_cpus_are_freed_than_there_are(void **state)
{
    leat_doctor_facts f = starved_by_cpu();
    (void)state;
    f.others = 8;
    f.cpu_used = 0.8 * f.cpus;
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "free CPUs");
    assert_non_null(r);
    assert_true(r->gain <= 1.25 + 1e-9);
    f.quota = f.cpus = f.threads = 0.2;
    f.cpus_host = 2;
    f.cpu_used = 0.141;
    f.others = 1; /* outside of the quota */
    d = judge(f);
    assert_null(remedy(&d, "free CPUs"));
    f.others = 1.95;
    d = judge(f);
    r = remedy(&d, "free CPUs");
    assert_true(r == NULL || r->gain <= 0.2 / 0.141 + 1e-9);
}

/* Without starts of epochs the run is a little slower than its trainer, and far slower than its parts. */
static void after_longer_epochs_the_slowest_part_limits(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.batch = 57.14;
    f.data_ms = 0.2;
    f.data_ms_p50 = f.data_ms_p95 = 0;
    f.batch_ms = 10.2;
    f.samples_per_s = 4530;
    f.epoch_steps = 7;
    f.start_ms = 15.6;
    f.cpu_all = 387000;
    f.cpu_one = 24200;
    f.copy_ms = 1.56;
    f.device_decode_ms = 0.63;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.cause, LEAT_CAUSE_SHORT_EPOCHS);
    assert_contains(d.remedies[0].action, "longer epochs");
    assert_int_equal(d.remedies[0].next, LEAT_LIMIT_TRAINER);
}

static void ranking_is_by_gain(void **state)
{
    leat_doctor_diagnosis d = judge(starved_by_reads());
    (void)state;
    assert_true(d.remedy_count >= 3);
    for (uint32_t i = 1; i < d.remedy_count; i++) assert_true(d.remedies[i - 1].gain >= d.remedies[i].gain);
}

static void larger_batches_share_the_fixed_cost(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.batch = 1;
    f.batch_ms = 0.05;
    f.handover_us = 60;
    f.delivery = 15000; /* 66.7 us a sample, 60 of them per batch */
    f.cpu_all = 60000;
    f.io_cold = 90000;
    f.io_warm = 300000;
    starve(&f, 12000);
    f.loader = 12000;
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "batches of 32");
    assert_non_null(r);
    assert_true(r->gain > 1.5);
    f.larger = 48000; /* computed from CPU time: an estimate until the loader ran with such batches */
    d = judge(f);
    assert_int_equal(remedy(&d, "batches of 32")->basis, LEAT_BASIS_MODEL);
    f.larger_spread = 0.1;
    d = judge(f);
    assert_int_equal(remedy(&d, "batches of 32")->basis, LEAT_BASIS_MEASURED);
    f.larger_spread = 0.2;
    d = judge(f);
    assert_int_equal(remedy(&d, "batches of 32")->basis, LEAT_BASIS_MODEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_cpus_do_not_help_few_threads),
        cmocka_unit_test(reads_in_flight_bound_the_gain_of_memory),
        cmocka_unit_test(a_pack_that_fits_memory_stays_there),
        cmocka_unit_test(a_pack_larger_than_memory_gets_a_cache_that_never_evicts),
        cmocka_unit_test(whole_pages_are_priced_by_their_measurement),
        cmocka_unit_test(tried_rates_override_computed_ones),
        cmocka_unit_test(flags_worse_together_are_not_combined),
        cmocka_unit_test(a_cache_that_leaves_no_memory_for_batches_is_not_offered),
        cmocka_unit_test(a_memory_limit_is_to_be_raised_for_the_page_cache),
        cmocka_unit_test(a_remote_pack_is_kept_on_disk),
        cmocka_unit_test(a_fixed_depth_is_priced_by_the_server),
        cmocka_unit_test(a_gain_is_as_sure_as_its_measurements),
        cmocka_unit_test(a_server_gets_the_remedy_of_its_limit),
        cmocka_unit_test(another_loader_is_to_be_stopped),
        cmocka_unit_test(more_reads_in_flight_help_against_latency),
        cmocka_unit_test(remedies_without_gain_are_not_offered),
        cmocka_unit_test(missing_threads_are_priced_by_cpus),
        cmocka_unit_test(a_generator_is_told_how_to_use_more_cpus),
        cmocka_unit_test(a_measured_option_is_priced_as_measured),
        cmocka_unit_test(copies_from_memory_are_part_of_the_cost),
        cmocka_unit_test(fewer_bytes_do_not_reduce_latency),
        cmocka_unit_test(a_small_budget_is_raised),
        cmocka_unit_test(threads_gain_no_more_than_their_number),
        cmocka_unit_test(a_guessed_budget_does_not_take_the_page_cache_of_a_group),
        cmocka_unit_test(faster_training_gains_no_more_than_the_loader_makes),
        cmocka_unit_test(the_trainer_is_sped_up_to_the_next_limit),
        cmocka_unit_test(no_gain_exceeds_what_is_lost),
        cmocka_unit_test(rates_below_the_run_give_no_gains),
        cmocka_unit_test(short_epochs_are_to_be_longer),
        cmocka_unit_test(workers_of_short_epochs_are_to_be_kept),
        cmocka_unit_test(no_more_cpus_are_freed_than_there_are),
        cmocka_unit_test(after_longer_epochs_the_slowest_part_limits),
        cmocka_unit_test(ranking_is_by_gain),
        cmocka_unit_test(larger_batches_share_the_fixed_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
