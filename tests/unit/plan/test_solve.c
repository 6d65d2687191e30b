/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

/* The loader with one thread and with several, of which some wait for each other. */
static void measure_loader(leat_plan_facts *f, leat__rng *r)
{
    leat_plan_calibration *m = &f->measured;
    double one = 100.0 * (double)(1 + leat__rng_below(r, 50));
    double times = 0.8 + (double)leat__rng_below(r, 100) / 25;
    m->threads = m->cpus = 1u << (1 + leat__rng_below(r, 4));
    m->rate_one = (leat_plan_range){0.9 * one, one, 1.1 * one};
    m->rate_all = (leat_plan_range){0.9 * one * times, one * times, 1.1 * one * times};
    m->cpu_us = (leat_plan_range){0.9e6 / one, 1e6 / one, 1.1e6 / one};
}

static uint64_t solved(leat_plan_facts f, leat_plan_field field)
{
    uint64_t value;
    leat_error err = {0};
    int rc = leat_plan_solve(&f, field, &value, &err);
    if (rc != 0) fail_msg("%s", err.message);
    return value;
}

/* The guide's multi-GPU table with 12 workers for each GPU: total batch, learning rate, workers; RAM buffer
 * as it rounds it (8 GB each) and "RAM > 8 GB × GPUs + 5 GB". Ours is compared with it. */
static void multi_gpu_table_is_reproduced(void **state)
{
    static const struct {
        uint32_t gpus, workers;
        uint64_t total_batch, buffer_gb, check_gb;
        double lr;
    } rows[] = {{1, 12, 256, 8, 13, 0.5},
                {2, 24, 512, 16, 21, 1.0},
                {4, 48, 1024, 32, 37, 2.0},
                {8, 96, 2048, 64, 69, 4.0}};
    leat_plan_facts f = guide_facts();
    (void)state;
    f.workers = 12;
    f.loader = LEAT_PLAN_PROCESS;
    leat_plan p = plan_of(f);
    assert_int_equal(p.scale_count, 4);
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        const leat_plan_scale *s = &p.scales[i];
        assert_int_equal(s->gpus, rows[i].gpus);
        assert_int_equal(s->workers, rows[i].workers);
        assert_int_equal(s->total_batch, rows[i].total_batch);
        assert_int_equal(s->guide_buffer, rows[i].buffer_gb * 1000000000);
        assert_int_equal(s->guide_ram, rows[i].check_gb * 1000000000);
        assert_near(s->lr, rows[i].lr, 1e-12);
        assert_near((double)s->ram / 1e9, 3 + rows[i].gpus * 12.861, 0.01);
    }
    assert_int_equal(p.scales[1].fits, 1);
    assert_int_equal(p.scales[3].fits, 0); /* 106 GB do not fit 62 GiB */
}

/* A row has the limits and the verdict of a plan for as many GPUs. */
static void rows_of_gpus_have_all_limits(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.cpus = 2;
    f.gpus = 8;
    f.ram_bytes = 200 * GIB;
    f.measured.cpu_us = (leat_plan_range){900, 1000, 1100};
    f.measured.io_bytes_per_s = (leat_plan_range){1e11, 1e11, 1e11};
    leat_plan p = plan_of(f);
    assert_int_equal(p.scales[3].gpus, 8);
    assert_int_equal(p.speed.limit, LEAT_PLAN_CPU);
    assert_near(p.scales[3].rate, p.speed.rate.mid, 1e-6);
    f.cpus = 64;
    f.gpus = 1; /* its 63 threads are not those of a plan for four */
    p = plan_of(f);
    f.gpus = 4;
    leat_plan four = plan_of(f);
    assert_int_equal(p.scales[2].workers, 60);
    assert_int_equal(p.scales[2].workers, 4 * four.config.workers);
    assert_int_equal(p.scales[2].ram, four.ram.total);
    f.cpus = 4; /* a given number is what it is */
    f.workers = 32;
    p = plan_of(f);
    assert_int_equal(p.scales[2].workers, 4 * 32);
    f.workers = 0;
    f.gpus = 1;
    f.ram_bytes = 2048 * GIB;
    f.batch = 4000; /* too large for the GPU */
    p = plan_of(f);
    assert_int_equal(p.fits, 0);
    assert_int_equal(p.scales[0].fits, 0);
}

