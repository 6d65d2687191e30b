/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include "doctor/work.h"
#include "loader/tiny_pack.h"

#define PACK "doctor-work.leat"
#define SAMPLES 64

static uint64_t ids[SAMPLES];

static int setup(void **state)
{
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = SAMPLES, .classes = 3, .bad_every = 16});
    for (uint64_t i = 0; i < SAMPLES; i++) ids[i] = i;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(PACK);
}

static void augmentation_is_stripped_from_a_text(void **state)
{
    static const struct {
        const char *from, *to;
        leat__ops_part part;
    } rows[] = {
        {"RandomResizedCrop(224, scale=(0.08, 1)); RandomHorizontalFlip(); ColorJitter(0.4); ToDtype(f16)",
         "RandomResizedCrop(224, scale=(0.08, 1)); ToDtype(f16)", LEAT__OPS_CROP_ONLY},
        {"Resize(256);CenterCrop(224)", "Resize(256); CenterCrop(224)", LEAT__OPS_CROP_ONLY},
        {"RandomResizedCrop(32); Normalize(mean=(0.5,0.5,0.5), std=(1,1,1)); ToDtype(f32); ToLayout(nhwc)",
         "RandomResizedCrop(32); ToLayout(nhwc)", LEAT__OPS_PLAIN_U8},
        {"RandomResizedCrop(8); RandomApply(ColorJitter(0.4); GaussianBlur(9), p=0.3); ToDtype(f16)",
         "RandomResizedCrop(8); ToDtype(f16)", LEAT__OPS_CROP_ONLY},
        {"RandomChoice([CenterCrop(8); Resize((8, 8))]); RandomInvert()",
         "RandomChoice([CenterCrop(8); Resize((8, 8))])", LEAT__OPS_CROP_ONLY},
        {"RandomOrder(RandomInvert(); # one (\n CenterCrop(8)) # two\nNormalize(0, 1)\nCenterCrop(8)",
         "RandomOrder(RandomInvert(); # one (\n CenterCrop(8)) ; CenterCrop(8)", LEAT__OPS_PLAIN_U8},
        {"", "", LEAT__OPS_CROP_ONLY},
        {" ;; ", "", LEAT__OPS_PLAIN_U8},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat__buf out;
        leat__buf_init(&out, LEAT__MEM_DOCTOR, 4096);
        assert_ok(leat__ops_strip(rows[i].from, rows[i].part, &out));
        assert_string_equal(leat__buf_str(&out), rows[i].to);
        leat__buf_reset(&out);
    }
}

static leat_doctor_facts measured(const char *ops)
{
    leat_loader_opts o;
    leat_doctor_facts f;
    leat_error err = {0};
    double cpu_s;
    leat_loader_opts_init(&o);
    o.ops = ops;
    leat_doctor_facts_init(&f);
    int rc = leat__work_measure(PACK, ids, SAMPLES, &o, 2, 0.5, NULL, &f, &cpu_s, &err);
    if (rc != 0) fail_msg("%s", err.message);
    assert_true(cpu_s > 0);
    return f;
}

/* Fewer remedies than usual, and the facts say why. */
static void an_unusable_folder_for_files_is_a_fact(void **state)
{
    const char *was = getenv("TMPDIR");
    char keep[512];
    (void)state;
    snprintf(keep, sizeof keep, "%s", was != NULL ? was : "");
    setenv("TMPDIR", "no-such-folder", 1);
    leat_doctor_facts f = measured(NULL);
    setenv("TMPDIR", keep, 1);
    assert_true(f.cpu_all > 0);
    assert_near(f.no_files, 1, 0);
    leat_doctor_diagnosis d = judge(f);
    bool said = false;
    for (uint32_t i = 0; i < d.finding_count; i++) said |= strstr(d.findings[i], "$TMPDIR") != NULL;
    assert_true(said);
    f = measured(NULL);
    assert_true(f.no_files < 0);
}

/* Damaged samples are included: their cost counts, and they stop nothing. */
static void costs_are_measured_and_variants_priced(void **state)
{
    leat_doctor_facts f = measured("RandomResizedCrop(32); ToDtype(f32)");
    (void)state;
    assert_true(f.cpu_all > 0 && f.cpu_one > 0);
    assert_true(f.augment_share >= 0 && f.augment_share <= 1);
    assert_near(f.jpeg, 1, 1e-9);
    assert_near(f.out_pixels, 1024, 0);
    assert_near(f.out_bytes, 1024 * 3 * 4, 0);
    assert_true(f.pixels > 1000 && f.pixels < 10000);
    assert_true(f.option_count >= 3);
    bool u8 = false, tiled = false;
    for (uint32_t i = 0; i < f.option_count; i++) {
        u8 |= strcmp(f.options[i].set, "dtype=u8") == 0;
        tiled |= strstr(f.options[i].action, "tiled") != NULL;
        assert_true(f.options[i].cpu_all > 0);
    }
    assert_true(u8 && tiled);
    assert_no_leaks();
}

static void bytes_need_no_smaller_type(void **state)
{
    leat_doctor_facts f = measured("RandomResizedCrop(32)");
    (void)state;
    for (uint32_t i = 0; i < f.option_count; i++) assert_string_equal(f.options[i].set, "");
}

static void a_share_needs_both_measurements(void **state)
{
    (void)state;
    assert_near(leat__augment_share(0.004, 0.001), 0.75, 1e-9);
    assert_near(leat__augment_share(0.004, 0.005), 0, 0);
    assert_true(leat__augment_share(-1, -1) < 0); /* the time was over before one sample was
                                                   * finished */
    assert_true(leat__augment_share(0.004, -1) < 0);
    assert_true(leat__augment_share(0, 0.001) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unusable_folder_for_files_is_a_fact),
        cmocka_unit_test(a_share_needs_both_measurements),
        cmocka_unit_test(augmentation_is_stripped_from_a_text),
        cmocka_unit_test(costs_are_measured_and_variants_priced),
        cmocka_unit_test(bytes_need_no_smaller_type),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
