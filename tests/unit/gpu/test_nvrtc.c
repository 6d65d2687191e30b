/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/gpu/nvrtc.c against the stand-in of fake_cuda.c: compiling, keeping, and what is not there.
 */
#include "fake_driver.h"

#include "base/mem.h"
#include "gpu/nvrtc.h"

static const char source[] = "leat_tiles";

static int compile(const char **origin, leat__buf *out, leat_error *err)
{
    leat__buf_clear(out);
    return leat__nvrtc_compile(source, 90, out, origin, err);
}

static void compiled_once_and_kept(void **state)
{
    char folder[] = "/tmp/leat-nvrtc-XXXXXX", command[64];
    leat__buf out;
    const char *origin;
    leat_error err = {0};
    assert_non_null(mkdtemp(folder));
    setenv("LEAT_CACHE_DIR", folder, 1);
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(compile(&origin, &out, &err), 0);
    assert_string_equal(origin, "NVRTC");
    assert_int_equal(out.len, 100);
    assert_int_equal(compile(&origin, &out, &err), 0);
    assert_string_equal(origin, "kept");
    assert_int_equal(out.len, 100);
    snprintf(command, sizeof command, "for f in %s/*; do truncate -s 50 $f; done", folder);
    assert_int_equal(system(command), 0); /* a damaged file is made again */
    assert_int_equal(compile(&origin, &out, &err), 0);
    assert_string_equal(origin, "NVRTC");
    setenv("LEAT_CACHE_DIR", "/nowhere/at/all", 1);
    assert_int_equal(compile(&origin, &out, &err), 0);
    assert_string_equal(origin, "NVRTC");
    leat__buf_reset(&out);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void trouble_is_named(void **state)
{
    leat__buf out;
    const char *origin;
    leat_error err = {0};
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    go_wrong("compile");
    assert_int_equal(compile(&origin, &out, &err), LEAT_EINTERNAL);
    assert_non_null(strstr(err.message, "line 1: what"));
    go_wrong("");
    setenv("LEAT_NVRTC", "/nowhere/libnvrtc.so", 1);
    assert_int_equal(compile(&origin, &out, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "no NVRTC"));
    setenv("LEAT_NVRTC", "libm.so.6", 1);
    assert_int_equal(compile(&origin, &out, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "lacks nvrtcCreateProgram"));
    setenv("LEAT_NVRTC", fake_path, 1);
    leat__buf_reset(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_once_and_kept),
        cmocka_unit_test(trouble_is_named),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
