/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/device_decode.c through the loader: tiles decoded on the stand-in device, whose
 * kernels are the real ones run on the host, give the batches that the CPUs give.
 */
#include "device_packs.h"

static void the_same_batches(void **state)
{
    uint64_t bad;
    leat_loader_opts o = options();
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        o.threads = threads;
        assert_int_equal(compare(tiled, o, &bad), 2 * SAMPLES);
        assert_int_equal(bad, 0);
    }
    o.cache = LEAT_CACHE_PROCESS;
    assert_int_equal(compare(tiled, o, &bad), 2 * SAMPLES);
    assert_int_equal(compare(half, o, &bad), SAMPLES); /* JPEGs in the same batches: on the CPU */
    assert_int_equal(compare(kept, o, &bad), 0);
}

static void several_views(void **state)
{
    uint64_t bad;
    leat_loader_opts o = options();
    const leat_loader_image images[] = {{.name = "a", .ops = "RandomResizedCrop(16)"},
                                        {.name = "b", .ops = "RandomResizedCrop(20); ToLayout(nhwc)"},
                                        {.name = "c", .ops = "Resize((9, 12), lanczos)"}};
    o.ops = NULL;
    o.images = images;
    o.image_count = 2;
    assert_int_equal(compare(tiled, o, &bad), 4 * SAMPLES);
    o.image_count = 3; /* one that the CPU has to make: then it makes all of them */
    assert_int_equal(compare(tiled, o, &bad), 0);
}

static void damaged_tiles_meet_the_same_policy(void **state)
{
    uint64_t bad;
    leat_loader_opts o = options();
    o.on_error = LEAT_ON_ERROR_SKIP;
    compare(damaged, o, &bad);
    assert_true(bad > 10);
    o.on_error = LEAT_ON_ERROR_REPLACE;
    compare(damaged, o, &bad);
    assert_true(bad > 10);
    o.on_error = LEAT_ON_ERROR_FAIL;
    compare(damaged, o, &bad);
    /* several views: a bad sample counts once, and candidates that the device finds bad are skipped */
    const leat_loader_image images[] = {{.name = "a", .ops = "RandomResizedCrop(16)"},
                                        {.name = "b", .ops = "RandomResizedCrop(20); ToLayout(nhwc)"}};
    o.ops = NULL;
    o.images = images;
    o.image_count = 2;
    o.on_error = LEAT_ON_ERROR_REPLACE;
    for (o.seed = 0; o.seed < 4; o.seed++) compare(damaged, o, &bad);
    assert_true(bad > 10);
}

static void tiles_stay_on_the_device(void **state)
{
    uint64_t bad;
    leat_loader_opts o = options();
    const leat_loader_image images[] = {{.name = "a", .ops = "RandomResizedCrop(16)"},
                                        {.name = "b", .ops = "RandomResizedCrop(20); ToLayout(nhwc)"}};
    o.cache = LEAT_CACHE_DEVICE;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        o.threads = threads;
        assert_int_equal(compare(tiled, o, &bad), 2 * SAMPLES);
        assert_int_equal(cached, SAMPLES);
    }
    o.device_memory = leat__to_device_reserve(o.batch_size * 24 * 24 * 3 * 2) + (1 << 16);
    assert_int_equal(compare(tiled, o, &bad), 2 * SAMPLES);
    assert_true(cached > 0 && cached < SAMPLES); /* the rest is streamed */
    o.device_memory = 0;
    compare(half, o, &bad);
    assert_int_equal(cached, SAMPLES / 2);
    compare(damaged, o, &bad); /* the policy is to fail */
    o.on_error = LEAT_ON_ERROR_SKIP;
    compare(damaged, o, &bad);
    assert_true(bad > 10 && cached > 100 && cached < SAMPLES);
    o.on_error = LEAT_ON_ERROR_FAIL;
    o.ops = NULL;
    o.images = images;
    o.image_count = 2;
    assert_int_equal(compare(tiled, o, &bad), 4 * SAMPLES);
    assert_int_equal(cached, SAMPLES);
}