/* "4 GPUs on 4 instances": per instance as one GPU, lr 2.0. */
static void nodes_share_the_gpus(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.preset = LEAT_PLAN_BALANCED;
    f.loader = LEAT_PLAN_PROCESS;
    f.nodes = 4;
    leat_plan p = plan_of(f);
    const leat_plan_scale *s = &p.scales[p.scale_count - 1];
    assert_int_equal(s->nodes, 4);
    assert_int_equal(s->gpus, 4);
    assert_int_equal(s->total_batch, 1024);
    assert_int_equal(s->workers, 48);
    assert_near(s->lr, 2.0, 1e-12);
    assert_int_equal(s->ram, p.scales[0].ram);
    assert_int_equal(p.config.total_batch, 1024);
}

static void the_fix_fits_and_one_more_does_not(void **state)
{
    leat_plan_facts f = guide_facts();
    unsigned long long value;
    (void)state;
    f.loader = LEAT_PLAN_PROCESS;
    f.workers = 32;
    f.prefetch = 8;
    leat_plan p = plan_of(f);
    assert_int_equal(p.fits, 0);
    assert_int_equal(sscanf(p.fix, "--workers %llu (instead of 32)", &value), 1);
    assert_contains(p.fix, "leat's loader");
    f.workers = (int32_t)value;
    assert_int_equal(plan_of(f).fits, 1);
    f.workers++;
    assert_int_equal(plan_of(f).fits, 0);
}

static void a_gpu_that_is_too_small_gets_a_batch_or_a_precision(void **state)
{
    leat_plan_facts f = guide_facts();
    unsigned long long value;
    (void)state;
    f.batch = 1000;
    leat_plan p = plan_of(f);
    assert_int_equal(p.fits, 0);
    assert_int_equal(sscanf(p.fix, "--batch %llu (instead of 1000)", &value), 1);
    f.batch = value;
    assert_int_equal(plan_of(f).fits, 1);
    f.batch = 320;
    f.precision = LEAT_PLAN_FP32;
    p = plan_of(f);
    assert_int_equal(p.fits, 0);
    assert_string_equal(p.fix, "--precision bf16-mixed (instead of fp32)");
    f.vram_bytes = GIB;
    snprintf(f.model, sizeof f.model, "vit_l");
    p = plan_of(f);
    assert_string_equal(
        p.fix, "--batch 1 (instead of 320) and lr 9.77e-07, and a GPU with at least 6.82 GiB of memory");
    f.batch = 1;
    f.precision = LEAT_PLAN_BF16_MIXED;
    double need = 0;
    p = plan_of(f);
    assert_int_equal(sscanf(p.fix, "a GPU with at least %lf GiB", &need), 1);
    f.vram_bytes = (uint64_t)(need * (double)GIB);
    assert_int_equal(plan_of(f).vram.verdict, LEAT_PLAN_SAFE);
    f.batch = 64; /* one fits, barely */
    f.vram_bytes = (uint64_t)(need * 0.94 * (double)GIB);
    p = plan_of(f);
    assert_contains(p.fix, "--batch 1 (instead of 64)");
    f.batch = 1;
    assert_int_equal(plan_of(f).fits, 1);
}

static void a_budget_too_small_is_raised(void **state)
{
    leat_plan_facts f = guide_facts();
    unsigned long long value;
    (void)state;
    f.memory_bytes = 1 << 20;
    leat_plan p = plan_of(f);
    assert_int_equal(p.fits, 0);
    assert_int_equal(sscanf(p.fix, "--memory %llu", &value), 1);
    f.memory_bytes = value;
    assert_int_equal(plan_of(f).fits, 1);
    f.memory_bytes = value - 1;
    assert_int_equal(plan_of(f).fits, 0);
}

/* A cache that takes all memory gets a smaller budget. */
static void a_budget_too_large_is_lowered(void **state)
{
    leat_plan_facts f = guide_facts();
    unsigned long long value;
    (void)state;
    f.cache = PLAN_CACHE_PROCESS;
    f.ram_bytes = 16 * GIB;
    f.memory_bytes = 20 * GIB;
    leat_plan p = plan_of(f);
    assert_int_equal(p.fits, 0);
    assert_int_equal(sscanf(p.fix, "--memory %llu", &value), 1);
    f.memory_bytes = value;
    assert_int_equal(plan_of(f).fits, 1);
    f.memory_bytes = value + (1 << 20);
    assert_int_equal(plan_of(f).fits, 0);
}

