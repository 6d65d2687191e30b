/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

static leat_plan_machine machine(leat_plan_kind kind, uint64_t amount, const leat_plan_facts *f)
{
    leat_plan_machine m;
    leat_error err = {0};
    int rc = leat_plan_recommend(kind, amount, f, &m, &err);
    if (rc != 0) fail_msg("%s", err.message);
    return m;
}

/* Lightly: up to 100,000, up to one million, more. */
static void the_three_image_rows_on_each_side_of_their_edges(void **state)
{
    static const struct {
        uint64_t images;
        const char *name;
        uint32_t cpus, ram_gb;
    } rows[] = {
        {1, "g4dn.xlarge", 4, 16},         {100000, "g4dn.xlarge", 4, 16},
        {100001, "g4dn.2xlarge", 8, 32},   {1000000, "g4dn.2xlarge", 8, 32},
        {1000001, "g4dn.4xlarge", 16, 64}, {500000000, "g4dn.4xlarge", 16, 64},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_plan_machine m = machine(LEAT_PLAN_KIND_IMAGES, rows[i].images, NULL);
        assert_string_equal(m.name, rows[i].name);
        assert_int_equal(m.cpus, rows[i].cpus);
        assert_int_equal(m.ram_bytes, rows[i].ram_gb * UINT64_C(1000000000));
        assert_string_equal(m.gpu, "T4");
        assert_int_equal(m.fits, 1);
        assert_int_equal(m.raised, 0);
        assert_int_equal(m.rule_ram_bytes, 4 * rows[i].cpus * UINT64_C(1000000000));
        assert_contains(m.source, "Lightly");
    }
}

/* 100 videos of 600 s at 30 fps have 1.8 million frames: the third row. */
static void frames_come_from_length_and_rate(void **state)
{
    uint64_t frames = leat_plan_frames(100 * 600 / 3600.0, 30);
    (void)state;
    assert_int_equal(frames, 1800000);
    assert_string_equal(machine(LEAT_PLAN_KIND_IMAGES, frames, NULL).name, "g4dn.4xlarge");
    assert_int_equal(leat_plan_frames(-1, 30), 0);
}

/* A row whose machine would run out of memory is never recommended. */
static void memory_model_overrides_the_guide(void **state)
{
    leat_plan_facts f;
    (void)state;
    leat_plan_facts_init(&f);
    f.loader = LEAT_PLAN_PROCESS;
    f.workers = 6;
    f.prefetch = 5;
    leat_plan_machine m = machine(LEAT_PLAN_KIND_IMAGES, 5000, &f);
    assert_string_equal(m.name, "g4dn.2xlarge");
    assert_int_equal(m.raised, 1);
    assert_true(m.ram_needed_bytes <= m.ram_bytes);
    snprintf(f.model, sizeof f.model, "vit_l"); /* 256 of these do not fit a T4 */
    f.workers = f.prefetch = 1;
    m = machine(LEAT_PLAN_KIND_IMAGES, 5000, &f);
    assert_int_equal(m.fits, 0);
    assert_contains(m.note, "GPU with more memory");
    assert_string_equal(m.name, "");
    f.batch = 8;
    assert_int_equal(machine(LEAT_PLAN_KIND_IMAGES, 5000, &f).fits, 1);
}

/* NeMo, text: < 10 GB, 10–100, 100–500, 500 GB–1 TB, > 1 TB. Documents are few and large here, so
 * that only the size matters. */
