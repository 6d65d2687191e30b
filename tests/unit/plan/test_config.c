/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

/* (cores − devices) / devices, and never below one. */
static void workers_follow_the_guides(void **state)
{
    (void)state;
    assert_int_equal(leat__plan_default_workers(16, 1), 15);
    assert_int_equal(leat__plan_default_workers(16, 4), 3);
    assert_int_equal(leat__plan_default_workers(96, 8), 11);
    assert_int_equal(leat__plan_default_workers(8, 8), 1);
    assert_int_equal(leat__plan_default_workers(2, 8), 1);
    assert_int_equal(leat__plan_default_workers(8, 0), 8);
    leat_plan_facts f = guide_facts();
    f.workers = -1;
    assert_int_equal(plan_of(f).config.workers, 16);
    f.workers = 5;
    assert_int_equal(plan_of(f).config.workers, 5);
}

static bool has_note(const leat_plan *p, const char *words)
{
    for (uint32_t i = 0; i < p->note_count; i++)
        if (strstr(p->notes[i], words) != NULL) return true;
    return false;
}

/* 16 CPUs and 3 GPUs: 3 trainers and 3 x 4 threads. */
static void cpus_left_over_are_named(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 3;
    f.ram_bytes = 500 * GIB;
    leat_plan p = plan_of(f);
    assert_int_equal(p.config.workers, 4);
    assert_true(has_note(&p, "1 of 16 CPUs is not used: each of the 3 GPUs has the same number of threads"));
    assert_int_equal(p.scales[p.scale_count - 1].gpus, 3);
    assert_int_equal(p.scales[p.scale_count - 1].unused_cpus, 1);
    assert_int_equal(p.scales[0].unused_cpus, 0);
    f.workers = -1;
    f.loader = LEAT_PLAN_PROCESS;
    p = plan_of(f);
    assert_true(has_note(&p, "1 of 16 CPUs is not used: each of the 3 GPUs has the same number of workers"));
    for (int i = 0; i < 3; i++) { /* a number that was given, that all GPUs share, that is small on purpose */
        f = guide_facts();
        f.ram_bytes = 500 * GIB;
        f.gpus = i == 1 ? 4 : 3;
        f.workers = i == 0 ? 4 : 0;
        f.preset = i == 2 ? LEAT_PLAN_CONSERVATIVE : LEAT_PLAN_PRESET_NONE;
        p = plan_of(f);
        assert_false(has_note(&p, "not used"));
    }
}

/* The guide's three summaries on its 16 cores. */
static void presets_are_the_guides(void **state)
{
    static const struct {
        uint32_t preset;
        uint64_t batch;
        uint32_t workers, prefetch, compile;
    } known[] = {
        {LEAT_PLAN_CONSERVATIVE, 192, 8, 2, 0},
        {LEAT_PLAN_BALANCED, 256, 12, 3, 1},
        {LEAT_PLAN_AGGRESSIVE, 320, 16, 4, 1},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(known); i++) {
        leat_plan_facts f = guide_facts();
        f.preset = known[i].preset;
        leat_plan p = plan_of(f);
        assert_int_equal(p.config.batch, known[i].batch);
        assert_int_equal(p.config.workers, known[i].workers);
        assert_int_equal(p.config.prefetch, known[i].prefetch);
        assert_int_equal(p.config.compile, known[i].compile);
    }
    leat_plan_facts f = guide_facts(); /* a given value overrides the preset */
    f.preset = LEAT_PLAN_AGGRESSIVE;
    f.batch = 100;
    assert_int_equal(plan_of(f).config.batch, 100);
    assert_int_equal(plan_of(f).config.workers, 16);
}

/* Without a preset, leat's loader chooses how many batches it makes ahead; worker processes do not. */
static void prefetch_is_the_loaders_own(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.loader = LEAT_PLAN_LEAT;
    f.prefetch = 0;
    f.batch = 8;
    assert_int_equal(plan_of(f).config.prefetch, 4);
    f.batch = 1;
    f.element_bytes = 1;
    assert_int_equal(plan_of(f).config.prefetch, 32);
    f.prefetch = 3;
    assert_int_equal(plan_of(f).config.prefetch, 3);
    f.prefetch = 0;
    f.loader = LEAT_PLAN_PROCESS;
    assert_int_equal(plan_of(f).config.prefetch, 3);
}

