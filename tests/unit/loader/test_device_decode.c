/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/device_decode.c through the loader: tiles decoded on the stand-in device, whose
 * kernels are the real ones run on the host, give the batches that the CPUs give.
 */
#include <math.h>

#include "device_packs.h"
#include "loader/setup.h"

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

static void the_cpus_decode_what_has_no_room_on_the_device(void **state)
{
    uint64_t bad;
    leat_loader_opts o = options();
    o.prefetch = 3;
    o.device_memory = least_device_memory(o);
    assert_true(compare(tiled, o, &bad) < 2 * SAMPLES);
    o.device_memory += o.device_memory / 2; /* for some batches */
    compare(tiled, o, &bad);
    o.on_error = LEAT_ON_ERROR_SKIP;
    compare(damaged, o, &bad);
    assert_true(bad > 10);
    o.on_error = LEAT_ON_ERROR_REPLACE;
    compare(damaged, o, &bad);
    assert_true(bad > 10);
}

/* Two epochs; returns the advice that they brought, of which there is at most one. */
static const char *advice_after(leat_loader *l, double *share)
{
    leat_loader_stats s = {0};
    leat_batch *b;
    assert_null(leat_loader_advice(l, 0));
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        assert_ok(leat_loader_begin(l, epoch, NULL));
        while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) leat_batch_release(&b);
    }
    assert_ok(leat_loader_read(l, &s, sizeof s));
    *share = s.device_share;
    assert_null(leat_loader_advice(l, 1));
    return leat_loader_advice(l, 0);
}

static void a_device_that_decodes_nothing_is_told(void **state)
{
    const struct {
        const char *path, *ops;
        leat_cache cache;
        const char *told;
        double share;
    } cases[] = {
        {kept, "RandomResizedCrop(16)", LEAT_CACHE_OS, "decode=gpu has no effect", 0},
        {kept, "RandomResizedCrop(16)", LEAT_CACHE_DEVICE, "not tiled", 0},
        {tiled, "Resize((57, 61), interpolation=lanczos)", LEAT_CACHE_OS, "need the CPUs", 0},
        {tiled, "Resize((57, 61), like=fast)", LEAT_CACHE_DEVICE, "cache=device has no effect", 0},
        {tiled, "RandomResizedCrop(16)", LEAT_CACHE_OS, NULL, 1},
        {half, "RandomResizedCrop(16)", LEAT_CACHE_OS, NULL, 0.5},
    };
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        leat_loader_opts o = options();
        leat_loader *l;
        double share;
        o.device = "cuda";
        o.decode = LEAT_DECODE_GPU;
        o.ops = cases[i].ops;
        o.cache = cases[i].cache;
        assert_ok(leat_loader_open(&l, cases[i].path, &o, NULL));
        const char *text = advice_after(l, &share);
        if ((text != NULL) != (cases[i].told != NULL) ||
            (text != NULL && strstr(text, cases[i].told) == NULL))
            fail_msg("%zu: %s (%g)", i, text != NULL ? text : "no advice", share);
        assert_true(fabs(share - cases[i].share) < (cases[i].share == 0.5 ? 0.2 : 1e-9));
        leat_loader_close(&l);
    }
}

