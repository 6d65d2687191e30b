/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/gpu/device.c against a stand-in driver (fake_cuda.c), against libraries that are
 * not a driver, and against what this machine has.
 */
#include "fake_driver.h"

#include "base/mem.h"
#include "base/num.h"
#include "gpu/device.h"

#define fake fake_path
#define held fake_cuda.held

static leat__gpu *open_fake(uint32_t index)
{
    leat__gpu *gpu = NULL;
    leat_error err = {0};
    go_wrong("");
    if (leat__gpu_open(&gpu, index, fake, &err) != 0) fail_msg("%s", err.message);
    return gpu;
}

static void a_device_says_what_it_is(void **state)
{
    uint32_t count = 0;
    leat_error err = {0};
    leat__gpu *gpu = open_fake(1);
    assert_int_equal(leat__gpu_count(fake, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_string_equal(leat__gpu_info_view(gpu)->name, "Fake CUDA 1");
    assert_int_equal(leat__gpu_info_view(gpu)->memory_bytes, UINT64_C(8) << 30);
    assert_int_equal(leat__gpu_info_view(gpu)->compute_major, 9);
    assert_int_equal(leat__gpu_info_view(gpu)->compute_minor, 0);
    leat__gpu_close(&gpu);
    assert_null(gpu);
    leat__gpu_close(&gpu);
    assert_int_equal(held(), 0);
}

static void pinned_memory_is_released(void **state)
{
    leat__gpu *gpu = open_fake(0);
    leat_error err = {0};
    void *memory;
    assert_int_equal(leat__gpu_pin(gpu, 1 << 20, &memory, &err), 0);
    memset(memory, 1, 1 << 20);
    leat__gpu_unpin(gpu, memory);
    leat__gpu_unpin(gpu, NULL);
    go_wrong("pin");
    assert_int_equal(leat__gpu_pin(gpu, 1 << 20, &memory, &err), LEAT_ENOMEM);
    assert_null(memory);
    assert_non_null(strstr(err.message, "CUDA_ERROR_OUT_OF_MEMORY"));
    leat__gpu_close(&gpu);
    assert_int_equal(held(), 0);
}

static void mapped_memory_is_released(void **state)
{
    leat__gpu *gpu = open_fake(0), *again = open_fake(0), *other = open_fake(1);
    leat_error err = {0};
    leat__gpu_memory address;
    void *memory = aligned_alloc(4096, 8192);
    assert_true(leat__gpu_same(gpu, again));
    assert_false(leat__gpu_same(gpu, other));
    assert_int_equal(leat__gpu_map_pages(gpu, memory, 8192, &address, &err), 0);
    assert_int_equal(address, (uint64_t)(uintptr_t)memory);
    assert_int_equal(fake_cuda.locked(), 1);
    leat__gpu_unlock_pages(gpu, memory);
    int calls = 3, failed = 0; /* the context, locking, the address */
    for (int i = 1; i <= calls; i++) {
        fake_cuda.fail_at(fake_cuda.calls() + i);
        failed += leat__gpu_map_pages(gpu, memory, 8192, &address, &err) != 0;
        fake_cuda.fail_at(0);
        assert_int_equal(fake_cuda.locked(), 0);
    }
    assert_int_equal(failed, calls);
    go_wrong("map");
    assert_int_equal(leat__gpu_map_pages(gpu, memory, 8192, &address, &err), LEAT_ENOMEM);
    assert_int_equal(address, 0);
    go_wrong("");
    leat__gpu_close(&gpu);
    leat__gpu_close(&again);
    leat__gpu_close(&other);
    free(memory);
    assert_int_equal(held(), 0);
}

/* The stand-in's bus is exact: what is measured may only be slower, by what timers and a busy
 * machine add. */
/* The stand-in sleeps as long as a copy takes, and longer on a busy machine: then it is asked again. */
static void rates_are_what_the_bus_gives(void **state)
{
    leat__gpu *gpu = open_fake(0);
    leat__gpu_rate pinned, plain;
    leat_error err = {0};
    bool near = false;
    for (int i = 0; i < 100 && !near; i++) {
        assert_int_equal(leat__gpu_copy_rate(gpu, true, &pinned, &err), 0);
        assert_int_equal(leat__gpu_copy_rate(gpu, false, &plain, &err), 0);
        assert_true(pinned.low <= pinned.mid && pinned.mid <= pinned.high && pinned.high <= 8e9);
        assert_true(plain.low <= plain.mid && plain.mid <= plain.high && plain.high <= 4e9);
        near = pinned.mid > 2e9 && plain.mid > 1e9 && pinned.mid > plain.mid;
    }
    assert_true(near);
    leat__gpu_close(&gpu);
    assert_int_equal(held(), 0);
}

static void trouble_is_named_and_nothing_stays(void **state)
{
    static const struct {
        const char *mode;
        int code;
        const char *words;
    } opening[] = {
        {"init", LEAT_EIO, "CUDA_ERROR_UNKNOWN"}, {"no device", LEAT_ENOTSUP, "CUDA_ERROR_NO_DEVICE"},
        {"none", LEAT_ENOTSUP, "no GPU"},         {"context", LEAT_EIO, "context"},
        {"nameless", LEAT_EIO, "unknown error"},
    };
    leat_error err = {0};
    leat__gpu *gpu = NULL;
    leat__gpu_rate rate;
    uint64_t blocks = leat__mem_blocks();
    for (size_t i = 0; i < LEAT_COUNT(opening); i++) {
        go_wrong(opening[i].mode);
        assert_int_equal(leat__gpu_open(&gpu, 0, fake, &err), opening[i].code);
        assert_non_null(strstr(err.message, opening[i].words));
        assert_null(gpu);
    }
    setenv("CUDA_VISIBLE_DEVICES", "9", 1);
    go_wrong("no device");
    assert_int_equal(leat__gpu_open(&gpu, 0, fake, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "CUDA_VISIBLE_DEVICES is '9'"));
    go_wrong("");
    assert_int_equal(leat__gpu_open(&gpu, 2, fake, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "CUDA_VISIBLE_DEVICES is '9': there are 2 GPUs: cuda:0 to cuda:1");
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(leat__gpu_open(&gpu, 2, fake, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "there are 2 GPUs: cuda:0 to cuda:1");
    gpu = open_fake(0);
    go_wrong("pin");
    assert_int_equal(leat__gpu_copy_rate(gpu, true, &rate, &err), LEAT_ENOMEM);
    go_wrong("memory");
    assert_int_equal(leat__gpu_copy_rate(gpu, true, &rate, &err), LEAT_ENOMEM);
    assert_int_equal(leat__gpu_copy_rate(gpu, false, &rate, &err), LEAT_ENOMEM);
    go_wrong("copy");
    assert_int_equal(leat__gpu_copy_rate(gpu, true, &rate, &err), LEAT_EIO);
    assert_int_equal(leat__gpu_copy_rate(gpu, false, &rate, &err), LEAT_EIO);
    leat__gpu_close(&gpu);
    assert_int_equal(held(), 0);
    assert_int_equal(leat__mem_blocks(), blocks);
}

static void no_driver_is_an_answer(void **state)
{
    uint32_t count = 7;
    leat_error err = {0};
    leat__gpu *gpu;
    assert_int_equal(leat__gpu_count("/nowhere/libcuda.so", &count, &err), LEAT_ENOTSUP);
    assert_int_equal(count, 0);
    assert_non_null(strstr(err.message, "no CUDA driver"));
    assert_int_equal(leat__gpu_open(&gpu, 0, "libm.so.6", &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "lacks cuInit"));
    assert_null(gpu);
}

static void a_name_chooses_the_device(void **state)
{
    static const char *const wrong[] = {"gpu",     "cuda:", "cuda:x",  "cuda:-1",
                                        "cuda:00", "cudax", "cuda:1x", ""};
    leat_error err = {0};
    uint32_t index = 9;
    go_wrong("");
    for (size_t i = 0; i < LEAT_COUNT(wrong); i++)
        assert_int_equal(leat__gpu_choose(wrong[i], &index, &err), LEAT_EINVAL);
    assert_int_equal(leat__gpu_choose("cuda", &index, &err), 0);
    assert_int_equal(index, 0);
    go_wrong("current"); /* the thread uses device 1 already */
    assert_int_equal(leat__gpu_choose("cuda", &index, &err), 0);
    assert_int_equal(index, 1);
    setenv("LOCAL_RANK", "0", 1);
    assert_int_equal(leat__gpu_choose("cuda", &index, &err), 0);
    assert_int_equal(index, 0);
    setenv("LOCAL_RANK", "7", 1); /* more ranks than devices that this process sees */
    go_wrong("");
    assert_int_equal(leat__gpu_choose("cuda", &index, &err), 0);
    assert_int_equal(index, 0);
    static const char *const broken[] = {"x", "-1", "99999999999", "1x", " 1"};
    for (size_t i = 0; i < LEAT_COUNT(broken); i++) {
        setenv("LOCAL_RANK", broken[i], 1);
        assert_int_equal(leat__gpu_choose("cuda", &index, &err), LEAT_EINVAL);
        assert_non_null(strstr(err.message, "LOCAL_RANK="));
    }
    setenv("LOCAL_RANK", "", 1);
    assert_int_equal(leat__gpu_choose("cuda", &index, &err), 0);
    unsetenv("LOCAL_RANK");
    assert_int_equal(leat__gpu_choose("cuda:5", &index, &err), 0);
    assert_int_equal(index, 5);
    assert_int_equal(held(), 0); /* no context was made */
}

static void this_machine(void **state)
{
    uint32_t count;
    leat_error err = {0};
    unsetenv("LEAT_CUDA_DRIVER");
    int rc = leat__gpu_count(NULL, &count, &err);
    if (rc != 0) {
        assert_true(err.message[0] != '\0');
        print_message("%s\n", err.message);
        return;
    }
    leat__gpu *gpu;
    leat__gpu_rate pinned, plain;
    if (leat__gpu_open(&gpu, 0, NULL, &err) != 0) fail_msg("%s", err.message);
    if (leat__gpu_copy_rate(gpu, true, &pinned, &err) != 0) fail_msg("%s", err.message);
    if (leat__gpu_copy_rate(gpu, false, &plain, &err) != 0) fail_msg("%s", err.message);
    print_message("%s: %.1f GB/s page-locked (%.1f to %.1f), %.1f ordinary (%.1f to %.1f)\n",
                  leat__gpu_info_view(gpu)->name, pinned.mid / 1e9, pinned.low / 1e9, pinned.high / 1e9,
                  plain.mid / 1e9, plain.low / 1e9, plain.high / 1e9);
    assert_true(plain.mid > 1e8 && pinned.mid >= plain.mid * 0.8);
    leat__gpu_close(&gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_says_what_it_is),           cmocka_unit_test(pinned_memory_is_released),
        cmocka_unit_test(mapped_memory_is_released),          cmocka_unit_test(rates_are_what_the_bus_gives),
        cmocka_unit_test(trouble_is_named_and_nothing_stays), cmocka_unit_test(no_driver_is_an_answer),
        cmocka_unit_test(a_name_chooses_the_device),          cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
