/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

static const leat_plan_what_if *find_row(const leat_plan *p, const char *change)
{
    for (uint32_t i = 0; i < p->what_if_count; i++)
        if (strcmp(p->what_ifs[i].change, change) == 0) return &p->what_ifs[i];
    return NULL;
}

static void scale_cost(leat_plan_facts *f, const leat_plan_facts *before, const leat_plan_facts *after)
{
    double factor = leat__plan_table_us(after) / leat__plan_table_us(before);
    leat_plan_range *us = &f->measured.cpu_us;
    *us = (leat_plan_range){us->low * factor, us->mid * factor, us->high * factor};
}

/* Images stored in another way: bytes are left to the default, or scaled as those of a pack. */
static void store(leat_plan_facts *f, const leat_plan *p, uint32_t images, double mix)
{
    if (f->sample_bytes > 0) {
        f->sample_bytes = leat__plan_stored_bytes(&p->facts, images, mix);
        f->width = p->facts.width;
        f->height = p->facts.height;
    }
    f->images = images;
    f->mix_raw = mix;
    leat_plan_facts after = plan_of(*f).facts;
    scale_cost(f, &p->facts, &after);
}

/* The facts that a user gives for a row. */
static leat_plan_facts changed(const leat_plan_facts *given, const leat_plan *p, const leat_plan_what_if *w)
{
    leat_plan_facts f = *given;
    const char *c = w->change;
    unsigned n;
    if (strcmp(c, "--order quasi_random") == 0) f.order = PLAN_ORDER(LEAT_ORDER_QUASI);
    else if (strcmp(c, "leat pack --images tiled") == 0) store(&f, p, LEAT_PLAN_TILED, 0);
    else if (strcmp(c, "leat pack --images mix --mix-raw 0.5") == 0) store(&f, p, LEAT_PLAN_MIX, 0.5);
    else if (strcmp(c, "leat pack --images raw") == 0) store(&f, p, LEAT_PLAN_RAW, 0);
    else if (strcmp(c, "leat pack --max-side 400") == 0 || strcmp(c, "leat pack --quality 90") == 0) {
        double shrink = c[12] == 'm' ? 400.0 / LEAT_MAX(p->facts.width, p->facts.height) : 1;
        f.width = (uint32_t)(p->facts.width * shrink + 0.5);
        f.height = (uint32_t)(p->facts.height * shrink + 0.5);
        f.sample_bytes = w->dataset_bytes / f.samples;
        leat_plan_facts after = plan_of(f).facts;
        scale_cost(&f, &p->facts, &after);
    } else if (strncmp(c, "whole dataset", 13) == 0 || strstr(c, "disk:DIR") != NULL) {
        snprintf(f.storage, sizeof f.storage, "%s", c[0] == 'w' ? "memory" : "nvme");
        f.measured.io_bytes_per_s = (leat_plan_range){0};
    } else if (sscanf(c, "--cpus %u", &n) == 1) {
        f.cpus = n;
        if (sscanf(c, "--cpus %*u --%*s %u", &n) == 1) f.workers = (int)n;
    } else if (strcmp(c, "--cache process") == 0) f.cache = PLAN_CACHE_PROCESS;
    else if (sscanf(c, "--threads %u", &n) == 1 || sscanf(c, "--workers %u", &n) == 1) f.workers = (int)n;
    else if (strncmp(c, "--dtype u8", 10) == 0) f.element_bytes = 1;
    else if (strncmp(c, "--loader leat", 13) == 0) {
        f.loader = LEAT_PLAN_LEAT;
        if (strstr(c, "no --cpu-us") != NULL) f.measured.cpu_us = (leat_plan_range){0};
        if (strstr(c, "--images tiled") != NULL) store(&f, p, LEAT_PLAN_TILED, 0);
        assert_non_null(strstr(c, f.element_bytes == 4 ? "--dtype f32" : "--dtype u8"));
    } else fail_msg("an unknown change: %s", c);
    return f;
}

/* Each row is the plan that is made with its change, and the gain is relative to the rate of the plan. */
static void rows_are_plans_with_the_change(void **state)
{
    uint64_t rows = 0;
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 20, 0, 0, 0);
    for (uint64_t i = 0; i < test_count("LEAT_TEST_PLANS", 200); i++) {
        leat_plan_facts f = random_facts(&r);
        leat_plan p = plan_of(f);
        for (uint32_t k = 0; k < p.what_if_count; k++, rows++) {
            const leat_plan_what_if *w = &p.what_ifs[k];
            leat_plan then = plan_of(changed(&f, &p, w));
            double rate = then.speed.rate.mid;
            if (rate < 0.99 * w->rate || rate > 1.01 * w->rate)
                fail_msg("case %d, %s: %g samples/s in the row, %g in the plan", (int)i, w->change, w->rate,
                         rate);
            assert_near(w->gain, w->rate / p.speed.rate.mid, 1e-9);
            assert_int_equal(w->limit, then.speed.limit);
            assert_true(p.fits != 0 && then.fits != 0);
        }
    }
    assert_true(rows > 200);
}