static void little_device_memory_is_told(void **state)
{
    leat_loader_opts o = options();
    leat_loader *l;
    double share;
    o.prefetch = 1;
    o.batch_size = 32;
    o.device_memory = least_device_memory(o);
    o.device = "cuda";
    o.decode = LEAT_DECODE_GPU;
    assert_ok(leat_loader_open(&l, tiled, &o, NULL));
    const char *text = advice_after(l, &share);
    assert_non_null(text);
    assert_non_null(strstr(text, "Too little of device_memory"));
    assert_true(share == 0);
    leat_loader_close(&l);
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
    uint64_t copied[3], all = 0;
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
        copied[epoch] = s.copied_bytes;
        all += s.copied_bytes;
        assert_ok(leat_loader_read_all(l, &s, sizeof s));
        assert_int_equal(s.copied_bytes, all);
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

/* auto beside the CPUs: the bytes stay, wherever the share of the device goes. With `shares` the share
 * changes after each batch: runs for the device alone are longer than those that CPUs decode. */
static void auto_beside_cpus(leat_loader_opts o, const uint32_t *shares, uint32_t count)
{
    leat_loader *host, *device;
    leat_batch *a, *b;
    leat_loader_stats s = {0};
    assert_ok(leat_loader_open(&host, tiled, &o, NULL));
    o.device = "cuda";
    assert_ok(leat_loader_open(&device, tiled, &o, NULL));
    if (count > 0) assert_true(device->run_listed > device->run_samples);
    for (uint64_t epoch = 0, n = 0; epoch < 6; epoch++) {
        if (count > 0) device->env.device_share = shares[n % count];
        assert_ok(leat_loader_begin(host, epoch, NULL));
        assert_ok(leat_loader_begin(device, epoch, NULL));
        for (;; n++) {
            assert_ok(leat_loader_next(host, &a, -1, NULL));
            assert_ok(leat_loader_next(device, &b, -1, NULL));
            if (a == NULL) break;
            assert_int_equal(a->samples, b->samples);
            assert_memory_equal(a->fields[0].data, b->fields[0].data, a->samples * 3 * 24 * 24 * 2);
            leat_batch_release(&a);
            leat_batch_release(&b);
            if (count > 0) device->env.device_share = shares[n % count];
        }
    }
    assert_ok(leat_loader_read_all(device, &s, sizeof s));
    assert_true(s.device_share >= 0 && s.device_share <= 1);
    if (count > 0) assert_in_range(s.device_images, 1, 6 * SAMPLES);
    leat_loader_close(&host);
    leat_loader_close(&device);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void auto_moves_by_itself(void **state)
{
    static const uint32_t shares[] = {LEAT__SHARE_WHOLE, LEAT__SHARE_WHOLE, LEAT__SHARE_WHOLE / 3, 0};
    leat_loader_opts o = options();
    o.threads = 1;
    o.batch_size = 4;
    auto_beside_cpus(o, NULL, 0); /* a consumer that waits for every batch */
    o.threads = 3;
    o.batch_size = 30;
    o.cache = LEAT_CACHE_PROCESS;
    auto_beside_cpus(o, shares, LEAT_COUNT(shares));
    o.cache = LEAT_CACHE_OS;
    auto_beside_cpus(o, shares, LEAT_COUNT(shares));
}

/* Drops all pages that are not pinned, while nothing that is queued runs; later batches then read pages into
 * the memory of others. */
static void drop_pages(leat_loader *l, uint64_t memory)
{
    usleep(20000);
    for (uint64_t bytes = memory; leat_loader_memory_set(l, bytes, NULL) == 0;) bytes -= bytes / 8;
    assert_ok(leat_loader_memory_set(l, memory, NULL));
    usleep(20000);
}

/* Cached pages that are page-locked are read by the device: at least four epochs, and until that has
 * happened, beside the same from the CPUs. */
static void gather_epochs(const char *path, leat_loader_opts o, bool drops)
{
    leat_loader *host, *device;
    leat_batch *a, *b;
    leat_loader_stats s = {0};
    const uint64_t before = fake_cuda.gathered();
    o.memory = 256 << 20;
    assert_ok(leat_loader_open(&host, path, &o, NULL));
    o.cache = LEAT_CACHE_PROCESS;
    o.device = "cuda";
    o.decode = LEAT_DECODE_GPU;
    assert_ok(leat_loader_open(&device, path, &o, NULL));
    for (uint64_t epoch = 0; epoch < 1000 && (epoch < 4 || fake_cuda.gathered() == before); epoch++) {
        assert_ok(leat_loader_begin(host, epoch, NULL));
        fake_cuda.hold(drops);
        assert_ok(leat_loader_begin(device, epoch, NULL));
        if (drops) drop_pages(device, o.memory);
        fake_cuda.hold(0);
        for (;;) {
            assert_ok(leat_loader_next(host, &a, -1, NULL));
            assert_ok(leat_loader_next(device, &b, -1, NULL));
            assert_int_equal(a == NULL, b == NULL);
            if (a == NULL) break;
            assert_memory_equal(a->sample_ids, b->sample_ids, a->samples * 8);
            assert_memory_equal(a->fields[0].data, b->fields[0].data, a->samples * 3 * 24 * 24 * 2);
            leat_batch_release(&a);
            leat_batch_release(&b);
        }
    }
    assert_true(fake_cuda.gathered() > before);
    assert_ok(leat_loader_read_all(device, &s, sizeof s));
    assert_true(s.copied_bytes > fake_cuda.gathered() - before); /* they came over the bus, too */
    leat_loader_close(&host);
    leat_loader_close(&device);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void cached_pages_are_read_in_place(void **state)
{
    leat_loader_opts o = options();
    for (o.threads = 1; o.threads <= 3; o.threads += 2) {
        gather_epochs(tiled, o, false);
        gather_epochs(half, o, false); /* JPEGs in the same batches: on the CPU */
    }
    o.order = LEAT_ORDER_SEQUENTIAL;
    gather_epochs(half, o, false);
}

static void pages_stay_until_the_device_has_read_them(void **state)
{
    leat_loader_opts o = options();
    o.batch_size = 2; /* few pages of all */
    gather_epochs(half, o, true);
    o.threads = 1;
    gather_epochs(half, o, true);
}

/* Where memory cannot be mapped, it is copied. */
static void without_mapping_pages_are_copied(void **state)
{
    uint64_t bad;
    leat_loader_opts o = options();
    o.cache = LEAT_CACHE_PROCESS;
    o.memory = 256 << 20;
    const uint64_t before = fake_cuda.gathered();
    go_wrong("map");
    assert_int_equal(compare(tiled, o, &bad), 2 * SAMPLES);
    go_wrong("");
    assert_int_equal(fake_cuda.gathered(), before);
}

static void fail_each_call(leat_cache cache)
{
    leat_loader_opts o = options();
    o.threads = 1;
    o.batch_size = 16;
    uint64_t few[20];
    for (uint64_t i = 0; i < LEAT_COUNT(few); i++) few[i] = i;
    o.indices = few;
    o.index_count = LEAT_COUNT(few);
    o.device = "cuda";
    o.decode = LEAT_DECODE_GPU;
    o.cache = cache;
    o.memory = 256 << 20;
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

static void each_failing_call_ends_in_an_error(void **state)
{
    fail_each_call(LEAT_CACHE_DEVICE);
    fail_each_call(LEAT_CACHE_PROCESS); /* what fails of mapping is only reported */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_batches),
        cmocka_unit_test(several_views),
        cmocka_unit_test(damaged_tiles_meet_the_same_policy),
        cmocka_unit_test(the_cpus_decode_what_has_no_room_on_the_device),
        cmocka_unit_test(a_device_that_decodes_nothing_is_told),
        cmocka_unit_test(little_device_memory_is_told),
        cmocka_unit_test(tiles_stay_on_the_device),
        cmocka_unit_test(later_epochs_read_nothing),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(auto_moves_by_itself),
        cmocka_unit_test(cached_pages_are_read_in_place),
        cmocka_unit_test(pages_stay_until_the_device_has_read_them),
        cmocka_unit_test(without_mapping_pages_are_copied),
        cmocka_unit_test(each_failing_call_ends_in_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
