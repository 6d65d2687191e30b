/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

/* Every rate measured: the arithmetic is plain. */
static leat_plan_facts measured_facts(void)
{
    leat_plan_facts f = guide_facts();
    f.sample_bytes = 100000;
    f.width = 500;
    f.height = 375;
    f.workers = 10;
    f.no_validation = 1;
    f.ram_bytes = 0; /* nothing cached */
    f.measured.io_bytes_per_s = (leat_plan_range){400e6, 500e6, 600e6};
    f.measured.cpu_us = (leat_plan_range){900, 1000, 1250};
    f.measured.step_ms = (leat_plan_range){200, 256, 320};
    f.measured.h2d_bytes_per_s = (leat_plan_range){10e9, 12e9, 13e9};
    return f;
}

static void the_smallest_rate_limits_and_the_next_is_named(void **state)
{
    leat_plan_speed s = plan_of(measured_facts()).speed;
    (void)state;
    assert_near(s.io.mid, 5000, 1e-6);
    assert_near(s.cpu.mid, 10000, 1e-6);
    assert_near(s.cpu.low, 8000, 1e-6);
    assert_near(s.gpu.mid, 1000, 1e-6);
    assert_near(s.rate.mid, 1000, 1e-6);
    assert_near(s.rate.low, 800, 1e-6);
    assert_near(s.rate.high, 1280, 1e-6);
    assert_int_equal(s.limit, LEAT_PLAN_GPU);
    assert_int_equal(s.next, LEAT_PLAN_IO);
    assert_int_equal(s.incomplete, 0);
    assert_int_equal(s.gpu_measured, 1);
    assert_near(s.cores_needed, 1.0, 1e-9);
    assert_near(s.epoch_s.mid, 1281.167, 1e-6);
}

static void cores_past_the_machine_do_not_help(void **state)
{
    leat_plan_facts f = measured_facts();
    (void)state;
    f.workers = 100;
    assert_near(plan_of(f).speed.cpu.mid, 16000, 1e-6);
}

/* 1,281,167 images in batches of 256, the last one smaller: as many as the loader makes. */
/* A quota of a tenth of a CPU gives a tenth of its samples, and one above the CPUs changes nothing. */
static void a_quota_counts_with_its_fraction(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 0;
    f.cpus = 2;
    snprintf(f.storage, sizeof f.storage, "memory");
    double all = plan_of(f).speed.cpu.mid;
    f.cpu_quota = 2.5;
    assert_near(plan_of(f).speed.cpu.mid, all, 1e-6 * all);
    f.cpu_quota = 1.5;
    assert_near(plan_of(f).speed.cpu.mid, 0.75 * all, 1e-6 * all);
    f.cpus = 1;
    f.cpu_quota = 0.1;
    leat_plan p = plan_of(f);
    assert_near(p.speed.rate.mid, 0.05 * all, 0.001 * all);
    assert_int_equal(p.config.workers, 1);
}

static void an_epoch_has_5005_iterations(void **state)
{
    (void)state;
    assert_int_equal(plan_of(guide_facts()).speed.iterations, 5005);
    leat_plan_facts f = guide_facts();
    f.gpus = 4;
    assert_int_equal(plan_of(f).speed.iterations, 1252);
    f.samples = 1024 * 5 + 3; /* fewer than ranks: dropped */
    assert_int_equal(plan_of(f).speed.iterations, 5);
    f.samples = 1024 * 5;
    assert_int_equal(plan_of(f).speed.iterations, 5);
    f.samples = 1; /* the only batch is always delivered */
    assert_int_equal(plan_of(f).speed.iterations, 1);
    f.loader = LEAT_PLAN_PROCESS; /* DistributedSampler repeats samples instead */
    f.samples = 1024 * 5 + 3;
    assert_int_equal(plan_of(f).speed.iterations, 6);
}

/* One sample on 64 GPUs was a step of 50 ms divided by 64. */
static void an_epoch_is_never_shorter_than_a_step(void **state)
{
    leat_plan_facts f = measured_facts();
    (void)state;
    f.epochs = 2;
    f.measured.step_ms = (leat_plan_range){49, 50, 52};
    for (f.samples = 1; f.samples <= 3; f.samples += 2) {
        for (f.gpus = 1; f.gpus <= 64; f.gpus *= 8) {
            leat_plan_speed s = plan_of(f).speed;
            assert_int_equal(s.iterations, 1);
            assert_near(s.epoch_s.low, 0.049, 1e-9);
            assert_near(s.epoch_s.mid, 0.050, 1e-9);
            assert_near(s.epoch_s.high, 0.052, 1e-9);
            assert_near(s.total_s.mid, 0.100, 1e-9);
        }
    }
}

