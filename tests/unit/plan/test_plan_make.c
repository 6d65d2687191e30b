/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

/* Order and cache are the loader's defaults, or as requested, however large the dataset is. */
static void order_and_cache_are_as_requested(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.samples = 50000;
    leat_plan p = plan_of(f);
    assert_int_equal(p.config.cache_process, 0);
    assert_int_equal(p.config.quasi_random, 0);
    f.samples = 1281167; /* 141 GB on 62 GiB */
    p = plan_of(f);
    assert_int_equal(p.config.cache_process, 0);
    assert_int_equal(p.config.quasi_random, 0);
    assert_string_equal(leat__plan_order_name(&p), "random");
    f.order = PLAN_ORDER(LEAT_ORDER_SEQUENTIAL);
    p = plan_of(f);
    assert_string_equal(leat__plan_order_name(&p), "sequential");
    f.order = PLAN_ORDER(LEAT_ORDER_QUASI);
    f.cache = PLAN_CACHE_PROCESS;
    p = plan_of(f);
    assert_string_equal(leat__plan_order_name(&p), "quasi_random");
    assert_int_equal(p.config.cache_process, 1);
    assert_int_equal(p.config.page_window, 4096); /* 2 GiB of the 56 left */
    f.ram_bytes = 10 * GIB;
    p = plan_of(f);
    assert_true(p.config.page_window < 2048 && p.config.page_window % 64 == 0);
    assert_true(p.ram.pages < 4 * GIB);
}

/* Rows of the table without a data sheet add a note. */
static void uncertain_gpus_leave_a_note(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    for (int sure = 0; sure < 2; sure++) {
        snprintf(f.gpu, sizeof f.gpu, "%s", sure ? "H100" : "H20");
        leat_plan p = plan_of(f);
        bool said = false;
        for (uint32_t i = 0; i < p.note_count; i++)
            said |= strstr(p.notes[i], "the figures of H20 are not certain") != NULL;
        assert_int_equal(said, !sure);
    }
}

static void rules_of_thumb_leave_notes(void **state)
{
    leat_plan_facts f = guide_facts();
    char all[LEAT_PLAN_NOTES * 160] = "";
    (void)state;
    f.gpus = 8;
    leat_plan p = plan_of(f);
    for (uint32_t i = 0; i < p.note_count; i++) strcat(all, p.notes[i]);
    assert_contains(all, "RAM > 8 GB x 8 GPUs + 5 GB");
    assert_contains(all, "rate of storage is not known");
    f.ram_bytes = 30 * GIB;
    p = plan_of(f);
    all[0] = '\0';
    for (uint32_t i = 0; i < p.note_count; i++) strcat(all, p.notes[i]);
    assert_contains(all, "4 GB per vCPU, a rule of thumb: 64 GB for 16 vCPUs");
}

/* A caller built against a shorter struct gets the part it knows. */
static void older_callers_are_served(void **state)
{
    leat_plan_facts f = guide_facts();
    leat_plan p, head;
    leat_error err = {0};
    (void)state;
    memset(&head, 0x55, sizeof head);
    f.struct_size = offsetof(leat_plan_facts, measured);
    assert_ok(leat_plan_make(&f, &p, sizeof p, &err));
    assert_ok(leat_plan_make(&f, &head, offsetof(leat_plan, scales), &err));
    assert_int_equal(head.config.batch, p.config.batch);
    assert_int_equal(((unsigned char *)&head)[offsetof(leat_plan, scales)], 0x55);
}

static void comparison_gives_relative_errors(void **state)
{
    leat_plan_facts f = guide_facts();
    leat_plan_error_row rows[LEAT_PLAN_ERROR_ROWS];
    (void)state;
    f.gpus = 0;
    f.ram_bytes = 0;
    f.whole_machine = 0;
    f.workers = 2;
    f.samples = 10000;
    f.measured.cpu_us = (leat_plan_range){950, 1000, 1050};
    f.measured.io_bytes_per_s = (leat_plan_range){1e10, 1e10, 1e10};
    leat_plan p = plan_of(f);
    leat_plan_run run = {.epochs = 2,
                         .samples = 20000,
                         .seconds = 10,
                         .samples_per_s = 1950,
                         .cpu_seconds = 25,
                         .peak_rss_bytes = 2 * p.ram.resident};
    assert_int_equal(leat_plan_compare(&p, &run, rows), 4);
    assert_string_equal(rows[0].what, "samples/s");
    assert_near(rows[0].predicted, 2000, 1e-6);
    assert_near(rows[0].error, 50.0 / 1950, 1e-9);
    assert_int_equal(rows[0].inside, 1);
    assert_near(rows[1].error, 0, 1e-9);
    assert_near(rows[2].error, -0.2, 1e-9);
    assert_near(rows[3].error, -0.5, 1e-6);
    assert_int_equal(rows[3].bytes, 1);
    assert_string_equal(rows[3].what, "peak memory");
    run.wait_seconds = 8; /* a trainer that waits for batches never sees full queues */
    leat_plan_compare(&p, &run, rows);
    assert_string_equal(rows[3].what, "peak memory, at most");
    run = (leat_plan_run){.samples_per_s = 2200}; /* unknown values make no row */
    assert_int_equal(leat_plan_compare(&p, &run, rows), 1);
    assert_int_equal(rows[0].inside, 0);
}

