/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/device_mix.c through the loader: batches mixed on the stand-in device, whose kernels
 * are the real ones run on the host, equal those that the CPUs mix, bit for bit.
 */
#include "device_packs.h"

static leat_loader_opts mixed(const char *ops)
{
    leat_loader_opts o = options();
    o.ops = ops;
    o.classes = 5;
    return o;
}

static void the_same_mixed_batches(void **state)
{
    static const char *const ends[] = {"MixUp()", "CutMix()", "MixUp(0.4, p=0.5)", "MixUp(0.2); CutMix()",
                                       "MixUp(0.2, p=0.5); CutMix(unmixed=true)"};
    static const char *const types[] = {
        "ToDtype(u8)", "ToDtype(u8); ToLayout(nhwc)", "Normalize(0.5, 0.25); ToDtype(f16)",
        "Normalize(0.4, 0.2); ToDtype(bf16); ToLayout(nhwc)", "Normalize(0.5, 0.25); ToDtype(f32)"};
    uint64_t bad;
    for (size_t i = 0; i < LEAT_COUNT(types); i++) {
        for (size_t k = i % 2; k < LEAT_COUNT(ends); k += 2) {
            char ops[160];
            snprintf(ops, sizeof ops, "RandomResizedCrop((19, 23)); RandomHorizontalFlip(); %s; %s", types[i],
                     ends[k]);
            leat_loader_opts o = mixed(ops);
            o.threads = 1 + k % 2;
            assert_int_equal(compare(k == 1 ? half : tiled, o, &bad), k == 1 ? SAMPLES : 2 * SAMPLES);
            assert_int_equal(bad, 0);
        }
    }
}

static void the_cpus_make_what_has_no_room_on_the_device(void **state)
{
    uint64_t bad;
    leat_loader_opts o = mixed("RandomResizedCrop(12); MixUp(0.4, p=0.5); CutMix()");
    o.device_memory = least_device_memory(o);
    assert_true(compare(tiled, o, &bad) < 2 * SAMPLES);
    assert_int_equal(bad, 0);
}

static void pairs_and_views(void **state)
{
    uint64_t bad;
    leat_loader_opts o = mixed("RandomResizedCrop(24); CutMix(p=0.6)");
    const leat_loader_image images[] = {{.name = "a", .ops = "RandomResizedCrop(16); MixUp()"},
                                        {.name = "b", .ops = "Resize((20, 9)); ToLayout(nhwc); MixUp()"}};
    o.classes = 0;
    o.mix_labels = LEAT_MIX_LABELS_PAIRS;
    assert_int_equal(compare(tiled, o, &bad), 2 * SAMPLES);
    o.cache = LEAT_CACHE_DEVICE;
    assert_int_equal(compare(tiled, o, &bad), 2 * SAMPLES);
    o = mixed(NULL);
    o.images = images;
    o.image_count = 2;
    assert_int_equal(compare(tiled, o, &bad), 4 * SAMPLES);
}

/* Damage is known only after decoding: then the host mixes the rows that are left. */
static void damaged_rows_are_left_out_before_mixing(void **state)
{
    static const leat_on_error policies[] = {LEAT_ON_ERROR_SKIP, LEAT_ON_ERROR_REPLACE, LEAT_ON_ERROR_FAIL};
    uint64_t bad;
    for (size_t i = 0; i < 2 * LEAT_COUNT(policies); i++) {
        leat_loader_opts o = mixed("RandomResizedCrop(24); MixUp(); CutMix()");
        o.on_error = policies[i / 2];
        if (i % 2) {
            o.ops = "RandomResizedCrop(24); MixUp()";
            o.classes = 0;
            o.mix_labels = LEAT_MIX_LABELS_PAIRS;
        }
        compare(damaged, o, &bad);
        assert_true(o.on_error == LEAT_ON_ERROR_FAIL || bad > 10);
    }
    leat_loader_opts o = mixed("RandomResizedCrop(24); MixUp()");
    o.classes = 4; /* samples of the class 4 are bad, which the host knows before decoding */
    o.on_error = LEAT_ON_ERROR_SKIP;
    compare(tiled, o, &bad);
    assert_true(bad >= SAMPLES / 5);
}

static void it_resumes_inside_a_batch(void **state)
{
    uint64_t bad;
    leat_loader_opts o = mixed("RandomResizedCrop(24); MixUp()");
    for (resume_at = 1; resume_at < 40; resume_at += 22) compare(tiled, o, &bad);
    o.on_error = LEAT_ON_ERROR_SKIP;
    for (resume_at = 9; resume_at < 40; resume_at += 22) compare(damaged, o, &bad);
    resume_at = 0;
}

static void mosaic_stays_on_the_host(void **state)
{
    leat_loader_opts o = options();
    leat_loader *l;
    leat_error err = {0};
    o.ops = "Resize((24, 24)); Mosaic()";
    o.device = "cuda";
    o.decode = LEAT_DECODE_GPU;
    assert_int_equal(leat_loader_open(&l, tiled, &o, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "decode gpu: Mosaic and CopyPaste mix pixels on the host");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_mixed_batches),
        cmocka_unit_test(the_cpus_make_what_has_no_room_on_the_device),
        cmocka_unit_test(pairs_and_views),
        cmocka_unit_test(damaged_rows_are_left_out_before_mixing),
        cmocka_unit_test(it_resumes_inside_a_batch),
        cmocka_unit_test(mosaic_stays_on_the_host),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