/* On a spinning disk a random order takes one seek per sample; whole pages are read at full rate.
 * The row shows the gain of quasi_random, and is absent when there is none. */
static void quasi_random_gain_is_shown(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 0;
    f.ram_bytes = 16 * GIB; /* for 141 GB */
    snprintf(f.storage, sizeof f.storage, "hdd");
    leat_plan p = plan_of(f);
    double share = 1 - p.speed.cached_share;
    assert_near(p.speed.io.mid, 200, 1e-6);
    assert_string_equal(p.what_ifs[0].change, "--order quasi_random");
    assert_true(p.what_ifs[0].gain > 5 * share && p.what_ifs[0].gain < 8);
    f.order = PLAN_ORDER(LEAT_ORDER_QUASI);
    p = plan_of(f);
    assert_near(p.speed.io.mid, 150e6 / (double)p.facts.sample_bytes, 1e-6);
    for (uint32_t i = 0; i < p.what_if_count; i++) assert_null(strstr(p.what_ifs[i].change, "--order"));
    f.order = 0;
    snprintf(f.storage, sizeof f.storage, "nvme");
    p = plan_of(f);
    for (uint32_t i = 0; i < p.what_if_count; i++) assert_null(strstr(p.what_ifs[i].change, "--order"));
    assert_contains(p.no_gain, "--order quasi_random");
}

/* t = c / memory + (1 − c) / storage, and the first epoch reads everything. */
/* One seek a sample of any size, for both loaders. */
static void random_reads_are_limited_for_any_sample_and_loader(void **state)
{
    leat_plan_facts f = guide_facts();
    snprintf(f.storage, sizeof f.storage, "hdd");
    static const uint64_t bytes[] = {100000, 262144, 263000, 600000};
    for (size_t i = 0; i < LEAT_COUNT(bytes); i++) {
        f.sample_bytes = bytes[i];
        f.loader = LEAT_PLAN_LEAT;
        assert_near(plan_of(f).speed.io.mid, 200, 1e-6);
        f.loader = LEAT_PLAN_PROCESS;
        assert_near(plan_of(f).speed.io.mid, 200, 1e-6);
    }
}

/* The budget that a plan proposes for cache=process keeps the whole dataset, with any number of threads. */
static void a_proposed_budget_keeps_the_dataset(void **state)
{
    leat_plan_facts f = guide_facts();
    f.gpus = 0;
    f.cpus = 64;
    f.samples = 400;
    f.sample_bytes = 111000;
    f.epochs = 3;
    f.cache = PLAN_CACHE_PROCESS;
    static const char *const storages[] = {"hdd", "bucket"};
    static const int threads[] = {1, 2, 16, 24, 32, 64};
    for (size_t i = 0; i < 2 * LEAT_COUNT(threads); i++) {
        snprintf(f.storage, sizeof f.storage, "%s", storages[i % 2]);
        f.workers = threads[i / 2];
        f.batch = 64;
        const leat_plan p = plan_of(f);
        assert_near(p.speed.cached_share, 1, 1e-9);
        leat_plan_facts given = f; /* the same with that budget given */
        given.memory_bytes = p.ram.budget;
        assert_near(plan_of(given).speed.cached_share, 1, 1e-9);
    }
}

static void what_fits_in_memory_is_read_once(void **state)
{
    leat_plan_facts f = measured_facts();
    (void)state;
    f.gpus = 0;
    f.model[0] = '\0';
    f.epochs = 3;
    f.ram_bytes = 200 * GIB;
    leat_plan_speed s = plan_of(f).speed;
    assert_near(s.cached_share, 1.0, 0);
    assert_near(s.first_epoch.mid, 5000, 1e-6);
    assert_near(s.rate.mid, 10000, 1e-6); /* now the CPUs */
    assert_int_equal(s.limit, LEAT_PLAN_CPU);
    assert_near(s.total_s.mid, 1281167 / 5000.0 + 2 * 1281167 / 10000.0, 1e-6);
    f.epochs = 1; /* the only epoch is the first */
    s = plan_of(f).speed;
    assert_near(s.epoch_s.mid, 1281167 / 5000.0, 1e-6);
    assert_near(s.total_s.mid, s.epoch_s.mid, 1e-6);
    assert_int_equal(s.first_limit, LEAT_PLAN_IO);
    assert_int_equal(s.limit, LEAT_PLAN_IO); /* so its rate and its limit are those of the plan */
    assert_int_equal(s.next, LEAT_PLAN_CPU);
    assert_near(s.rate.mid, 5000, 1e-6);
    assert_near(s.later.mid, 10000, 1e-6); /* what another one would have */
    assert_int_equal(s.later_limit, LEAT_PLAN_CPU);
    f.ram_bytes = 70 * GIB; /* about half */
    s = plan_of(f).speed;
    assert_true(s.cached_share > 0.4 && s.cached_share < 0.6);
    double memory = 8e9 / 100000;
    assert_near(s.io_cached.mid, 1 / (s.cached_share / memory + (1 - s.cached_share) / 5000), 1e-6);
}

