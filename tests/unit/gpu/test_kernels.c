/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/gpu/kernels.c: loading, launching, and each call failing. What the kernels compute is
 * tested in op/device_plan.
 */
#include "fake_driver.h"

#include "base/mem.h"
#include "gpu/kernels.h"
#include "gpu/kernels_data.h"

static void the_source_is_one_text(void **state)
{
    assert_non_null(strstr(leat__kernels_source, "leat_tiles(leat_job job)"));
    assert_non_null(strstr(leat__kernels_source, "typedef struct leat_job_tile"));
    assert_null(strstr(leat__kernels_source, "#include \""));
}

/* Three rows of two bytes, mixed only when no image is damaged. */
static int mix_rows(leat__gpu_kernels *k, leat__gpu_stream *s, uint32_t *status, leat_error *err)
{
    uint8_t rows[6] = {0, 10, 100, 20, 200, 30};
    leat_job job = {.status = status, .image_count = 1};
    LEAT_TRY(leat__gpu_kernels_mix(k, s, &job, err)); /* no elements: no launch */
    job.mix = (leat_job_mix){.data = (uint64_t)(uintptr_t)rows,
                             .rows = 3,
                             .row_elements = 2,
                             .elements = 2,
                             .dtype = LEAT_JOB_U8,
                             .weight = 0.75f,
                             .rest = 0.25f};
    status[0] = 16;
    LEAT_TRY(leat__gpu_kernels_mix(k, s, &job, err));
    leat__gpu_stream_drain(s);
    assert_memory_equal(rows, ((uint8_t[]){0, 10, 100, 20, 200, 30}), 6);
    status[0] = LEAT_JOB_NO_DAMAGE;
    LEAT_TRY(leat__gpu_kernels_mix(k, s, &job, err));
    leat__gpu_stream_drain(s);
    assert_memory_equal(rows, ((uint8_t[]){50, 15, 75, 18, 175, 28}), 6);
    return 0;
}

/* Ranges that do not follow each other, of 1, 5 and 300 lines. */
static int gather_ranges(leat__gpu *gpu, leat__gpu_kernels *k, leat__gpu_stream *s, leat_error *err)
{
    enum { PAGES = 65536 };
    static const uint32_t lines[] = {1, 5, 300}, from[] = {7, 100, 8}, to[] = {400, 0, 20};
    uint8_t *host = aligned_alloc(4096, PAGES);
    leat__gpu_memory there = 0, seen;
    leat_job_range ranges[3];
    leat_job job = {.ranges = ranges, .range_count = 3};
    int rc;
    LEAT_GO(rc, out, leat__gpu_kernels_gather(k, s, &job, err)); /* no lines: no launch */
    for (size_t i = 0; i < PAGES; i++) host[i] = (uint8_t)(i * 31 >> 3);
    LEAT_GO(rc, out, leat__gpu_map_pages(gpu, host, PAGES, &seen, err));
    rc = leat__gpu_alloc(gpu, PAGES, &there, err);
    for (uint32_t i = 0; rc == 0 && i < 3; i++) {
        ranges[i] = (leat_job_range){.from = seen + from[i] * LEAT_JOB_LINE,
                                     .to = there + to[i] * LEAT_JOB_LINE,
                                     .first = job.lines,
                                     .lines = lines[i]};
        job.lines += lines[i];
    }
    if (rc == 0) memset((void *)(uintptr_t)there, 0, PAGES);
    if (rc == 0) rc = leat__gpu_kernels_gather(k, s, &job, err);
    leat__gpu_stream_drain(s);
    for (uint32_t i = 0; rc == 0 && i < 3; i++) {
        const uint8_t *const got = (const uint8_t *)(uintptr_t)ranges[i].to;
        assert_memory_equal(got, host + from[i] * LEAT_JOB_LINE, lines[i] * LEAT_JOB_LINE);
        assert_int_equal(got[lines[i] * LEAT_JOB_LINE], 0); /* and nothing more */
    }
    leat__gpu_free(gpu, there);
    leat__gpu_unlock_pages(gpu, host);
out:
    free(host);
    return rc;
}