/* 1000 samples in batches of 64 are 16; so are they with 63, but not with 32. */
static void another_batch_is_seen(void **state)
{
    leat_plan p = plan_of(guide_facts());
    leat_plan_run run = {.epochs = 2, .samples = 2000, .batches = 32};
    (void)state;
    p.facts.batch = 64;
    assert_int_equal(leat__plan_other_batch(&p, &run), 0);
    p.facts.batch = 32;
    assert_int_equal(leat__plan_other_batch(&p, &run), 63);
    run.batches = 0; /* not known */
    assert_int_equal(leat__plan_other_batch(&p, &run), 0);
}

/* Random facts, sensible and absurd: a plan or an error, parts that add up, and a result that
 * does not get worse with more memory. */
static void any_facts_give_a_sound_plan(void **state)
{
    static const char *const gpus[] = {"", "T4", "A10G", "H200", "Abacus"};
    static const uint64_t scales[] = {2, 100, 5000, UINT64_C(1) << 20, UINT64_C(1) << 62};
    uint64_t made = 0, runs = test_count("LEAT_TEST_PLANS", 3000);
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 8, 0, 0, 0);
    /* mostly small, sometimes absurd */
#define PICK leat__rng_below(&r, scales[leat__rng_below(&r, leat__rng_below(&r, 40) != 0 ? 3 : 5)])
    for (uint64_t i = 0; i < runs; i++) {
        leat_plan_facts f;
        leat_plan p;
        leat_error err = {0};
        leat_plan_facts_init(&f);
        f.nodes = (uint32_t)leat__rng_below(&r, 4);
        f.cpus = (uint32_t)PICK;
        f.gpus = (uint32_t)leat__rng_below(&r, 10);
        f.ram_bytes = PICK * 1000000;
        f.ram_used_bytes = f.ram_bytes / (1 + leat__rng_below(&r, 20));
        f.vram_bytes = PICK * 1000;
        f.whole_machine = leat__rng_below(&r, 2) != 0;
        f.samples = PICK;
        f.sample_bytes = PICK;
        f.width = (uint32_t)PICK;
        f.height = (uint32_t)PICK;
        f.images = (uint32_t)leat__rng_below(&r, 4);
        f.batch = leat__rng_below(&r, 3) != 0 ? leat__rng_below(&r, 600) : PICK;
        f.image = leat__rng_below(&r, 3) != 0 ? 224 : (uint32_t)PICK;
        f.precision = (uint32_t)leat__rng_below(&r, 5);
        f.optimizer = (uint32_t)leat__rng_below(&r, 4);
        f.loader = (uint32_t)leat__rng_below(&r, 2);
        f.preset = (uint32_t)leat__rng_below(&r, 4);
        f.workers = (int32_t)PICK - 1;
        f.prefetch = (uint32_t)PICK;
        f.memory_bytes = leat__rng_below(&r, 2) != 0 ? PICK * 1000 : 0;
        f.measured.cpu_us.mid = f.measured.cpu_us.low = f.measured.cpu_us.high = (double)PICK;
        snprintf(f.gpu, sizeof f.gpu, "%s", gpus[leat__rng_below(&r, LEAT_COUNT(gpus))]);
        snprintf(f.model, sizeof f.model, "%s", leat__arch_at((uint32_t)leat__rng_below(&r, 14))->name);
        int rc = leat_plan_make(&f, &p, sizeof p, &err);
        if (rc != 0) {
            assert_true(rc == LEAT_EINVAL || rc == LEAT_EOVERFLOW);
            assert_true(err.message[0] != '\0');
            continue;
        }
        made++;
        const leat_plan_ram *m = &p.ram;
        assert_int_equal(m->total, m->os + m->framework + m->used + m->queue + m->assembling + m->pinned +
                                       m->workers + m->pages);
        assert_true(m->with_validation >= m->total);
        assert_true(p.speed.rate.low <= p.speed.rate.mid && p.speed.rate.mid <= p.speed.rate.high);
        assert_true(p.fits != 0 || p.fix[0] != '\0');
        assert_true(p.note_count <= LEAT_PLAN_NOTES);
        if (p.vram.verdict == LEAT_PLAN_SAFE)
            assert_true(p.vram.largest_batch >= leat__plan_batch_samples(&p.facts));
        if (m->limit > 0 && m->limit < UINT64_C(1) << 54) {
            leat_plan more;
            f.ram_bytes *= 2;
            assert_ok(leat_plan_make(&f, &more, sizeof more, &err));
            assert_true(more.ram.verdict <= m->verdict);
        }
    }
#undef PICK
    assert_true(made > runs / 20);
    assert_no_leaks();
}