/* A model that no GPU trains: the loader alone says nothing about the hours. */
static void a_trainer_without_a_gpu_is_not_known(void **state)
{
    leat_plan_facts f = measured_facts();
    (void)state;
    f.gpus = 0;
    f.epochs = 90;
    leat_plan p = plan_of(f);
    assert_int_equal(p.speed.incomplete, 1);
    assert_true(p.speed.rate.mid > 0);
    assert_near(p.speed.epoch_s.mid, 0, 0);
    assert_near(p.speed.total_s.mid, 0, 0);
    bool noted = false;
    for (uint32_t i = 0; i < p.note_count; i++) noted |= strstr(p.notes[i], "rate of the trainer") != NULL;
    assert_true(noted);
    f.model[0] = '\0'; /* loading alone is asked for */
    p = plan_of(f);
    assert_int_equal(p.speed.incomplete, 0);
    assert_true(p.speed.total_s.mid > 0);
}

/* A calibration on two cores: 1,000 us a sample from memory, 1,200 when it is read; storage gives
 * 2,500 samples a second, the loader with two threads 1,500 of the 1,667 that its CPU time
 * allows. */
static leat_plan_facts calibrated_facts(void)
{
    leat_plan_facts f = measured_facts();
    f.gpus = 0;
    f.cpus = 2;
    f.workers = 2;
    f.measured = (leat_plan_calibration){.io_bytes_per_s = {240e6, 250e6, 260e6},
                                         .cpu_us = {950, 1000, 1050},
                                         .rate_one = {950, 1000, 1050},
                                         .rate_all = {1900, 2000, 2100},
                                         .rate_cold = {1400, 1500, 1600},
                                         .cold_cpu_us = 1200,
                                         .threads = 2,
                                         .cpus = 2};
    return f;
}

/* As many threads as were measured: the measured rate with its interval, in every epoch that
 * reads everything. */
static void measured_cold_rate_is_reproduced(void **state)
{
    leat_plan_speed s = plan_of(calibrated_facts()).speed;
    (void)state;
    assert_near(s.first_epoch.mid, 1500, 1e-6);
    assert_near(s.first_epoch.low, 1400, 1e-6);
    assert_near(s.rate.mid, 1500, 1e-6);
    assert_int_equal(s.limit, LEAT_PLAN_CPU);
    leat_plan_facts f = calibrated_facts();
    f.ram_bytes = 1024 * GIB; /* everything stays in memory: reading no longer costs anything */
    f.epochs = 2;
    s = plan_of(f).speed;
    assert_near(s.first_epoch.mid, 1500, 1e-6);
    assert_near(s.rate.mid, 2000, 1e-6);
}

/* 600 us of CPU and 400 of storage became 667: a sixth of the shorter is not hidden. */
static void reading_takes_cpu_time_and_is_not_fully_hidden(void **state)
{
    leat_plan_facts f = calibrated_facts();
    (void)state;
    double beside = (1e6 / 1500 - 600) / 400;
    f.cpus = f.workers = 4; /* now storage takes longer */
    leat_plan_speed s = plan_of(f).speed;
    assert_near(s.first_epoch.mid, 1e6 / (400 + beside * 300), 1e-6);
    assert_near(s.rate.mid, s.first_epoch.mid, 1e-6);
    f.cpus = f.workers = 1; /* one core decodes and reads */
    s = plan_of(f).speed;
    assert_near(s.first_epoch.mid, 1e6 / (1200 + beside * 400), 1e-6);
    assert_int_equal(s.limit, LEAT_PLAN_CPU);
    assert_int_equal(s.next, LEAT_PLAN_IO);
    f = calibrated_facts();
    f.measured.rate_cold.mid = 900; /* worse than in sequence: its reads are slower */
    f.cpus = f.workers = 1;
    assert_near(plan_of(f).speed.first_epoch.mid, 1e6 / (1200 + 1e6 / 900 - 600), 1e-6);
}