/* The least memory is that of a plan that fits, shown in three digits; leat's loader is offered with the
 * pixels that it delivers. */
static void more_memory_is_named_only_as_far_as_needed(void **state)
{
    leat_plan_facts f = guide_facts();
    double need;
    (void)state;
    f.whole_machine = 0;
    f.element_bytes = 1;
    f.ram_bytes = 2 * GIB;
    leat_plan p = plan_of(f);
    assert_int_equal(p.fits, 0);
    assert_int_equal(sscanf(p.fix, "a limit of at least %lf GiB", &need), 1);
    f.ram_bytes = (uint64_t)(need * (double)GIB);
    assert_int_equal(plan_of(f).fits, 1);
    f.ram_bytes = (uint64_t)(0.99 * need * (double)GIB);
    assert_int_equal(plan_of(f).fits, 0);
    f.ram_bytes = 3 * GIB;
    f.element_bytes = 4;
    f.loader = LEAT_PLAN_PROCESS;
    f.workers = 8;
    assert_contains(plan_of(f).fix, "leat's loader with --dtype u8 and a budget of");
}

/* Fewer batches ahead change no training: a smaller batch is named only where they are not enough. */
static void batches_ahead_go_before_the_batch(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 8;
    f.nodes = 2;
    f.batch = 256;
    f.prefetch = 4000;
    assert_contains(plan_of(f).fix, "--prefetch ");
}

/* The amount of bytes after `words` in a change, up to the first alternative; 0 when they are not in it. */
static uint64_t amount(const char *fix, const char *words)
{
    const char *at = strstr(fix, words), *other = strstr(fix, "; or ");
    char unit[8];
    double value;
    if (at == NULL || (other != NULL && at > other)) return 0;
    if (sscanf(at + strlen(words), " %lf %7s", &value, unit) < 1) return 0;
    if (strncmp(unit, "KiB", 3) == 0) value *= 1024;
    if (strncmp(unit, "MiB", 3) == 0) value *= 1 << 20;
    if (strncmp(unit, "GiB", 3) == 0) value *= (double)GIB;
    if (strncmp(unit, "TiB", 3) == 0) value *= 1024 * (double)GIB;
    return (uint64_t)value;
}

/* The facts that a user gives after the change. */
static leat_plan_facts with_fix(const leat_plan_facts *given, const leat_plan *p)
{
    leat_plan_facts f = *given;
    uint64_t value;
    if ((value = amount(p->fix, "--batch")) > 0) f.batch = value;
    if ((value = amount(p->fix, "--prefetch")) > 0) f.prefetch = (uint32_t)value;
    if ((value = amount(p->fix, "--workers")) > 0) f.workers = (int32_t)value;
    if ((value = amount(p->fix, "--threads")) > 0) f.workers = (int32_t)value;
    if ((value = amount(p->fix, "a GPU with at least")) > 0) f.vram_bytes = value;
    if ((value = amount(p->fix, "a machine with at least")) > 0) f.ram_bytes = value;
    if ((value = amount(p->fix, "a limit of at least")) > 0)
        *(f.whole_machine ? &f.limit_bytes : &f.ram_bytes) = value;
    if (strstr(p->fix, "--precision 16-mixed") != NULL) f.precision = LEAT_PLAN_FP16_MIXED;
    if (strstr(p->fix, "--precision bf16-mixed") != NULL) f.precision = LEAT_PLAN_BF16_MIXED;
    if ((value = amount(p->fix, "--memory")) > 0) f.memory_bytes = value;
    if (strstr(p->fix, "no --memory") != NULL) f.memory_bytes = 0;
    if (strstr(p->fix, "larger /dev/shm") != NULL) f.shm_bytes = 0;
    const char *leat = strstr(p->fix, "leat's loader"), *other = strstr(p->fix, "; or ");
    if (leat != NULL && (other == NULL || leat < other)) f.loader = LEAT_PLAN_LEAT;
    if (f.loader != p->facts.loader && strstr(p->fix, "--dtype u8") != NULL) f.element_bytes = 1;
    return f;
}