static int run_empty(leat__gpu *gpu, leat_error *err)
{
    leat__gpu_kernels *k = NULL;
    leat__gpu_stream *s = NULL;
    leat_job job = {0};
    static leat_job_image image; /* of no size: nothing is read or written */
    int rc;
    LEAT_GO(rc, out, leat__gpu_stream_open(&s, gpu, err));
    LEAT_GO(rc, out, leat__gpu_kernels_open(&k, gpu, err));
    assert_non_null(leat__gpu_kernels_origin(k));
    LEAT_GO(rc, out, leat__gpu_kernels_decode(k, s, &job, err)); /* no images: no launch */
    static leat_job_output output;
    image.h = image.v = 1;
    image.ax.filter = image.ay.filter = 2;
    image.ax.in = image.ay.in = 1;
    image.ax.out = image.ay.out = 2;
    job = (leat_job){.images = &image, .outputs = &output, .image_count = 1, .tile_count = 1};
    static leat_job_tile tile;
    static uint32_t status[1];
    static uint8_t data[16];
    job.tiles = &tile;
    job.status = status;
    image.data = (uint64_t)(uintptr_t)data;
    status[0] = LEAT_JOB_NO_DAMAGE;
    LEAT_GO(rc, out, leat__gpu_kernels_decode(k, s, &job, err));
    leat__gpu_stream_drain(s);
    assert_true(status[0] != LEAT_JOB_NO_DAMAGE); /* a tile of 0 bytes is too short */
    LEAT_GO(rc, out, mix_rows(k, s, status, err));
    LEAT_GO(rc, out, gather_ranges(gpu, k, s, err));
out:
    leat__gpu_kernels_close(&k);
    leat__gpu_stream_close(&s);
    return rc;
}

static void they_load_and_run(void **state)
{
    leat__gpu *gpu;
    leat_error err = {0};
    go_wrong("");
    assert_int_equal(leat__gpu_open(&gpu, 0, fake_path, NULL), 0);
    assert_int_equal(run_empty(gpu, &err), 0);
    int before = fake_cuda.calls();
    assert_int_equal(run_empty(gpu, &err), 0);
    int calls = fake_cuda.calls() - before, failed = 0;
    for (int i = 1; i <= calls; i++) {
        fake_cuda.fail_at(fake_cuda.calls() + i);
        failed += run_empty(gpu, &err) != 0;
        fake_cuda.fail_at(0);
        assert_int_equal(leat__mem_blocks(), 1); /* the device */
    }
    assert_true(failed >= 6);
    go_wrong("module");
    setenv("LEAT_NVRTC", "/nowhere/libnvrtc.so", 1);
    assert_int_equal(run_empty(gpu, &err), LEAT_ENOTSUP);
    setenv("LEAT_NVRTC", fake_path, 1);
    go_wrong("");
    leat__gpu_close(&gpu);
}

static void loaders_of_one_context_share_a_module(void **state)
{
    leat__gpu *gpu, *other;
    leat__gpu_kernels *first = NULL, *second = NULL, *third = NULL;
    assert_int_equal(leat__gpu_open(&gpu, 0, fake_path, NULL), 0);
    assert_int_equal(leat__gpu_open(&other, 0, fake_path, NULL), 0);
    assert_int_equal(leat__gpu_kernels_open(&first, gpu, NULL), 0);
    const size_t blocks = leat__mem_blocks();
    go_wrong("module"); /* nothing is loaded again */
    assert_int_equal(leat__gpu_kernels_open(&second, other, NULL), 0);
    assert_int_equal(leat__mem_blocks(), blocks + 1);
    assert_string_equal(leat__gpu_kernels_origin(first), leat__gpu_kernels_origin(second));
    leat__gpu_kernels_close(&first); /* the other one keeps the module */
    assert_int_equal(leat__gpu_kernels_open(&third, gpu, NULL), 0);
    leat__gpu_kernels_close(&second);
    leat__gpu_kernels_close(&third);
    setenv("LEAT_NVRTC", "/nowhere/libnvrtc.so", 1);
    assert_true(leat__gpu_kernels_open(&first, gpu, NULL) != 0); /* the last one has unloaded it */
    setenv("LEAT_NVRTC", fake_path, 1);
    go_wrong("");
    leat__gpu_close(&gpu);
    leat__gpu_close(&other);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_source_is_one_text),
        cmocka_unit_test(they_load_and_run),
        cmocka_unit_test(loaders_of_one_context_share_a_module),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