/* More memory, CPUs, storage rate or GPU memory: a safe plan is not refused, and is not slower. */
static void more_of_anything_is_never_worse(void **state)
{
    static const char *const names[] = {"RAM", "CPUs", "storage", "GPU memory"};
    uint64_t safe = 0;
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 21, 0, 0, 0);
    for (uint64_t i = 0; i < test_count("LEAT_TEST_PLANS", 200); i++) {
        leat_plan_facts f = random_facts(&r);
        leat_plan p = plan_of(f);
        if (p.fits != 1) continue;
        safe++;
        for (int k = 0; k < 4; k++) {
            leat_plan_facts g = f;
            leat_plan_range *io = &g.measured.io_bytes_per_s;
            double times = 1.05 + (double)leat__rng_below(&r, 200) / 50;
            if (k == 0) g.ram_bytes = (uint64_t)((double)g.ram_bytes * times);
            else if (k == 1) g.cpus = (uint32_t)(g.cpus * times + 1);
            else if (k == 2) *io = (leat_plan_range){io->low * times, io->mid * times, io->high * times};
            else g.vram_bytes = (uint64_t)((double)g.vram_bytes * times);
            leat_plan more = plan_of(g);
            if (more.fits != 1) fail_msg("case %d: more %s, then refused: %s", (int)i, names[k], more.fix);
            if (more.speed.rate.mid < 0.99 * p.speed.rate.mid)
                fail_msg("case %d: more %s, then %g samples/s instead of %g", (int)i, names[k],
                         more.speed.rate.mid, p.speed.rate.mid);
        }
    }
    assert_true(safe > 60);
}

/* Threads by the CPUs, where neither memory nor the cache in it has room for them. */
static void default_threads_fit_the_memory(void **state)
{
    leat_plan_facts f;
    (void)state;
    leat_plan_facts_init(&f);
    f.samples = 100000;
    f.batch = 256;
    f.element_bytes = 1;
    f.ram_bytes = 5 * GIB / 2;
    for (f.cpus = 16; f.cpus <= 512; f.cpus *= 2) {
        leat_plan p = plan_of(f);
        assert_int_equal(p.ram.verdict, LEAT_PLAN_SAFE);
        assert_true(p.config.workers >= 16);
    }
    f.workers = 512; /* given: refused as before */
    f.cpus = 512;
    assert_int_equal(plan_of(f).fits, 0);
    f.workers = 0;
    f.samples = 50000;
    f.batch = 64;
    f.prefetch = 8;
    f.epochs = 2;
    f.whole_machine = 1;
    f.ram_bytes = 16 * GIB;
    f.cache = PLAN_CACHE_PROCESS;
    snprintf(f.storage, sizeof f.storage, "hdd");
    double before = 0;
    for (f.cpus = 16; f.cpus <= 256; f.cpus *= 2) {
        double rate = plan_of(f).speed.rate.mid;
        assert_true(rate >= 0.99 * before);
        before = rate;
    }
}

static void words(void **state)
{
    (void)state;
    assert_string_equal(leat_plan_verdict_name(LEAT_PLAN_OUT_OF_MEMORY), "out of memory");
    assert_string_equal(leat_plan_verdict_name(77), "unknown");
    assert_string_equal(leat_plan_resource_name(LEAT_PLAN_H2D), "h2d");
    assert_string_equal(leat_plan_precision_name(LEAT_PLAN_FP16_MIXED), "16-mixed");
}

static int refuse(void *cookie, const char *text, size_t len)
{
    (void)text;
    *(size_t *)cookie = len;
    return LEAT_ECLOSED;
}

static void writing_returns_the_sinks_error(void **state)
{
    leat_plan p = plan_of(guide_facts());
    size_t len = 0;
    (void)state;
    assert_code(LEAT_ECLOSED, leat_plan_write(&p, LEAT_PLAN_PAGE, refuse, &len, NULL));
    assert_true(len > 500);
    if (leat__fault_available()) {
        leat__fault_arm(LEAT__FAULT_ALLOC, 1, true);
        assert_code(LEAT_ENOMEM, leat_plan_write(&p, LEAT_PLAN_JSON, refuse, &len, NULL));
        leat_error err = {0};
        leat_plan_facts f = guide_facts();
        assert_code(LEAT_ENOMEM, leat_plan_make(&f, &p, sizeof p, &err));
        leat__fault_disarm();
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_cache_are_as_requested), cmocka_unit_test(uncertain_gpus_leave_a_note),
        cmocka_unit_test(rules_of_thumb_leave_notes),       cmocka_unit_test(older_callers_are_served),
        cmocka_unit_test(comparison_gives_relative_errors), cmocka_unit_test(another_batch_is_seen),
        cmocka_unit_test(any_facts_give_a_sound_plan),      cmocka_unit_test(more_of_anything_is_never_worse),
        cmocka_unit_test(default_threads_fit_the_memory),   cmocka_unit_test(words),
        cmocka_unit_test(writing_returns_the_sinks_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