/* Both memories are too small: one change names both, and the GPU's keeps the largest batch. */
static void both_memories_are_fixed_together(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.cpus = 2;
    f.batch = 1000;
    f.memory_bytes = 1 << 20;
    leat_plan p = plan_of(f);
    assert_int_equal(amount(p.fix, "--batch"), p.vram.largest_batch);
    assert_true(amount(p.fix, "--memory") > 1 << 20);
    assert_int_equal(plan_of(with_fix(&f, &p)).fits, 1);
    f = guide_facts();
    snprintf(f.model, sizeof f.model, "vit_b");
    snprintf(f.gpu, sizeof f.gpu, "T4");
    f.ram_bytes = 4 * GIB;
    f.cpus = 8;
    f.no_validation = 1;
    f.batch = 5000;
    p = plan_of(f);
    assert_int_equal(amount(p.fix, "--batch"), p.vram.largest_batch);
    assert_contains(p.fix, ", and a machine with at least ");
    assert_int_equal(plan_of(with_fix(&f, &p)).fits, 1);
}

static void every_change_fits_when_it_is_made(void **state)
{
    static const char *const gpus[] = {"T4", "A10G", "A100", "H200"};
    static const char *const models[] = {"resnet18", "resnet50", "vit_b", "vit_l"};
    static const uint64_t memory[] = {0, 1 << 20, 64 << 20, 4 * GIB};
    uint64_t random = 1, refused = 0;
    (void)state;
    for (int i = 0; i < 100; i++) {
        leat_plan_facts f = guide_facts();
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t r = random >> 20;
        snprintf(f.gpu, sizeof f.gpu, "%s", gpus[r % 4]);
        snprintf(f.model, sizeof f.model, "%s", models[r / 4 % 4]);
        f.memory_bytes = memory[r / 16 % 4];
        f.ram_bytes = GIB << r / 64 % 9;
        f.batch = UINT64_C(1) << r / 1024 % 14;
        f.cpus = 1u << r / 16384 % 7;
        f.gpus = 1u << r / 131072 % 4;
        f.loader = r / 1048576 % 4 == 0 ? LEAT_PLAN_PROCESS : LEAT_PLAN_LEAT;
        f.precision = r / 4194304 % 3 == 0 ? LEAT_PLAN_FP32 : LEAT_PLAN_PRECISION_AUTO;
        f.no_validation = r / 16777216 % 2;
        f.cache = r / 33554432 % 3 == 0 ? PLAN_CACHE_PROCESS : 0;
        if (r / 134217728 % 3 == 0) f.prefetch = 64;
        leat_plan p = plan_of(f);
        if (p.fits != 0) continue;
        refused++;
        leat_plan changed = plan_of(with_fix(&f, &p));
        if (changed.fits != 1) fail_msg("case %d: \"%s\", then \"%s\"", i, p.fix, changed.fix);
    }
    assert_true(refused > 25);
}

/* Memory of a machine, a limit of the job inside it, or both are too small. */
static void changes_fit_the_machine_and_the_limit(void **state)
{
    uint64_t refused = 0, both = 0;
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 22, 0, 0, 0);
    for (uint64_t i = 0; i < test_count("LEAT_TEST_PLANS", 150); i++) {
        leat_plan_facts f = random_facts(&r);
        f.ram_bytes = f.ram_bytes / 16 + 1;
        f.limit_bytes = f.ram_bytes / 8 * (1 + leat__rng_below(&r, 9));
        f.whole_machine = 1;
        if (leat__rng_below(&r, 4) == 0) f.memory_bytes = UINT64_C(1) << (20 + leat__rng_below(&r, 16));
        leat_plan p = plan_of(f);
        if (p.fits != 0) continue;
        refused++;
        both += amount(p.fix, "a machine with at least") > 0 && amount(p.fix, "a limit of at least") > 0;
        leat_plan_facts g = with_fix(&f, &p);
        leat_plan changed = plan_of(g);
        if (changed.fits == 0) fail_msg("case %d: \"%s\", then \"%s\"", (int)i, p.fix, changed.fix);
        if (g.ram_bytes != f.ram_bytes) g.ram_bytes = (uint64_t)(0.99 * (double)g.ram_bytes);
        if (g.limit_bytes != f.limit_bytes) g.limit_bytes = (uint64_t)(0.99 * (double)g.limit_bytes);
        bool more = g.ram_bytes != f.ram_bytes || g.limit_bytes != f.limit_bytes;
        if (more && plan_of(g).fits != 0) fail_msg("case %d: \"%s\" is more than needed", (int)i, p.fix);
    }
    assert_true(refused > 50 && both > 10);
}