/* A rate that memory limits: more cores and larger images bring nothing. */
static void memory_limits_the_rows_too(void **state)
{
    leat_plan_facts f;
    (void)state;
    leat_plan_facts_init(&f);
    f.cpus = 16;
    f.samples = 100000;
    f.batch = 64;
    f.element_bytes = 1;
    f.whole_machine = 1;
    f.ram_bytes = 500 * GIB;
    snprintf(f.isa, sizeof f.isa, "avx512icl");
    for (f.epochs = 1; f.epochs <= 2; f.epochs++) {
        leat_plan p = plan_of(f);
        assert_near(p.speed.rate.mid, 8e9 / 110000, 1);
        assert_int_equal(p.speed.limit, LEAT_PLAN_IO);
        assert_contains(p.no_gain, "leat pack --images raw");
        assert_contains(p.no_gain, "--cpus 32");
    }
}

/* Threads are whole numbers for each GPU: twice the CPUs are not always twice the threads. */
static void cores_bring_what_their_threads_do(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    snprintf(f.model, sizeof f.model, "resnet152");
    snprintf(f.gpu, sizeof f.gpu, "A100");
    f.samples = 100000;
    f.gpus = f.cpus = 4;
    f.ram_bytes = 500 * GIB;
    f.measured.cpu_us = (leat_plan_range){2900, 3000, 3100};
    f.measured.io_bytes_per_s = (leat_plan_range){5e9, 5e9, 5e9};
    leat_plan p = plan_of(f);
    assert_null(find_row(&p, "--cpus 8")); /* one thread for each GPU, before and after */
    f.gpus = 2;
    snprintf(f.model, sizeof f.model, "vit_s");
    snprintf(f.gpu, sizeof f.gpu, "B200");
    p = plan_of(f);
    assert_near(find_row(&p, "--cpus 8")->gain, 3, 1e-6); /* 1 thread for each GPU, then 3 */
    snprintf(f.cpu, sizeof f.cpu, "a CPU");               /* of this machine: --cpus means others */
    p = plan_of(f);
    assert_non_null(find_row(&p, "twice the cores"));
}

/* Gains are relative to a rate that the plan reaches: one that does not fit reaches none. */
static void a_plan_that_does_not_fit_has_no_rows(void **state)
{
    leat_plan_facts f = guide_facts();
    bool noted = false;
    (void)state;
    snprintf(f.storage, sizeof f.storage, "hdd");
    assert_true(plan_of(f).what_if_count > 0);
    f.batch = 5000;
    leat_plan p = plan_of(f);
    assert_int_equal(p.fits, 0);
    assert_int_equal(p.what_if_count, 0);
    assert_string_equal(p.no_gain, "");
    for (uint32_t i = 0; i < p.note_count; i++) noted |= strstr(p.notes[i], "no what-if rows") != NULL;
    assert_true(noted);
}

/* What a disk cache keeps is read from the second epoch on. */
static void a_disk_cache_needs_a_second_epoch(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    snprintf(f.gpu, sizeof f.gpu, "A100");
    snprintf(f.storage, sizeof f.storage, "bucket");
    f.ram_bytes = 50 * GIB;
    f.samples = 400000; /* 44 GB: not all stays in memory */
    f.measured.io_bytes_per_s = (leat_plan_range){10e6, 12e6, 12.5e6};
    leat_plan p = plan_of(f);
    assert_null(find_row(&p, "leat load --cache disk:DIR, on NVMe"));
    f.epochs = 2;
    p = plan_of(f);
    assert_true(find_row(&p, "leat load --cache disk:DIR, on NVMe")->gain > 10);
}

/* Ops before the crop work on the whole image: smaller images make them cheaper. */
static void smaller_images_have_cheaper_ops(void **state)
{
    static const char *const before = "GaussianBlur(23); RandomResizedCrop(224)",
                             *const after = "RandomResizedCrop(224); GaussianBlur(23)";
    leat_plan_facts f = guide_facts();
    double gain[2][2];
    bool sure;
    (void)state;
    f.gpus = 0;
    f.width = f.height = 2000;
    f.sample_bytes = 200000;
    snprintf(f.isa, sizeof f.isa, "avx2");
    snprintf(f.storage, sizeof f.storage, "memory");
    for (int early = 0; early < 2; early++)
        for (int measured = 0; measured < 2; measured++) {
            f.ops = early ? before : after;
            assert_true(leat__plan_ops_us(f.ops, f.isa, f.width, f.height, &f.ops_us, &sure));
            f.measured.cpu_us = measured ? (leat_plan_range){9e4, 1e5, 1.1e5} : (leat_plan_range){0};
            const leat_plan plan = plan_of(f);
            const leat_plan_what_if *row = find_row(&plan, "leat pack --max-side 400");
            assert_non_null(row);
            gain[early][measured] = row->gain;
        }
    assert_true(gain[1][0] > 15); /* 25 times fewer pixels, and nearly all of the time is in the op */
    assert_true(gain[1][0] > 2 * gain[0][0]);
    assert_near(gain[1][1], gain[1][0], 0.01 * gain[1][0]);
    assert_near(gain[0][1], gain[0][0], 0.01 * gain[0][0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_plans_with_the_change),
        cmocka_unit_test(memory_limits_the_rows_too),
        cmocka_unit_test(cores_bring_what_their_threads_do),
        cmocka_unit_test(a_disk_cache_needs_a_second_epoch),
        cmocka_unit_test(a_plan_that_does_not_fit_has_no_rows),
        cmocka_unit_test(smaller_images_have_cheaper_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
