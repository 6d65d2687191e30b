/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/gpu/driver.c: loading, starting, naming errors.
 */
#include "fake_driver.h"

#include "gpu/driver.h"

static void every_call_is_there(void **state)
{
    leat__cu cu;
    int count = 0;
    go_wrong("");
    assert_int_equal(leat__cu_start(&cu, fake_path, &count, NULL), 0);
    assert_int_equal(count, 2);
#define CHECK(member, symbol, required, parameters) assert_true(cu.member != NULL);
    LEAT__CU_MAP(CHECK)
#undef CHECK
}

static void the_environment_names_the_library(void **state)
{
    leat__cu cu;
    int count = 0;
    leat_error err = {0};
    go_wrong("");
    assert_int_equal(leat__cu_start(&cu, NULL, &count, &err), 0);
    setenv("LEAT_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
    assert_int_equal(leat__cu_start(&cu, NULL, &count, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "/nowhere/libcuda.so"));
    setenv("LEAT_CUDA_DRIVER", fake_path, 1);
}

static void codes_become_errors(void **state)
{
    leat__cu cu;
    int count = 0;
    leat_error err = {0};
    go_wrong("");
    assert_int_equal(leat__cu_start(&cu, fake_path, &count, &err), 0);
    assert_int_equal(leat__cu_explain(&cu, 0, "nothing", &err), 0);
    assert_int_equal(leat__cu_explain(&cu, LEAT__CU_OUT_OF_MEMORY, "a thing", &err), LEAT_ENOMEM);
    assert_string_equal(err.message, "CUDA: a thing: CUDA_ERROR_OUT_OF_MEMORY");
    assert_int_equal(leat__cu_explain(&cu, LEAT__CU_NO_DEVICE, "a thing", &err), LEAT_ENOTSUP);
    assert_int_equal(leat__cu_explain(&cu, 999, "a thing", &err), LEAT_EIO);
    assert_null(strstr(err.message, "restart"));
    assert_int_equal(leat__cu_explain(&cu, 710, "a thing", &err), LEAT_EIO); /* an assertion in a kernel */
    assert_non_null(strstr(err.message, "restart"));
}

static void a_forked_process_is_named(void **state)
{
    leat__cu cu;
    int count = 0;
    leat_error err = {0};
    go_wrong("forked");
    assert_int_equal(leat__cu_start(&cu, fake_path, &count, &err), LEAT_EFORK);
    assert_non_null(strstr(err.message, "spawn"));
    go_wrong("");
}

static void a_wrong_list_of_devices_is_named(void **state)
{
    leat__cu cu;
    int count = 0;
    leat_error err = {0};
    go_wrong("twice");
    setenv("CUDA_VISIBLE_DEVICES", "0,0", 1);
    assert_int_equal(leat__cu_start(&cu, fake_path, &count, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "CUDA_VISIBLE_DEVICES is '0,0'"));
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(leat__cu_start(&cu, fake_path, &count, &err), LEAT_EIO);
    go_wrong("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_there),
        cmocka_unit_test(the_environment_names_the_library),
        cmocka_unit_test(codes_become_errors),
        cmocka_unit_test(a_forked_process_is_named),
        cmocka_unit_test(a_wrong_list_of_devices_is_named),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