/* What is solved for is what a plan accepts, and one more or one less is not. */
static void solutions_are_accepted_by_the_plan(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    snprintf(f.model, sizeof f.model, "vit_l"); /* does not fit on any number of them */
    snprintf(f.gpu, sizeof f.gpu, "T4");
    assert_int_equal(solved(f, LEAT_PLAN_SOLVE_GPUS), 0);
    f = guide_facts();
    assert_int_equal(solved(f, LEAT_PLAN_SOLVE_CPUS), 1);
    snprintf(f.gpu, sizeof f.gpu, "H100");
    f.gpus = 8;
    f.element_bytes = 1;
    f.images = LEAT_PLAN_KEEP;
    uint64_t cpus = solved(f, LEAT_PLAN_SOLVE_CPUS);
    f.cpus = (uint32_t)cpus;
    leat_plan p = plan_of(f);
    assert_true(p.speed.cpu.mid >= p.speed.gpu.mid);
    f.cpus--;
    p = plan_of(f);
    assert_true(p.speed.cpu.mid < p.speed.gpu.mid);
    f.cpus = 64;
    f.gpus = 1;
    f.gpus = (uint32_t)solved(f, LEAT_PLAN_SOLVE_GPUS);
    p = plan_of(f);
    assert_true(p.fits == 1 && p.ram.verdict == LEAT_PLAN_SAFE && p.speed.cpu.mid >= p.speed.gpu.mid);
    f.cache = PLAN_CACHE_PROCESS;
    f.memory_bytes = 4 * GIB;
    f.ram_bytes = solved(f, LEAT_PLAN_SOLVE_RAM);
    assert_int_equal(plan_of(f).ram.verdict, LEAT_PLAN_SAFE);
    f.ram_bytes -= 1 << 10;
    assert_int_equal(plan_of(f).ram.verdict, LEAT_PLAN_RISKY);
}

/* Safe and, of CPUs and GPUs, kept busy. */
static bool accepted(leat_plan_facts f, leat_plan_field field)
{
    leat_plan p = plan_of(f);
    bool busy = field == LEAT_PLAN_SOLVE_CPUS || field == LEAT_PLAN_SOLVE_GPUS;
    return p.ram.verdict <= LEAT_PLAN_SAFE && (f.gpus == 0 || p.vram.verdict <= LEAT_PLAN_SAFE) &&
           (!busy || p.speed.cpu.mid >= p.speed.gpu.mid);
}

static leat_plan_facts solved_with(leat_plan_facts f, leat_plan_field field, uint64_t value)
{
    if (field == LEAT_PLAN_SOLVE_BATCH) f.batch = value;
    if (field == LEAT_PLAN_SOLVE_RAM) f.ram_bytes = value;
    if (field == LEAT_PLAN_SOLVE_GPUS) f.gpus = (uint32_t)value;
    if (field == LEAT_PLAN_SOLVE_CPUS) f.cpus = (uint32_t)value;
    return f;
}

/* Any facts: with a limit inside the machine, a budget, given workers, measured rates, and without GPUs. */
static void any_solution_is_accepted_and_the_next_is_not(void **state)
{
    uint64_t solutions[4] = {0};
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 23, 0, 0, 0);
    for (uint64_t i = 0; i < test_count("LEAT_TEST_PLANS", 150); i++) {
        leat_plan_facts f = random_facts(&r);
        if (leat__rng_below(&r, 2) == 0) f.limit_bytes = f.ram_bytes / 8 * (1 + leat__rng_below(&r, 9));
        if (leat__rng_below(&r, 4) == 0) f.memory_bytes = UINT64_C(1) << (25 + leat__rng_below(&r, 11));
        if (leat__rng_below(&r, 4) == 0) measure_loader(&f, &r);
        for (int k = 0; k < 4; k++) {
            leat_plan_field field = (leat_plan_field)k;
            bool least = field == LEAT_PLAN_SOLVE_RAM || field == LEAT_PLAN_SOLVE_CPUS;
            uint64_t value,
                top = field == LEAT_PLAN_SOLVE_BATCH ? LEAT_MIN(f.samples, LEAT_PLAN_BATCH_MOST) : UINT64_MAX;
            if (leat_plan_solve(&f, field, &value, NULL) != 0 || value == 0) continue;
            solutions[k]++;
            if (!accepted(solved_with(f, field, value), field))
                fail_msg("case %d: %llu of field %d is refused", (int)i, (unsigned long long)value, k);
            uint64_t next = least ? value - 1 : value + 1;
            if (next > 0 && next <= top && accepted(solved_with(f, field, next), field))
                fail_msg("case %d: %llu of field %d, but also %llu", (int)i, (unsigned long long)value, k,
                         (unsigned long long)next);
        }
    }
    for (int k = 0; k < 4; k++) assert_true(solutions[k] > 15);
}

