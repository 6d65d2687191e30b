/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

static char *page(leat_plan_facts f, bool ascii)
{
    leat_plan p = plan_of(f);
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_PLAN, 1 << 20);
    leat__plan_page(&p, &out, ascii);
    return leat__buf_take(&out, NULL);
}

static void the_page_names_what_matters(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    snprintf(f.storage, sizeof f.storage, "nvme");
    char *text = page(f, false);
    assert_contains(text, "ResNet-50 on 1 GPU (A10G) and ");
    assert_contains(text, "Host memory, per node:");
    assert_contains(text, "GPU memory:");
    assert_contains(text, "<- the limit");
    assert_contains(text, "<- the next one");
    assert_contains(text, "5005 iterations");
    assert_contains(text, "Largest batch that is safe:");
    assert_contains(text, "guide: 8 GB x GPUs + 5 GB");
    assert_null(strstr(text, "Does not fit"));
    leat__free(text);
}

static void plan_that_does_not_fit_ends_with_its_fix(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.loader = LEAT_PLAN_PROCESS;
    f.workers = 32;
    f.prefetch = 8;
    char *text = page(f, true);
    assert_contains(text, "out of memory");
    assert_contains(text, "buffer 58.9 GB");
    assert_contains(text, "Does not fit. Smallest change with which it fits: --workers");
    for (const char *c = text; *c != '\0'; c++) assert_true((unsigned char)*c < 128);
    leat__free(text);
}

/* From a slow disk the only epoch is what limits; a second one has a separate line. */
static void single_epoch_has_its_own_limit(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    snprintf(f.storage, sizeof f.storage, "hdd");
    f.samples = 100000;
    char *text = page(f, true);
    assert_contains(text, "  storage           200  (100 to 400)  table  <- the limit\n");
    assert_contains(text, "  together          200  (100 to 400)  nothing is in memory yet\n");
    assert_contains(text, "if there were one (--epochs)\n");
    assert_contains(text, "\n  now, in the 1st epoch                          200\n");
    leat__free(text);
    f.epochs = 2;
    text = page(f, true);
    assert_contains(text, "  1st epoch         200  (100 to 400)  nothing is in memory yet\n");
    assert_null(strstr(text, "if there were one"));
    leat__free(text);
}

/* 1 ms of CPU time per sample; two threads got 500/s, because others had three quarters of their CPUs. */
static void cores_say_what_they_are_based_on(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.measured.step_ms = (leat_plan_range){250, 256, 260}; /* 1,000/s */
    f.measured.cpu_us = (leat_plan_range){900, 1000, 1100};
    f.measured.rate_one = (leat_plan_range){240, 250, 260};
    f.measured.rate_all = (leat_plan_range){490, 500, 510};
    f.measured.threads = f.measured.cpus = 2;
    char *text = page(f, true);
    assert_contains(text, "1.00k samples/s: 4.0 cores as busy with other work as these, or 1.0 idle ones.\n");
    assert_contains(text, "the loader had 0.5 of 2 CPUs while it was measured");
    leat__free(text);
    f.measured.cpu_us = (leat_plan_range){3600, 4000, 4400}; /* no other load */
    text = page(f, true);
    assert_contains(text, "takes 1.00k samples/s: 4.0 cores.\n");
    leat__free(text);
}

/* A quota of 0.002 CPUs was one of 0.00. */
static void a_small_quota_is_not_nothing(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.cpus = 1;
    f.cpu_quota = 0.002;
    char *text = page(f, true);
    assert_contains(text, "a quota of 0.002 of 1 CPU,");
    leat__free(text);
}

/* Numbers with a point have at most three digits, whatever the plan is. */
static void figures_have_three_digits(void **state)
{
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 24, 0, 0, 0);
    for (int i = 0; i < 60; i++) {
        leat_plan_facts f = random_facts(&r);
        f.price_requests = 0.0004;
        f.price_other_region = 0.02;
        f.price_internet = 0.09;
        char *text = page(f, true);
        for (const char *c = text, *end; *c != '\0'; c = end + (*end != '\0')) {
            end = c + strcspn(c, " \n");
            size_t before = strspn(c, "0123456789(>$+"), after = 0, zeros = strspn(c, "0.($");
            if (c[before] == '.') after = strspn(c + before + 1, "0123456789");
            if (after > 0 && before + 1 + after - zeros > 4)
                fail_msg("case %d: %.*s in: %s", i, (int)(end - c), c, text);
        }
        leat__free(text);
    }
}

/* A bar is forty marks wide and as full as the memory. */
static void bars_have_their_length(void **state)
{
    leat_plan_facts f = guide_facts();
    leat_plan p = plan_of(f);
    (void)state;
    char *text = page(f, true);
    char *at = strchr(strstr(text, "Host memory"), '\n') + 3;
    size_t solid = strspn(at, "#"), light = strspn(at + solid, "+"), empty = strspn(at + solid + light, ".");
    assert_int_equal(solid + light + empty, 40);
    assert_int_equal(solid, (int)(40.0 * (double)p.ram.total / (double)p.ram.limit + 0.5));
    leat__free(text);
    f.gpus = 0;
    f.ram_bytes = 0;
    text = page(f, true);
    assert_contains(text, "limit not known");
    assert_null(strstr(text, "GPU memory"));
    leat__free(text);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_names_what_matters),
        cmocka_unit_test(plan_that_does_not_fit_ends_with_its_fix),
        cmocka_unit_test(single_epoch_has_its_own_limit),
        cmocka_unit_test(cores_say_what_they_are_based_on),
        cmocka_unit_test(a_small_quota_is_not_nothing),
        cmocka_unit_test(figures_have_three_digits),
        cmocka_unit_test(bars_have_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