/* On a machine that others use the loader is slower than its CPU time says: rate and cores have one basis,
 * and a note names it. */
static void cores_are_those_of_the_measured_rate(void **state)
{
    leat_plan_facts f = calibrated_facts();
    (void)state;
    snprintf(f.gpu, sizeof f.gpu, "A100");
    f.gpus = 1;
    leat_plan p = plan_of(f);
    assert_near(p.speed.cores_needed, p.speed.needed * 1000 / 1e6, 1e-6);
    for (uint32_t i = 0; i < p.note_count; i++) assert_null(strstr(p.notes[i], "others used them"));
    f.measured.cpu_us = (leat_plan_range){400, 420, 440};
    f.measured.rate_one = (leat_plan_range){900, 950, 1000};
    f.measured.rate_all = (leat_plan_range){1600, 1690, 1800};
    f.cpus = f.workers = 2;
    p = plan_of(f);
    assert_true(p.speed.gpu.mid > p.speed.cpu.mid && p.speed.cores_needed > 2);
    f.cpus = f.workers = (int32_t)(p.speed.cores_needed + 1);
    assert_true(plan_of(f).speed.cpu.mid >= p.speed.needed);
    f.cpus = f.workers = (int32_t)p.speed.cores_needed;
    assert_true(plan_of(f).speed.cpu.mid < p.speed.needed);
    bool noted = false;
    for (uint32_t i = 0; i < p.note_count; i++) noted |= strstr(p.notes[i], "had 0.7 of 2 CPUs") != NULL;
    assert_true(noted);
}

static void a_missing_rate_is_incomplete(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.ram_bytes = 0;
    leat_plan_speed s = plan_of(f).speed; /* storage unknown */
    assert_int_equal(s.incomplete, 1);
    assert_true(s.rate.mid > 0);
    snprintf(f.storage, sizeof f.storage, "nvme");
    assert_int_equal(plan_of(f).speed.incomplete, 0);
    f.gpu[0] = '\0';
    f.vram_bytes = 24 * GIB;
    assert_int_equal(plan_of(f).speed.incomplete, 1);
}

/* Measured on an H200: 4,652 samples/s eager, 6,578 compiled, and with smaller batches. */
static void measured_step_is_reproduced(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    snprintf(f.gpu, sizeof f.gpu, "NVIDIA H200");
    leat_plan_speed s = plan_of(f).speed;
    assert_near(s.gpu.mid, 4652, 1);
    f.batch = 64;
    assert_near(plan_of(f).speed.gpu.mid, 3312, 331);
    f.batch = 0;
    f.compile = 1;
    assert_near(plan_of(f).speed.gpu.mid, 6578, 1);
    /* a card with an eighth of the bandwidth and a fourteenth of the arithmetic */
    snprintf(f.gpu, sizeof f.gpu, "A10G");
    leat_plan_range slow = plan_of(f).speed.gpu;
    assert_true(slow.mid > 6578 / 15.0 && slow.mid < 6578 / 7.0);
    assert_true(slow.low < slow.mid && slow.mid < slow.high);
}

/* Measured on one core of the table's machine (bench/RESULTS.md): 367 to 410 us for a JPEG with
 * entry points, 467 to 520 without, 161 to 190 for tiles, PyTorch with Pillow 3,190. */
static void costs_come_from_the_table(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 0;
    f.cpus = 2;
    f.loader = LEAT_PLAN_PROCESS;
    leat_plan_range r = plan_of(f).speed.cpu;
    assert_true(r.low < 594 && r.high > 594);
    f.loader = LEAT_PLAN_LEAT;
    snprintf(f.isa, sizeof f.isa, "avx512icl");
    assert_near(plan_of(f).speed.cpu_us, 185, 30);
    f.images = LEAT_PLAN_KEEP;
    leat_plan p = plan_of(f);
    assert_near(p.speed.cpu_us, 400, 40);
    assert_near(leat__plan_sample_us(&p.facts, "plain", 110000, 500 * 375), 500, 60);
    f.work = 1.5;
    assert_near(plan_of(f).speed.cpu_us, 1.5 * p.speed.cpu_us, 1e-6);
    snprintf(f.isa, sizeof f.isa, "avx2");
    assert_true(plan_of(f).speed.cpu_us > 1.5 * p.speed.cpu_us);
}