/* What is resident is neither read nor copied again. */
static void later_epochs_read_nothing(void **state)
{
    leat_loader_opts o = options();
    leat_loader *l;
    uint64_t copied[3], before = 0;
    o.device = "cuda";
    o.cache = LEAT_CACHE_DEVICE;
    assert_ok(leat_loader_open(&l, tiled, &o, NULL));
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        leat_batch *b;
        leat_loader_stats s = {0};
        assert_ok(leat_loader_begin(l, epoch, NULL));
        while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) leat_batch_release(&b);
        assert_ok(leat_loader_read(l, &s, sizeof s));
        /* a batch of large images may find its arena full: then they stay in the next epoch */
        assert_true(s.device_cached_images == SAMPLES || epoch == 0);
        assert_true(s.device_cached_bytes > 0 && s.device_used >= s.device_cached_bytes);
        if (epoch != 1) assert_int_equal(s.read_bytes > 0, epoch == 0);
        copied[epoch] = s.copied_bytes - before;
        before = s.copied_bytes;
    }
    assert_true(copied[2] < copied[0]);
    leat_loader_close(&l);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void impossible_options_are_refused(void **state)
{
    leat_loader_opts o = options();
    leat_loader *l;
    leat_error err = {0};
    o.decode = LEAT_DECODE_GPU;
    assert_int_equal(leat_loader_open(&l, tiled, &o, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "decode gpu needs a device (cuda or cuda:N)");
    o.device = "cuda";
    o.digest = 1;
    assert_int_equal(leat_loader_open(&l, tiled, &o, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "decode gpu: digest hashes pixels on the host");
    o.digest = 0;
    o.ops = "RandomResizedCrop(16); GaussianBlur(3)";
    assert_int_equal(leat_loader_open(&l, tiled, &o, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "decode gpu: GaussianBlur runs on the host");
    o.ops = "RandomResizedCrop(16)";
    go_wrong("module");
    setenv("LEAT_NVRTC", "/nowhere/libnvrtc.so", 1);
    assert_int_equal(leat_loader_open(&l, tiled, &o, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "NVRTC"));
    o.decode = LEAT_DECODE_AUTO; /* then it means the CPU */
    assert_ok(leat_loader_open(&l, tiled, &o, NULL));
    leat_batch *b;
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    leat_batch_release(&b);
    leat_loader_close(&l);
    setenv("LEAT_NVRTC", fake_path, 1);
    go_wrong("");
    o.decode = (leat_decode)3;
    assert_int_equal(leat_loader_open(&l, tiled, &o, &err), LEAT_EINVAL);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* A consumer that waits for every batch: auto moves decoding to the device, and the bytes stay. */
static void auto_moves_by_itself(void **state)
{
    leat_loader_opts o = options();
    leat_loader *host, *device;
    leat_batch *a, *b;
    leat_loader_stats s = {0};
    o.threads = 1;
    o.batch_size = 4;
    assert_ok(leat_loader_open(&host, tiled, &o, NULL));
    o.device = "cuda";
    assert_ok(leat_loader_open(&device, tiled, &o, NULL));
    for (uint64_t epoch = 0; epoch < 6; epoch++) {
        assert_ok(leat_loader_begin(host, epoch, NULL));
        assert_ok(leat_loader_begin(device, epoch, NULL));
        for (;;) {
            assert_ok(leat_loader_next(host, &a, -1, NULL));
            assert_ok(leat_loader_next(device, &b, -1, NULL));
            if (a == NULL) break;
            assert_memory_equal(a->fields[0].data, b->fields[0].data, a->samples * 3 * 24 * 24 * 2);
            leat_batch_release(&a);
            leat_batch_release(&b);
        }
    }
    assert_ok(leat_loader_read(device, &s, sizeof s));
    assert_true(s.device_share >= 0 && s.device_share <= 1);
    leat_loader_close(&host);
    leat_loader_close(&device);
    assert_int_equal(fake_cuda.held(), 0);
}

static void each_failing_call_ends_in_an_error(void **state)
{
    leat_loader_opts o = options();
    o.threads = 1;
    o.batch_size = 16;
    uint64_t few[20];
    for (uint64_t i = 0; i < LEAT_COUNT(few); i++) few[i] = i;
    o.indices = few;
    o.index_count = LEAT_COUNT(few);
    o.device = "cuda";
    o.cache = LEAT_CACHE_DEVICE;
    int calls = 0, failed = 0;
    for (int i = 0; i <= calls; i++) {
        int before = fake_cuda.calls();
        leat_loader *l = NULL;
        leat_batch *b = NULL;
        leat_error err = {0};
        fake_cuda.fail_at(i > 0 ? before + i : 0);
        int rc = leat_loader_open(&l, tiled, &o, &err);
        while (rc == 0 && (rc = leat_loader_next(l, &b, -1, &err)) == 0 && b != NULL) leat_batch_release(&b);
        leat_loader_close(&l);
        fake_cuda.fail_at(0);
        if (i == 0) {
            assert_int_equal(rc, 0);
            calls = fake_cuda.calls() - before;
        }
        failed += rc != 0;
        if (rc != 0) assert_true(err.message[0] != '\0');
        assert_int_equal(leat__mem_blocks(), 0);
    }
    assert_true(failed > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_batches),
        cmocka_unit_test(several_views),
        cmocka_unit_test(damaged_tiles_meet_the_same_policy),
        cmocka_unit_test(tiles_stay_on_the_device),
        cmocka_unit_test(later_epochs_read_nothing),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(auto_moves_by_itself),
        cmocka_unit_test(each_failing_call_ends_in_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
