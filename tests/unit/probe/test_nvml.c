/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/nvml.c against a fake library (fake_nvml.c), against libraries that are not
 * NVML, and against this machine.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/nvml.h"

static char fake[PATH_MAX];
static leat_gpu gpus[LEAT_MACHINE_GPUS_MAX];
static char status[96];

/* The fake is in a folder beside this program. */
static int find_fake(void **state)
{
    char exe[PATH_MAX - 32];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return -1;
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    unsetenv("CUDA_VISIBLE_DEVICES");
    snprintf(fake, sizeof fake, "%s/probe/fake_nvml.so", exe);
    return access(fake, R_OK);
}

static uint32_t read_fake(const char *mode)
{
    setenv("FAKE_NVML", mode, 1);
    memset(gpus, 0xff, sizeof gpus);
    return leat__nvml_read(gpus, LEAT_MACHINE_GPUS_MAX, status, sizeof status, fake);
}

static void test_two_gpus(void **state)
{
    assert_int_equal(read_fake(""), 2);
    assert_string_equal(status, "ok");
    assert_string_equal(gpus[0].name, "Fake GPU 0");
    assert_string_equal(gpus[1].name, "Fake GPU 1");
    assert_string_equal(gpus[1].uuid, "GPU-1");
    assert_int_equal(gpus[1].memory_bytes, 1001);
    assert_int_equal(gpus[1].memory_used_bytes, 400);
    assert_int_equal(gpus[0].utilization_percent, 71);
    assert_int_equal(gpus[0].memory_utilization_percent, 29);
    assert_int_equal(gpus[0].compute_major, 9);
    assert_int_equal(gpus[0].compute_minor, 0);
    assert_int_equal(gpus[0].pcie_generation, 5);
    assert_int_equal(gpus[0].pcie_width, 16);
}

static void test_troubles(void **state)
{
    assert_int_equal(read_fake("none"), 0);
    assert_string_equal(status, "ok");
    assert_int_equal(read_fake("init"), 0);
    assert_string_equal(status, "NVML: Unknown Error");
    assert_int_equal(read_fake("count"), 0);
    assert_string_equal(status, "NVML: Unknown Error");
    assert_int_equal(read_fake("lost"), 1); /* one fell off the bus */
    assert_string_equal(status, "NVML: GPU 0: Unknown Error");
    assert_string_equal(gpus[0].name, "Fake GPU 1");
    assert_int_equal(read_fake("many"), 32);
    assert_string_equal(status, "only 32 of 40 GPUs shown");
    assert_int_equal(read_fake("refuses"), 2);
    assert_string_equal(gpus[0].name, "");
    assert_int_equal(gpus[0].memory_bytes + gpus[0].pcie_width + gpus[0].compute_major, 0);
}

static void test_bus(void **state)
{
    double in = -1, out = -1;
    setenv("FAKE_NVML", "", 1);
    assert_true(leat__nvml_bus(1, &in, &out, fake));
    assert_int_equal(in, 3001 * 1024);
    assert_int_equal(out, 201 * 1024);
    setenv("FAKE_NVML", "refuses", 1);
    assert_false(leat__nvml_bus(0, &in, &out, fake));
    setenv("FAKE_NVML", "lost", 1);
    assert_true(leat__nvml_bus(0, &in, &out, fake)); /* the first that the list of GPUs has */
    assert_int_equal(in, 3001 * 1024);
    assert_false(leat__nvml_bus(0, &in, &out, "/nowhere/x.so"));
}

/* Of two GPUs: the names that CUDA would give, in its order. */
static void test_visible_devices(void **state)
{
    static const struct {
        const char *list, *names;
    } rows[] = {
        {"", ""},           {"-1", ""},
        {"5", ""},          {"NoDevFiles", ""},
        {"0", "0"},         {"1", "1"},
        {"1,0", "10"},      {"0,5,1", "0"},
        {"0,-1,1", "0"},    {" 1, 0", "10"},
        {"1,,0", "1"},      {"0,0", ""},
        {"GPU-1", "1"},     {"GPU-1,GPU-0", "10"},
        {"GPU-", ""},       {"GPU-7,GPU-0", ""},
        {"MIG-1/2/0", "1"}, {"MIG-7/0/0", ""},
        {"0,1,", "01"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char names[8] = "";
        setenv("CUDA_VISIBLE_DEVICES", rows[i].list, 1);
        uint32_t n = read_fake("");
        for (uint32_t k = 0; k < n; k++) names[k] = gpus[k].name[strlen("Fake GPU ")];
        if (strcmp(names, rows[i].names) != 0) fail_msg("'%s': '%s'", rows[i].list, names);
    }
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    read_fake("");
    assert_string_equal(status, "CUDA_VISIBLE_DEVICES: 0 of 2 GPUs");
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    double in = -1, out = -1;
    assert_true(leat__nvml_bus(0, &in, &out, fake)); /* the first visible one */
    assert_int_equal(in, 3001 * 1024);
    assert_false(leat__nvml_bus(1, &in, &out, fake));
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void test_no_library(void **state)
{
    assert_int_equal(leat__nvml_read(gpus, 32, status, sizeof status, "/nowhere/x.so"), 0);
    assert_non_null(strstr(status, "no NVIDIA driver library"));
    assert_int_equal(leat__nvml_read(gpus, 32, status, sizeof status, "libm.so.6"), 0);
    assert_string_equal(status, "NVML is too old or not NVML");
}

static void test_this_machine(void **state)
{
    uint32_t n = leat__nvml_read(gpus, LEAT_MACHINE_GPUS_MAX, status, sizeof status, NULL);
    assert_true(status[0] != '\0');
    for (uint32_t i = 0; i < n; i++) {
        print_message("GPU %u: %s, %llu bytes, PCIe %u x%u\n", i, gpus[i].name,
                      (unsigned long long)gpus[i].memory_bytes, gpus[i].pcie_generation, gpus[i].pcie_width);
        assert_true(gpus[i].name[0] != '\0');
        assert_true(gpus[i].memory_used_bytes <= gpus[i].memory_bytes);
        assert_true(gpus[i].utilization_percent <= 100);
        double in, out;
        if (leat__nvml_bus(i, &in, &out, NULL)) {
            print_message("GPU %u: %.1f MB/s in, %.1f MB/s out\n", i, in / 1e6, out / 1e6);
            assert_true(in >= 0 && out >= 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_gpus),   cmocka_unit_test(test_troubles),
        cmocka_unit_test(test_bus),        cmocka_unit_test(test_visible_devices),
        cmocka_unit_test(test_no_library), cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