static void the_five_text_rows_on_each_side_of_their_edges(void **state)
{
    const uint64_t gb = 1000000000;
    const struct {
        uint64_t bytes;
        uint32_t row, nodes_low, nodes_high, gpus_low, gpus_high, ram_gb;
    } rows[] = {
        {gb, 0, 1, 1, 1, 1, 32},
        {10 * gb - 1, 0, 1, 1, 1, 1, 32},
        {10 * gb, 1, 1, 1, 4, 4, 64},
        {100 * gb, 1, 1, 1, 4, 4, 64},
        {100 * gb + 1, 2, 2, 4, 8, 16, 128},
        {500 * gb, 2, 2, 4, 8, 16, 128},
        {500 * gb + 1, 3, 4, 8, 16, 32, 256},
        {1000 * gb, 3, 4, 8, 16, 32, 256},
        {1000 * gb + 1, 4, 8, 8, 32, 32, 512},
    };
    leat_plan_facts f;
    (void)state;
    leat_plan_facts_init(&f);
    f.samples = 1000;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_plan_machine m = machine(LEAT_PLAN_KIND_TEXT, rows[i].bytes, &f);
        assert_int_equal(m.row, rows[i].row);
        assert_int_equal(m.nodes_low, rows[i].nodes_low);
        assert_int_equal(m.nodes_high, rows[i].nodes_high);
        assert_int_equal(m.gpus_low, rows[i].gpus_low);
        assert_int_equal(m.gpus_high, rows[i].gpus_high);
        assert_int_equal(m.ram_bytes, rows[i].ram_gb * gb);
        assert_int_equal(m.open_ended, rows[i].row == 4);
        assert_int_equal(m.fits, 1);
    }
}

static void text_with_too_many_documents_is_raised(void **state)
{
    leat_plan_facts f;
    (void)state;
    leat_plan_facts_init(&f);
    f.samples = 500000000; /* 9 GB of tweets: one band of 20 needs 52 GB by the guide's formula */
    leat_plan_machine m = machine(LEAT_PLAN_KIND_TEXT, UINT64_C(9000000000), &f);
    assert_int_equal(m.row, 1);
    assert_int_equal(m.raised, 1);
    f.samples = UINT64_C(100000000000); /* past 8 × 512 GB there are as many nodes as needed */
    m = machine(LEAT_PLAN_KIND_TEXT, UINT64_C(2000000000000), &f);
    assert_int_equal(m.row, 4);
    assert_true(m.nodes_low > 8);
    assert_true(m.nodes_low * m.ram_bytes >= m.ram_needed_bytes);
}

/* NeMo, video: < 1,000, 1K–10K, 10K–100K, > 100K. */
static void the_four_video_rows_on_each_side_of_their_edges(void **state)
{
    static const struct {
        uint64_t videos;
        uint32_t row, nodes_low, nodes_high, gpus_low, gpus_high;
    } rows[] = {
        {1, 0, 1, 1, 1, 2},        {999, 0, 1, 1, 1, 2},     {1000, 1, 1, 2, 4, 8},
        {10000, 1, 1, 2, 4, 8},    {10001, 2, 4, 8, 16, 32}, {100000, 2, 4, 8, 16, 32},
        {100001, 3, 8, 8, 32, 32},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_plan_machine m = machine(LEAT_PLAN_KIND_VIDEO, rows[i].videos, NULL);
        assert_int_equal(m.row, rows[i].row);
        assert_int_equal(m.nodes_low, rows[i].nodes_low);
        assert_int_equal(m.nodes_high, rows[i].nodes_high);
        assert_int_equal(m.gpus_low, rows[i].gpus_low);
        assert_int_equal(m.gpus_high, rows[i].gpus_high);
        assert_int_equal(m.open_ended, rows[i].row == 3);
    }
    leat_plan_machine m;
    assert_code(LEAT_EINVAL, leat_plan_recommend((leat_plan_kind)9, 1, NULL, &m, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_image_rows_on_each_side_of_their_edges),
        cmocka_unit_test(frames_come_from_length_and_rate),
        cmocka_unit_test(memory_model_overrides_the_guide),
        cmocka_unit_test(the_five_text_rows_on_each_side_of_their_edges),
        cmocka_unit_test(text_with_too_many_documents_is_raised),
        cmocka_unit_test(the_four_video_rows_on_each_side_of_their_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
