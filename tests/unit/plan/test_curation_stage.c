/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include <string.h>

static leat_plan_stage made(const char *name, uint64_t amount, const leat_plan_facts *f)
{
    leat_plan_stage s;
    leat_error err = {0};
    if (leat_plan_stage_make(name, amount, f, &s, &err) != 0) fail_msg("%s", err.message);
    return s;
}

/* The rows of the guide: batch, memory, documents or clips per second. */
static void every_row_of_the_guide_is_reproduced(void **state)
{
    static const struct {
        const char *name, *unit;
        uint32_t batch, gb;
        double per_s;
    } rows[] = {
        {"QualityClassifier", "documents", 64, 8, 1000}, {"FineWebEduClassifier", "documents", 32, 12, 500},
        {"AegisClassifier", "documents", 16, 16, 200},   {"TransNetV2", "clips", 1, 8, 2},
        {"CaptionGeneration", "clips", 1, 24, 0.5},      {"CosmosEmbed1", "clips", 4, 12, 4}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_plan_stage s = made(rows[i].name, 0, NULL);
        assert_string_equal(s.name, rows[i].name);
        assert_string_equal(s.unit, rows[i].unit);
        assert_int_equal(s.batch, rows[i].batch);
        assert_int_equal(s.vram_bytes, rows[i].gb * PLAN_GB);
        assert_near(s.per_s, rows[i].per_s, 1e-9);
        assert_near(s.seconds, 0, 0);
        assert_int_equal(s.fits, 1);
    }
}

static void gpus_share_the_amount(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpus = 4;
    leat_plan_stage s = made("quality classifier", 8000000, &f);
    assert_near(s.per_s, 4000, 1e-9);
    assert_near(s.seconds, 2000, 1e-9);
    assert_int_equal(s.fits, 1);
    snprintf(f.gpu, sizeof f.gpu, "T4");
    assert_int_equal(made("caption", 10, &f).fits, 0); /* 24 GB on a card of 15 GiB */
    f.vram_bytes = 40 * GIB;
    assert_int_equal(made("caption", 10, &f).fits, 1);
}

static void an_unknown_name_lists_the_known_ones(void **state)
{
    leat_plan_stage s;
    leat_error err = {0};
    (void)state;
    assert_int_equal(leat_plan_stage_make("nothing", 1, NULL, &s, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "CosmosEmbed1"));
    assert_int_equal(leat_plan_stage_make("", 1, NULL, &s, &err), LEAT_EINVAL);
}

/* Its memory could not be checked. */
static void an_unknown_gpu_is_refused(void **state)
{
    leat_plan_facts f = guide_facts();
    leat_plan_stage s;
    leat_error err = {0};
    (void)state;
    snprintf(f.gpu, sizeof f.gpu, "A1000");
    assert_int_equal(leat_plan_stage_make("caption", 1, &f, &s, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "unknown GPU 'A1000'"));
    f.vram_bytes = 40 * GIB;
    assert_int_equal(made("caption", 10, &f).fits, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_guide_is_reproduced),
        cmocka_unit_test(gpus_share_the_amount),
        cmocka_unit_test(an_unknown_name_lists_the_known_ones),
        cmocka_unit_test(an_unknown_gpu_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