/* "lr 0.5 for 256, 0.625 or 0.75 for 320 or 384, 0.375 or 0.25 for 192 or 128." */
static void the_learning_rate_is_linear(void **state)
{
    static const double known[][2] = {{256, 0.5},  {320, 0.625}, {384, 0.75}, {192, 0.375},
                                      {128, 0.25}, {512, 1.0},   {1024, 2.0}, {2048, 4.0}};
    leat_plan_facts f = guide_facts();
    (void)state;
    f = plan_of(f).facts;
    for (size_t i = 0; i < LEAT_COUNT(known); i++)
        assert_near(leat__plan_lr(&f, (uint64_t)known[i][0]), known[i][1], 1e-12);
}

static void precision_and_optimizer_have_sensible_defaults(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    assert_int_equal(plan_of(f).config.precision, LEAT_PLAN_BF16_MIXED);
    assert_int_equal(plan_of(f).facts.optimizer, LEAT_PLAN_MOMENTUM);
    snprintf(f.gpu, sizeof f.gpu, "Tesla T4"); /* no bf16 */
    snprintf(f.model, sizeof f.model, "ViT-B/16");
    f.batch = 32;
    assert_int_equal(plan_of(f).config.precision, LEAT_PLAN_FP16_MIXED);
    assert_int_equal(plan_of(f).facts.optimizer, LEAT_PLAN_ADAMW);
    assert_string_equal(plan_of(f).facts.model, "vit_b");
}

static void impossible_facts_are_named(void **state)
{
    leat_error err = {0};
    leat_plan p;
    leat_plan_facts f = guide_facts();
    (void)state;
    snprintf(f.model, sizeof f.model, "resnet51");
    assert_code(LEAT_EINVAL, leat_plan_make(&f, &p, sizeof p, &err));
    assert_contains(err.message, "did you mean 'resnet50'");
    f = guide_facts();
    snprintf(f.gpu, sizeof f.gpu, "Abacus 9");
    assert_code(LEAT_EINVAL, leat_plan_make(&f, &p, sizeof p, &err));
    assert_contains(err.message, "Abacus 9");
    f = guide_facts();
    f.batch = UINT64_MAX;
    assert_code(LEAT_EINVAL, leat_plan_make(&f, &p, sizeof p, &err));
    assert_contains(err.message, "batch");
    f = guide_facts();
    f.workers = -7;
    assert_code(LEAT_EINVAL, leat_plan_make(&f, &p, sizeof p, &err));
    f = guide_facts();
    snprintf(f.model, sizeof f.model, "generic");
    assert_code(LEAT_EINVAL, leat_plan_make(&f, &p, sizeof p, &err));
    f = guide_facts();
    f.element_bytes = 3;
    assert_code(LEAT_EINVAL, leat_plan_make(&f, &p, sizeof p, &err));
    f.struct_size = 0;
    assert_code(LEAT_EINVAL, leat_plan_make(&f, &p, sizeof p, &err));
    assert_no_leaks();
}

/* Larger images have more bytes: raw ones are never smaller than the encoded ones. */
static void an_unknown_size_follows_from_the_bytes(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    assert_int_equal(plan_of(f).facts.width, 500);
    f.sample_bytes = 4 * LEAT__PLAN_SAMPLE;
    leat_plan p = plan_of(f);
    assert_int_equal(p.facts.width, 1000);
    assert_int_equal(p.facts.height, 750);
    assert_contains(p.notes[0], "1000 x 750 assumed, by the bytes of a sample");
    assert_true(leat__plan_stored_bytes(&p.facts, LEAT_PLAN_RAW, 0) > f.sample_bytes);
    f.images = LEAT_PLAN_RAW;
    f.sample_bytes = UINT64_C(3) * 1000 * 750;
    assert_int_equal(plan_of(f).facts.width, 1000);
}

static void too_many_workers_leave_a_note(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.workers = 32;
    leat_plan p = plan_of(f);
    assert_true(p.note_count > 0);
    assert_contains(p.notes[p.note_count > 2 ? 2 : p.note_count - 1], "32 workers on 16 usable CPUs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_follow_the_guides),
        cmocka_unit_test(cpus_left_over_are_named),
        cmocka_unit_test(presets_are_the_guides),
        cmocka_unit_test(prefetch_is_the_loaders_own),
        cmocka_unit_test(the_learning_rate_is_linear),
        cmocka_unit_test(precision_and_optimizer_have_sensible_defaults),
        cmocka_unit_test(impossible_facts_are_named),
        cmocka_unit_test(an_unknown_size_follows_from_the_bytes),
        cmocka_unit_test(too_many_workers_leave_a_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