/* Four times the pixels and bytes cost nearly four times as much, apart from fixed costs; larger
 * crops and outputs cost more; in a mix every part has its own bytes. */
static void costs_grow_with_bytes_pixels_and_crops(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 0;
    f.images = LEAT_PLAN_KEEP;
    f.sample_bytes = 110000;
    f.width = 500;
    f.height = 375;
    double once = plan_of(f).speed.cpu_us;
    leat_plan_facts g = f;
    g.sample_bytes *= 4;
    g.width = 1000;
    g.height = 750;
    assert_true(plan_of(g).speed.cpu_us > 3 * once && plan_of(g).speed.cpu_us < 4 * once);
    g = f;
    g.crop_area = 1;
    assert_true(plan_of(g).speed.cpu_us > 1.2 * once);
    g = f;
    g.image = 448;
    assert_true(plan_of(g).speed.cpu_us > 1.05 * once);
    g = f;
    g.images = LEAT_PLAN_RAW;
    double raw = plan_of(g).speed.cpu_us;
    g.images = LEAT_PLAN_MIX;
    g.mix_raw = 0.25;
    g.sample_bytes = (f.sample_bytes * 3 + 500 * 375 * 3) / 4;
    assert_near(plan_of(g).speed.cpu_us, 0.75 * once + 0.25 * raw, 0.1);
}

static void quality_shares_are_interpolated(void **state)
{
    (void)state;
    assert_near(leat__plan_quality_share(90), 0.68, 1e-12);
    assert_near(leat__plan_quality_share(100), 0.95, 1e-12);
    assert_true(leat__plan_quality_share(87) > 0.55 && leat__plan_quality_share(87) < 0.68);
    assert_near(leat__plan_quality_share(10), 0.26, 1e-12);
}

static const leat_plan_what_if *row_of(const leat_plan *p, const char *change)
{
    for (uint32_t i = 0; i < p->what_if_count; i++)
        if (strcmp(p->what_ifs[i].change, change) == 0) return &p->what_ifs[i];
    fail_msg("no row '%s'", change);
    return NULL;
}

static void what_if_moves_the_limit(void **state)
{
    leat_plan_facts f = measured_facts();
    (void)state;
    f.gpus = 0;
    f.images = LEAT_PLAN_KEEP;
    f.measured.cpu_us = (leat_plan_range){1900, 2000, 2100}; /* 5,000/s on 10 cores */
    f.measured.io_bytes_per_s = (leat_plan_range){580e6, 600e6, 620e6};
    leat_plan p = plan_of(f);
    assert_int_equal(p.speed.limit, LEAT_PLAN_CPU);
    const leat_plan_what_if *w = row_of(&p, "leat pack --images tiled");
    assert_int_equal(w->limit, LEAT_PLAN_IO);
    assert_near(w->gain, 1.2, 1e-6);
    assert_near(row_of(&p, "--threads 16")->gain, 1.2, 1e-6);
    /* 562,500 bytes a sample at 600 MB/s, and memory that is no faster than the CPUs: no rows of 1.00x */
    assert_string_equal(p.no_gain, "--order quasi_random; leat pack --images mix --mix-raw 0.5; "
                                   "leat pack --images raw; whole dataset cached in memory; --cpus 32");
    for (uint32_t i = 0; i < p.what_if_count; i++) assert_true(p.what_ifs[i].gain >= 1.05);
    assert_true(row_of(&p, "leat pack --max-side 400")->gain > 1.3);
    assert_true(row_of(&p, "leat pack --quality 90")->gain > 1.1); /* fewer bytes to decode */
}

/* Two workers leave 62 of 64 CPUs idle: more workers bring more, as far as they fit, more cores nothing. */
static void idle_cores_get_workers(void **state)
{
    leat_plan_facts f = guide_facts();
    unsigned workers = 0;
    (void)state;
    snprintf(f.model, sizeof f.model, "resnet18");
    snprintf(f.gpu, sizeof f.gpu, "A100");
    snprintf(f.storage, sizeof f.storage, "nvme");
    f.loader = LEAT_PLAN_PROCESS;
    f.workers = 2;
    f.cpus = 64;
    leat_plan p = plan_of(f);
    assert_contains(p.no_gain, "--cpus 128");
    for (uint32_t i = 0; i < p.what_if_count; i++)
        if (sscanf(p.what_ifs[i].change, "--workers %u", &workers) == 1) assert_true(p.what_ifs[i].gain > 2);
    assert_in_range(workers, 3, 63);
    f.workers = (int32_t)workers;
    assert_int_equal(plan_of(f).fits, 1);
    f.workers = 0; /* as many as the cores have work for */
    f.cpus = 4;
    p = plan_of(f);
    assert_true(row_of(&p, "--cpus 8")->gain > 1.5);
}