/* The largest batch up to `top` that is safe, or that fits, by trying all of them. */
static uint64_t largest_tried(leat_plan_facts f, uint64_t top, bool safe)
{
    for (f.batch = top; f.batch > 0; f.batch--) {
        leat_plan p = {.facts = f};
        assert_int_equal(leat__plan_judge(&p, NULL), 0);
        if (safe ? p.ram.verdict <= LEAT_PLAN_SAFE && (f.gpus == 0 || p.vram.verdict <= LEAT_PLAN_SAFE)
                 : p.fits != 0)
            break;
    }
    return f.batch;
}

/* Memory does not grow evenly with the batch: the largest one is named, not one at which a search stops. */
static void the_largest_batch_is_found(void **state)
{
    static const uint64_t samples[] = {29, 50, 100, 1000}, sizes[] = {20000, 110000, 1000000};
    uint64_t changes = 0;
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 24, 0, 0, 0);
    for (uint64_t i = 0; i < test_count("LEAT_TEST_PLANS", 150); i++) {
        leat_plan_facts f;
        leat_plan_facts_init(&f);
        f.cpus = 1u << leat__rng_below(&r, 4);
        f.samples = samples[leat__rng_below(&r, LEAT_COUNT(samples))];
        f.sample_bytes = sizes[leat__rng_below(&r, LEAT_COUNT(sizes))];
        f.ram_bytes = (60 + leat__rng_below(&r, 500)) << 20;
        f.image = 64 + 32 * (uint32_t)leat__rng_below(&r, 6);
        f.element_bytes = leat__rng_below(&r, 2) != 0 ? 1 : 4;
        f.no_validation = (uint32_t)leat__rng_below(&r, 2);
        f.workers = leat__rng_below(&r, 3) == 0 ? 1 << leat__rng_below(&r, 3) : 0;
        f.epochs = leat__rng_below(&r, 4) == 0 ? 9 : 1;
        f.prefetch = 1; /* nothing else to change than the batch */
        uint64_t value = solved(f, LEAT_PLAN_SOLVE_BATCH), wanted = largest_tried(f, f.samples, true);
        if (value != wanted) fail_msg("case %d: %d, but %d is safe", (int)i, (int)value, (int)wanted);
        f.batch = 1200;
        leat_plan p = plan_of(f);
        if ((value = amount(p.fix, "--batch")) == 0) continue;
        changes++;
        wanted = largest_tried(f, f.batch, false);
        if (value != wanted) fail_msg("case %d: \"%s\", but %d fits", (int)i, p.fix, (int)wanted);
    }
    assert_true(changes > 5);
}

static void solving_finds_the_edge(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    uint64_t batch = solved(f, LEAT_PLAN_SOLVE_BATCH);
    assert_int_equal(batch, plan_of(f).vram.largest_batch);
    f.loader = LEAT_PLAN_PROCESS;
    f.workers = 16;
    f.prefetch = 4;
    uint64_t ram = solved(f, LEAT_PLAN_SOLVE_RAM);
    f.ram_bytes = ram;
    assert_int_equal(plan_of(f).ram.verdict, LEAT_PLAN_SAFE);
    f.ram_bytes = ram - (64 << 20);
    assert_int_equal(plan_of(f).ram.verdict, LEAT_PLAN_RISKY);
    f.ram_bytes = 40 * GIB; /* RAM is the tighter one now */
    batch = solved(f, LEAT_PLAN_SOLVE_BATCH);
    assert_true(batch > 0 && batch < plan_of(f).vram.largest_batch);
    f.batch = batch;
    assert_int_equal(plan_of(f).ram.verdict, LEAT_PLAN_SAFE);
    f.batch = batch + 1;
    assert_int_equal(plan_of(f).ram.verdict, LEAT_PLAN_RISKY);
}