/* Smaller images are stored again at quality 90: both make them smaller, by the table or as measured. */
static void stored_sizes_of_what_ifs(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 0;
    f.measured.cpu_us = (leat_plan_range){1900, 2000, 2100};
    f.samples = 1000;
    f.sample_bytes = 100000;
    f.width = 800;
    f.height = 600;
    leat_plan p = plan_of(f);
    assert_near((double)row_of(&p, "leat pack --max-side 400")->dataset_bytes, 1e8 * 0.25 * 0.68, 1e4);
    f.smaller_share = 0.11;
    f.quality_share = 0.55;
    p = plan_of(f);
    assert_near((double)row_of(&p, "leat pack --max-side 400")->dataset_bytes, 1.1e7, 1e4);
    assert_near((double)row_of(&p, "leat pack --quality 90")->dataset_bytes, 5.5e7, 1e4);
}

/* The share stored raw changes bytes and cost, each in one direction, from those of kept images to raw ones.
 */
static void a_mix_has_the_bytes_of_its_raw_share(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 0;
    f.images = LEAT_PLAN_KEEP;
    leat_plan before = plan_of(f);
    f.images = LEAT_PLAN_MIX;
    for (int i = 0; i <= 10; i++) {
        f.mix_raw = i / 10.0;
        leat_plan p = plan_of(f);
        assert_near((double)p.facts.sample_bytes, 110000 + i / 10.0 * (562500 - 110000), 1);
        assert_true(p.speed.cpu_us <= before.speed.cpu_us * 1.000001);
        before = p;
    }
    f.images = LEAT_PLAN_RAW;
    assert_int_equal(plan_of(f).facts.sample_bytes, before.facts.sample_bytes);
    assert_near(plan_of(f).speed.cpu_us, before.speed.cpu_us, 1e-6);
    /* back again: the coded ones have their bytes */
    leat_plan_facts mix = {.width = 500, .height = 375, .images = LEAT_PLAN_MIX, .mix_raw = 0.5};
    mix.sample_bytes = 336250;
    assert_int_equal(leat__plan_stored_bytes(&mix, LEAT_PLAN_TILED, 0), 110000);
    mix.images = LEAT_PLAN_RAW;
    assert_int_equal(leat__plan_stored_bytes(&mix, LEAT_PLAN_KEEP, 0), 110000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_rate_limits_and_the_next_is_named),
        cmocka_unit_test(cores_past_the_machine_do_not_help),
        cmocka_unit_test(a_quota_counts_with_its_fraction),
        cmocka_unit_test(an_epoch_has_5005_iterations),
        cmocka_unit_test(an_epoch_is_never_shorter_than_a_step),
        cmocka_unit_test(quasi_random_gain_is_shown),
        cmocka_unit_test(random_reads_are_limited_for_any_sample_and_loader),
        cmocka_unit_test(a_proposed_budget_keeps_the_dataset),
        cmocka_unit_test(what_fits_in_memory_is_read_once),
        cmocka_unit_test(a_trainer_without_a_gpu_is_not_known),
        cmocka_unit_test(measured_cold_rate_is_reproduced),
        cmocka_unit_test(reading_takes_cpu_time_and_is_not_fully_hidden),
        cmocka_unit_test(cores_are_those_of_the_measured_rate),
        cmocka_unit_test(a_missing_rate_is_incomplete),
        cmocka_unit_test(measured_step_is_reproduced),
        cmocka_unit_test(costs_come_from_the_table),
        cmocka_unit_test(costs_grow_with_bytes_pixels_and_crops),
        cmocka_unit_test(quality_shares_are_interpolated),
        cmocka_unit_test(what_if_moves_the_limit),
        cmocka_unit_test(idle_cores_get_workers),
        cmocka_unit_test(stored_sizes_of_what_ifs),
        cmocka_unit_test(a_mix_has_the_bytes_of_its_raw_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