static void cpus_and_gpus_follow_the_rates(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.measured.step_ms = (leat_plan_range){250, 256, 260}; /* 1,000/s */
    f.measured.cpu_us = (leat_plan_range){1900, 2000, 2100};
    assert_int_equal(solved(f, LEAT_PLAN_SOLVE_CPUS), 2 + 1); /* two busy, the trainer */
    assert_int_equal(solved(f, LEAT_PLAN_SOLVE_GPUS), 5);     /* 16 cores: 2 threads and a trainer each */
    f.loader = LEAT_PLAN_PROCESS;
    f.workers = 12;
    f.prefetch = 3;
    assert_int_equal(solved(f, LEAT_PLAN_SOLVE_GPUS), 1); /* with a second one the RAM is risky */
    uint64_t value;
    leat_error err = {0};
    f.ram_bytes = 0;
    assert_code(LEAT_EINVAL, leat_plan_solve(&f, LEAT_PLAN_SOLVE_GPUS, &value, &err));
    f.gpus = 0;
    assert_code(LEAT_EINVAL, leat_plan_solve(&f, LEAT_PLAN_SOLVE_CPUS, &value, &err));
}

/* No number for GPUs of which neither rate nor memory is known. */
static void unknown_gpus_have_no_number(void **state)
{
    leat_plan_facts f = guide_facts();
    uint64_t value;
    leat_error err = {0};
    (void)state;
    f.gpu[0] = '\0';
    assert_code(LEAT_EINVAL, leat_plan_solve(&f, LEAT_PLAN_SOLVE_GPUS, &value, &err));
    assert_contains(err.message, "the GPU's rate and memory");
    f.measured.step_ms = (leat_plan_range){250, 256, 260};
    assert_code(LEAT_EINVAL, leat_plan_solve(&f, LEAT_PLAN_SOLVE_GPUS, &value, &err));
    f.vram_bytes = 24 * GIB;
    assert_true(solved(f, LEAT_PLAN_SOLVE_GPUS) > 0);
}

/* No batch has more samples than the dataset, or than a plan takes. */
static void batches_are_at_most_the_dataset(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 0;
    f.ram_bytes = 500 * GIB;
    f.image = 32;
    f.element_bytes = 1;
    f.samples = 7;
    assert_int_equal(solved(f, LEAT_PLAN_SOLVE_BATCH), 7);
    f.samples = 0;
    f.image = 1;
    assert_int_equal(solved(f, LEAT_PLAN_SOLVE_BATCH), LEAT_PLAN_BATCH_MOST);
    f = guide_facts();
    f.samples = 50;
    assert_int_equal(solved(f, LEAT_PLAN_SOLVE_BATCH), 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multi_gpu_table_is_reproduced),
        cmocka_unit_test(rows_of_gpus_have_all_limits),
        cmocka_unit_test(nodes_share_the_gpus),
        cmocka_unit_test(the_fix_fits_and_one_more_does_not),
        cmocka_unit_test(a_gpu_that_is_too_small_gets_a_batch_or_a_precision),
        cmocka_unit_test(a_budget_too_small_is_raised),
        cmocka_unit_test(a_budget_too_large_is_lowered),
        cmocka_unit_test(more_memory_is_named_only_as_far_as_needed),
        cmocka_unit_test(batches_ahead_go_before_the_batch),
        cmocka_unit_test(both_memories_are_fixed_together),
        cmocka_unit_test(every_change_fits_when_it_is_made),
        cmocka_unit_test(changes_fit_the_machine_and_the_limit),
        cmocka_unit_test(any_solution_is_accepted_and_the_next_is_not),
        cmocka_unit_test(solutions_are_accepted_by_the_plan),
        cmocka_unit_test(the_largest_batch_is_found),
        cmocka_unit_test(solving_finds_the_edge),
        cmocka_unit_test(cpus_and_gpus_follow_the_rates),
        cmocka_unit_test(unknown_gpus_have_no_number),
        cmocka_unit_test(batches_are_at_most_the_dataset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
